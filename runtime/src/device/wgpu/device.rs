//! An opened adapter, and the submission of launches.

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::adapter::{About, Adapters, FEATURES};
use super::fault::Faults;
use super::pipeline::{Bound, Pipeline, PipelineCache};
use super::wait::block_on;
use crate::device::cache::Cache;

/// A device with its queue. Work is submitted in order, and each launch sees what earlier ones wrote.
pub struct Device {
    about: About,
    pub(super) raw: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) faults: Faults,
    pub(super) cache: Option<PipelineCache>,
}

/// One kernel over a grid of workgroups.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub pipeline: &'a Pipeline,
    /// Its buffers, bound for this pipeline.
    pub bound: &'a Bound,
    /// Workgroups along each axis.
    pub groups: [u32; 3],
}

impl Device {
    /// Opens the adapter with a number, with all of its limits and the features that kernels may use. Compiled pipelines
    /// of earlier runs are taken from `cache`.
    ///
    /// # Errors
    /// There is no such adapter, it cannot be strict, or its driver refuses.
    pub fn open(adapters: &Adapters, number: usize, cache: &Cache) -> Result<Device, Diagnostic> {
        let Some((about, adapter)) = adapters.get(number) else {
            return Err(absent(number, adapters.about().count()));
        };
        about.check_strict()?;
        let optional = FEATURES.iter().fold(wgpu::Features::PIPELINE_CACHE, |all, (_, feature)| all | *feature);
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: wgpu::Features::PASSTHROUGH_SHADERS | (adapter.features() & optional),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (raw, queue) = block_on(adapter.request_device(&descriptor)).map_err(|error| {
            Diagnostic::new(codes::DEVICE_DRIVER, "the driver does not open the device")
                .at(Place::file(format!("device {}", about.name)))
                .wanted("a device with the limits that its driver states", error)
                .help("update the driver, or take another device with --device")
        })?;
        let faults = Faults::listen(&about.name, &raw);
        let cache = PipelineCache::open(&raw, about, cache);
        Ok(Device { about: about.clone(), raw, queue, faults, cache })
    }

    /// What the device is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Submits launches as one submission; does not wait.
    ///
    /// # Errors
    /// A grid is larger than the device takes, the device refuses a launch, or it was lost.
    pub fn submit(&self, launches: &[Launch<'_>]) -> Result<(), Diagnostic> {
        launches.iter().try_for_each(|launch| self.about.check_grid(&launch.pipeline.name, launch.groups))?;
        self.faults.guard(&self.raw, "a submission", || {
            let mut encoder = self.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for Launch { pipeline, bound, groups: [x, y, z] } in launches {
                pass.set_pipeline(&pipeline.raw);
                pass.set_bind_group(0, &bound.group, &[]);
                pass.dispatch_workgroups(*x, *y, *z);
            }
            drop(pass);
            self.queue.submit([encoder.finish()]);
        })
    }

    /// Waits until all that was submitted is done.
    ///
    /// # Errors
    /// The device was lost, or reported an error while it worked.
    pub fn wait(&self) -> Result<(), Diagnostic> {
        self.faults.wait(&self.raw)
    }
}

/// The diagnostic of a number that no adapter has.
fn absent(number: usize, count: usize) -> Diagnostic {
    let (wanted, found) = match count {
        0 => ("a device with a Vulkan driver".to_string(), "none".to_string()),
        _ => (format!("a number below {count}"), number.to_string()),
    };
    Diagnostic::new(codes::DEVICE_ABSENT, format!("there is no device wgpu:{number}"))
        .wanted(wanted, found)
        .help("see the devices of this machine with `ds4-run --list-devices`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_device_has_its_text() {
        insta::assert_snapshot!(format!("{}\n\n{}", absent(0, 0), absent(2, 2)));
    }
}
