//! Kernels from PTX. The driver compiles a text for the device that it has; several threads do so at once.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, available_parallelism, scope};

use ds4_ir::Diagnostic;

use super::api::{Api, Kernel, Module, option};
use super::device::Device;
use super::fault;
use crate::device::backend::Text;

/// Bytes for what the compiler says.
const LOG: usize = 8 << 10;
/// Bytes of stack for the compiler.
const STACK: usize = 16 << 20;

/// A kernel, ready to run. It is unloaded by its owner, which knows the device.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) kernel: Kernel,
    pub(super) lanes: u32,
    pub(super) arguments: u32,
    module: Module,
}

impl Loaded {
    /// Unloads it.
    pub(super) fn unload(self, api: &Api) {
        // SAFETY: it was loaded once, and its owner is at its end, after all work. What fails here fails because the device
        // is lost.
        unsafe { (api.unload_module)(self.module) };
    }
}

/// Loads all texts, in their order; `progress` is called for each.
pub(super) fn load_all(
    device: &Device,
    texts: &[Text<'_>],
    progress: &mut dyn FnMut(),
) -> Result<Vec<Loaded>, Diagnostic> {
    let threads = available_parallelism().map_or(1, |n| n.get()).min(texts.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    scope(|scope| {
        let spawn = |_: &usize| {
            let (next, sender) = (&next, sender.clone());
            let worker = Builder::new().name("ptx".into()).stack_size(STACK);
            worker.spawn_scoped(scope, move || load_some(device, texts, next, &sender)).is_ok()
        };
        // Where the system refuses threads, fewer do the work, at last this one.
        if (0..threads).filter(spawn).count() == 0 {
            load_some(device, texts, &next, &sender);
        }
        drop(sender);
        let mut all: Vec<(usize, Result<Loaded, Diagnostic>)> = Vec::with_capacity(texts.len());
        for found in receiver {
            progress();
            all.push(found);
        }
        all.sort_by_key(|(at, _)| *at);
        in_order(device, all)
    })
}

/// Loads texts as long as there are some; after a failure there are none.
fn load_some(
    device: &Device,
    texts: &[Text<'_>],
    next: &AtomicUsize,
    sender: &Sender<(usize, Result<Loaded, Diagnostic>)>,
) {
    let entered = device.enter();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = texts.get(at) else { return };
        let loaded = entered.clone().and_then(|()| load(device, text));
        if loaded.is_err() {
            next.store(texts.len(), Ordering::Relaxed);
        }
        // The receiver lives as long as this thread.
        let _ = sender.send((at, loaded));
    }
}

/// All kernels, or the first failure; then the others are unloaded.
fn in_order(device: &Device, all: Vec<(usize, Result<Loaded, Diagnostic>)>) -> Result<Vec<Loaded>, Diagnostic> {
    let (mut kernels, mut first) = (Vec::with_capacity(all.len()), None);
    for (_, loaded) in all {
        match loaded {
            Ok(loaded) => kernels.push(loaded),
            Err(fault) => {
                first.get_or_insert(fault);
            }
        }
    }
    match first {
        None => Ok(kernels),
        Some(fault) => {
            kernels.into_iter().for_each(|kernel| kernel.unload(&device.api));
            Err(fault)
        }
    }
}

/// Loads one text; the device's context is current.
fn load(device: &Device, text: &Text<'_>) -> Result<Loaded, Diagnostic> {
    let terminated = |what: &str| {
        let refused = |_| fault::refuses(&device.name, &format!("kernel {}", text.name), "a text without NUL", "one");
        CString::new(what).map_err(refused)
    };
    let (source, entry) = (terminated(text.source)?, terminated(text.entry)?);
    let module = compile(device, text, &source)?;
    let mut kernel = Kernel::NONE;
    // SAFETY: the module is loaded, the name ends with NUL, and the handle lives through the call.
    let status = unsafe { (device.api.kernel)(&mut kernel, module, entry.as_ptr()) };
    let loaded = Loaded { name: text.name.into(), kernel, lanes: text.lanes, arguments: text.arguments, module };
    match device.guard(&format!("kernel {}, entry point {}", text.name, text.entry), status) {
        Ok(()) => Ok(loaded),
        Err(fault) => {
            loaded.unload(&device.api);
            Err(fault)
        }
    }
}

fn compile(device: &Device, text: &Text<'_>, source: &CStr) -> Result<Module, Diagnostic> {
    let mut log = vec![0u8; LOG];
    let mut options: [c_int; 2] = [option::ERROR_LOG, option::ERROR_LOG_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), without_provenance_mut(LOG)];
    let mut module = Module::NONE;
    // SAFETY: the source ends with NUL; there are two options with their values, of which the first is a buffer of as many
    // bytes as the second says; all of it lives through the call.
    let status = unsafe {
        let image = source.as_ptr().cast();
        (device.api.load_module)(&mut module, image, 2, options.as_mut_ptr(), values.as_mut_ptr())
    };
    device.api.done(status).map_err(|failure| {
        let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
        fault::kernel(&device.name, text.name, text.source, &String::from_utf8_lossy(said), &failure)
    })?;
    Ok(module)
}
