//! Kernels made executable, and buffers bound to them.

use ds4_ir::Diagnostic;

use super::adapter::About;
use super::device::Device;
use super::memory::Piece;
use crate::device::cache::Cache;
use crate::device::shader::{Access, Binding, Shader};

/// Kind of the cached files that hold compiled pipelines.
const PIPELINES: &str = "pipelines";
/// A kernel that the device can launch.
pub struct Pipeline {
    pub(super) name: String,
    pub(super) raw: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    bindings: Vec<Binding>,
}

/// Buffers bound for one pipeline.
pub struct Bound {
    pub(super) group: wgpu::BindGroup,
}

/// The driver's cache of compiled kernels, kept on disk between runs.
pub(super) struct PipelineCache {
    raw: wgpu::PipelineCache,
    key: String,
    kept: Cache,
}

impl PipelineCache {
    /// The cache of an adapter, with what an earlier run kept; none where the driver has none.
    pub(super) fn open(device: &wgpu::Device, about: &About, kept: &Cache) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let key = about.identity();
        let data = kept.get(PIPELINES, &key);
        let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: data.as_deref(), fallback: true };
        // SAFETY: the data, if any, came from `get_data` of this adapter and driver: the key names both, and the
        // hash in front of the file shows that it is whole.
        let raw = unsafe { device.create_pipeline_cache(&descriptor) };
        Some(PipelineCache { raw, key, kept: kept.clone() })
    }

    fn keep(&self) {
        if let Some(data) = self.raw.get_data() {
            self.kept.put(PIPELINES, &self.key, &data);
        }
    }
}

impl Device {
    /// Makes a kernel executable.
    ///
    /// # Errors
    /// The kernel needs a feature or more than the device has, or the driver refuses it.
    pub fn pipeline(&self, shader: &Shader) -> Result<Pipeline, Diagnostic> {
        self.about().check_shader(shader)?;
        let what = format!("kernel {}", shader.name);
        let (raw, layout) = self.faults.guard(&self.raw, &what, || self.compile(shader))?;
        Ok(Pipeline { name: shader.name.clone(), raw, layout, bindings: shader.bindings.clone() })
    }

    fn compile(&self, shader: &Shader) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout) {
        let label = Some(shader.name.as_str());
        let entries: Vec<_> = shader.bindings.iter().map(layout_entry).collect();
        let layout = self.raw.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = self.raw.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let [x, y, z] = shader.workgroup;
        let entry = wgpu::PassthroughShaderEntryPoint { name: shader.entry.as_str().into(), workgroup_size: (x, y, z) };
        let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
            label,
            entry_points: vec![entry].into(),
            spirv: Some(shader.words.as_slice().into()),
            ..Default::default()
        };
        // SAFETY: the words are naga's for a module that it validated, with every index restricted to its buffer; the
        // pass over them adds only decorations and modes, whose support was checked when the device was opened; the
        // layout above is the module's own.
        let module = unsafe { self.raw.create_shader_module_passthrough(descriptor) };
        let pipeline = self.raw.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(&shader.entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: self.cache.as_ref().map(|cache| &cache.raw),
        });
        (pipeline, layout)
    }

    /// Keeps the compiled pipelines for the next run.
    pub fn keep_pipelines(&self) {
        if let Some(cache) = &self.cache {
            cache.keep();
        }
    }

    /// Binds pieces of arenas to a pipeline's bindings, in ascending order of their index.
    ///
    /// # Errors
    /// There are more or fewer pieces than bindings, or a piece is larger than a binding may be.
    pub fn bind(&self, pipeline: &Pipeline, pieces: &[Piece<'_>]) -> Result<Bound, Diagnostic> {
        let what = format!("kernel {}", pipeline.name);
        if pieces.len() != pipeline.bindings.len() {
            let wanted = format!("{} buffers", pipeline.bindings.len());
            return Err(self.about().refuses(&what, &wanted, &pieces.len().to_string()));
        }
        pieces.iter().try_for_each(|piece| self.check_piece(piece, &what))?;
        let entries: Vec<_> = pipeline.bindings.iter().zip(pieces).map(|(b, p)| p.entry(b.index)).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        let group = self.faults.guard(&self.raw, &what, || self.raw.create_bind_group(&descriptor))?;
        Ok(Bound { group })
    }
}

fn layout_entry(binding: &Binding) -> wgpu::BindGroupLayoutEntry {
    let ty = match binding.access {
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
    };
    wgpu::BindGroupLayoutEntry {
        binding: binding.index,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
