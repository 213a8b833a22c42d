//! wgpu as what the executor asks of a device.

use std::ops::Range;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::Target;

use super::{Arena, Bound, Device, Launch, Pipeline};
use crate::device::backend::{self, Backend, Buffer, Dispatch, Function, Limits, Sequence, Text};
use crate::device::shader::{STACK, Shader, lower};

/// A device with all that a plan has on it.
pub struct WgpuBackend {
    device: Device,
    name: String,
    arenas: Vec<Arena>,
    pipelines: Vec<Pipeline>,
    /// Kernel and bound buffers of all dispatches.
    dispatches: Vec<(Function, Bound)>,
    sequences: Vec<Range<usize>>,
    /// Iterations of a lane's loops that the device does.
    iterations: u32,
}

impl WgpuBackend {
    /// Puts a device to work that does so many iterations of all loops of a lane.
    pub fn new(device: Device, number: usize, iterations: u32) -> WgpuBackend {
        let name = format!("wgpu:{number} {}", device.about().name);
        WgpuBackend {
            device,
            name,
            arenas: Vec::new(),
            pipelines: Vec::new(),
            dispatches: Vec::new(),
            sequences: Vec::new(),
            iterations,
        }
    }

    fn piece(&self, piece: backend::Piece) -> super::Piece<'_> {
        self.arenas[piece.buffer.0 as usize].piece(piece.offset, piece.bytes)
    }
}

/// All texts lowered, on a stack that holds what any of them needs.
fn shaders(texts: &[Text<'_>]) -> Result<Vec<Shader>, Diagnostic> {
    std::thread::scope(|scope| {
        let work = || texts.iter().map(shader).collect();
        let worker = std::thread::Builder::new().name("kernels".into()).stack_size(STACK).spawn_scoped(scope, work);
        let worker = worker.map_err(|error| {
            Diagnostic::new(codes::THREADS, "the system refuses a thread").wanted("a thread that lowers kernels", error)
        })?;
        worker.join().unwrap_or_else(|_| {
            Err(Diagnostic::new(codes::WORKER_FAILED, "a thread failed while it lowered kernels")
                .help("its message is above; this is a fault of ours, please report it"))
        })
    })
}

/// A text lowered; it has to be what the plan says of it.
fn shader(text: &Text<'_>) -> Result<Shader, Diagnostic> {
    let shader = lower(text.name, text.source)?;
    let numbers = || shader.bindings.iter().map(|binding| binding.index);
    let facts = [
        ("entry point", text.entry.to_string(), shader.entry.clone()),
        ("workgroup", format!("[{}, 1, 1]", text.lanes), format!("{:?}", shader.workgroup)),
        ("buffers", text.arguments.to_string(), numbers().count().to_string()),
        (
            "bindings",
            (0..text.arguments).map(|n| n.to_string()).collect::<Vec<_>>().join(" "),
            numbers().map(|n| n.to_string()).collect::<Vec<_>>().join(" "),
        ),
    ];
    match facts.into_iter().find(|(_, wanted, found)| wanted != found) {
        None => Ok(shader),
        Some((what, wanted, found)) => {
            Err(Diagnostic::new(codes::KERNEL_TEXT, "the text of a kernel is not what the plan says of it")
                .at(Place::item(format!("kernel {}", text.name), what))
                .wanted(wanted, found)
                .help("compile the model again"))
        }
    }
}

impl Backend for WgpuBackend {
    fn target(&self) -> Target {
        Target::Wgsl
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        let limits = &self.device.about().limits;
        Limits {
            buffer_bytes: limits.buffer_bytes,
            binding_bytes: limits.binding_bytes,
            iterations: self.iterations,
            ..Limits::default()
        }
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.arenas.push(self.device.arena(name, bytes)?);
        Ok(Buffer(self.arenas.len() as u32 - 1))
    }

    fn fill(&mut self, piece: backend::Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.device.fill(self.piece(piece), write)
    }

    fn read(&mut self, piece: backend::Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        bytes.copy_from_slice(&self.device.read(self.piece(piece))?);
        Ok(())
    }

    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        let first = self.pipelines.len();
        for shader in shaders(texts)? {
            self.pipelines.push(self.device.pipeline(&shader)?);
            progress();
        }
        self.device.keep_pipelines();
        Ok((first..self.pipelines.len()).map(|i| Function(i as u32)).collect())
    }

    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        let first = self.dispatches.len();
        for dispatch in dispatches {
            let pieces: Vec<_> = dispatch.arguments.iter().map(|&piece| self.piece(piece)).collect();
            let bound = self.device.bind(&self.pipelines[dispatch.function.0 as usize], &pieces)?;
            self.dispatches.push((dispatch.function, bound));
        }
        self.sequences.push(first..self.dispatches.len());
        Ok(Sequence(self.sequences.len() as u32 - 1))
    }

    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        let own = &self.dispatches[self.sequences[sequence.0 as usize].clone()];
        let launch = |&(at, [width, height]): &(u32, [u32; 2])| {
            let (function, bound) = &own[at as usize];
            Launch { pipeline: &self.pipelines[function.0 as usize], bound, groups: [width, height, 1] }
        };
        self.device.submit(&dispatches.iter().map(launch).collect::<Vec<_>>())
    }
}
