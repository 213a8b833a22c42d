//! What a device's bounds and features refuse, before the driver is asked.

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::adapter::About;
use crate::device::shader::Shader;

/// SPIR-V capabilities that are an optional feature, with its name.
const CAPABILITIES: [(u32, &str); 9] = [
    (9, "f16"),
    (11, "i64"),
    (61, "subgroups"),
    (62, "subgroups"),
    (63, "subgroups"),
    (64, "subgroups"),
    (65, "subgroups"),
    (66, "subgroups"),
    (68, "subgroups"),
];
const SMALLER: &str = "compile the model with smaller --context or --prefill, or take another device with --device";

impl About {
    /// An item on this device, for messages.
    pub(super) fn place(&self, item: &str) -> Place {
        Place::item(format!("device {}", self.name), item)
    }

    fn too_small(&self, item: &str, what: &str, wanted: u64, available: u64, help: &str) -> Diagnostic {
        Diagnostic::new(codes::DEVICE_SMALL, "the device is too small")
            .at(self.place(item))
            .wanted(format!("{wanted} {what}"), format!("at most {available}"))
            .help(help)
    }

    /// An error if the driver would find fault with `found`, which is a mistake of ours.
    pub(super) fn refuses(&self, item: &str, wanted: &str, found: &str) -> Diagnostic {
        Diagnostic::new(codes::DEVICE_REFUSES, "the device refuses its work")
            .at(self.place(item))
            .wanted(wanted, found)
            .help("a fault of this program or of the driver: please report it")
    }

    /// An error if the adapter cannot be strict.
    pub fn check_strict(&self) -> Result<(), Diagnostic> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(Diagnostic::new(codes::DEVICE_FEATURE, "the device lacks what strict arithmetic needs")
            .at(Place::file(format!("device {}", self.name)))
            .wanted(
                "Vulkan 1.2 with control of rounding and of signed zeros",
                format!("no {}", self.missing.join(", no ")),
            )
            .help("update the driver, or take another device with --device"))
    }

    /// An error if a buffer of so many bytes is too large.
    pub(super) fn check_buffer(&self, item: &str, bytes: u64) -> Result<(), Diagnostic> {
        let most = self.limits.buffer_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(self.too_small(item, "bytes in a buffer", bytes, most, SMALLER))
    }

    /// An error if so many bytes are too many for one binding.
    pub(super) fn check_binding(&self, item: &str, bytes: u64) -> Result<(), Diagnostic> {
        let most = self.limits.binding_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(self.too_small(item, "bytes in a binding", bytes, most, SMALLER))
    }

    /// An error if a grid is too long along an axis.
    pub(super) fn check_grid(&self, kernel: &str, groups: [u32; 3]) -> Result<(), Diagnostic> {
        let most = self.limits.workgroups;
        match groups.into_iter().find(|&groups| groups > most) {
            None => Ok(()),
            Some(groups) => Err(self.too_small(
                &format!("kernel {kernel}"),
                "workgroups along an axis",
                groups.into(),
                most.into(),
                SMALLER,
            )),
        }
    }

    /// An error if a kernel needs a feature, or more of something, than the device has.
    pub(super) fn check_shader(&self, shader: &Shader) -> Result<(), Diagnostic> {
        self.check_features(shader)?;
        let limits = &self.limits;
        let threads: u64 = shader.workgroup.iter().map(|&n| u64::from(n)).product();
        let buffers = shader.bindings.len() as u64;
        let axes = shader.workgroup.iter().zip(limits.workgroup_size);
        let axes = axes.map(|(&n, most)| ("threads of a workgroup along an axis", n.into(), u64::from(most)));
        let others = [
            ("threads in a workgroup", threads, u64::from(limits.workgroup_threads)),
            ("bytes of workgroup memory", shader.workgroup_bytes, u64::from(limits.workgroup_bytes)),
            ("storage buffers in a kernel", buffers, u64::from(limits.storage_buffers)),
        ];
        match axes.chain(others).find(|(_, wanted, available)| wanted > available) {
            None => Ok(()),
            Some((what, wanted, available)) => {
                Err(self.too_small(&format!("kernel {}", shader.name), what, wanted, available, SMALLER))
            }
        }
    }

    fn check_features(&self, shader: &Shader) -> Result<(), Diagnostic> {
        let lacking = |(capability, name): &&(u32, &str)| {
            shader.capabilities.contains(capability) && !self.features.iter().any(|feature| feature == name)
        };
        let found = match self.features.is_empty() {
            true => "none".into(),
            false => self.features.join(", "),
        };
        match CAPABILITIES.iter().find(lacking) {
            None => Ok(()),
            Some((_, name)) => Err(Diagnostic::new(codes::DEVICE_FEATURE, "the device lacks a feature of a kernel")
                .at(self.place(&format!("kernel {}", shader.name)))
                .wanted(name, found)
                .help("update the driver, or take another device with --device")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::shader::lower;
    use crate::device::wgpu::tests::toy;

    #[test]
    fn small_devices_have_their_texts() {
        let toy = toy();
        let kernel = |text: &str| {
            let text = format!("{text}\n@compute @workgroup_size(8, 2, 1) fn k() {{ body(); }}");
            lower("k", &text).unwrap()
        };
        let cells = kernel("var<workgroup> cells: array<u32, 400>; fn body() { cells[0] = 1u; }");
        let halves = kernel("enable f16; fn body() { var x = f16(1.0); x = x + x; }");
        let wide = Shader { workgroup: [64, 1, 1], ..kernel("fn body() {}") };
        let many = Shader { workgroup: [8, 8, 1], ..wide.clone() };
        let errors = [
            toy.check_buffer("arena weights", 70_000_000_000),
            toy.check_binding("kernel layer.0.norm, arena weights", 3_000_000_000),
            toy.check_grid("layer.0.norm", [1, 200_000, 1]),
            toy.check_shader(&cells),
            toy.check_shader(&halves),
            toy.check_shader(&wide),
            toy.check_shader(&many),
            About { missing: vec!["Vulkan 1.2", "rounding to nearest even"], ..toy.clone() }.check_strict(),
        ];
        let texts = errors.map(|error| error.unwrap_err().to_string());
        insta::assert_snapshot!(texts.join("\n\n"));
        toy.check_buffer("arena state", 1 << 30).unwrap();
        toy.check_shader(&kernel("fn body() {}")).unwrap();
        toy.check_strict().unwrap();
    }
}
