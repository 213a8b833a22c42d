//! What a device reports when something fails, as diagnostics.
//!
//! wgpu panics for an error that nobody catches. Here every call stands in [`Faults::guard`], and what still escapes is
//! kept and told at the next wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::wait::block_on;

/// What happened to a device outside of a guarded call.
#[derive(Default)]
struct Events {
    lost: Option<String>,
    uncaught: Option<Diagnostic>,
}

/// The faults of one device.
#[derive(Clone)]
pub(super) struct Faults {
    name: String,
    events: Arc<Mutex<Events>>,
}

impl Faults {
    /// Listens to a device; `name` is the adapter's in messages.
    pub(super) fn listen(name: &str, device: &wgpu::Device) -> Self {
        let faults = Faults { name: name.into(), events: Arc::default() };
        let listener = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error| {
            let fault = listener.fault("work on the device", &error);
            listener.events().uncaught.get_or_insert(fault);
        }));
        let listener = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            // The device's own end is no loss.
            if reason != wgpu::DeviceLostReason::Destroyed {
                listener.events().lost.get_or_insert(message);
            }
        });
        faults
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        // Events are whole at any time: a panic elsewhere does not spoil them.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work`, named by `what`, and gives the error that it caused.
    pub(super) fn guard<T>(
        &self,
        device: &wgpu::Device,
        what: &str,
        work: impl FnOnce() -> T,
    ) -> Result<T, Diagnostic> {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let [memory, internal, validation] =
            [OutOfMemory, Internal, Validation].map(|filter| device.push_error_scope(filter));
        let done = work();
        // Scopes are a stack.
        let errors = [block_on(validation.pop()), block_on(internal.pop()), block_on(memory.pop())];
        self.check()?;
        match errors.into_iter().flatten().next() {
            Some(error) => Err(self.fault(what, &error)),
            None => Ok(done),
        }
    }

    /// Waits until all submitted work is done.
    pub(super) fn wait(&self, device: &wgpu::Device) -> Result<(), Diagnostic> {
        // wgpu 30 panics where a wait finds the device lost; nothing of ours is left half done by that.
        let polled = catch_unwind(AssertUnwindSafe(|| device.poll(wgpu::PollType::wait_indefinitely())));
        self.check()?;
        match polled {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.lost(&error.to_string())),
            Err(_) => Err(self.lost("waiting for it failed")),
        }
    }

    /// An error if the device was lost or reported an error outside of a guarded call.
    pub(super) fn check(&self) -> Result<(), Diagnostic> {
        let mut events = self.events();
        if let Some(message) = &events.lost {
            return Err(self.lost(message));
        }
        events.uncaught.take().map_or(Ok(()), Err)
    }

    fn place(&self) -> Place {
        Place::file(format!("device {}", self.name))
    }

    fn lost(&self, message: &str) -> Diagnostic {
        Diagnostic::new(codes::DEVICE_LOST, "the device is lost")
            .at(self.place())
            .wanted("a device that answers", message)
            .help("run again; if it is lost again, update the driver or take another device with --device")
    }

    /// The diagnostic of an error that wgpu reports.
    pub(super) fn fault(&self, what: &str, error: &wgpu::Error) -> Diagnostic {
        match error {
            wgpu::Error::OutOfMemory { source } => {
                Diagnostic::new(codes::DEVICE_MEMORY, "there is not enough memory on the device")
                    .at(self.place())
                    .wanted(format!("memory for {what}"), source)
                    .help("compile with smaller --context or --prefill, or free memory of the device")
            }
            wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
                Diagnostic::new(codes::DEVICE_REFUSES, "the device refuses its work")
                    .at(self.place())
                    .wanted(what, one_line(description))
                    .help("a fault of this program or of the driver: please report it")
            }
        }
    }
}

/// The lines of a report, joined.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_their_texts() {
        let faults = Faults { name: "toy".into(), events: Arc::default() };
        let source = || Box::<dyn std::error::Error + Send + Sync>::from("no room");
        let errors = [
            wgpu::Error::OutOfMemory { source: source() },
            wgpu::Error::Validation { source: source(), description: "Validation Error\n\nCaused by:\n  x\n".into() },
        ];
        let mut texts: Vec<_> = errors.iter().map(|error| faults.fault("arena weights", error).to_string()).collect();
        faults.events().uncaught = Some(faults.fault("work", &errors[0]));
        assert_eq!(faults.check().unwrap_err().code, codes::DEVICE_MEMORY);
        faults.check().unwrap();
        faults.events().lost = Some("it was unplugged".into());
        texts.push(faults.check().unwrap_err().to_string());
        // A lost device stays lost.
        assert_eq!(faults.check().unwrap_err().code, codes::DEVICE_LOST);
        insta::assert_snapshot!(texts.join("\n\n"));
    }
}
