//! Options that change the model's function or the shapes of the step.

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use crate::model::{Architecture, Model, Role};

/// Activations of products with quantised weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Activations {
    /// Signed bytes with an f32 scale per 32 elements.
    Q8,
    /// f32; every weight is widened.
    F32,
}

/// How window rows and pooled rows are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum KvRows {
    /// As computed.
    F32,
    /// Rounded to binary16 when they are written.
    F16,
}

/// Roundings of the official code that no storage format asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Sims {
    /// No rounding beyond the formats of the weights.
    None,
    /// FP8 on KV rows, Hadamard and FP4 on the indexer.
    Official,
}

/// What a step gives for each of its outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Head {
    /// The logits, and the most probable token.
    Logits,
    /// The most probable token alone: no logit is stored.
    Greedy,
}

/// What a compilation is asked for. The function that the plan computes depends on the first four only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Activations of products with quantised weights; `None` is q8 where a weight takes it.
    pub activations: Option<Activations>,
    /// Rounding of KV rows.
    pub kv: KvRows,
    /// Roundings of the official code.
    pub sims: Sims,
    /// What a step gives.
    pub head: Head,
    /// Largest number of tokens of a sequence.
    pub context: u32,
    /// Largest number of columns of a prefill step.
    pub prefill: u32,
    /// Largest number of columns of a decode step.
    pub columns: u32,
}

impl Options {
    /// The defaults for a model: context 4096 or the model's, prefill 512, 8 columns, both at most the context.
    pub fn for_model(architecture: &Architecture) -> Options {
        let context = architecture.context_length.min(4096);
        Options {
            activations: None,
            kv: KvRows::F32,
            sims: Sims::None,
            head: Head::Logits,
            context,
            prefill: context.min(512),
            columns: context.min(8),
        }
    }

    /// The activations that are used: q8 unless f32 is asked for or no weight takes q8.
    pub fn activations_of(&self, model: &Model) -> Activations {
        let takes = model.weights.reference.iter().any(|w| w.format.takes_q8());
        self.activations.unwrap_or(if takes { Activations::Q8 } else { Activations::F32 })
    }
}

fn command_line(option: &str) -> Place {
    Place::item("the command line", option)
}

/// Refuses options that the model's shape does not allow, or that would have no effect.
pub fn check(model: &Model, options: &Options) -> Result<(), Diagnostic> {
    let a = &model.architecture;
    in_range("--context", options.context, 1, a.context_length, "the model's context length is the limit")?;
    in_range("--prefill", options.prefill, 1, options.context, "the context is the limit")?;
    let most = options.prefill.min(8);
    in_range("--columns", options.columns, 1, most, "8, and not more than a prefill step takes")?;
    check_activations(model, options)?;
    if options.sims == Sims::Official { check_sims(a) } else { Ok(()) }
}

fn in_range(option: &str, found: u32, least: u32, most: u32, what: &str) -> Result<(), Diagnostic> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Diagnostic::new(codes::OPTION_RANGE, format!("`{option} {found}` is out of range"))
        .at(command_line(option))
        .wanted(format!("{least} to {most} ({what})"), found)
        .help(format!("give `{option}` a number from {least} to {most}")))
}

fn check_activations(model: &Model, options: &Options) -> Result<(), Diagnostic> {
    if options.activations_of(model) != Activations::Q8 {
        return Ok(());
    }
    let weights = &model.weights;
    if !weights.reference.iter().any(|w| w.format.takes_q8()) {
        return Err(Diagnostic::new(codes::OPTION_NO_EFFECT, "`--activations q8` would have no effect")
            .at(command_line("--activations"))
            .wanted("a model with weights of quantised formats", "none")
            .help("leave `--activations` out, or give `f32`"));
    }
    for id in weights.ids() {
        let (reference, role) = (&weights.reference[id.0 as usize], weights.role[id.0 as usize]);
        let row = *reference.shape.last().unwrap_or(&0);
        if reference.format.takes_q8() && role != Role::Embedding && row % 32 != 0 {
            let name = role.gguf_name(weights.layer[id.0 as usize]);
            return Err(Diagnostic::new(codes::OPTION_Q8_ROW, "a weight's rows cannot meet q8 activations")
                .at(Place::item("the model", format!("tensor {name}")))
                .wanted("rows of a multiple of 32 elements", row)
                .help("compile with `--activations f32`"));
        }
    }
    Ok(())
}

fn check_sims(a: &Architecture) -> Result<(), Diagnostic> {
    let plain = a.head_dim - a.rope_dims;
    let refuse = |what: &str, wanted: &str, found: u32| {
        Err(Diagnostic::new(codes::OPTION_SIMS, format!("`--sims official` does not apply: {what}"))
            .at(command_line("--sims"))
            .wanted(wanted, found)
            .help("compile with `--sims none`"))
    };
    if !plain.is_multiple_of(64) {
        return refuse("the dimensions without rope have no blocks of 64", "a multiple of 64", plain);
    }
    let width = a.indexer.head_dim;
    let indexed = a.layers.kind.iter().any(|kind| kind.indexer);
    if indexed && (!width.is_power_of_two() || width < 32) {
        return refuse("the indexer's heads have no Hadamard matrix", "a power of two from 32", width);
    }
    Ok(())
}
