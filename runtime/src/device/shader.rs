//! From WGSL to strict SPIR-V, with what a pipeline needs to know of the text.

use std::collections::BTreeSet;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::read::wgsl::causes;
use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, ArraySize, Module, ShaderStage, StorageAccess, TypeInner};

use super::spirv;

/// How a kernel uses a binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A storage buffer that is only read.
    Read,
    /// A storage buffer that is written, and perhaps read.
    Write,
}

/// A buffer of a kernel: `@group(0) @binding(index)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The number of the binding.
    pub index: u32,
    /// How it is used.
    pub access: Access,
}

/// A kernel, lowered: one compute entry point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shader {
    /// What the kernel is called in messages.
    pub name: String,
    /// The name of the entry point.
    pub entry: String,
    /// Threads of a workgroup along each axis.
    pub workgroup: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// The buffers, ascending by index.
    pub bindings: Vec<Binding>,
    /// SPIR-V capabilities that the device must have.
    pub capabilities: BTreeSet<u32>,
    /// The strict module.
    pub words: Vec<u32>,
}

/// Bytes of the longest text that is taken.
const LONGEST: usize = 4 << 20;
/// Bytes of the longest stretch without a semicolon: naga descends into expressions, and a stack has an end.
const LONGEST_STATEMENT: usize = 64 << 10;
/// Most blocks inside each other, and most `else` of a text, which stand inside each other too.
const MOST_NESTED: usize = 4_096;
/// Bytes of stack on which any text within these limits can be lowered.
pub const STACK: usize = 256 << 20;

/// Lowers the text of a kernel: parsed and validated by naga, written as SPIR-V 1.5, made strict.
///
/// Indices are restricted to the length of what they index, so that no text can reach beyond its buffers. Loops are
/// taken as they are: their bounds must be static. Workgroup memory is not cleared.
///
/// # Errors
/// The text is not WGSL, not valid, or not one compute entry point whose buffers are all in group 0.
pub fn lower(name: &str, wgsl: &str) -> Result<Shader, Diagnostic> {
    lower_with(name, wgsl, spirv::make_strict)
}

/// The same without the strict pass, to show what the pass is for.
#[cfg(test)]
pub(super) fn lower_loose(name: &str, wgsl: &str) -> Result<Shader, Diagnostic> {
    lower_with(name, wgsl, |words| Ok(words.to_vec()))
}

fn lower_with(
    name: &str,
    wgsl: &str,
    pass: impl Fn(&[u32]) -> Result<Vec<u32>, spirv::Malformed>,
) -> Result<Shader, Diagnostic> {
    for (what, most, found) in sizes(wgsl) {
        if found > most {
            return Err(malformed(name, wgsl, None).wanted(format!("at most {most} {what}"), format!("{found} {what}")));
        }
    }
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| {
        let range = error.location(wgsl).map(|at| range(at.offset, at.length));
        malformed(name, wgsl, range).wanted("WGSL", error.message())
    })?;
    let capabilities = Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SHADER_INT64;
    let info = Validator::new(ValidationFlags::all(), capabilities).validate(&module).map_err(|error| {
        let range = error.location(wgsl).map(|at| range(at.offset, at.length));
        malformed(name, wgsl, range).wanted("valid WGSL", causes(error.as_inner()))
    })?;
    let found = |what: String| malformed(name, wgsl, None).wanted("a kernel that can be lowered", what);
    let (entry, workgroup) = entry_point(&module).map_err(found)?;
    let bindings = bindings(&module).map_err(found)?;
    let words = spv::write_vec(&module, &info, &options(&bindings), None).map_err(|error| found(error.to_string()))?;
    let words = pass(&words).map_err(|error| found(error.to_string()))?;
    Ok(Shader {
        name: name.into(),
        entry,
        workgroup,
        workgroup_bytes: workgroup_bytes(&module),
        bindings,
        capabilities: spirv::capabilities(&words).map_err(|error| found(error.to_string()))?,
        words,
    })
}

/// What decides how deep naga descends: for each the most that is taken, and what the text has.
fn sizes(wgsl: &str) -> [(&'static str, usize, usize); 4] {
    let statement = wgsl.split(';').map(str::len).max().unwrap_or(0);
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in wgsl.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    [
        ("bytes", LONGEST, wgsl.len()),
        ("bytes in front of a semicolon", LONGEST_STATEMENT, statement),
        ("blocks inside each other", MOST_NESTED, deepest),
        ("branches behind `else`", MOST_NESTED, wgsl.matches("else").count()),
    ]
}

fn range(offset: u32, length: u32) -> std::ops::Range<usize> {
    offset as usize..(offset + length) as usize
}

fn malformed(name: &str, wgsl: &str, range: Option<std::ops::Range<usize>>) -> Diagnostic {
    let source = range.map(|range| (wgsl.to_string(), range));
    Diagnostic::new(codes::KERNEL_TEXT, "the text of a kernel is malformed")
        .at(Place { file: format!("kernel {name}"), item: String::new(), source })
        .help("compile the model again; if this stays, it is a fault of the compiler: please report it")
}

fn options(bindings: &[Binding]) -> spv::Options<'static> {
    // wgpu numbers the bindings of a layout without gaps, ascending; a module that it does not read must do the same.
    let places = bindings.iter().enumerate().map(|(place, binding)| {
        let info = spv::BindingInfo { descriptor_set: 0, binding: place as u32, binding_array_size: None };
        (naga::ResourceBinding { group: 0, binding: binding.index }, info)
    });
    spv::Options {
        lang_version: (1, 5),
        flags: spv::WriterFlags::empty(),
        fake_missing_bindings: false,
        binding_map: places.collect(),
        bounds_check_policies: BoundsCheckPolicies {
            index: BoundsCheckPolicy::Restrict,
            buffer: BoundsCheckPolicy::Restrict,
            image_load: BoundsCheckPolicy::Restrict,
            binding_array: BoundsCheckPolicy::Restrict,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        ..spv::Options::default()
    }
}

fn entry_point(module: &Module) -> Result<(String, [u32; 3]), String> {
    match module.entry_points.as_slice() {
        [entry] if entry.stage != ShaderStage::Compute => Err(format!("{} is no compute entry point", entry.name)),
        [entry] if entry.workgroup_size_overrides.is_some() => Err("a workgroup size that is not constant".into()),
        [entry] => Ok((entry.name.clone(), entry.workgroup_size)),
        entries => Err(format!("{} entry points", entries.len())),
    }
}

/// Each variable rounded up to 16 bytes, as WebGPU counts.
fn workgroup_bytes(module: &Module) -> u64 {
    let variables = module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::WorkGroup);
    let sizes = variables.map(|(_, v)| module.types[v.ty].inner.size(module.to_ctx()));
    sizes.map(|size| u64::from(size).next_multiple_of(16)).sum()
}

fn bindings(module: &Module) -> Result<Vec<Binding>, String> {
    let mut bindings = Vec::new();
    for (_, variable) in module.global_variables.iter() {
        let access = match variable.space {
            AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => Access::Write,
            AddressSpace::Storage { .. } => Access::Read,
            AddressSpace::WorkGroup | AddressSpace::Private => continue,
            space => return Err(format!("a variable in {space:?} space")),
        };
        // Indices are restricted to the length that a type states; only a type without one has the length of what is bound.
        if !matches!(module.types[variable.ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. }) {
            return Err("a buffer that is no array of the length that is bound".into());
        }
        match variable.binding {
            Some(binding) if binding.group == 0 => bindings.push(Binding { index: binding.binding, access }),
            _ => return Err("a buffer outside of group 0".into()),
        }
    }
    bindings.sort_by_key(|binding| binding.index);
    match bindings.windows(2).find(|pair| pair[0].index == pair[1].index) {
        Some(pair) => Err(format!("two buffers at binding {}", pair[0].index)),
        None => Ok(bindings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn scaled(@builtin(global_invocation_id) id: vec3<u32>) {
    y[id.x] = x[id.x] * scale[0] + scale[1];
}
";

    #[test]
    fn a_kernel_is_lowered() {
        let shader = lower("scaled", TEXT).unwrap();
        assert_eq!((shader.entry.as_str(), shader.workgroup), ("scaled", [64, 1, 1]));
        let accesses: Vec<_> = shader.bindings.iter().map(|b| (b.index, b.access)).collect();
        assert_eq!(accesses, [(0, Access::Read), (1, Access::Write), (2, Access::Read)]);
        // Shader, and the two of strict arithmetic.
        assert_eq!(shader.capabilities, BTreeSet::from([1, 4466, 4467]));
        assert_eq!(spirv::make_strict(&shader.words).unwrap(), shader.words);
        // A product and a sum are decorated.
        let decorations = shader.words.windows(3).filter(|w| w[0] == (3 << 16 | 71) && w[2] == 42).count();
        assert_eq!(decorations, 2);
        assert_eq!(lower("scaled", TEXT).unwrap(), shader);
    }

    /// The deepest texts of the longest length: an answer, whatever it is, and no overflow of the stack.
    #[test]
    fn deep_texts_have_an_answer() {
        let head = |middle: String| format!("@compute @workgroup_size(1) fn k() {{ {middle} }}");
        let texts = [
            head(format!("let x = {}1;", "-".repeat(60_000))),
            head(format!("let x = {}1u;", "~".repeat(60_000))),
            head(format!("let x = {}true;", "!".repeat(60_000))),
            head(format!("let x = {}1;", "1+".repeat(30_000))),
            head(format!("if true {{}} {}", "else if true {}".repeat(4_000))),
            head(format!("{}{}", "{".repeat(30_000), "}".repeat(30_000))),
            head(format!("{}{}", "{ let a = 1; ".repeat(MOST_NESTED - 1), "}".repeat(MOST_NESTED - 1))),
            head(format!("if true {{}} {}", "else if true { let a = 1; }".repeat(MOST_NESTED))),
            head(format!("let a = {}1;", "1+".repeat(30_000)).repeat(60)),
        ];
        let work = move || texts.map(|text| lower("deep", &text).is_ok());
        std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let texts = [
            ("syntax", TEXT.replace(" + ", " ++ ")),
            ("types", TEXT.replace("scale[1]", "id.y")),
            ("entry", TEXT.replace("@compute @workgroup_size(64)", "").replace("@builtin(global_invocation_id)", "")),
            ("stage", "@fragment fn f() {}".into()),
            ("group", TEXT.replace("@group(0) @binding(1)", "@group(1) @binding(1)")),
            ("fixed", TEXT.replace("y: array<f32>", "y: array<f32, 500000000>")),
            (
                "uniform",
                TEXT.replace("var<storage, read> scale: array<f32>", "var<uniform> scale: array<vec4<f32>, 4>"),
            ),
            ("long", format!("{TEXT}//{}", "-".repeat(LONGEST))),
            ("twice", TEXT.replace("@binding(1)", "@binding(0)")),
        ];
        let errors = texts.map(|(name, text)| lower(name, &text).unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n\n"));
    }
}
