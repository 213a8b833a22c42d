//! Code objects of AMD's devices: what stands in them of rounding, and what instructions a kernel is made of.

use std::collections::{HashMap, HashSet};

use ds4_kernels::kernel::{Kernel, Operator};

use quotient::LABEL;
pub use quotient::of_quotients;

// Other crates include this file; the folder is the same for all.
#[path = "quotient.rs"]
mod quotient;

/// Rounding and subnormals of f32 as a kernel's descriptor sets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modes {
    /// 0 is to nearest even.
    pub rounding: u32,
    /// 3 keeps subnormals of operands and results.
    pub subnormals: u32,
}

/// The modes that the contract needs.
pub const EXACT: Modes = Modes { rounding: 0, subnormals: 3 };

/// The modes of every kernel of a code object, by its symbol without `.kd`. The object is a 64-bit ELF file; a descriptor has
/// 64 bytes, with the register `COMPUTE_PGM_RSRC1` at byte 48.
pub fn modes(object: &[u8]) -> HashMap<String, Modes> {
    let word = |at: usize| u32::from_le_bytes(object[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(object[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes(object[at..at + 2].try_into().unwrap()));
    assert_eq!(&object[..5], b"\x7fELF\x02", "not a code object");
    // Of a section: type, address, file offset, size, linked section.
    let sections: Vec<[usize; 5]> = (0..half(60))
        .map(|i| long(40) + i * half(58))
        .map(|at| [word(at + 4) as usize, long(at + 16), long(at + 24), long(at + 32), word(at + 40) as usize])
        .collect();
    let mut modes = HashMap::new();
    let dynamic_symbols = sections.iter().filter(|section| section[0] == 11);
    for &[_, _, start, size, names] in dynamic_symbols {
        for symbol in (start..start + size).step_by(24) {
            let name: Vec<u8> =
                object[sections[names][2] + word(symbol) as usize..].iter().copied().take_while(|&b| b != 0).collect();
            let name = String::from_utf8(name).unwrap();
            let Some(kernel) = name.strip_suffix(".kd") else { continue };
            let [_, address, offset, ..] = sections[half(symbol + 6)];
            let register = word(long(symbol + 8) - address + offset + 48);
            modes.insert(kernel.to_string(), Modes { rounding: register >> 12 & 3, subnormals: register >> 16 & 3 });
        }
    }
    modes
}

/// The instructions of every symbol of a disassembly, with a [`LABEL`] where a branch arrives.
pub fn listing(disassembly: &str) -> HashMap<String, Vec<String>> {
    let targets = targets(disassembly);
    let mut listing: HashMap<String, Vec<String>> = HashMap::new();
    let mut symbol = String::new();
    for line in disassembly.lines() {
        if let Some((_, name)) = heading(line) {
            symbol = name.to_string();
        } else if let Some((text, address)) = instruction(line) {
            let instructions = listing.entry(symbol.clone()).or_default();
            if address.is_some_and(|address| targets.contains(&address)) {
                instructions.push(LABEL.to_string());
            }
            instructions.push(text.to_string());
        }
    }
    listing
}

/// Address and name of a symbol: `0000000000002700 <k0>:`.
fn heading(line: &str) -> Option<(u64, &str)> {
    let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(address, 16).ok()?, name))
}

/// Text and address of an instruction: `s_branch 20      // 000000163390: BFA00014 <k53+0x1de4>`.
fn instruction(line: &str) -> Option<(&str, Option<u64>)> {
    let (text, remark) = line.strip_prefix('\t')?.split_once("//").unwrap_or((&line[1..], ""));
    let address = remark.trim().split(':').next().and_then(|text| u64::from_str_radix(text, 16).ok());
    Some((text.trim(), address))
}

/// Addresses where branches arrive: the disassembler names them. A branch that is too long for one instruction adds a constant
/// to the address behind its `s_getpc`.
fn targets(disassembly: &str) -> HashSet<u64> {
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let symbols: HashMap<&str, u64> = disassembly.lines().filter_map(heading).map(|(at, name)| (name, at)).collect();
    let (mut targets, mut base) = (HashSet::new(), None);
    for line in disassembly.lines() {
        let Some((text, address)) = instruction(line) else { continue };
        if text.starts_with("s_getpc_b64") {
            base = address.map(|address| address + 4);
        } else if text.starts_with("s_add_")
            && let Some(base) = base.take()
        {
            let far = text.rsplit(", ").next().and_then(hexadecimal);
            targets.extend(far.map(|far| base.wrapping_add_signed(i64::from(far as u32 as i32))));
        } else if text.contains("branch")
            && let Some((_, place)) = line.trim_end_matches('>').rsplit_once('<')
        {
            let (symbol, far) = place.split_once('+').unwrap_or((place, "0"));
            targets.extend(symbols.get(symbol).zip(hexadecimal(far)).map(|(start, far)| start + far));
        }
    }
    targets
}

/// Instructions on floats that are one rounded operation, or exact; and the estimate that the quotient of integers begins
/// with.
const PLAIN: [&str; 17] = [
    "add_f32",
    "sub_f32",
    "subrev_f32",
    "mul_f32",
    "floor_f32",
    "ceil_f32",
    "trunc_f32",
    "rndne_f32",
    "cvt_f32_i32",
    "cvt_f32_u32",
    "cvt_f32_ubyte",
    "cvt_i32_f32",
    "cvt_u32_f32",
    "cmp_",
    "cmpx_",
    "cndmask",
    "rcp_iflag_f32",
];

/// What division and the compiler's square root are made of, beside fused operations.
const OF_DIVISION: [&str; 4] = ["div_scale_f32", "div_fmas_f32", "div_fixup_f32", "rcp_"];

/// Fused operations of a division, each of which ends with one `div_fixup`.
const FUSED_IN_DIVISION: usize = 5;

/// The most fused operations of a square root, each of which has one `sqrt`.
const FUSED_IN_ROOT: usize = 2;

/// The name of an instruction without the unit that executes it; `v_s_` is a vector unit's work on scalars.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("::").map(|half| {
        let name = half.trim().split(' ').next().unwrap_or_default();
        let name = name.split_once('_').map_or(name, |(_, rest)| rest);
        name.trim_start_matches("dual_").trim_start_matches("pk_").trim_start_matches("s_")
    })
}

/// Whether an instruction rounds a product and a sum at once.
fn is_fused(name: &str) -> bool {
    name.starts_with("fma") || name.starts_with("mac_") || (name.starts_with("mad") && name.contains("_f"))
}

/// The first instruction of a kernel that its text does not ask for: a fused operation, one with another precision or an
/// approximation, a change of modes. The fused operation in a quotient of integers is known by its form ([`of_quotients`]) and
/// makes room for no other.
pub fn strange<'i>(kernel: &Kernel, instructions: &'i [String]) -> Option<&'i str> {
    let has = |op: Operator| kernel.exprs.iter().any(|row| row.op == op);
    let of_quotients = of_quotients(instructions);
    let all = || instructions.iter().zip(&of_quotients).flat_map(|(text, of_quotient)| names(text).zip(of_quotient));
    let count = |part: &str| all().filter(|(name, _)| name.starts_with(part)).count();
    let (root, division) = (has(Operator::Sqrt), has(Operator::Div));
    let allowed = FUSED_IN_DIVISION * count("div_fixup_f32") + FUSED_IN_ROOT * count("sqrt_f32");
    let fused = all().filter(|&(name, &of_quotient)| is_fused(name) && !of_quotient).count();
    let fits = |name: &str, of_quotient: bool| {
        PLAIN.iter().any(|plain| name.starts_with(plain))
            || (is_fused(name) && (of_quotient || fused <= allowed))
            || (division && OF_DIVISION.iter().any(|part| name.starts_with(part)))
            || (root && (name.starts_with("sqrt_f32") || name.starts_with("ldexp_f32")))
    };
    let is_strange = |(text, of_quotient): &(&String, &[bool; 2])| {
        let modifies = [" clamp", " mul:2", " mul:4", " div:2"].iter().any(|modifier| text.contains(modifier));
        let modes = ["s_setreg", "s_denorm_mode", "s_round_mode"].iter().any(|mode| text.starts_with(mode));
        let float = |name: &str| ["_f32", "_f16", "_f64", "_bf16", "_mix"].iter().any(|ty| name.contains(ty));
        let mut floats = names(text).zip(*of_quotient).filter(|(name, _)| float(name)).peekable();
        modes || (modifies && floats.peek().is_some()) || floats.any(|(name, &of_quotient)| !fits(name, of_quotient))
    };
    instructions.iter().zip(&of_quotients).find(is_strange).map(|(text, _)| text.as_str())
}
