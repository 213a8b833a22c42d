//! The printer's functions: a function of the text is one of them if it has its name and, but for names, its body.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use naga::{Block, Expression, Function, Handle, Module, Statement, TypeInner};

use crate::emit::wgsl::FUNCTIONS;
use crate::kernel::Operator;
use crate::read::Fault;

use super::Lines;

/// What a call of a function means.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// The float with these bits.
    Loaded,
    /// An operator.
    Operator(Operator),
    /// A part of another function.
    Part,
}

/// The bodies of the printer's functions by name.
pub(super) static BODIES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let definitions = FUNCTIONS.map(|(_, definition)| definition).concat();
    let text = format!("@group(0) @binding(0) var<storage, read> step: array<u32>;\n{definitions}");
    let module = naga::front::wgsl::parse_str(&text).unwrap_or_default();
    let bodies = module.functions.iter().map(|(_, f)| Some((f.name.clone()?, body(&module, f)?)));
    bodies.flatten().collect()
});

/// The meaning of each function of a module.
pub(super) fn meanings(module: &Module, lines: &Lines) -> Result<HashMap<Handle<Function>, Meaning>, Fault> {
    let mut meanings = HashMap::new();
    for (handle, function) in module.functions.iter() {
        let name = function.name.as_deref().unwrap_or_default();
        let meaning = match name {
            "loaded" => Some(Meaning::Loaded),
            "ordered" => Some(Meaning::Part),
            "flipped" => Some(Meaning::Operator(Operator::Neg)),
            "magnitude" => Some(Meaning::Operator(Operator::Abs)),
            "less" => Some(Meaning::Operator(Operator::Less)),
            "equal" => Some(Meaning::Operator(Operator::Equal)),
            "root" => Some(Meaning::Operator(Operator::Sqrt)),
            _ => None,
        };
        let same = body(module, function).is_some_and(|found| BODIES.get(name) == Some(&found));
        let line = lines.of_span(module.functions.get_span(handle));
        match meaning {
            Some(meaning) if same => meanings.insert(handle, meaning),
            Some(_) => return Err(Fault::new(line, format!("`{name}` is not the function of this name"))),
            None => return Err(Fault::new(line, format!("an unknown function `{name}`"))),
        };
    }
    Ok(meanings)
}

/// All of a function that has a meaning, with what it refers to by name; `None` if it holds what no function of the printer
/// does.
fn body(module: &Module, function: &Function) -> Option<String> {
    let scalar = |ty: Handle<naga::Type>| match module.types[ty].inner {
        TypeInner::Scalar(scalar) => Some(format!("{scalar:?}")),
        _ => None,
    };
    let mut text = String::new();
    for argument in &function.arguments {
        let _ = writeln!(text, "argument {}", scalar(argument.ty)?);
    }
    let _ = writeln!(text, "result {}", scalar(function.result.as_ref()?.ty)?);
    for (handle, variable) in function.local_variables.iter() {
        let _ = writeln!(text, "{handle:?} variable {} {:?}", scalar(variable.ty)?, variable.init);
    }
    for (handle, expression) in function.expressions.iter() {
        let _ = match *expression {
            Expression::CallResult(callee) => writeln!(text, "{handle:?} result of {:?}", name(module, callee)?),
            Expression::GlobalVariable(variable) => {
                let binding = module.global_variables[variable].binding?;
                writeln!(text, "{handle:?} binding {} {}", binding.group, binding.binding)
            }
            Expression::Constant(_) | Expression::Override(_) | Expression::ZeroValue(_) => return None,
            _ => writeln!(text, "{handle:?} {expression:?}"),
        };
    }
    statements(module, &function.body, &mut text)?;
    Some(text)
}

fn name(module: &Module, function: Handle<Function>) -> Option<&str> {
    module.functions[function].name.as_deref()
}

fn statements(module: &Module, block: &Block, text: &mut String) -> Option<()> {
    text.push_str("{\n");
    for statement in block.iter() {
        match statement {
            Statement::Block(inner) => statements(module, inner, text)?,
            Statement::If { condition, accept, reject } => {
                let _ = writeln!(text, "if {condition:?}");
                statements(module, accept, text)?;
                statements(module, reject, text)?;
            }
            Statement::Loop { body, continuing, break_if } => {
                let _ = writeln!(text, "loop {break_if:?}");
                statements(module, body, text)?;
                statements(module, continuing, text)?;
            }
            Statement::Call { function, arguments, result } => {
                let _ = writeln!(text, "call {} {arguments:?} {result:?}", name(module, *function)?);
            }
            Statement::Emit(_) | Statement::Break | Statement::Return { .. } | Statement::Store { .. } => {
                let _ = writeln!(text, "{statement:?}");
            }
            _ => return None,
        }
    }
    text.push_str("}\n");
    Some(())
}
