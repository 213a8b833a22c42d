//! A driver of paper with its compiler: the entry points over memory of this process. They take texts as the readers do,
//! run them on the kernel machine, count what is not given back, and fail where they are told to.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ds4_ir::Diagnostic;
use ds4_kernels::Target;
use ds4_kernels::machine::{Cells, LaneOrder, Machine, Numbers};
use ds4_kernels::read::{Reading, hip, ptx};
use libloading::Library;

use super::super::NativeBackend;
use super::super::api::{
    Address, Api, Common, Context, Cuda, Hip, Kernel, Module, Ordinal, Own, Status, Stream, attribute, option,
};
use super::super::compiler::{self, Compiler};
use super::super::device::Device;
use super::super::interface::Interface;
use super::super::module::Language;
use crate::device::cache::Cache;

/// Bytes of a device's memory.
const BYTES: usize = 1 << 30;
const DEVICES: c_int = 2;

struct State {
    allocations: BTreeMap<Address, Vec<u8>>,
    next: Address,
    modules: BTreeMap<usize, Arc<Reading>>,
    programs: BTreeMap<usize, Program>,
    contexts: i32,
    streams: i32,
    /// The call that fails next, and how.
    fails: Option<(&'static str, Status)>,
    calls: Vec<&'static str>,
}

/// A text in the compiler's hands; its code is the text with a NUL behind it.
struct Program {
    source: CString,
    log: String,
}

static STATE: Mutex<State> = Mutex::new(State {
    allocations: BTreeMap::new(),
    next: 1 << 40,
    modules: BTreeMap::new(),
    programs: BTreeMap::new(),
    contexts: 0,
    streams: 0,
    fails: None,
    calls: Vec::new(),
});

/// One test at a time has the driver.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a call; gives the status it fails with, if it does.
fn call(name: &'static str, needs_context: bool) -> Result<MutexGuard<'static, State>, Status> {
    let mut state = state();
    if !state.calls.contains(&name) {
        state.calls.push(name);
    }
    if let Some((_, status)) = state.fails.take_if(|(fails, _)| *fails == name) {
        return Err(status);
    }
    if needs_context && !ENTERED.get() { Err(201) } else { Ok(state) }
}

fn status(done: Result<(), Status>) -> Status {
    done.err().unwrap_or(0)
}

pub(super) struct Driver {
    _turn: MutexGuard<'static, ()>,
}

impl Driver {
    pub(super) fn new() -> Driver {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        state().fails = None;
        Driver { _turn: turn }
    }

    /// A device for texts of a language.
    pub(super) fn open(
        &self,
        interface: Interface,
        target: Target,
        number: usize,
    ) -> Result<NativeBackend, Diagnostic> {
        self.open_with(interface, target, number, Cache::none())
    }

    pub(super) fn open_with(
        &self,
        interface: Interface,
        target: Target,
        number: usize,
        cache: Cache,
    ) -> Result<NativeBackend, Diagnostic> {
        let device = Device::open(self.api(interface), number)?;
        let language = match target {
            Target::Hip => Language::Hip(Compiler::new(self.compiler(), interface, cache).unwrap()),
            _ => Language::Ptx,
        };
        Ok(NativeBackend::new(device, language))
    }

    /// The next call of an entry point fails.
    pub(super) fn fails(&self, name: &'static str, status: Status) {
        state().fails = Some((name, status));
    }

    /// The entry points that were called so far.
    pub(super) fn calls(&self) -> Vec<&'static str> {
        state().calls.clone()
    }

    /// Asserts that everything was given back, and that what was to fail did.
    pub(super) fn is_clean(&self) {
        let state = state();
        assert_eq!((state.allocations.len(), state.contexts, state.streams), (0, 0, 0));
        assert_eq!((state.modules.len(), state.programs.len()), (0, 0));
        assert_eq!(state.fails, None);
    }

    /// Forgets which entry points were called.
    pub(super) fn forget_calls(&self) {
        state().calls.clear();
    }

    pub(super) fn api(&self, interface: Interface) -> Api {
        let common = Common {
            init,
            driver_version: if interface == Interface::Cuda { cuda_version } else { hip_version },
            device_count,
            device,
            device_name,
            device_bytes,
            create_stream,
            destroy_stream,
            wait,
            free_bytes,
            allocate,
            free,
            clear,
            upload,
            download,
            load_module,
            unload_module,
            kernel,
            launch,
        };
        let cuda = Cuda { device_attribute, retain_context, release_context, enter_context, error_name, error_text };
        let hip = Hip { enter_device, error_name: hip_error_name, error_text: hip_error_text };
        let own = if interface == Interface::Cuda { Own::Cuda(cuda) } else { Own::Hip(hip, properties) };
        Api { interface, common, own, _library: this() }
    }

    pub(super) fn compiler(&self) -> compiler::Api {
        compiler::Api {
            version: compiler_version,
            create: create_program,
            compile,
            destroy: destroy_program,
            log_bytes,
            log,
            code_bytes,
            code,
            error_text: compiler_error_text,
            _library: this(),
        }
    }
}

fn this() -> ManuallyDrop<Library> {
    ManuallyDrop::new(Library::from(libloading::os::unix::Library::this()))
}

/// Writes through a pointer that the caller gave for that.
fn put<T>(place: *mut T, value: T) {
    // SAFETY: the backend gives pointers to its own variables, which live through the call.
    unsafe { place.write(value) };
}

extern "system" fn init(flags: c_uint) -> Status {
    status(call("cuInit", false).map(|_| assert_eq!(flags, 0)))
}

extern "system" fn cuda_version(version: *mut c_int) -> Status {
    status(call("cuDriverGetVersion", false).map(|_| put(version, 13_000)))
}

extern "system" fn hip_version(version: *mut c_int) -> Status {
    status(call("hipDriverGetVersion", false).map(|_| put(version, 60_241_512)))
}

/// As since HIP 6.
extern "system" fn properties(place: *mut c_void, _: Ordinal) -> Status {
    let write = |_| {
        let text = b"gfx1100\0";
        text.iter().enumerate().for_each(|(i, &byte)| put(place.cast::<u8>().wrapping_add(1160 + i), byte));
    };
    status(call("hipGetDevicePropertiesR0600", false).map(write))
}

extern "system" fn enter_device(ordinal: Ordinal) -> Status {
    let enter = |_| {
        assert!((10..10 + DEVICES).contains(&ordinal));
        ENTERED.set(true);
    };
    status(call("hipSetDevice", false).map(enter))
}

extern "system" fn hip_error_name(code: Status) -> *const c_char {
    if code == 700 { c"PAPER_ERROR_700".as_ptr() } else { c"PAPER_ERROR".as_ptr() }
}

extern "system" fn hip_error_text(_: Status) -> *const c_char {
    c"of paper".as_ptr()
}

extern "system" fn device_count(count: *mut c_int) -> Status {
    status(call("cuDeviceGetCount", false).map(|_| put(count, DEVICES)))
}

/// Ordinals differ from numbers.
extern "system" fn device(ordinal: *mut Ordinal, number: c_int) -> Status {
    status(call("cuDeviceGet", false).map(|_| put(ordinal, 10 + number)))
}

extern "system" fn device_name(name: *mut c_char, len: c_int, ordinal: Ordinal) -> Status {
    let write = |_| {
        let text = format!("Paper {}\0", ordinal - 10);
        assert!(text.len() <= len as usize);
        text.bytes().enumerate().for_each(|(i, byte)| put(name.wrapping_add(i), byte as c_char));
    };
    status(call("cuDeviceGetName", false).map(write))
}

extern "system" fn device_attribute(value: *mut c_int, which: c_int, _: Ordinal) -> Status {
    let write = |_| {
        let found = match which {
            attribute::GRID_WIDTH => c_int::MAX,
            attribute::GRID_HEIGHT => 65_535,
            attribute::CAPABILITY_MAJOR => 9,
            attribute::CAPABILITY_MINOR => 0,
            _ => panic!("attribute {which}"),
        };
        put(value, found);
    };
    status(call("cuDeviceGetAttribute", false).map(write))
}

extern "system" fn device_bytes(bytes: *mut usize, _: Ordinal) -> Status {
    status(call("cuDeviceTotalMem_v2", false).map(|_| put(bytes, BYTES)))
}

extern "system" fn retain_context(context: *mut Context, _: Ordinal) -> Status {
    let retain = |mut state: MutexGuard<State>| {
        state.contexts += 1;
        put(context, handle(1));
    };
    status(call("cuDevicePrimaryCtxRetain", false).map(retain))
}

/// A handle of this number.
fn handle<T: Copy>(number: usize) -> T {
    let pointer: *mut c_void = without_provenance_mut(number);
    assert_eq!(size_of::<T>(), size_of_val(&pointer));
    // SAFETY: handles are transparent over a pointer.
    unsafe { std::mem::transmute_copy(&pointer) }
}

/// The number of a handle.
fn number<T: Copy>(handle: T) -> usize {
    assert_eq!(size_of::<T>(), size_of::<usize>());
    // SAFETY: handles are transparent over a pointer.
    let pointer: *mut c_void = unsafe { std::mem::transmute_copy(&handle) };
    pointer.addr()
}

extern "system" fn release_context(_: Ordinal) -> Status {
    status(call("cuDevicePrimaryCtxRelease_v2", false).map(|mut state| state.contexts -= 1))
}

extern "system" fn enter_context(context: Context) -> Status {
    let enter = |_| {
        assert_eq!(number(context), 1);
        ENTERED.set(true);
    };
    status(call("cuCtxSetCurrent", false).map(enter))
}

extern "system" fn create_stream(stream: *mut Stream, flags: c_uint) -> Status {
    let create = |mut state: MutexGuard<State>| {
        assert_eq!(flags, 1);
        state.streams += 1;
        put(stream, handle(2));
    };
    status(call("cuStreamCreate", true).map(create))
}

extern "system" fn destroy_stream(_: Stream) -> Status {
    status(call("cuStreamDestroy_v2", true).map(|mut state| state.streams -= 1))
}

extern "system" fn wait(_: Stream) -> Status {
    status(call("cuStreamSynchronize", true).map(drop))
}

extern "system" fn free_bytes(free: *mut usize, total: *mut usize) -> Status {
    let write = |state: MutexGuard<State>| {
        let used: usize = state.allocations.values().map(Vec::len).sum();
        put(free, BYTES - used);
        put(total, BYTES);
    };
    status(call("cuMemGetInfo_v2", true).map(write))
}

/// Memory that holds anything but zeros.
extern "system" fn allocate(address: *mut Address, bytes: usize) -> Status {
    let allocate = |mut state: MutexGuard<State>| {
        let used: usize = state.allocations.values().map(Vec::len).sum();
        if bytes > BYTES - used {
            return Err(2);
        }
        let start = state.next;
        state.next += bytes.next_multiple_of(256) as Address + 256;
        state.allocations.insert(start, vec![0xa5; bytes]);
        put(address, start);
        Ok(())
    };
    status(call("cuMemAlloc_v2", true).and_then(allocate))
}

extern "system" fn free(address: Address) -> Status {
    let free = |mut state: MutexGuard<State>| assert!(state.allocations.remove(&address).is_some());
    status(call("cuMemFree_v2", true).map(free))
}

impl State {
    /// The memory from an address to the end of its allocation.
    fn memory(&mut self, address: Address) -> &mut [u8] {
        let (&start, bytes) = self.allocations.range_mut(..=address).next_back().expect("an address of an allocation");
        &mut bytes[(address - start) as usize..]
    }
}

extern "system" fn clear(address: Address, byte: u8, bytes: usize, _: Stream) -> Status {
    let clear = |mut state: MutexGuard<State>| state.memory(address)[..bytes].fill(byte);
    status(call("cuMemsetD8Async", true).map(clear))
}

extern "system" fn upload(address: Address, host: *const c_void, bytes: usize, _: Stream) -> Status {
    let copy = |mut state: MutexGuard<State>| {
        // SAFETY: the backend says that the source has so many bytes.
        let host = unsafe { std::slice::from_raw_parts(host.cast::<u8>(), bytes) };
        state.memory(address)[..bytes].copy_from_slice(host);
    };
    status(call("cuMemcpyHtoDAsync_v2", true).map(copy))
}

extern "system" fn download(host: *mut c_void, address: Address, bytes: usize, _: Stream) -> Status {
    let copy = |mut state: MutexGuard<State>| {
        // SAFETY: the backend says that the destination has so many bytes.
        let host = unsafe { std::slice::from_raw_parts_mut(host.cast::<u8>(), bytes) };
        host.copy_from_slice(&state.memory(address)[..bytes]);
    };
    status(call("cuMemcpyDtoHAsync_v2", true).map(copy))
}

extern "system" fn load_module(
    module: *mut Module,
    image: *const c_void,
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> Status {
    let load = |mut state: MutexGuard<State>| {
        // SAFETY: the backend gives a string that ends with NUL: PTX, or the code of a compiler of paper.
        let image = unsafe { CStr::from_ptr(image.cast()) }.to_str().unwrap();
        let mut keep = |reading: Reading| {
            let new = state.modules.last_key_value().map_or(100, |(last, _)| last + 1);
            state.modules.insert(new, Arc::new(reading));
            put(module, handle(new));
            Ok(())
        };
        if count == 0 {
            return keep(hip::read(image).map_err(|_| 200)?);
        }
        // SAFETY: the backend gives so many options with their values.
        let (options, values) = unsafe {
            let options = std::slice::from_raw_parts(options, count as usize);
            (options, std::slice::from_raw_parts(values, count as usize))
        };
        assert_eq!(options, [option::ERROR_LOG, option::ERROR_LOG_BYTES]);
        match ptx::read(image) {
            Ok(reading) => keep(reading),
            Err(fault) => {
                let log = format!("ptxas application ptx input, line {}; error   : {}\n\0", fault.line, fault.what);
                let room = values[1].addr();
                let place: *mut u8 = values[0].cast();
                log.bytes().take(room).enumerate().for_each(|(i, byte)| put(place.wrapping_add(i), byte));
                Err(218)
            }
        }
    };
    status(call("cuModuleLoadDataEx", true).and_then(load))
}

extern "system" fn unload_module(module: Module) -> Status {
    let unload = |mut state: MutexGuard<State>| assert!(state.modules.remove(&number(module)).is_some());
    status(call("cuModuleUnload", true).map(unload))
}

extern "system" fn kernel(kernel: *mut Kernel, module: Module, name: *const c_char) -> Status {
    let find = |state: MutexGuard<State>| {
        // SAFETY: the backend gives a string that ends with NUL.
        let name = unsafe { CStr::from_ptr(name) };
        if state.modules[&number(module)].kernel.name.as_bytes() != name.to_bytes() {
            return Err(500);
        }
        put(kernel, handle(number(module)));
        Ok(())
    };
    status(call("cuModuleGetFunction", true).and_then(find))
}

#[allow(clippy::too_many_arguments)]
extern "system" fn launch(
    kernel: Kernel,
    width: c_uint,
    height: c_uint,
    depth: c_uint,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    shared: c_uint,
    _: Stream,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Status {
    let launch = |mut state: MutexGuard<State>| {
        let reading = state.modules[&number(kernel)].clone();
        assert_eq!([depth, x, y, z, shared], [1, reading.kernel.lanes, 1, 1, 0]);
        assert!(extra.is_null());
        let count = 1 + reading.kernel.arguments().count();
        // SAFETY: the backend gives as many pointers as the kernel has parameters, each to an address.
        let addresses: Vec<Address> = (0..count).map(|i| unsafe { *(*parameters.add(i)).cast::<Address>() }).collect();
        run(&mut state, &reading, &addresses, u64::from(width) * u64::from(height));
    };
    status(call("cuLaunchKernel", true).map(launch))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Runs a kernel on the machine, and writes back what it changes.
fn run(state: &mut State, reading: &Reading, addresses: &[Address], groups: u64) {
    let domain = Numbers::default();
    let block = words(state.memory(addresses[0]));
    let scalar = |place: ds4_ir::Dim| block[place.0 as usize];
    assert!(reading.kernel.grid_in(&scalar).unwrap().total() <= groups, "the grid is too small");
    let before: Vec<Vec<u32>> = addresses[1..].iter().map(|&address| words(state.memory(address))).collect();
    let mut cells: Vec<Cells<Numbers>> = before.iter().map(|words| Cells::of_words(&domain, words)).collect();
    Machine::new(&reading.kernel, &domain, LaneOrder::Descending).unwrap().run(&scalar, &mut cells).unwrap();
    for ((cells, before), &address) in cells.iter().zip(&before).zip(&addresses[1..]) {
        let memory = state.memory(address);
        for (at, (cell, &old)) in memory.chunks_exact_mut(4).zip(before).enumerate() {
            let new = cells.word(&domain, at).unwrap();
            if new != old {
                cell.copy_from_slice(&new.to_le_bytes());
            }
        }
    }
}

extern "system" fn error_name(code: Status, text: *mut *const c_char) -> Status {
    put(text, if code == 700 { c"PAPER_ERROR_700".as_ptr() } else { c"PAPER_ERROR".as_ptr() });
    0
}

extern "system" fn error_text(_: Status, text: *mut *const c_char) -> Status {
    put(text, c"of paper".as_ptr());
    0
}

extern "C" fn compiler_version(major: *mut c_int, minor: *mut c_int) -> Status {
    put(major, 13);
    put(minor, 5);
    0
}

extern "C" fn create_program(
    program: *mut *mut c_void,
    source: *const c_char,
    name: *const c_char,
    headers: c_int,
    _: *const *const c_char,
    _: *const *const c_char,
) -> Status {
    let create = |mut state: MutexGuard<State>| {
        assert!(headers == 0 && !name.is_null());
        // SAFETY: the backend gives a string that ends with NUL.
        let source = unsafe { CStr::from_ptr(source) }.to_owned();
        let new = state.programs.last_key_value().map_or(500, |(last, _)| last + 1);
        state.programs.insert(new, Program { source, log: String::new() });
        put(program, without_provenance_mut(new));
    };
    status(call("CreateProgram", false).map(create))
}

extern "C" fn compile(program: *mut c_void, count: c_int, flags: *const *const c_char) -> Status {
    let compile = |mut state: MutexGuard<State>| {
        // SAFETY: the backend gives so many strings that end with NUL.
        let flags = (0..count as usize).map(|i| unsafe { CStr::from_ptr(*flags.add(i)) }.to_str().unwrap());
        let flags: Vec<&str> = flags.collect();
        assert!(["--gpu-architecture=sm_90", "--offload-arch=gfx1100"].contains(&flags[0]), "{flags:?}");
        assert!(flags.contains(&"--fmad=false") || flags.contains(&"-ffp-contract=off"), "{flags:?}");
        let program = state.programs.get_mut(&program.addr()).unwrap();
        match hip::read(program.source.to_str().unwrap()) {
            Ok(_) => Ok(()),
            Err(fault) => {
                program.log = format!("a warning\nkernel.hip:{}:5: error: {}\n", fault.line, fault.what);
                Err(6)
            }
        }
    };
    status(call("CompileProgram", false).and_then(compile))
}

extern "C" fn destroy_program(program: *mut *mut c_void) -> Status {
    // SAFETY: the backend gives a place that holds a program.
    let destroy = |mut state: MutexGuard<State>| state.programs.remove(&unsafe { *program }.addr()).map(drop).unwrap();
    status(call("DestroyProgram", false).map(destroy))
}

extern "C" fn log_bytes(program: *mut c_void, bytes: *mut usize) -> Status {
    let ask = |state: MutexGuard<State>| put(bytes, state.programs[&program.addr()].log.len() + 1);
    status(call("GetProgramLogSize", false).map(ask))
}

extern "C" fn log(program: *mut c_void, place: *mut c_char) -> Status {
    let write = |state: MutexGuard<State>| {
        let log = state.programs[&program.addr()].log.bytes().chain([0]);
        log.enumerate().for_each(|(i, byte)| put(place.wrapping_add(i), byte as c_char));
    };
    status(call("GetProgramLog", false).map(write))
}

extern "C" fn code_bytes(program: *mut c_void, bytes: *mut usize) -> Status {
    let ask = |state: MutexGuard<State>| put(bytes, state.programs[&program.addr()].source.as_bytes_with_nul().len());
    status(call("GetCodeSize", false).map(ask))
}

extern "C" fn code(program: *mut c_void, place: *mut c_char) -> Status {
    let write = |state: MutexGuard<State>| {
        let code = state.programs[&program.addr()].source.as_bytes_with_nul();
        code.iter().enumerate().for_each(|(i, &byte)| put(place.wrapping_add(i), byte as c_char));
    };
    status(call("GetCode", false).map(write))
}

extern "C" fn compiler_error_text(_: Status) -> *const c_char {
    c"an error of paper".as_ptr()
}
