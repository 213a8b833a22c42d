//! What stands around the statements: directives, parameters, declarations, and where the workgroup is.

use crate::kernel::{Access, Operator, Type};
use crate::read::Fault;
use crate::read::raw::{Raw, RawMemory, RawMemoryRow, RawOp};

use super::line::{Line, Lines, is_name, word};
use super::registers::{Class, Held, Registers};

const WORD: Class = Class::Value(Type::Word);

/// A kernel whose statements are not read yet.
pub(super) struct Frame<'t> {
    pub(super) raw: Raw,
    pub(super) registers: Registers<'t>,
    /// Whether a text has said what each memory holds.
    pub(super) elements: Vec<bool>,
}

/// Reads up to the first statement.
pub(super) fn read<'t>(lines: &mut Lines<'t>) -> Result<Frame<'t>, Fault> {
    let about = lines.about()?.to_string();
    for directive in [".version 6.3", ".target sm_75", ".address_size 64"] {
        lines.expect(directive)?;
    }
    let entry = lines.next()?;
    let name = entry.between(".visible .entry ", "(")?;
    if !is_name(name) {
        return Err(entry.fault("the entry point has no name"));
    }
    let mut symbols = parameters(lines)?;
    let lanes = lanes(lines.next()?)?;
    lines.expect("{")?;
    let mut raw = Raw::default();
    (raw.name, raw.about, raw.lanes) = (name.into(), about, lanes);
    for name in &symbols[1..] {
        raw.memories.push(memory(name, Type::Word, None));
    }
    let mut elements = vec![false; raw.memories.len()];
    while lines.peek()?.text.starts_with(".shared ") {
        let line = lines.next()?;
        let (name, row) = array(line)?;
        symbol(line, name, &mut symbols)?;
        raw.memories.push(row);
        elements.push(true);
    }
    let mut registers = Registers::default();
    while lines.peek()?.text.starts_with(".reg ") {
        registers.declare(lines.next()?)?;
    }
    let mut frame = Frame { raw, registers, elements };
    frame.addresses(lines, &symbols)?;
    frame.place_in_grid(lines)?;
    Ok(frame)
}

/// Names of the parameters: the step's block, then the arguments.
fn parameters<'t>(lines: &mut Lines<'t>) -> Result<Vec<&'t str>, Fault> {
    let mut names = Vec::new();
    loop {
        let line = lines.next()?;
        let last = !line.text.ends_with(',');
        let name = line.between(".param .u64 .ptr .global .align 4 ", if last { "" } else { "," })?;
        symbol(line, name, &mut names)?;
        if last {
            break;
        }
    }
    lines.expect(")")?;
    Ok(names)
}

fn symbol<'t>(line: Line<'t>, name: &'t str, names: &mut Vec<&'t str>) -> Result<(), Fault> {
    if !is_name(name) || names.contains(&name) {
        return Err(line.fault(format!("`{name}` is no name, or there twice")));
    }
    names.push(name);
    Ok(())
}

fn lanes(line: Line<'_>) -> Result<u32, Fault> {
    let lanes = line.between(".reqntid ", ", 1, 1")?;
    word(lanes).ok_or_else(|| line.fault("the workgroup's lanes are no number"))
}

fn memory(name: &str, element: Type, len: Option<u32>) -> RawMemoryRow {
    RawMemoryRow { name: name.into(), element, access: Access::ReadWrite, len }
}

/// `.shared .align 4 .f32 partial[64];`
fn array(line: Line<'_>) -> Result<(&str, RawMemoryRow), Fault> {
    let inner = line.between(".shared .align 4 .", "];")?;
    let parts = inner.split_once(' ').and_then(|(ty, rest)| Some((ty, rest.split_once('[')?)));
    let row = parts.and_then(|(ty, (name, len))| {
        let element = match ty {
            "f32" => Type::F32,
            "b32" => Type::Word,
            _ => return None,
        };
        Some((name, memory(name, element, Some(word(len)?))))
    });
    row.ok_or_else(|| line.fault("an array of no known type or length"))
}

impl<'t> Frame<'t> {
    /// Each parameter and array goes to the register of its name.
    fn addresses(&mut self, lines: &mut Lines<'t>, symbols: &[&'t str]) -> Result<(), Fault> {
        for (i, symbol) in symbols.iter().enumerate() {
            let array = i > 0 && self.raw.memories[i - 1].len.is_some();
            let line = lines.expect(&match array {
                true => format!("mov.u64 %{symbol}, {symbol};"),
                false => format!("ld.param.u64 %{symbol}, [{symbol}];"),
            })?;
            let held = if i == 0 { Held::Step } else { Held::Base(RawMemory(i as u32 - 1)) };
            let [register, _] = line.instruction()?.operands()?;
            self.registers.set(line, register, Class::Address, held)?;
        }
        Ok(())
    }

    /// The lane, and the number of the workgroup in the folded grid.
    fn place_in_grid(&mut self, lines: &mut Lines<'t>) -> Result<(), Fault> {
        self.special(lines, "%tid.x")?;
        let [x, y, width] = ["%ctaid.x", "%ctaid.y", "%nctaid.x"].map(|special| self.special(lines, special));
        let (x, y, width) = (x?, y?, width?);
        let line = lines.next()?;
        let rows = line.between("mul.lo.u32 ", &format!(", {y}, {width};"))?;
        self.registers.set(line, rows, WORD, Held::Old)?;
        let line = lines.next()?;
        let number = line.between("add.u32 ", &format!(", {x}, {rows};"))?;
        let value = self.raw.node(RawOp::Number, [0; 3]);
        self.registers.set(line, number, WORD, Held::Value(value))
    }

    /// Reads a special register; only the lane is good for more than the workgroup's number.
    fn special(&mut self, lines: &mut Lines<'t>, name: &str) -> Result<&'t str, Fault> {
        let line = lines.next()?;
        let register = line.between("mov.u32 ", &format!(", {name};"))?;
        let held = match name {
            "%tid.x" => Held::Value(self.raw.leaf(Operator::Lane, 0)),
            _ => Held::Old,
        };
        self.registers.set(line, register, WORD, held)?;
        Ok(register)
    }
}
