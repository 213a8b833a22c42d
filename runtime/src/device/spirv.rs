//! The pass over SPIR-V words that makes a module strict: correctly rounded, never contracted.
//!
//! naga has no option for any of this, so its output is patched:
//! - capabilities `SignedZeroInfNanPreserve` and `RoundingModeRTE`, and for each entry point the execution modes of
//!   both for 32-bit floats; below SPIR-V 1.4 also the extension that defines them;
//! - `NoContraction` on the result of every float operation that a driver may fuse or reassociate;
//! - `Coherent` on the buffers that a module writes, if it has a barrier that orders buffers: without it the memory model lets
//!   a lane see old words behind the barrier.
//!
//! The pass is idempotent: what a module already says is not said twice.

use std::collections::{BTreeMap, BTreeSet};

const MAGIC: u32 = 0x0723_0203;
/// Words in front of the first instruction: magic, version, generator, bound of ids, schema.
const HEADER: usize = 5;
/// The first version that has the float controls in its core.
const VERSION_1_4: u32 = 0x0001_0400;
const EXTENSION: &str = "SPV_KHR_float_controls";

const OP_EXTENSION: u16 = 10;
const OP_ENTRY_POINT: u16 = 15;
const OP_EXECUTION_MODE: u16 = 16;
const OP_CAPABILITY: u16 = 17;
const OP_EXECUTION_MODE_ID: u16 = 331;
const OP_CONSTANT: u16 = 43;
const OP_VARIABLE: u16 = 59;
const OP_STORE: u16 = 62;
const OP_ACCESS_CHAIN: u16 = 65;
const OP_IN_BOUNDS_ACCESS_CHAIN: u16 = 66;
const OP_DECORATE: u16 = 71;
const OP_CONTROL_BARRIER: u16 = 224;

const CAPABILITIES: [u32; 2] = [4466, 4467];
const EXECUTION_MODES: [u32; 2] = [4461, 4462];
const WIDTH: u32 = 32;
const NO_CONTRACTION: u32 = 42;
const COHERENT: u32 = 23;
/// The storage class of buffers.
const STORAGE_BUFFER: u32 = 12;
/// The bit of a barrier's semantics that means buffers.
const UNIFORM_MEMORY: u32 = 0x40;

/// What is wrong with words that are no module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Index of the word.
    pub word: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "word {}: {}", self.word, self.what)
    }
}

/// One instruction: its first word's index, its operation, and its words, the first included.
#[derive(Clone, Copy)]
struct Instruction<'a> {
    at: usize,
    op: u16,
    words: &'a [u32],
}

impl Instruction<'_> {
    fn end(&self) -> usize {
        self.at + self.words.len()
    }

    fn operand(&self, index: usize) -> Result<u32, Malformed> {
        let malformed = Malformed { word: self.at, what: "the instruction lacks an operand" };
        self.words.get(1 + index).copied().ok_or(malformed)
    }
}

/// The instructions of a module.
fn instructions(words: &[u32]) -> Result<Vec<Instruction<'_>>, Malformed> {
    if words.len() < HEADER || words[0] != MAGIC {
        return Err(Malformed { word: 0, what: "not the header of a SPIR-V module" });
    }
    let mut list = Vec::new();
    let mut at = HEADER;
    while at < words.len() {
        let length = (words[at] >> 16) as usize;
        let instruction = words.get(at..at + length).filter(|_| length > 0);
        let words = instruction.ok_or(Malformed { word: at, what: "the instruction has a wrong length" })?;
        list.push(Instruction { at, op: words[0] as u16, words });
        at += length;
    }
    Ok(list)
}

/// The capabilities that a module declares, ascending.
///
/// # Errors
/// The words are no module.
pub fn capabilities(words: &[u32]) -> Result<BTreeSet<u32>, Malformed> {
    let list = instructions(words)?;
    list.iter().filter(|i| i.op == OP_CAPABILITY).map(|i| i.operand(0)).collect()
}

/// Instructions that stand in front of types, constants, variables and functions.
fn is_preamble(op: u16) -> bool {
    let debug = (2..=7).contains(&op) || op == 330;
    let annotation = (71..=75).contains(&op) || matches!(op, 332 | 5632 | 5633);
    matches!(op, OP_EXTENSION | 11 | 14 | OP_ENTRY_POINT | OP_EXECUTION_MODE | OP_CAPABILITY | OP_EXECUTION_MODE_ID)
        || debug
        || annotation
}

/// Float operations that a driver may contract or reassociate.
fn is_float_arithmetic(op: u16) -> bool {
    // Negate, add, subtract, multiply, divide, remainders, products of vectors and matrices.
    matches!(op, 127 | 129 | 131 | 133 | 136 | 140 | 141 | 142..=148)
}

/// What a module already says.
#[derive(Default)]
struct Said {
    capabilities: BTreeSet<u32>,
    extension: bool,
    modes: BTreeSet<(u32, u32)>,
    decorated: BTreeSet<u32>,
    coherent: BTreeSet<u32>,
}

/// Where the sections end, and the ids that need something.
#[derive(Default)]
struct Found {
    said: Said,
    entry_points: Vec<u32>,
    arithmetic: Vec<u32>,
    /// Constants with the bit of buffers.
    semantics: BTreeSet<u32>,
    /// Whether a barrier orders buffers.
    orders_buffers: bool,
    buffers: BTreeSet<u32>,
    /// The variable that an address belongs to.
    variables: BTreeMap<u32, u32>,
    written: BTreeSet<u32>,
    capabilities_end: usize,
    extensions_end: usize,
    modes_end: usize,
    annotations_end: Option<usize>,
}

impl Found {
    fn read(words: &[u32]) -> Result<Self, Malformed> {
        let mut found = Found { capabilities_end: HEADER, ..Found::default() };
        for instruction in instructions(words)? {
            found.note(&instruction)?;
        }
        if found.entry_points.is_empty() {
            return Err(Malformed { word: words.len(), what: "the module has no entry point" });
        }
        found.extensions_end = found.extensions_end.max(found.capabilities_end);
        Ok(found)
    }

    fn note(&mut self, i: &Instruction<'_>) -> Result<(), Malformed> {
        if is_preamble(i.op) && self.annotations_end.is_some() {
            return Err(Malformed { word: i.at, what: "the instruction stands in a wrong section" });
        }
        match i.op {
            OP_CAPABILITY => {
                self.capabilities_end = i.end();
                self.said.capabilities.insert(i.operand(0)?);
            }
            OP_EXTENSION => {
                self.extensions_end = i.end();
                self.said.extension |= i.words[1..] == literal(EXTENSION);
            }
            OP_ENTRY_POINT => {
                self.modes_end = i.end();
                self.entry_points.push(i.operand(1)?);
            }
            OP_EXECUTION_MODE | OP_EXECUTION_MODE_ID => {
                self.modes_end = i.end();
                self.said.modes.insert((i.operand(0)?, i.operand(1)?));
            }
            OP_DECORATE if i.operand(1)? == NO_CONTRACTION => {
                self.said.decorated.insert(i.operand(0)?);
            }
            OP_DECORATE if i.operand(1)? == COHERENT => {
                self.said.coherent.insert(i.operand(0)?);
            }
            OP_CONSTANT if i.operand(2)? & UNIFORM_MEMORY != 0 => {
                self.semantics.insert(i.operand(1)?);
            }
            OP_CONTROL_BARRIER => self.orders_buffers |= self.semantics.contains(&i.operand(2)?),
            OP_VARIABLE if i.operand(2)? == STORAGE_BUFFER => {
                self.buffers.insert(i.operand(1)?);
            }
            OP_ACCESS_CHAIN | OP_IN_BOUNDS_ACCESS_CHAIN => {
                let base = self.variable(i.operand(2)?);
                self.variables.insert(i.operand(1)?, base);
            }
            OP_STORE => {
                let variable = self.variable(i.operand(0)?);
                self.written.insert(variable);
            }
            op if is_float_arithmetic(op) => self.arithmetic.push(i.operand(1)?),
            _ => {}
        }
        if !is_preamble(i.op) {
            self.annotations_end.get_or_insert(i.at);
        }
        Ok(())
    }

    /// The variable that an address belongs to.
    fn variable(&self, address: u32) -> u32 {
        self.variables.get(&address).copied().unwrap_or(address)
    }
}

/// A literal string as words: UTF-8, a zero at its end, little endian.
fn literal(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() / 4 + 1) * 4, 0);
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn instruction(op: u16, operands: &[u32]) -> Vec<u32> {
    let mut words = vec![((operands.len() as u32 + 1) << 16) | u32::from(op)];
    words.extend(operands);
    words
}

/// The module with the strict capabilities, execution modes and decorations.
///
/// # Errors
/// The words are no module, or one without an entry point.
pub fn make_strict(words: &[u32]) -> Result<Vec<u32>, Malformed> {
    let found = Found::read(words)?;
    let annotations_end = found.annotations_end.unwrap_or(words.len());
    let sections = [
        (found.capabilities_end, missing_capabilities(&found)),
        (found.extensions_end, missing_extension(&found, words[1])),
        (found.modes_end, missing_modes(&found)),
        (annotations_end, missing_decorations(&found)),
    ];
    let mut strict = Vec::with_capacity(words.len() + 64);
    let mut from = 0;
    for (end, missing) in sections {
        let section = words.get(from..end);
        strict.extend(section.ok_or(Malformed { word: end, what: "sections stand in a wrong order" })?);
        strict.extend(missing);
        from = end;
    }
    strict.extend(&words[from..]);
    Ok(strict)
}

fn missing_capabilities(found: &Found) -> Vec<u32> {
    let missing = CAPABILITIES.into_iter().filter(|c| !found.said.capabilities.contains(c));
    missing.flat_map(|c| instruction(OP_CAPABILITY, &[c])).collect()
}

fn missing_extension(found: &Found, version: u32) -> Vec<u32> {
    match version < VERSION_1_4 && !found.said.extension {
        true => instruction(OP_EXTENSION, &literal(EXTENSION)),
        false => Vec::new(),
    }
}

fn missing_modes(found: &Found) -> Vec<u32> {
    let pairs = found.entry_points.iter().flat_map(|&entry| EXECUTION_MODES.map(|mode| (entry, mode)));
    let missing = pairs.filter(|pair| !found.said.modes.contains(pair));
    missing.flat_map(|(entry, mode)| instruction(OP_EXECUTION_MODE, &[entry, mode, WIDTH])).collect()
}

fn missing_decorations(found: &Found) -> Vec<u32> {
    let missing = found.arithmetic.iter().filter(|id| !found.said.decorated.contains(id));
    let arithmetic = missing.map(|&id| (id, NO_CONTRACTION));
    let buffers = found.written.iter().filter(|id| found.orders_buffers && found.buffers.contains(id));
    let coherent = buffers.filter(|id| !found.said.coherent.contains(id)).map(|&id| (id, COHERENT));
    arithmetic.chain(coherent).flat_map(|(id, decoration)| instruction(OP_DECORATE, &[id, decoration])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module by hand: two entry points, one name, one decoration, one type, a product and a sum.
    fn module(version: u32) -> Vec<u32> {
        let mut words = vec![MAGIC, version, 0, 20, 0];
        for (op, operands) in [
            (OP_CAPABILITY, &[1][..]),
            (14, &[0, 1]),
            (OP_ENTRY_POINT, &[5, 3, 0]),
            (OP_ENTRY_POINT, &[5, 4, 0]),
            (OP_EXECUTION_MODE, &[3, 17, 64, 1, 1]),
            (5, &[3, 0]),
            (OP_DECORATE, &[9, 34, 0]),
            (22, &[1, 32]),
            (54, &[1, 3, 0, 2]),
            (133, &[1, 10, 7, 8]),
            (129, &[1, 11, 10, 8]),
            (128, &[1, 12, 7, 8]),
            (56, &[]),
        ] {
            words.extend(instruction(op, operands));
        }
        words
    }

    fn listing(words: &[u32]) -> String {
        let line = |i: &Instruction<'_>| format!("{} {:?}\n", i.op, &i.words[1..]);
        instructions(words).unwrap().iter().map(line).collect()
    }

    #[test]
    fn the_sections_of_a_module_are_kept() {
        insta::assert_snapshot!(listing(&make_strict(&module(0x0001_0500)).unwrap()));
    }

    #[test]
    fn old_versions_name_the_extension() {
        let strict = make_strict(&module(0x0001_0300)).unwrap();
        let list = instructions(&strict).unwrap();
        let extension = list.iter().position(|i| i.op == OP_EXTENSION).unwrap();
        assert_eq!(list[extension - 1].op, OP_CAPABILITY);
        let bytes: Vec<u8> = list[extension].words[1..].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, b"SPV_KHR_float_controls\0\0");
        assert_eq!(make_strict(&strict).unwrap(), strict);
    }

    #[test]
    fn a_strict_module_stays_as_it_is() {
        let strict = make_strict(&module(0x0001_0500)).unwrap();
        assert_eq!(make_strict(&strict).unwrap(), strict);
        assert_eq!(capabilities(&strict).unwrap(), BTreeSet::from([1, 4466, 4467]));
    }

    /// A module with a buffer that is written through two addresses, one that is read, an array of the workgroup, and a barrier.
    fn exchange(semantics: u32) -> Vec<u32> {
        let mut words = vec![MAGIC, 0x0001_0500, 0, 40, 0];
        for (op, operands) in [
            (OP_CAPABILITY, &[1][..]),
            (OP_ENTRY_POINT, &[5, 3, 0]),
            (OP_CONSTANT, &[1, 20, 2]),
            (OP_CONSTANT, &[1, 21, semantics]),
            (OP_VARIABLE, &[2, 30, STORAGE_BUFFER]),
            (OP_VARIABLE, &[2, 31, STORAGE_BUFFER]),
            (OP_VARIABLE, &[2, 32, 4]),
            (OP_ACCESS_CHAIN, &[2, 33, 30, 20]),
            (OP_IN_BOUNDS_ACCESS_CHAIN, &[2, 34, 33, 20]),
            (OP_STORE, &[34, 20]),
            (OP_STORE, &[32, 20]),
            (OP_ACCESS_CHAIN, &[2, 35, 31, 20]),
            (OP_CONTROL_BARRIER, &[20, 20, 21]),
        ] {
            words.extend(instruction(op, operands));
        }
        words
    }

    #[test]
    fn written_buffers_are_coherent_where_a_barrier_orders_them() {
        let coherent = |semantics: u32| -> Vec<u32> {
            let strict = make_strict(&exchange(semantics)).unwrap();
            assert_eq!(make_strict(&strict).unwrap(), strict);
            let list = instructions(&strict).unwrap();
            let decorations = list.iter().filter(|i| i.op == OP_DECORATE && i.words[2] == COHERENT);
            decorations.map(|i| i.words[1]).collect()
        };
        assert_eq!(coherent(0x8 | UNIFORM_MEMORY), [30]);
        assert_eq!(coherent(0x108), [0; 0]);
    }

    #[test]
    fn malformed_modules_are_refused() {
        let good = module(0x0001_0500);
        let refused = |words: &[u32]| make_strict(words).unwrap_err().what;
        assert_eq!(refused(&[]), "not the header of a SPIR-V module");
        assert_eq!(refused(&good[1..]), "not the header of a SPIR-V module");
        assert_eq!(refused(&good[..good.len() - 2]), "the instruction has a wrong length");
        assert_eq!(refused(&good[..HEADER]), "the module has no entry point");
        let mut zero = good.clone();
        zero[HEADER] = 0;
        assert_eq!(refused(&zero), "the instruction has a wrong length");
        let mut late = good.clone();
        late.extend(instruction(OP_CAPABILITY, &[1]));
        assert_eq!(refused(&late), "the instruction stands in a wrong section");
        let mut bare = good.clone();
        bare.extend(instruction(129, &[]));
        assert_eq!(refused(&bare), "the instruction lacks an operand");
        let mut order = vec![MAGIC, 0x0001_0500, 0, 20, 0];
        order.extend(instruction(OP_ENTRY_POINT, &[5, 3, 0]));
        order.extend(instruction(OP_CAPABILITY, &[1]));
        assert_eq!(refused(&order), "sections stand in a wrong order");
    }

    #[test]
    fn no_word_can_do_harm() {
        let good = module(0x0001_0500);
        for at in 0..good.len() {
            for word in
                [0, 1, 0xffff, 0x0001_0011, 0x0002_0011, 0x0003_0047, 0xffff_0011, u32::MAX, good[at] ^ 0x1_0000]
            {
                let mut spoiled = good.clone();
                spoiled[at] = word;
                if let Ok(strict) = make_strict(&spoiled) {
                    assert_eq!(make_strict(&strict).as_ref(), Ok(&strict), "word {at} as {word:#x}");
                }
            }
        }
    }
}
