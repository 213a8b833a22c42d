//! WGSL for the strict lowering: text that keeps its bits when it goes through naga to SPIR-V with contraction off, signed
//! zeros, infinities and NaN preserved and rounding to nearest even.
//!
//! What the text avoids, because some driver was seen to get it wrong in that mode: literal float zeros (folded), `fma`, `dot`
//! of floats, builtin functions with a rounding, `abs`, negation and comparisons of floats (subnormals are flushed), the
//! builtin `sqrt` alone (one ulp). Sign, comparison and square root work on the bits; special values and subnormal constants
//! are made from a loaded zero.
//!
//! Bindings of group 0: the step's block, then the arguments in the order of [`Kernel::arguments`]. Shuffles need subgroups of
//! eight lanes or more, whose lanes are numbered as the workgroup's.

use std::fmt::Write as _;

use crate::kernel::{Access, Kernel, Operator, Space, Type};

use super::structured::{self, Dialect};
use super::{StepBlock, entry_point};

/// The text of a kernel; its entry point is [`entry_point`]. `None` if the block lacks a dimension that the kernel needs.
pub fn emit(kernel: &Kernel, block: &StepBlock) -> Option<String> {
    let pieces = structured::write(kernel, &Wgsl, block, "number")?;
    let mut text = format!("// {}\n", kernel.about);
    let _ = writeln!(text, "@group(0) @binding(0) var<storage, read> step: array<u32>;");
    for (binding, (memory, source, row)) in (1..).zip(kernel.arguments()) {
        let name = &pieces.memories[memory.0 as usize];
        // Two pieces of one buffer may be bound in one dispatch only with the same access.
        let access = if source.is_written() || row.access != Access::Read { "read_write" } else { "read" };
        let _ = writeln!(
            text,
            "@group(0) @binding({binding}) var<storage, {access}> {name}: array<{}>;",
            type_name(row.element)
        );
    }
    for (name, row) in pieces.memories.iter().zip(&kernel.memories) {
        if row.space == Space::Workgroup {
            let _ = writeln!(text, "var<workgroup> {name}: array<{}, {}>;", type_name(row.element), row.len);
        }
    }
    let main = main(kernel, &pieces.body);
    for (name, definition) in FUNCTIONS {
        if main.contains(&format!("{name}(")) || needs(name, &main) {
            let _ = write!(text, "\n{definition}");
        }
    }
    Some(text + "\n" + &main)
}

fn main(kernel: &Kernel, body: &str) -> String {
    let mut text = format!("@compute @workgroup_size({})\nfn {}(\n", kernel.lanes, entry_point(kernel));
    text += "    @builtin(workgroup_id) workgroup: vec3<u32>,\n    @builtin(num_workgroups) workgroups: vec3<u32>,\n";
    text += "    @builtin(local_invocation_index) lane: u32,\n) {\n";
    text += "    let number = workgroup.x + workgroup.y * workgroups.x;\n";
    text + body + "}\n"
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "f32",
        Type::Word | Type::Id => "u32",
        Type::Bool => "bool",
    }
}

/// Functions of the text by name, in the order of their definition; `loaded` reads the step's block, which is called `step`.
pub(crate) const FUNCTIONS: [(&str, &str); 7] = [
    (
        "loaded",
        "// The float with these bits, which no compiler knows.\nfn loaded(bits: u32) -> f32 { return bitcast<f32>(bits ^ step[0]); }\n",
    ),
    ("flipped", "fn flipped(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }\n"),
    ("magnitude", "fn magnitude(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }\n"),
    (
        "ordered",
        "// The order of values as integers, -0 equal to +0.\nfn ordered(bits: u32) -> i32 {\n    return select(bitcast<i32>(bits), bitcast<i32>(0x80000000u - bits), bits >= 0x80000000u);\n}\n",
    ),
    (
        "less",
        "fn less(x: f32, y: f32) -> bool {\n    let a = bitcast<u32>(x);\n    let b = bitcast<u32>(y);\n    let numbers = (a & 0x7fffffffu) <= 0x7f800000u && (b & 0x7fffffffu) <= 0x7f800000u;\n    return numbers && ordered(a) < ordered(b);\n}\n",
    ),
    (
        "equal",
        "fn equal(x: f32, y: f32) -> bool {\n    let a = bitcast<u32>(x);\n    let b = bitcast<u32>(y);\n    return (a & 0x7fffffffu) <= 0x7f800000u && ordered(a) == ordered(b);\n}\n",
    ),
    ("root", ROOT),
];

/// Whether a function is called by another that the text calls.
fn needs(name: &str, main: &str) -> bool {
    let calls = |caller: &str| main.contains(&format!("{caller}("));
    match name {
        "ordered" => calls("less") || calls("equal"),
        "loaded" => calls("root"),
        _ => false,
    }
}

/// The correctly rounded square root: an estimate, then the integer root corrected until the remainder fits.
///
/// With significand `m` (24 bits) and `mm = m` or `2m` so that the exponent halves, `s = floor(sqrt(mm * 2^25))` has 25 bits,
/// and its last bit decides the rounding: `mm * 2^25` is even, so an odd `s` is never the exact root of a tie.
const ROOT: &str = "\
fn root(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let nan_or_negative = bits > 0x7f800000u && bits != 0x80000000u;
    if nan_or_negative { return loaded(0x7fc00000u); }
    if bits == 0x7f800000u || (bits << 1u) == 0u { return x; }
    var exponent = bitcast<i32>(bits >> 23u);
    var m = bits & 0x7fffffu;
    if exponent == 0 {
        let shift = countLeadingZeros(m) - 8u;
        m = m << shift;
        exponent = 1 - bitcast<i32>(shift);
    } else {
        m = m | 0x800000u;
    }
    if (exponent & 1) == 0 { exponent = exponent - 1; m = m << 1u; }
    var s = u32(sqrt(f32(m << 1u)) * 4096.0f);
    var rest = bitcast<i32>((m << 25u) - s * s);
    loop {
        if rest >= 0 { break; }
        s = s - 1u;
        rest = rest + bitcast<i32>(2u * s + 1u);
    }
    loop {
        if rest <= bitcast<i32>(2u * s) { break; }
        rest = rest - bitcast<i32>(2u * s + 1u);
        s = s + 1u;
    }
    let rounded = (s >> 1u) + (s & 1u);
    return bitcast<f32>(rounded + (bitcast<u32>((exponent - 175) / 2 + 150) << 23u));
}
";

/// The dialect.
struct Wgsl;

impl Dialect for Wgsl {
    fn reserved(&self) -> &'static [&'static str] {
        &[
            "step",
            "number",
            "workgroup",
            "workgroups",
            "lane",
            "loaded",
            "flipped",
            "magnitude",
            "ordered",
            "less",
            "equal",
            "root",
            "select",
            "min",
            "max",
            "floor",
            "ceil",
            "trunc",
            "round",
            "f32",
            "i32",
            "u32",
            "bool",
            "bitcast",
            "exp",
            "log",
            "sin",
            "cos",
            "sqrt",
            "abs",
            "sign",
            "dot",
            "mix",
            "let",
            "var",
            "fn",
            "for",
            "loop",
            "if",
            "else",
            "return",
            "true",
            "false",
            "array",
            "struct",
            "const",
            "override",
            "target",
        ]
    }

    fn float(&self, bits: u32) -> String {
        let value = f32::from_bits(bits);
        match bits {
            0 => "bitcast<f32>(step[0])".into(),
            0x8000_0000 => "bitcast<f32>(step[1])".into(),
            _ if !value.is_normal() => format!("loaded({bits:#010x}u)"),
            _ => format!("{value:?}f"),
        }
    }

    fn word(&self, word: u32) -> String {
        if word < 1 << 16 { format!("{word}u") } else { format!("{word:#x}u") }
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
        let call = |name: &str| format!("{name}({x})");
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
            Below => infix("<"),
            EqualInt => infix("=="),
            Both => infix("&&"),
            Either => infix("||"),
            Sar => format!("bitcast<u32>(bitcast<i32>({x}) >> {y})"),
            LessInt => format!("(bitcast<i32>({x}) < bitcast<i32>({y}))"),
            DotBytes => format!("bitcast<u32>(dot4I8Packed({x}, {y}))"),
            Sqrt => call("root"),
            Neg => call("flipped"),
            Abs => call("magnitude"),
            Floor => call("floor"),
            Ceil => call("ceil"),
            Trunc => call("trunc"),
            RoundEven => call("round"),
            Bits => call("bitcast<u32>"),
            FromBits => call("bitcast<f32>"),
            FloatOf => format!("f32(bitcast<i32>({x}))"),
            IntOf => format!("bitcast<u32>(i32({x}))"),
            Not => format!("!{x}"),
            Less => format!("less({x}, {y})"),
            Equal => format!("equal({x}, {y})"),
            Select | SelectInt => format!("select({}, {y}, {x})", arg(2)),
            IdWhere => format!("select(0xffffffffu, {y}, {x})"),
            Float | Int | Truth | Local | Extent | Group | Lane | Masked => String::new(),
        }
    }

    fn least(&self, x: &str, y: &str) -> String {
        format!("min({x}, {y})")
    }

    fn bind(&self, _: Type, name: &str, value: &str) -> String {
        format!("let {name} = {value};")
    }

    fn var(&self, _: Type, name: &str, value: &str) -> String {
        format!("var {name} = {value};")
    }

    fn element(&self, memory: &str, index: &str) -> String {
        format!("{memory}[{index}]")
    }

    fn shuffle(&self, value: &str, distance: u32, _: u32) -> String {
        format!("subgroupShuffleXor({value}, {distance}u)")
    }

    fn loop_head(&self, index: &str, start: &str, end: &str, step: u32) -> String {
        format!("for (var {index} = {start}; {index} < {end}; {index} += {step}u)")
    }

    fn barrier(&self) -> &'static str {
        "workgroupBarrier();"
    }

    fn buffer_fence(&self) -> &'static str {
        "storageBarrier();"
    }

    fn leave(&self) -> &'static str {
        "return;"
    }
}

#[cfg(test)]
pub(crate) mod tests;
