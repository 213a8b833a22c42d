//! Whether a plan is a model's: its checkpoint is lowered again, and what the plan's proof begins with is compared.
//!
//! A certificate says that the graph of a plan has the bits of the graph that it begins with. That this one is what the front end
//! makes of the model, and that the weights lie where the model has them, only the model can tell.

use ds4_ir::certificate::{Certificate, source};
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, NamedRow};
use ds4_ir::plan::Plan;
use ds4_ir::{Diagnostic, Place};

use crate::assemble::{entries, frame};
use crate::frame::{Form, Frame, assemble};
use crate::lower::{Activations, Head, KvRows, Options, Sims, lower};
use crate::model::Model;
use crate::read::{Checkpoint, tokenizer::tokenizer_json};

/// Where a plan and a model differ.
struct Difference {
    place: String,
    wanted: String,
    found: String,
}

type Compared = Result<(), Difference>;

/// Compares a plan with a model; gives the number of values of the model's graph. The plan and its certificate have been
/// checked; `file` is the plan's name.
///
/// # Errors
/// The plan was made of another model, or is another one than this model's.
pub fn check_model(
    checkpoint: &Checkpoint,
    model: &Model,
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    certificate: Option<&Certificate<'_>>,
    file: &str,
) -> Result<usize, Diagnostic> {
    let refused = |Difference { place, wanted, found }: Difference| {
        Diagnostic::new(codes::MODEL_CHANGED, "the plan is not this model's")
            .at(Place::item(file, place))
            .wanted(wanted, found)
            .help("name the model that the plan was made for, or compile this one with `ds4c compile`")
    };
    same("its identity", "the model's", plan.model_hash == [model.identity]).map_err(refused)?;
    let options = options(plan).map_err(refused)?;
    let lowered = lower(model, &options)?;
    let wanted = lowered.view();
    let empty = frame(checkpoint, model, &options, "", &Form::default());
    let facts = compare_facts(plan, &empty, &options);
    facts.map_err(refused)?;
    let made = assemble(&wanted, &empty)?;
    compare_places(plan, &made.view()).map_err(refused)?;
    same("its tokenizer", "the model's", plan.tokenizer == tokenizer_json(checkpoint)?).map_err(refused)?;
    let found = match certificate {
        Some(certificate) => source(graph, certificate),
        None => Some(*graph),
    };
    let found = found.ok_or_else(|| refused(differ("its certificate", "a graph", "fewer terms than values")))?;
    compare_graphs(&wanted, &found).map_err(refused)?;
    Ok(wanted.len())
}

fn differ(place: impl Into<String>, wanted: impl ToString, found: impl ToString) -> Difference {
    Difference { place: place.into(), wanted: wanted.to_string(), found: found.to_string() }
}

fn same(place: &str, wanted: &str, holds: bool) -> Compared {
    if holds { Ok(()) } else { Err(differ(place, wanted, "something else")) }
}

/// The options that a plan was compiled with.
fn options(plan: &Plan<'_>) -> Result<Options, Difference> {
    fn of<T>(plan: &Plan<'_>, key: &str, wanted: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Difference> {
        let text = plan.option(key).unwrap_or("");
        read(text).ok_or_else(|| differ(format!("option {key}"), wanted, text))
    }
    fn named<T: clap::ValueEnum>(text: &str) -> Option<T> {
        T::from_str(text, false).ok()
    }
    let number = |key| of(plan, key, "a number", |text| text.parse().ok());
    Ok(Options {
        activations: Some(of(plan, "activations", "q8 or f32", named::<Activations>)?),
        kv: of(plan, "kv", "f32 or f16", named::<KvRows>)?,
        sims: of(plan, "sims", "none or official", named::<Sims>)?,
        head: of(plan, "head", "logits or greedy", named::<Head>)?,
        context: number("context")?,
        prefill: number("prefill")?,
        columns: number("columns")?,
    })
}

/// Facts of the model, and entry points.
fn compare_facts(plan: &Plan<'_>, frame: &Frame<'_>, options: &Options) -> Compared {
    // What compiled it, how it was fused, and where the model lies and under which name are the plan's own.
    for (key, wanted) in &frame.facts {
        let own = ["compiler", "fusion", "model.path", "model.name"].contains(key);
        let found = plan.option(key).unwrap_or("nothing");
        if !own && found != wanted {
            return Err(differ(format!("option {key}"), wanted, found));
        }
    }
    let found: Vec<_> = plan.entries.iter().map(|entry| (plan.str(entry.name), entry.columns, entry.outputs)).collect();
    let wanted = entries(options).map(|(name, columns)| (name, columns, columns));
    match found == wanted {
        true => Ok(()),
        false => Err(differ("its entry points", format!("{wanted:?}"), format!("{found:?}"))),
    }
}

/// Files, whatever their names, and places of weights and states.
fn compare_places(plan: &Plan<'_>, wanted: &Plan<'_>) -> Compared {
    same("its context", "that of its options", plan.context == wanted.context)?;
    let files =
        |plan: &Plan<'_>| -> Vec<_> { plan.files.iter().map(|f| (f.size, f.header_len, f.header_hash)).collect() };
    same("its files", "the model's", files(plan) == files(wanted))?;
    same("places of weights", "as many as the model has", plan.weight_places.len() == wanted.weight_places.len())?;
    for (i, (place, other)) in plan.weight_places.iter().zip(wanted.weight_places).enumerate() {
        let equal = place.parts.of(plan.parts) == other.parts.of(wanted.parts)
            && place.fields.of(plan.weight_fields) == other.fields.of(wanted.weight_fields)
            && (place.scale_rows, place.scale_cols) == (other.scale_rows, other.scale_cols);
        same(&format!("the place of weight {i}"), "the model's", equal)?;
    }
    same("the places of its states", "one behind the other", plan.state_places == wanted.state_places)
}

/// Whether a graph is the lowered one. Rewriting adds to tables and changes no row of them.
fn compare_graphs(wanted: &Graph<'_>, found: &Graph<'_>) -> Compared {
    fn begins<T: PartialEq>(found: &[T], wanted: &[T]) -> bool {
        found.starts_with(wanted)
    }
    let tables = [
        ("dimensions", begins(found.dims, wanted.dims) && begins(found.shape_dims, wanted.shape_dims)),
        ("shapes", begins(found.shapes, wanted.shapes)),
        ("scalars", begins(found.scalars, wanted.scalars)),
        ("bodies", begins(found.bodies, wanted.bodies) && begins(found.body_params, wanted.body_params)),
        ("names", begins(found.names, wanted.names) && begins(found.text, wanted.text)),
        ("weights", found.weights == wanted.weights),
        ("constants", found.constants == wanted.constants && begins(found.constant_words, wanted.constant_words)),
        ("states", found.states == wanted.states),
    ];
    for (table, holds) in tables {
        same(&format!("the {table} of its graph"), "those of the model's graph", holds)?;
    }
    if found.len() != wanted.len() {
        return Err(differ("its graph", format!("{} values", wanted.len()), format!("{} values", found.len())));
    }
    for v in wanted.values() {
        let row = |graph: &Graph<'_>| (graph.op(v), graph.ty(v), graph.value_shape[v.0 as usize]);
        let equal = row(wanted) == row(found) && wanted.args(v) == found.args(v) && wanted.attrs(v) == found.attrs(v);
        let text = |graph: &Graph<'_>| format!("{} of {:?}, {:?}", graph.op(v).name(), graph.args(v), graph.attrs(v));
        if !equal {
            return Err(differ(format!("{v} of its graph"), text(wanted), text(found)));
        }
    }
    let names = |graph: &Graph<'_>, rows: &[NamedRow]| -> Vec<(String, u32)> {
        rows.iter().map(|row| (graph.name(row.name).to_string(), row.value.0)).collect()
    };
    same("its outputs", "the model's", names(wanted, wanted.outputs) == names(found, found.outputs))?;
    same("its named values", "the model's", names(wanted, wanted.named) == names(found, found.named))
}
