//! Running a program and measuring it.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// Wall-clock time.
    pub time: Duration,
    /// Largest resident memory in bytes, if the system tells (`/proc`).
    pub memory: Option<u64>,
}

/// Runs a program to its end. Its output is dropped; a failure is an error.
///
/// Memory is the high-water mark that the system keeps, read every few milliseconds while the program runs.
pub fn measure(command: &mut Command) -> io::Result<Usage> {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn()?;
    let mut memory = None;
    let status = loop {
        memory = high_water(child.id()).or(memory);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if !status.success() {
        return Err(io::Error::other(format!("{command:?} ended with {status}")));
    }
    Ok(Usage { time: begin.elapsed(), memory })
}

/// The largest resident memory so far of a process, in bytes.
fn high_water(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|n| n * 1024)
}
