//! The kernel machine as a device: it reads the texts that a plan holds, and runs what it read.
//!
//! It refuses what no device may be asked to do (see [`ds4_kernels::machine`]); beside that, a grid of the plan that is not
//! the one its kernel's text asks for, and reads of values that no kernel has written.

use ds4_ir::diagnostic::codes;
use ds4_ir::numerics::Concrete;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::Target;
use ds4_kernels::kernel::Access;
use ds4_kernels::machine::{Cells, LaneOrder, Machine};
use ds4_kernels::read::{Fault, Reading, read};
use ds4_runtime::device::backend::{Backend, Buffer, Dispatch, Function, Piece, Sequence, Text};
use ds4_runtime::device::exec::VALUES_NAME;

/// The kernel machine over texts of one language.
pub struct MachineDevice {
    target: Target,
    order: LaneOrder,
    name: String,
    buffers: Vec<Cells<Concrete>>,
    functions: Vec<Reading>,
    sequences: Vec<Vec<Dispatch>>,
}

impl MachineDevice {
    /// A machine that reads this language and runs lanes in this order.
    pub fn new(target: Target, order: LaneOrder) -> MachineDevice {
        let name = format!("machine:{}", target.name());
        MachineDevice { target, order, name, buffers: Vec::new(), functions: Vec::new(), sequences: Vec::new() }
    }

    fn refuse(&self, item: &str, found: impl std::fmt::Display) -> Diagnostic {
        Diagnostic::new(codes::DEVICE_REFUSES, "the kernel machine refuses a kernel")
            .at(Place::item(&self.name, item))
            .wanted("a kernel that every device runs alike", found)
            .help("a fault of this program: please report it")
    }

    fn launch(&mut self, dispatch: &Dispatch, grid: [u32; 2]) -> Result<(), Diagnostic> {
        let step: Vec<u32> = {
            let (buffer, range) = cells_of(dispatch.arguments[0]);
            range.map(|i| self.buffers[buffer].word(&Concrete, i).unwrap_or(0)).collect()
        };
        let scalar = |place: ds4_ir::Dim| step.get(place.0 as usize).copied().unwrap_or(0);
        let reading = &self.functions[dispatch.function.0 as usize];
        let asked = reading.kernel.grid_in(&scalar).and_then(|grid| grid.folded());
        if asked != Some((grid[0], grid[1])) {
            return Err(self.refuse(&reading.kernel.name, format!("a grid of {grid:?} where the text has {asked:?}")));
        }
        let mut cells: Vec<Cells<Concrete>> = Vec::new();
        for &piece in &dispatch.arguments[1..] {
            let (buffer, range) = cells_of(piece);
            let whole = range == (0..self.buffers[buffer].len());
            cells.push(match whole {
                true => std::mem::replace(&mut self.buffers[buffer], Cells::unwritten(0)),
                false => self.buffers[buffer].part(range),
            });
        }
        let machine = Machine::new(&reading.kernel, &Concrete, self.order);
        let ran = match machine {
            Ok(machine) => machine.with_lines(&reading.lines).run(&scalar, &mut cells).map_err(|trap| trap.to_string()),
            Err(wrong) => Err(format!("{wrong:?}")),
        };
        let name = reading.kernel.name.clone();
        let written: Vec<bool> = reading.kernel.arguments().map(|(_, _, row)| row.access != Access::Read).collect();
        for ((&piece, part), written) in dispatch.arguments[1..].iter().zip(cells).zip(written) {
            let (buffer, range) = cells_of(piece);
            match self.buffers[buffer].is_empty() {
                true => self.buffers[buffer] = part,
                false if written => self.buffers[buffer].replace(range.start, &part),
                false => {}
            }
        }
        ran.map_err(|fault| self.refuse(&name, fault))
    }
}

/// Buffer and cells of a piece.
fn cells_of(piece: Piece) -> (usize, std::ops::Range<usize>) {
    let first = (piece.offset / 4) as usize;
    (piece.buffer.0 as usize, first..first + (piece.bytes / 4) as usize)
}

impl Backend for MachineDevice {
    fn target(&self) -> Target {
        self.target
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        let len = bytes.div_ceil(4).max(1) as usize;
        self.buffers.push(match name {
            VALUES_NAME => Cells::unwritten(len),
            _ => Cells::of_words(&Concrete, &vec![0; len]),
        });
        Ok(Buffer(self.buffers.len() as u32 - 1))
    }

    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        let mut bytes = vec![0; piece.bytes as usize];
        write(0, &mut bytes);
        let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let (buffer, range) = cells_of(piece);
        self.buffers[buffer].replace(range.start, &Cells::of_words(&Concrete, &words));
        Ok(())
    }

    /// Words that nothing has written are read as NaN.
    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        let (buffer, range) = cells_of(piece);
        for (i, out) in range.zip(bytes.chunks_exact_mut(4)) {
            let word = self.buffers[buffer].word(&Concrete, i).unwrap_or(u32::MAX);
            out.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        let first = self.functions.len() as u32;
        for text in texts {
            let reading = read(self.target, text.source).map_err(|fault: Fault| self.refuse(text.name, fault))?;
            self.functions.push(reading);
            progress();
        }
        Ok((first..self.functions.len() as u32).map(Function).collect())
    }

    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        self.sequences.push(dispatches.to_vec());
        Ok(Sequence(self.sequences.len() as u32 - 1))
    }

    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        for &(at, grid) in dispatches {
            let dispatch = self.sequences[sequence.0 as usize][at as usize].clone();
            self.launch(&dispatch, grid)?;
        }
        Ok(())
    }
}
