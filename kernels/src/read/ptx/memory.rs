//! Addresses, loads and stores.

use crate::kernel::{Operator, Type};
use crate::read::Fault;
use crate::read::raw::{RawExpr, RawMemory, RawOp, What};

use super::body::Body;
use super::line::{Instruction, Line, word};
use super::registers::{Class, Held, Kind};

/// A place in memory.
enum Place {
    /// A word of the step's block.
    Step(u32),
    /// An element.
    Element(RawMemory, RawExpr),
}

impl<'t> Body<'_, 't> {
    /// `mul.wide.u32 %a1, %index, 4;` and `add.u64 %a2, %memory, %a1;`
    pub(super) fn address(&mut self, instruction: &Instruction<'t>) -> Result<(), Fault> {
        let line = instruction.line;
        let [to, x, y] = instruction.operands()?;
        let held = match instruction.name {
            "mul.wide.u32" if y == "4" => Held::Offset(self.operand(line, Type::Word, x)?),
            "mul.wide.u32" => return Err(line.fault("an element has 4 bytes")),
            _ => match (self.frame.registers.get(line, x)?.held, self.frame.registers.get(line, y)?.held) {
                (Held::Base(memory), Held::Offset(index)) => Held::Element(memory, index),
                _ => return Err(line.fault("an address is that of an argument or array, and the offset of an element")),
            },
        };
        match self.frame.registers.get(line, to)?.kind {
            Kind::Numbered => self.frame.registers.set(line, to, Class::Address, held),
            _ => Err(line.fault(format!("`{to}` is no numbered register"))),
        }
    }

    /// `[%a2]`, `[%x]` or `[%x+8]`
    fn place(&mut self, line: Line<'t>, text: &str) -> Result<Place, Fault> {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.ok_or_else(|| line.fault(format!("`{text}` is no address")))?;
        let (name, bytes) = match inner.split_once('+') {
            Some((name, bytes)) => (name, word(bytes).filter(|bytes| (1..1 << 31).contains(bytes))),
            None => (inner, Some(0)),
        };
        let Some(bytes) = bytes.filter(|bytes| bytes.is_multiple_of(4)) else {
            return Err(line.fault(format!("`{text}` is no offset of an element")));
        };
        match (self.frame.registers.get(line, name)?.held, bytes / 4) {
            (Held::Step, at) => Ok(Place::Step(at)),
            (Held::Base(memory), at) => Ok(Place::Element(memory, self.frame.raw.leaf(Operator::Int, at))),
            (Held::Element(memory, index), 0) => Ok(Place::Element(memory, index)),
            _ => Err(line.fault(format!("`{text}` is not the address of an element"))),
        }
    }

    /// The memory of a place whose space and type an instruction names.
    fn element(
        &mut self,
        instruction: &Instruction<'t>,
        kind: &str,
        place: Place,
    ) -> Result<(RawMemory, RawExpr, Type), Fault> {
        let line = instruction.line;
        let Place::Element(memory, index) = place else {
            return Err(line.fault("the step's block is only for extents"));
        };
        let row = &mut self.frame.raw.memories[memory.0 as usize];
        let space = if row.len.is_some() { "shared" } else { "global" };
        let ty = [("f32", Type::F32), ("b32", Type::Word)]
            .into_iter()
            .find(|(keyword, _)| instruction.name == format!("{kind}.{space}.{keyword}"));
        let Some((_, ty)) = ty else {
            return Err(line.fault(format!("`{}` does not fit `{}`", instruction.name, row.name)));
        };
        let known = &mut self.frame.elements[memory.0 as usize];
        if !*known {
            row.element = ty;
            *known = true;
        }
        match row.element == ty {
            true => Ok((memory, index, ty)),
            false => Err(line.fault(format!("`{}` holds elements of another type", row.name))),
        }
    }

    pub(super) fn load(&mut self, instruction: &Instruction<'t>) -> Result<Option<What>, Fault> {
        let line = instruction.line;
        let [to, place] = instruction.operands()?;
        match self.place(line, place)? {
            // The zeros in front are for languages whose compilers fold them.
            Place::Step(at) if at >= 2 && instruction.name == "ld.global.b32" => {
                let value = self.frame.raw.node(RawOp::Step, [at, 0, 0]);
                match self.frame.registers.get(line, to)?.kind {
                    Kind::Numbered => self.assign(line, to, value),
                    _ => Err(line.fault(format!("`{to}` is no numbered register"))),
                }
            }
            place => {
                let (memory, index, ty) = self.element(instruction, "ld", place)?;
                let local = self.named(line, to, Class::Value(ty))?;
                Ok(Some(What::Load { local, memory, index }))
            }
        }
    }

    pub(super) fn store(&mut self, instruction: &Instruction<'t>) -> Result<What, Fault> {
        let [place, value] = instruction.operands()?;
        let place = self.place(instruction.line, place)?;
        let (memory, index, ty) = self.element(instruction, "st", place)?;
        let value = self.operand(instruction.line, ty, value)?;
        Ok(What::Store { memory, index, value })
    }
}
