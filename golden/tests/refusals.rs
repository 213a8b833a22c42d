//! Devices that refuse a plan, each with its text: too small in each way, and a language that the plan lacks.

#![allow(clippy::unwrap_used)]

use ds4_compiler::frame::Form;
use ds4_golden::machine_device::MachineDevice;
use ds4_golden::models::{Case, cases};
use ds4_ir::Diagnostic;
use ds4_kernels::Target;
use ds4_kernels::machine::LaneOrder;
use ds4_runtime::device::backend::{Backend, Buffer, Dispatch, Function, Limits, Piece, Sequence, Text};

/// A device of any size.
struct Toy {
    inner: MachineDevice,
    limits: Limits,
}

impl Backend for Toy {
    fn target(&self) -> Target {
        self.inner.target()
    }
    fn name(&self) -> &str {
        "toy:0"
    }
    fn limits(&self) -> Limits {
        self.limits
    }
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.inner.buffer(name, bytes)
    }
    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.inner.fill(piece, write)
    }
    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.inner.read(piece, bytes)
    }
    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        self.inner.functions(texts, progress)
    }
    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        self.inner.sequence(dispatches)
    }
    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.inner.run(sequence, dispatches)
    }
}

fn refusal(case: &Case, compiled: Target, wanted: Target, limits: Limits) -> String {
    let folder = tempfile::tempdir().unwrap();
    let plan = case.plan(folder.path(), &Form { targets: &[compiled], fusion: None }).unwrap();
    let toy = Toy { inner: MachineDevice::new(wanted, LaneOrder::Ascending), limits };
    case.session(&plan, Some(Box::new(toy))).unwrap_err().to_string()
}

#[test]
fn a_device_that_is_too_small_says_what_would_fit() {
    let case = cases().unwrap().into_iter().find(|case| case.name == "tiny-a gguf f32").unwrap();
    let none = Limits::default();
    let small = |limits| refusal(&case, Target::Wgsl, Target::Wgsl, limits);
    let texts = [
        small(Limits { binding_bytes: 100_000, ..none }),
        small(Limits { binding_bytes: 100, ..none }),
        small(Limits { buffer_bytes: 1_000_000, ..none }),
        small(Limits { memory_bytes: 5_000_000, ..none }),
        small(Limits { memory_bytes: 500_000, ..none }),
        small(Limits { iterations: 100, ..none }),
        refusal(&case, Target::Ptx, Target::Wgsl, none),
    ];
    insta::assert_snapshot!(texts.join("\n\n"));
}
