//! HIP C++: one text for AMD's compilers, for NVIDIA's, and for the CPU's.
//!
//! | compiler | how | flags |
//! |---|---|---|
//! | hiprtc | compiles at run time, for the device that is there | [`HIPRTC_FLAGS`], `--offload-arch=gfx...` |
//! | clang with its AMD back end | tests look at its instructions | [`CLANG_FLAGS`], `--offload-arch=gfx...` |
//! | NVRTC | the same text on a device of NVIDIA | [`NVRTC_FLAGS`], `--gpu-architecture=sm_...` |
//! | g++, clang | a shared library for the CPU, behind a header that stands for the device | [`CPU_FLAGS`] |
//!
//! What keeps the bits:
//! - Contraction is off by a pragma in the body, for compilers that are clang, and by a flag for all of them. A flag that says
//!   otherwise wins over the pragma, hence both.
//! - `+ - *` and comparisons are those of C++ on `float`; `/` is correctly rounded with the flags of the lists, and subnormals
//!   are kept. The square root is our own, since that of HIP 5 is one ulp off.
//! - Signs change by bits. Words are `unsigned` throughout, so that nothing overflows; the sign is read by `int(x)`.
//! - A float is written so that it is exact: in decimal where that is short, else in hexadecimal, else by its bits.
//! - The guard in front refuses what a compiler tells of fast math, flushed subnormals and approximate division.
//!
//! A barrier orders the whole memory of a workgroup. One that a kernel needs to order buffers has a fence in front, which says
//! so and costs nothing beside it.
//!
//! Arguments that nothing in a step writes are `__restrict__`; the others may overlap as the kernel's memories may.

mod prelude;
mod reserved;

use std::fmt::Write as _;

use ds4_ir::numerics::canonical;

use crate::kernel::{Access, Kernel, MemoryRow, Operator, Source, Space, Type};

use super::structured::{self, Dialect, bare};
use super::{StepBlock, entry_point};

pub(crate) use prelude::prelude;
pub(crate) use reserved::RESERVED;

/// Flags for hiprtc, beside the architecture. In this order, behind all others.
pub const HIPRTC_FLAGS: &[&str] =
    &["-std=c++17", "-O3", "-fno-fast-math", "-fno-gpu-flush-denormals-to-zero", "-ffp-contract=off"];

/// Flags for clang as a compiler of device code alone, beside the architecture: no ROCm is needed, so a header has to
/// define `__global__` and its like.
pub const CLANG_FLAGS: &[&str] = &[
    "-x",
    "hip",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-nogpulib",
    "-nogpuinc",
    "-std=c++17",
    "-O3",
    "-fno-fast-math",
    "-fhip-fp32-correctly-rounded-divide-sqrt",
    "-fno-gpu-flush-denormals-to-zero",
    "-ffp-contract=off",
];

/// Flags for NVRTC, beside the architecture.
pub const NVRTC_FLAGS: &[&str] = &["--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"];

/// Flags for a compiler of the CPU that makes a shared library.
pub const CPU_FLAGS: &[&str] =
    &["-x", "c++", "-std=c++17", "-O2", "-fno-fast-math", "-ffp-contract=off", "-fPIC", "-shared"];

/// The text of a kernel; its entry point is [`entry_point`]. `None` if the block lacks a dimension that
/// the kernel needs.
pub fn emit(kernel: &Kernel, block: &StepBlock) -> Option<String> {
    let pieces = structured::write(kernel, &Hip, block, "number")?;
    let mut main =
        format!("extern \"C\" __global__ void __launch_bounds__({}) {}(\n", kernel.lanes, entry_point(kernel));
    main += "    const unsigned *__restrict__ step";
    for (memory, source, row) in kernel.arguments() {
        let _ = write!(main, ",\n    {}{}", pointer(source, row), pieces.memories[memory.0 as usize]);
    }
    main += "\n) {\n";
    main += CONTRACTION_OFF;
    for (name, row) in pieces.memories.iter().zip(&kernel.memories) {
        if row.space == Space::Workgroup {
            let _ = writeln!(main, "    __shared__ {} {name}[{}];", type_name(row.element), row.len);
        }
    }
    main += "    const unsigned lane = threadIdx.x;\n";
    main += "    const unsigned number = blockIdx.x + blockIdx.y * gridDim.x;\n";
    main += &pieces.body;
    main += "}\n";
    let calls = |name: &str| main.contains(&format!("{name}(")) || main.contains(&format!("{name}<"));
    Some(format!("// {}\n{}\n{main}", comment(&kernel.about), prelude(&calls)))
}

/// First in the body, or clang does not take it.
pub(crate) const CONTRACTION_OFF: &str = "#if defined(__clang__)\n#pragma clang fp contract(off)\n#endif\n";

/// A line that ends where it seems to: a backslash at its end would take the next one in.
fn comment(line: &str) -> String {
    line.chars().map(|c| if (c.is_ascii_graphic() || c == ' ') && !"\\?".contains(c) { c } else { '_' }).collect()
}

/// The type of an argument, up to its name.
fn pointer(source: Source, row: &MemoryRow) -> String {
    let name = type_name(row.element);
    match row.access {
        Access::Read if !source.is_written() => format!("const {name} *__restrict__ "),
        Access::Read => format!("const {name} *"),
        Access::Write | Access::ReadWrite => format!("{name} *"),
    }
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "float",
        Type::Word | Type::Id => "unsigned",
        Type::Bool => "bool",
    }
}

/// A constant float. The decimal form is taken where it names the value to the precision of a double, so that no compiler
/// rounds it to another, whatever precision it reads with.
pub(crate) fn float(bits: u32) -> String {
    let value = canonical(f32::from_bits(bits));
    if !value.is_normal() && value != 0.0 {
        return format!("as_float({})", word(value.to_bits()));
    }
    let decimal = format!("{value:?}");
    if decimal.len() <= 10 && !decimal.contains('e') && decimal.parse() == Ok(f64::from(value)) {
        return decimal + "f";
    }
    hexadecimal(bits)
}

/// `-0x1.8p+3f`.
fn hexadecimal(bits: u32) -> String {
    let sign = if bits >> 31 == 1 { "-" } else { "" };
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let fraction = format!("{:06x}", (bits & 0x7f_ffff) << 1);
    let digits = fraction.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x1{point}{digits}p{exponent:+}f")
}

/// A constant word.
pub(crate) fn word(word: u32) -> String {
    if word < 1 << 16 { format!("{word}u") } else { format!("{word:#x}u") }
}

/// The dialect.
struct Hip;

impl Dialect for Hip {
    fn reserved(&self) -> &'static [&'static str] {
        RESERVED
    }

    fn float(&self, bits: u32) -> String {
        float(bits)
    }

    fn word(&self, n: u32) -> String {
        word(n)
    }

    fn truth(&self, holds: bool) -> String {
        holds.to_string()
    }

    fn step(&self, place: usize) -> String {
        format!("step[{place}]")
    }

    fn lane(&self) -> &'static str {
        "lane"
    }

    fn operator(&self, op: Operator, args: &[String]) -> String {
        use Operator::*;
        let arg = |i: usize| args.get(i).map_or("", String::as_str);
        let (x, y) = (arg(0), arg(1));
        let infix = |sign: &str| format!("({x} {sign} {y})");
        let call = |name: &str| format!("{name}({})", bare(x));
        let signed = |x: &str| format!("int({})", bare(x));
        match op {
            Add | AddInt => infix("+"),
            Sub | SubInt => infix("-"),
            Mul | MulInt => infix("*"),
            Div | DivInt => infix("/"),
            RemInt => infix("%"),
            And => infix("&"),
            Or => infix("|"),
            Xor => infix("^"),
            Shl => infix("<<"),
            Shr => infix(">>"),
            Less | Below => infix("<"),
            Equal | EqualInt => infix("=="),
            Both => infix("&&"),
            Either => infix("||"),
            Sar => format!("unsigned({} >> {y})", signed(x)),
            LessInt => format!("({} < {})", signed(x), signed(y)),
            DotBytes => format!("dot_bytes({}, {})", bare(x), bare(y)),
            Sqrt => call("root"),
            Neg => call("flipped"),
            Abs => call("magnitude"),
            Floor => call("floored"),
            Ceil => call("ceiled"),
            Trunc => call("truncated"),
            RoundEven => call("rounded_even"),
            Bits => call("as_uint"),
            FromBits => call("as_float"),
            FloatOf => format!("float({})", signed(x)),
            IntOf => format!("unsigned({})", signed(x)),
            Not => format!("!{x}"),
            Select | SelectInt => format!("({x} ? {y} : {})", arg(2)),
            IdWhere if x == "true" => y.into(),
            IdWhere => format!("({x} ? {y} : 0xffffffffu)"),
            Float | Int | Truth | Local | Extent | Group | Lane | Masked => String::new(),
        }
    }

    fn least(&self, x: &str, y: &str) -> String {
        format!("least({x}, {y})")
    }

    fn bind(&self, ty: Type, name: &str, value: &str) -> String {
        format!("const {} {name} = {value};", type_name(ty))
    }

    fn var(&self, ty: Type, name: &str, value: &str) -> String {
        format!("{} {name} = {value};", type_name(ty))
    }

    fn element(&self, memory: &str, index: &str) -> String {
        format!("{memory}[{index}]")
    }

    fn shuffle(&self, value: &str, distance: u32, _: u32) -> String {
        format!("exchanged<{distance}>({})", bare(value))
    }

    fn loop_head(&self, index: &str, start: &str, end: &str, step: u32) -> String {
        format!("for (unsigned {index} = {}; {index} < {end}; {index} += {})", bare(start), word(step))
    }

    fn condition(&self, text: &str) -> String {
        format!("({})", bare(text))
    }

    fn barrier(&self) -> &'static str {
        "__syncthreads();"
    }

    fn buffer_fence(&self) -> &'static str {
        "__threadfence_block();"
    }

    fn leave(&self) -> &'static str {
        "return;"
    }
}

#[cfg(test)]
pub(crate) mod tests;
