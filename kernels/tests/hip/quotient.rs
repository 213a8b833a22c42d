//! The quotient of small integers in machine code of AMD's devices.
//!
//! The devices have no instruction for it. Where both integers are below 2^24 in magnitude, the compiler makes it of floats:
//!
//! ```text
//! n = cvt_f32(x)             d = cvt_f32(y)
//! r = rcp_iflag(d)           p = n * r              q = trunc(p)
//! e = fma(-q, d, n)          x / y = cvt_u32(q) + (|e| >= |d|)
//! ```
//!
//! `n`, `d` and `q` are integers that f32 holds exactly, and `q` is the quotient or its neighbour. So `e` is an integer of less
//! than twice `d`, which f32 holds as well: the fused operation rounds nothing. `rcp_iflag` stands in no other sequence with
//! `trunc`, and no float of a kernel's text is such a `q`: what has this form is no contraction of the text's operations.

use std::collections::HashMap;

/// What stands in a listing where a branch may arrive.
pub const LABEL: &str = "label";

/// Instructions that make a float of an integer.
const CONVERSIONS: [&str; 3] = ["cvt_f32_u32", "cvt_f32_i32", "cvt_f32_ubyte"];

/// What is known of a register. The numbers `n` and `d` are named by the instructions that convert them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// An integer, converted.
    Whole(usize),
    /// `r`.
    Reciprocal { d: usize },
    /// `p`.
    Product { n: usize, d: usize },
    /// `q`.
    Truncated { n: usize, d: usize },
    /// `-q`.
    Negated { n: usize, d: usize },
}

/// For each instruction, which of its halves (there is one, or two that are issued together) are the fused operation of a
/// quotient.
///
/// Registers are followed where all lanes go the same way: what is known of them ends at a branch, at a label, and where the
/// mask of lanes changes.
pub fn of_quotients(instructions: &[String]) -> Vec<[bool; 2]> {
    let mut known: HashMap<String, Part> = HashMap::new();
    let mut found = vec![[false; 2]; instructions.len()];
    for (at, text) in instructions.iter().enumerate() {
        if ends_block(text) {
            known.clear();
            continue;
        }
        let halves: Vec<Half<'_>> = text.split("::").take(2).map(Half::of).collect();
        // Both halves read before either writes.
        let results: Vec<Option<Part>> =
            halves.iter().enumerate().map(|(i, half)| half.part(2 * at + i, &known)).collect();
        for (i, half) in halves.iter().enumerate() {
            found[at][i] = half.is_remainder(&known);
        }
        for (half, result) in halves.iter().zip(results) {
            let written = half.written();
            known.retain(|register, _| !written.contains(register));
            if let (Some(part), Some(&register)) = (result, half.operands.first()) {
                known.insert(register.to_string(), part);
            }
        }
    }
    found
}

/// Whether straight code ends with an instruction: control goes elsewhere, other lanes take part, or registers are written that
/// are not named.
fn ends_block(text: &str) -> bool {
    const ENDS: [&str; 10] =
        [LABEL, "branch", "setpc", "swappc", "s_call", "saveexec", "wrexec", "cmpx_", "movrel", "gpr_idx"];
    let first = text.split_once(' ').map_or("", |(_, operands)| operands.trim_start());
    ENDS.iter().any(|part| text.contains(part)) || first.starts_with("exec")
}

/// An instruction, or one of two that are issued together.
struct Half<'t> {
    /// Without unit and encoding.
    name: &'t str,
    /// The first is where the result goes. Modifiers stay with the last, which then is no plain register.
    operands: Vec<&'t str>,
}

impl<'t> Half<'t> {
    fn of(text: &'t str) -> Half<'t> {
        let (name, operands) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let name = name.split_once('_').map_or(name, |(_, rest)| rest);
        let name = name.trim_start_matches("dual_");
        let name = ["_e32", "_e64", "_sdwa"].iter().fold(name, |name, encoding| name.trim_end_matches(encoding));
        Half { name, operands: operands.split(',').map(str::trim).collect() }
    }

    /// What the result is, if it is part of a quotient.
    fn part(&self, at: usize, known: &HashMap<String, Part>) -> Option<Part> {
        let of = |i: usize| self.operands.get(i).and_then(|&operand| known.get(operand)).copied();
        let is_sign = |i: usize| self.operands.get(i) == Some(&"0x80000000");
        match (self.name, of(1), of(2)) {
            (name, ..) if CONVERSIONS.iter().any(|plain| name.starts_with(plain)) => Some(Part::Whole(at)),
            ("mov_b32" | "readfirstlane_b32", Some(part), None) => Some(part),
            ("rcp_iflag_f32", Some(Part::Whole(d)), None) => Some(Part::Reciprocal { d }),
            ("mul_f32", Some(Part::Whole(n)), Some(Part::Reciprocal { d }))
            | ("mul_f32", Some(Part::Reciprocal { d }), Some(Part::Whole(n))) => Some(Part::Product { n, d }),
            ("trunc_f32", Some(Part::Product { n, d }), None) => Some(Part::Truncated { n, d }),
            ("xor_b32", Some(Part::Truncated { n, d }), None) if is_sign(2) => Some(Part::Negated { n, d }),
            ("xor_b32", None, Some(Part::Truncated { n, d })) if is_sign(1) => Some(Part::Negated { n, d }),
            _ => None,
        }
    }

    /// Whether this is `fma(-q, d, n)` of one quotient.
    fn is_remainder(&self, known: &HashMap<String, Part>) -> bool {
        let of = |operand: &str| match operand.strip_prefix('-').map(|register| known.get(register).copied()) {
            Some(Some(Part::Truncated { n, d })) => Some(Part::Negated { n, d }),
            Some(_) => None,
            None => known.get(operand).copied(),
        };
        let (factors, added) = match (self.name, &*self.operands) {
            ("fma_f32", &[_, x, y, z]) => ([x, y], z),
            ("fmac_f32", &[z, x, y]) => ([x, y], z),
            _ => return false,
        };
        match (factors.map(of), of(added)) {
            ([Some(Part::Negated { n, d }), Some(Part::Whole(y))], Some(Part::Whole(z)))
            | ([Some(Part::Whole(y)), Some(Part::Negated { n, d })], Some(Part::Whole(z))) => (y, z) == (d, n),
            _ => false,
        }
    }

    /// The registers that are written. The second operand is taken as one of them where some instruction of such a name has a
    /// second result.
    fn written(&self) -> Vec<String> {
        const TWO: [&str; 4] = ["div_scale", "_co_", "mad_", "swap"];
        let count = if TWO.iter().any(|part| self.name.contains(part)) { 2 } else { 1 };
        self.operands.iter().take(count).flat_map(|operand| registers(operand)).collect()
    }
}

/// The single registers of an operand: `s[4:5]` is two, `vcc` as well.
fn registers(operand: &str) -> Vec<String> {
    if operand == "vcc" {
        return vec!["vcc_lo".to_string(), "vcc_hi".to_string()];
    }
    let range = operand.strip_suffix(']').and_then(|text| text.split_once('['));
    let bounds = range.and_then(|(bank, text)| text.split_once(':').map(|(from, to)| (bank, from.parse(), to.parse())));
    match bounds {
        Some((bank, Ok(from), Ok(to))) => (from..=to).map(|i: u32| format!("{bank}{i}")).collect(),
        _ => vec![operand.to_string()],
    }
}
