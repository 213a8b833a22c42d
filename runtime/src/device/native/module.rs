//! Kernels from texts. The driver compiles PTX for the device that it has; HIP text goes through a compiler beside it.
//! Several threads do so at once.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, available_parallelism, scope};

use ds4_ir::Diagnostic;
use ds4_kernels::Target;

use super::api::{Api, Kernel, Module, option};
use super::compiler::{Compiler, Refused};
use super::device::Device;
use super::fault;
use crate::device::backend::Text;

/// Bytes for what the compiler says.
const LOG: usize = 8 << 10;
/// Bytes of stack for the compiler.
const STACK: usize = 16 << 20;

/// The language of texts, with what it takes to make code of them.
pub(super) enum Language {
    /// PTX, which the driver takes.
    Ptx,
    /// HIP.
    Hip(Compiler),
}

impl Language {
    pub(super) fn target(&self) -> Target {
        match self {
            Language::Ptx => Target::Ptx,
            Language::Hip(_) => Target::Hip,
        }
    }
}

/// A kernel, ready to run. It is unloaded by its owner, which knows the device.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) kernel: Kernel,
    pub(super) lanes: u32,
    pub(super) arguments: u32,
    module: Module,
    /// What the module was loaded from: AMD's driver may read it as long as the module is loaded.
    _image: Vec<u8>,
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
    language: &Language,
    texts: &[Text<'_>],
    progress: &mut dyn FnMut(),
) -> Result<Vec<Loaded>, Diagnostic> {
    let threads = available_parallelism().map_or(1, |n| n.get()).min(texts.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    scope(|scope| {
        let spawn = |_: &usize| {
            let (next, sender) = (&next, sender.clone());
            let worker = Builder::new().name("kernels".into()).stack_size(STACK);
            worker.spawn_scoped(scope, move || load_some(device, language, texts, next, &sender)).is_ok()
        };
        // Where the system refuses threads, fewer do the work, at last this one.
        if (0..threads).filter(spawn).count() == 0 {
            load_some(device, language, texts, &next, &sender);
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
    language: &Language,
    texts: &[Text<'_>],
    next: &AtomicUsize,
    sender: &Sender<(usize, Result<Loaded, Diagnostic>)>,
) {
    let entered = device.enter();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = texts.get(at) else { return };
        let loaded = entered.clone().and_then(|()| load(device, language, text));
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
fn load(device: &Device, language: &Language, text: &Text<'_>) -> Result<Loaded, Diagnostic> {
    let item = format!("kernel {}", text.name);
    let terminated =
        |what: &str| CString::new(what).map_err(|_| fault::refuses(&device.name, &item, "a text without NUL", "one"));
    let (source, entry) = (terminated(text.source)?, terminated(text.entry)?);
    let (module, image) = match language {
        Language::Ptx => (of_ptx(device, text, &source)?, Vec::new()),
        Language::Hip(compiler) => of_hip(device, compiler, text, &source)?,
    };
    let mut kernel = Kernel::NONE;
    // SAFETY: the module is loaded, the name ends with NUL, and the handle lives through the call.
    let status = unsafe { (device.api.kernel)(&mut kernel, module, entry.as_ptr()) };
    let Text { lanes, arguments, .. } = *text;
    let loaded = Loaded { name: text.name.into(), kernel, lanes, arguments, module, _image: image };
    match device.guard(&format!("{item}, entry point {}", text.entry), status) {
        Ok(()) => Ok(loaded),
        Err(fault) => {
            loaded.unload(&device.api);
            Err(fault)
        }
    }
}

/// A module of PTX, which the driver compiles.
fn of_ptx(device: &Device, text: &Text<'_>, source: &CStr) -> Result<Module, Diagnostic> {
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
    if let Err(failure) = device.api.done(status)
        && fault::is_of_text(&failure)
    {
        let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
        return Err(fault::kernel(text, "PTX", &String::from_utf8_lossy(said), &failure.words));
    }
    device.guard(&format!("kernel {}", text.name), status)?;
    Ok(module)
}

/// A module of HIP text, with the code that it was loaded from.
fn of_hip(
    device: &Device,
    compiler: &Compiler,
    text: &Text<'_>,
    source: &CStr,
) -> Result<(Module, Vec<u8>), Diagnostic> {
    let item = format!("kernel {}", text.name);
    let code = compiler.code(source, &device.about.architecture).map_err(|refused| match refused {
        Refused::Text(log) => fault::kernel(text, "HIP", &log, "the compiler does not say what is wrong"),
        Refused::Other(words) => fault::refuses(&device.name, &item, "code for the device", &words),
    })?;
    let mut module = Module::NONE;
    // SAFETY: the code is whole, there are no options, and both live through the call; the code lives as long as the module.
    let status = unsafe { (device.api.load_module)(&mut module, code.as_ptr().cast(), 0, null_mut(), null_mut()) };
    device.guard(&item, status)?;
    Ok((module, code))
}
