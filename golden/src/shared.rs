//! One device for the executors of many plans.

use std::cell::RefCell;
use std::rc::Rc;

use ds4_ir::Diagnostic;
use ds4_kernels::Target;
use ds4_runtime::device::backend::{Backend, Buffer, Dispatch, Function, Limits, Piece, Sequence, Text};

/// A backend that the executors of many plans share. What they make on it stays until the last of them is gone.
#[derive(Clone)]
pub struct Shared {
    backend: Rc<RefCell<Box<dyn Backend>>>,
    target: Target,
    name: String,
    limits: Limits,
}

impl Shared {
    /// A backend to be shared.
    pub fn new(backend: Box<dyn Backend>) -> Shared {
        let (target, name, limits) = (backend.target(), backend.name().to_string(), backend.limits());
        Shared { backend: Rc::new(RefCell::new(backend)), target, name, limits }
    }
}

impl Backend for Shared {
    fn target(&self) -> Target {
        self.target
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.backend.borrow_mut().buffer(name, bytes)
    }

    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.backend.borrow_mut().fill(piece, write)
    }

    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.backend.borrow_mut().read(piece, bytes)
    }

    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        self.backend.borrow_mut().functions(texts, progress)
    }

    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        self.backend.borrow_mut().sequence(dispatches)
    }

    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.backend.borrow_mut().run(sequence, dispatches)
    }
}
