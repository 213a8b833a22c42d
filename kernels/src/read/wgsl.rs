//! The reader of WGSL, over naga: parsed and validated, then from naga's tables to a [`Raw`].
//!
//! What the printer does not write is refused where it shows: in declarations (here), in functions whose body is not the
//! printer's (`functions`), in `expressions` and in `statements`. naga folds some constants and spells two things out: `&&`
//! and `||` as branches that set an unnamed variable, `for` as a loop with a break. Both are known in this one form only.

mod expressions;
mod functions;
mod statements;

use std::collections::HashMap;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{
    AddressSpace, ArraySize, Binding, BuiltIn, EntryPoint, Function, GlobalVariable, Handle, LocalVariable, Module,
    ResourceBinding, Scalar, ShaderStage, Span, StorageAccess, TypeInner,
};

use crate::kernel::{Access, Type};

use super::raw::{Raw, RawExpr, RawLocal, RawMemory, RawMemoryRow, RawStmt};
use super::{Fault, Reading, recover};
use expressions::Value;
use functions::Meaning;

/// The kernel of a text.
pub fn read(text: &str) -> Result<Reading, Fault> {
    let module = parsed(text)?;
    let reader = Reader::new(text, &module)?;
    recover(reader.finish()?)
}

/// The module of a text, valid.
fn parsed(text: &str) -> Result<Module, Fault> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| {
        let line = error.location(text).map_or(0, |at| at.line_number);
        Fault::new(line, error.message())
    })?;
    let validated = Validator::new(ValidationFlags::all(), Capabilities::SUBGROUP).validate(&module);
    match validated {
        Ok(_) => Ok(module),
        Err(error) => {
            let line = error.location(text).map_or(0, |at| at.line_number);
            Err(Fault::new(line, causes(error.as_inner())))
        }
    }
}

/// An error of naga with all that lies below it, on one line.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What a variable of the module is.
#[derive(Clone, Copy)]
enum Role {
    /// The step's block.
    Step,
    /// An argument or an array of the workgroup.
    Memory(RawMemory),
}

/// What an argument of the entry point is.
#[derive(Clone, Copy)]
enum Input {
    /// The workgroup in the dispatch.
    Workgroup,
    /// The size of the dispatch.
    Workgroups,
    /// The lane in the workgroup.
    Lane,
}

/// A module on its way to a [`Raw`].
struct Reader<'m> {
    module: &'m Module,
    function: &'m Function,
    lines: Lines<'m>,
    raw: Raw,
    roles: HashMap<Handle<GlobalVariable>, Role>,
    inputs: Vec<Input>,
    functions: HashMap<Handle<Function>, Meaning>,
    /// Values with a name.
    named: HashMap<Handle<naga::Expression>, Value>,
    /// Values without one: those of the statement that is being read.
    passing: HashMap<Handle<naga::Expression>, Value>,
    variables: HashMap<Handle<LocalVariable>, RawLocal>,
    /// Values of the variables that stand for `&&` and `||`.
    logical: HashMap<Handle<LocalVariable>, RawExpr>,
    /// Variables that begin with a constant, which have no statement: the last in the text first.
    constant: Vec<Handle<LocalVariable>>,
    /// Statements of the blocks that are being read, the innermost last.
    open: Vec<Vec<RawStmt>>,
    /// The line that is being read.
    line: u32,
}

impl<'m> Reader<'m> {
    fn new(text: &'m str, module: &'m Module) -> Result<Reader<'m>, Fault> {
        let lines = Lines::of(text);
        let (entry, inputs) = entry(module, &lines)?;
        let mut raw = Raw::default();
        raw.name = entry.name.clone();
        raw.lanes = entry.workgroup_size[0];
        raw.about = text.lines().next().and_then(|line| line.strip_prefix("// ")).unwrap_or("").to_string();
        let roles = memories(module, &lines, &mut raw)?;
        let variables = entry.function.local_variables.iter();
        let mut constant: Vec<_> = variables.filter(|(_, row)| row.init.is_some()).map(|(v, _)| v).collect();
        constant.reverse();
        Ok(Reader {
            module,
            function: &entry.function,
            functions: functions::meanings(module, &lines)?,
            lines,
            raw,
            roles,
            inputs,
            named: HashMap::new(),
            passing: HashMap::new(),
            variables: HashMap::new(),
            logical: HashMap::new(),
            constant,
            open: Vec::new(),
            line: 0,
        })
    }

    fn finish(mut self) -> Result<Raw, Fault> {
        self.raw.body = self.block(&self.function.body)?;
        Ok(self.raw)
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.line, what))
    }

    /// The kernel's type of a variable's type.
    fn type_of(&self, ty: Handle<naga::Type>) -> Result<Type, Fault> {
        match scalar(&self.module.types[ty].inner) {
            Some(ty) => Ok(ty),
            None => self.fault("a type beside f32, u32 and bool"),
        }
    }
}

/// The type of the kernel IR.
fn scalar(inner: &TypeInner) -> Option<Type> {
    match *inner {
        TypeInner::Scalar(Scalar::F32) => Some(Type::F32),
        TypeInner::Scalar(Scalar::U32) => Some(Type::Word),
        TypeInner::Scalar(Scalar::BOOL) => Some(Type::Bool),
        _ => None,
    }
}

/// The only entry point and its inputs; nothing beside functions and variables is declared.
fn entry<'m>(module: &'m Module, lines: &Lines) -> Result<(&'m EntryPoint, Vec<Input>), Fault> {
    let fault = |what: &str| Err(Fault::new(0, what));
    if let Some((constant, _)) = module.constants.iter().next() {
        return Err(Fault::new(lines.of_span(module.constants.get_span(constant)), "a constant of the module"));
    }
    if !module.overrides.is_empty() || !module.diagnostic_filters.is_empty() {
        return fault("an override or a filter of diagnostics");
    }
    let [entry] = &module.entry_points[..] else { return fault("wanted one entry point") };
    let [_, 1, 1] = entry.workgroup_size else { return fault("a workgroup has its lanes along x") };
    if entry.stage != ShaderStage::Compute || entry.workgroup_size_overrides.is_some() {
        return fault("wanted a compute entry point of constant size");
    }
    let inputs = entry.function.arguments.iter().map(|argument| {
        let inner = &module.types[argument.ty].inner;
        match (&argument.binding, inner) {
            (Some(Binding::BuiltIn(BuiltIn::WorkGroupId)), _) => Ok(Input::Workgroup),
            (Some(Binding::BuiltIn(BuiltIn::NumWorkGroups)), _) => Ok(Input::Workgroups),
            (Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex)), _) => Ok(Input::Lane),
            (binding, _) => Err(Fault::new(0, format!("an input of the entry point: {binding:?}"))),
        }
    });
    Ok((entry, inputs.collect::<Result<_, _>>()?))
}

/// The step's block, the arguments and the workgroup's arrays, arguments in the order of their bindings.
fn memories(module: &Module, lines: &Lines, raw: &mut Raw) -> Result<HashMap<Handle<GlobalVariable>, Role>, Fault> {
    let mut rows = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let line = lines.of_span(module.global_variables.get_span(handle));
        let row = memory(module, variable).map_err(|what| Fault::new(line, what))?;
        rows.push((variable.binding.map_or(u32::MAX, |b| b.binding), line, handle, row));
    }
    rows.sort_by_key(|(binding, ..)| *binding);
    let mut roles = HashMap::new();
    for (place, (binding, line, handle, row)) in (0..).zip(rows) {
        if binding != place && binding != u32::MAX {
            return Err(Fault::new(line, "bindings are numbered from 0 on, and 0 is the step's block"));
        }
        let role = match place {
            0 if row.element != Type::Word || row.access != Access::Read => {
                return Err(Fault::new(line, "the step's block holds words that are read"));
            }
            0 => Role::Step,
            _ => {
                raw.memories.push(row);
                Role::Memory(RawMemory(raw.memories.len() as u32 - 1))
            }
        };
        roles.insert(handle, role);
    }
    Ok(roles)
}

fn memory(module: &Module, variable: &GlobalVariable) -> Result<RawMemoryRow, &'static str> {
    let TypeInner::Array { base, size, stride: 4 } = module.types[variable.ty].inner else {
        return Err("a variable of the module that is no array of words or floats");
    };
    let element = scalar(&module.types[base].inner).ok_or("an array of another type than f32 and u32")?;
    if variable.init.is_some() || !variable.memory_decorations.is_empty() {
        return Err("a variable of the module with a first value or a decoration");
    }
    let (access, len) = match (variable.space, variable.binding, size) {
        (AddressSpace::Storage { access }, Some(ResourceBinding { group: 0, .. }), ArraySize::Dynamic) => {
            (if access == StorageAccess::LOAD { Access::Read } else { Access::ReadWrite }, None)
        }
        (AddressSpace::WorkGroup, None, ArraySize::Constant(len)) => (Access::ReadWrite, Some(len.get())),
        _ => return Err("a variable of the module that is neither a buffer of group 0 nor an array of the workgroup"),
    };
    let name = variable.name.clone().unwrap_or_default();
    Ok(RawMemoryRow { name, element, access, len })
}

/// Where lines begin, and the line of each name: naga does not say where a load of a variable stands.
struct Lines<'t> {
    starts: Vec<usize>,
    names: HashMap<&'t str, u32>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut names = HashMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            if let Some((name, _)) = content.trim_start().strip_prefix("let ").and_then(|rest| rest.split_once(" =")) {
                names.entry(name).or_insert(line);
            }
        }
        Lines { starts, names }
    }

    /// The line where a span begins; 0 if naga does not know it.
    fn of_span(&self, span: Span) -> u32 {
        span.to_range().map_or(0, |range| self.starts.partition_point(|&start| start <= range.start) as u32)
    }
}

#[cfg(test)]
mod tests;
