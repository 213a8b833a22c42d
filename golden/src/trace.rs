//! What a device was told to run: a backend that writes down every dispatch.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ds4_ir::Diagnostic;
use ds4_kernels::Target;
use ds4_runtime::device::backend::{Backend, Buffer, Dispatch, Function, Limits, Piece, Sequence, Text};

/// A dispatch that ran: number of the kernel, and its grid.
pub type Ran = (u32, [u32; 2]);

/// What ran on a device, in order.
#[derive(Default, Debug)]
pub struct Trace {
    /// Names of the kernels that were made ready, by the numbers of their functions.
    names: BTreeMap<u32, String>,
    /// The functions of each sequence's dispatches.
    sequences: BTreeMap<u32, Vec<u32>>,
    ran: Vec<Ran>,
}

impl Trace {
    /// What ran since the last call.
    pub fn take(&mut self) -> Vec<Ran> {
        std::mem::take(&mut self.ran)
    }

    /// Number of kernels that were made ready.
    pub fn kernels(&self) -> usize {
        self.names.len()
    }

    /// Names of the kernels that are not among these.
    pub fn idle(&self, ran: &BTreeSet<u32>) -> Vec<String> {
        self.names.iter().filter(|(number, _)| !ran.contains(number)).map(|(_, name)| name.clone()).collect()
    }
}

/// A backend whose dispatches are written down when the device has taken them.
pub struct Traced {
    backend: Box<dyn Backend>,
    trace: Rc<RefCell<Trace>>,
}

impl Traced {
    /// A backend, and where its trace is.
    pub fn new(backend: Box<dyn Backend>) -> (Traced, Rc<RefCell<Trace>>) {
        let trace = Rc::new(RefCell::new(Trace::default()));
        (Traced { backend, trace: trace.clone() }, trace)
    }
}

impl Backend for Traced {
    fn target(&self) -> Target {
        self.backend.target()
    }

    fn name(&self) -> &str {
        self.backend.name()
    }

    fn limits(&self) -> Limits {
        self.backend.limits()
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.backend.buffer(name, bytes)
    }

    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.backend.fill(piece, write)
    }

    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.backend.read(piece, bytes)
    }

    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        let functions = self.backend.functions(texts, progress)?;
        let names = functions.iter().zip(texts).map(|(function, text)| (function.0, text.name.to_string()));
        self.trace.borrow_mut().names.extend(names);
        Ok(functions)
    }

    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        let sequence = self.backend.sequence(dispatches)?;
        let functions = dispatches.iter().map(|dispatch| dispatch.function.0).collect();
        self.trace.borrow_mut().sequences.insert(sequence.0, functions);
        Ok(sequence)
    }

    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.backend.run(sequence, dispatches)?;
        let mut trace = self.trace.borrow_mut();
        let Trace { sequences, ran, .. } = &mut *trace;
        let functions = &sequences[&sequence.0];
        ran.extend(dispatches.iter().map(|&(at, grid)| (functions[at as usize], grid)));
        Ok(())
    }
}
