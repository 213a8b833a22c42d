//! What the driver reports, as diagnostics.

use ds4_ir::diagnostic::{Code, codes};
use ds4_ir::{Diagnostic, Place};

use super::api::Status;
use super::interface::Interface;
use crate::device::backend::Text;
use crate::device::select::missing;

const REPORT: &str = "a fault of this program or of the driver: please report it";
const RECOMPILE: &str = "compile the model again; if this stays, it is a fault of the compiler: please report it";

/// A call that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    pub(super) status: Status,
    /// What the driver calls it.
    pub(super) words: String,
}

/// Statuses of one kind: their codes, the diagnostic's code and message, what to do. `{driver}` is the interface's.
struct Kind {
    statuses: &'static [Status],
    code: Code,
    message: &'static str,
    help: &'static str,
}

/// Kinds of failures, by the numbers of `CUresult`, which those of `hipError_t` follow. Behind those of a lost device no call succeeds any more.
const KINDS: [Kind; 5] = [
    Kind {
        // The second is HIP's, when the layer below it has none.
        statuses: &[2, 1052],
        code: codes::DEVICE_MEMORY,
        message: "there is not enough memory on the device",
        help: "compile with smaller --context or --prefill, or free memory of the device",
    },
    Kind {
        // No device, and one that is none.
        statuses: &[100, 101],
        code: codes::DEVICE_ABSENT,
        message: "there is no such device",
        help: "see the devices of this machine with `ds4-run --list-devices`",
    },
    Kind {
        // A stub, parts of a driver that do not fit, a device that others have to themselves, a compiler that is missing,
        // too old or off, a system that is not ready, and drivers that do not fit each other or the device.
        statuses: &[34, 35, 46, 221, 222, 223, 802, 803, 804],
        code: codes::DEVICE_DRIVER,
        message: "the driver refuses the device",
        help: "update {driver}, or take another device with --device",
    },
    Kind {
        // An image, PTX or source that is wrong, or for no device.
        statuses: &[200, 209, 218, 300],
        code: codes::KERNEL_TEXT,
        message: "the text of a kernel is malformed",
        help: RECOMPILE,
    },
    Kind {
        // The driver ends; memory or a link fails; a kernel failed, and its context with it.
        statuses: &[4, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719],
        code: codes::DEVICE_LOST,
        message: "the device is lost",
        help: "run again; if it is lost again, update the driver or take another device with --device",
    },
];

/// All other failures.
const OTHER: Kind =
    Kind { statuses: &[], code: codes::DEVICE_REFUSES, message: "the device refuses its work", help: REPORT };

/// The diagnostic of a failure on a device; `what` was wanted.
pub(super) fn failed(interface: Interface, device: &str, what: &str, failure: &Failure) -> Diagnostic {
    let kind = KINDS.iter().find(|kind| kind.statuses.contains(&failure.status)).unwrap_or(&OTHER);
    let help = kind.help.replace("{driver}", interface.drivers());
    Diagnostic::new(kind.code, kind.message).at(place(device)).wanted(what, &failure.words).help(help)
}

fn place(device: &str) -> Place {
    Place::file(format!("device {device}"))
}

/// The diagnostic of a driver that is missing, or lacks an entry point.
pub(super) fn without_driver(interface: Interface, number: usize, reason: &str) -> Diagnostic {
    missing(interface.choice(number), interface.driver(), reason)
}

/// The diagnostic of a number that no device has.
pub(super) fn absent(interface: Interface, number: usize, count: usize) -> Diagnostic {
    let (wanted, found) = match count {
        0 => (format!("a device with {}", interface.drivers()), "none".to_string()),
        _ => (format!("a number below {count}"), number.to_string()),
    };
    Diagnostic::new(codes::DEVICE_ABSENT, format!("there is no device {}:{number}", interface.name()))
        .wanted(wanted, found)
        .help("see the devices of this machine with `ds4-run --list-devices`")
}

/// The diagnostic of a driver or device whose version is below what the texts of kernels need.
pub(super) fn too_old(interface: Interface, device: &str, what: &str, wanted: [u32; 2], found: [u32; 2]) -> Diagnostic {
    let [wanted, found] = [wanted, found].map(|[major, minor]| format!("{major}.{minor}"));
    lacks(interface, device, &format!("{what} {wanted}"), &found)
}

/// The diagnostic of a device that does not say what it executes.
pub(super) fn unknown_architecture(interface: Interface, device: &str) -> Diagnostic {
    lacks(interface, device, "a device that names its architecture", "none in its properties")
}

fn lacks(interface: Interface, device: &str, wanted: &str, found: &str) -> Diagnostic {
    Diagnostic::new(codes::DEVICE_FEATURE, "the device lacks what kernels need")
        .at(place(device))
        .wanted(wanted, found)
        .help(format!("update {}, or take another device with --device", interface.drivers()))
}

/// The diagnostic of a compiler that is missing, or lacks an entry point.
pub(super) fn without_compiler(interface: Interface, device: &str, reason: &str) -> Diagnostic {
    let package = interface.pick(&["NVRTC, a part of NVIDIA's CUDA toolkit", "hiprtc, a part of AMD's ROCm"]);
    Diagnostic::new(codes::DEVICE_DRIVER, "there is no compiler for the kernels of the device")
        .at(place(device))
        .wanted(package, reason)
        .help(format!("install {package}, or take another device with --device"))
}

/// The diagnostic of something that is larger than the device allows.
pub(super) fn too_small(device: &str, item: &str, [wanted, found]: [String; 2], help: &str) -> Diagnostic {
    Diagnostic::new(codes::DEVICE_SMALL, "the device is too small")
        .at(Place::item(format!("device {device}"), item))
        .wanted(wanted, found)
        .help(help)
}

/// The diagnostic of a mistake of ours.
pub(super) fn refuses(device: &str, item: &str, wanted: &str, found: &str) -> Diagnostic {
    Diagnostic::new(codes::DEVICE_REFUSES, "the device refuses its work")
        .at(Place::item(format!("device {device}"), item))
        .wanted(wanted, found)
        .help(REPORT)
}

/// The diagnostic of a kernel that a compiler does not take; `log` is what it says, in place of the driver's words.
pub(super) fn kernel(text: &Text<'_>, language: &str, log: &str, words: &str) -> Diagnostic {
    let said = log.lines().map(str::trim).find(|line| line.contains("error"));
    let said = said.or_else(|| log.lines().map(str::trim).find(|line| !line.is_empty()));
    let mut place = Place::file(format!("kernel {}", text.name));
    place.source = said.and_then(|line| line_of(text.source, line)).map(|range| (text.source.into(), range));
    Diagnostic::new(codes::KERNEL_TEXT, "the text of a kernel is malformed")
        .at(place)
        .wanted(language, said.unwrap_or(words))
        .help(RECOMPILE)
}

/// Whether a failure says that a text is wrong.
pub(super) fn is_of_text(failure: &Failure) -> bool {
    KINDS.iter().any(|kind| kind.code == codes::KERNEL_TEXT && kind.statuses.contains(&failure.status))
}

/// The bytes of the line that a compiler's message names: `ptxas application ptx input, line 12; error : ...`,
/// `kernel.hip:12:5: error: ...`, `kernel.hip(12): error: ...`.
fn line_of(source: &str, message: &str) -> Option<std::ops::Range<usize>> {
    let number = |text: &str| -> Option<usize> { text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok() };
    let place = message.split_once("error").map_or(message, |(place, _)| place);
    let bracket = || number(place.rsplit_once('(')?.1);
    let colon = || number(place.split(':').nth_back(2)?);
    let said = place.split_once("line ").and_then(|(_, digits)| number(digits));
    let number = said.or_else(colon).or_else(bracket)?;
    let line = source.split('\n').nth(number.checked_sub(1)?)?;
    let start = line.as_ptr() as usize - source.as_ptr() as usize;
    let indent = line.len() - line.trim_start().len();
    Some(start + indent..start + line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: Status, words: &str) -> Failure {
        Failure { status, words: words.into() }
    }

    #[test]
    fn faults_have_their_texts() {
        use Interface::{Cuda, Hip};
        let source = "// a sum\n.version 6.3\n    add.f33 %f1, %x, %y;\n";
        let log = "ptxas application ptx input, line 3; error   : Unexpected instruction types specified for 'add'\n";
        let text = Text { name: "layer.0.norm", entry: "norm", source, lanes: 64, arguments: 2 };
        let words = "CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed";
        assert!(is_of_text(&failure(218, words)) && !is_of_text(&failure(222, "")));
        let failures = [
            failure(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            failure(100, "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"),
            failure(
                222,
                "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.",
            ),
            failure(700, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"),
            failure(1, "CUDA_ERROR_INVALID_VALUE: invalid argument"),
        ];
        let mut texts: Vec<Diagnostic> =
            failures.iter().map(|f| failed(Cuda, "cuda:0 Toy", "reading values", f)).collect();
        texts.push(failed(Hip, "hip:0 Toy", "the driver", &failure(35, "hipErrorInsufficientDriver")));
        let absent_library = "cannot open shared object file: No such file or directory";
        texts.push(without_driver(Cuda, 0, &format!("libcuda.so.1: {absent_library}")));
        texts.push(without_driver(Hip, 1, &format!("libamdhip64.so.7: {absent_library}")));
        texts.push(without_compiler(Cuda, "cuda:0 Toy", &format!("libnvrtc.so.13: {absent_library}")));
        texts.push(absent(Cuda, 0, 0));
        texts.push(absent(Hip, 2, 2));
        texts.push(too_old(Cuda, "cuda:0 Toy", "compute capability", [7, 5], [6, 1]));
        texts.push(unknown_architecture(Hip, "hip:0 Toy"));
        texts.push(refuses("cuda:0 Toy", "kernel norm", "3 buffers", "2"));
        texts.push(kernel(&text, "PTX", log, words));
        texts.push(kernel(&text, "PTX", "", words));
        let texts: Vec<String> = texts.iter().map(Diagnostic::to_string).collect();
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    /// No status is of two kinds.
    #[test]
    fn kinds_are_apart() {
        let all: Vec<Status> = KINDS.iter().flat_map(|kind| kind.statuses).copied().collect();
        let distinct: std::collections::BTreeSet<Status> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
        assert!(!distinct.contains(&0));
    }

    /// Whatever the compiler says about lines, there is an answer.
    #[test]
    fn lines_of_messages_are_found_or_not() {
        let source = "a\n  b\n";
        assert_eq!(line_of(source, "line 2; error"), Some(4..5));
        assert_eq!(line_of(source, "line 3;"), Some(6..6));
        for message in ["kernel.hip:2:5: error: a", "/tmp/a:b/kernel.hip:2:5: error: b:c", "kernel.hip(2): error: a(3)"]
        {
            assert_eq!(line_of(source, message), Some(4..5), "{message}");
        }
        for message in ["", "line ", "line 0", "line 9", "line x", "line 99999999999999999999"] {
            assert_eq!(line_of(source, message), None, "{message}");
        }
    }
}
