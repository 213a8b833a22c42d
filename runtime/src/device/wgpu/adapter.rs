//! The adapters of this machine: what they are, what they offer, whether they can be strict.

use serde::Serialize;
use wgpu::hal::api::Vulkan;

use super::wait::block_on;

/// The bounds of an adapter that plans have to meet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Limits {
    /// Bytes of the largest buffer.
    pub buffer_bytes: u64,
    /// Bytes of the largest part of a buffer that a kernel sees at once.
    pub binding_bytes: u64,
    /// Storage buffers of a kernel.
    pub storage_buffers: u32,
    /// Bytes that the start of a storage binding is a multiple of.
    pub binding_alignment: u32,
    /// Bytes of memory of a workgroup.
    pub workgroup_bytes: u32,
    /// Threads of a workgroup.
    pub workgroup_threads: u32,
    /// Threads of a workgroup along each axis.
    pub workgroup_size: [u32; 3],
    /// Workgroups along each axis.
    pub workgroups: u32,
    /// Threads of a subgroup, least and most.
    pub subgroup: [u32; 2],
}

impl Limits {
    fn of(adapter: &wgpu::Adapter) -> Self {
        let (limits, info) = (adapter.limits(), adapter.get_info());
        Limits {
            buffer_bytes: limits.max_buffer_size,
            binding_bytes: limits.max_storage_buffer_binding_size,
            storage_buffers: limits.max_storage_buffers_per_shader_stage,
            binding_alignment: limits.min_storage_buffer_offset_alignment,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            workgroup_threads: limits.max_compute_invocations_per_workgroup,
            workgroup_size: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            workgroups: limits.max_compute_workgroups_per_dimension,
            subgroup: [info.subgroup_min_size, info.subgroup_max_size],
        }
    }
}

/// What an adapter says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct About {
    /// Name of the device.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub kind: &'static str,
    /// Name of the driver.
    pub driver: String,
    /// Version and build of the driver.
    pub driver_info: String,
    /// Vendor and device, as on the PCI bus.
    pub ids: [u32; 2],
    /// Its bounds.
    pub limits: Limits,
    /// Optional features that kernels may use: `f16`, `i64`, `subgroups`.
    pub features: Vec<&'static str>,
    /// What strict arithmetic needs and the adapter lacks; empty if it can be strict.
    pub missing: Vec<&'static str>,
}

impl About {
    fn of(adapter: &wgpu::Adapter) -> Self {
        let info = adapter.get_info();
        About {
            kind: kind(info.device_type),
            ids: [info.vendor, info.device],
            limits: Limits::of(adapter),
            features: FEATURES.iter().filter(|f| adapter.features().contains(f.1)).map(|f| f.0).collect(),
            missing: missing(adapter),
            name: info.name,
            driver: info.driver,
            driver_info: info.driver_info,
        }
    }

    /// Adapter and driver in one line: what a cached fact depends on.
    pub fn identity(&self) -> String {
        let About { name, driver, driver_info, ids: [vendor, device], .. } = self;
        format!("{name}, {driver}, {driver_info}, {vendor:04x}:{device:04x}")
    }
}

/// Optional features by name.
pub(super) const FEATURES: [(&str, wgpu::Features); 3] = [
    ("f16", wgpu::Features::SHADER_F16),
    ("i64", wgpu::Features::SHADER_INT64),
    ("subgroups", wgpu::Features::SUBGROUP),
];

fn kind(kind: wgpu::DeviceType) -> &'static str {
    match kind {
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Cpu => "cpu",
        wgpu::DeviceType::Other => "other",
    }
}

/// What an adapter lacks for strict modules. wgpu does not ask for the float controls, so Vulkan is asked itself.
fn missing(adapter: &wgpu::Adapter) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !adapter.features().contains(wgpu::Features::PASSTHROUGH_SHADERS) {
        missing.push("passthrough of SPIR-V");
    }
    // SAFETY: the handle is used in this function only, and nothing is destroyed through it.
    let Some(hal) = (unsafe { adapter.as_hal::<Vulkan>() }) else {
        missing.push("Vulkan");
        return missing;
    };
    let mut controls = ash::vk::PhysicalDeviceFloatControlsProperties::default();
    let mut properties = ash::vk::PhysicalDeviceProperties2::default().push_next(&mut controls);
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: `hal` keeps instance and physical device alive; wgpu makes instances of Vulkan 1.1 or newer, which have
    // this call; a driver before 1.2 leaves the chained structure as it is, all false.
    unsafe { instance.get_physical_device_properties2(hal.raw_physical_device(), &mut properties) };
    if properties.properties.api_version < ash::vk::API_VERSION_1_2 {
        missing.push("Vulkan 1.2");
    }
    if controls.shader_rounding_mode_rte_float32 == ash::vk::FALSE {
        missing.push("rounding to nearest even");
    }
    if controls.shader_signed_zero_inf_nan_preserve_float32 == ash::vk::FALSE {
        missing.push("signed zeros, infinities and NaN");
    }
    missing
}

/// The adapters of this machine, real GPUs first, otherwise as Vulkan lists them.
pub struct Adapters {
    found: Vec<(About, wgpu::Adapter)>,
}

impl Adapters {
    /// Looks for adapters.
    pub fn find() -> Self {
        let descriptor = wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        let adapters = block_on(wgpu::Instance::new(descriptor).enumerate_adapters(wgpu::Backends::VULKAN));
        let mut found: Vec<_> = adapters.into_iter().map(|adapter| (About::of(&adapter), adapter)).collect();
        let order = ["discrete", "integrated", "virtual", "other", "cpu"];
        found.sort_by_key(|(about, _)| order.iter().position(|&kind| kind == about.kind));
        Adapters { found }
    }

    /// What the adapters say of themselves, in the order of their numbers.
    pub fn about(&self) -> impl Iterator<Item = &About> {
        self.found.iter().map(|(about, _)| about)
    }

    /// The adapter with a number.
    pub(super) fn get(&self, number: usize) -> Option<&(About, wgpu::Adapter)> {
        self.found.get(number)
    }
}
