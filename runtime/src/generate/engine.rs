//! What generation needs of the thing that executes a plan.

use ds4_ir::Diagnostic;

/// Bounds of an entry point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    /// Most tokens of a step.
    pub columns: usize,
    /// Most rows of logits of a step.
    pub outputs: usize,
}

/// What is known of an engine before the first step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The plan's file, as the user named it.
    pub plan: String,
    /// BLAKE3 of the plan's file, in hexadecimal.
    pub plan_hash: String,
    /// Name of the model.
    pub model: String,
    /// Files of the model: outputs must not replace them.
    pub files: Vec<std::path::PathBuf>,
    /// Number of tokens, the length of a row of logits.
    pub vocabulary: usize,
    /// Whether a step gives the most probable tokens alone, and no logits.
    pub greedy: bool,
    /// Most tokens of a sequence.
    pub context: usize,
    /// Steps of up to this many tokens run the decode entry.
    pub decode: Width,
    /// Wider steps, up to this many tokens, run the prefill entry.
    pub prefill: Width,
    /// The token that begins a text.
    pub begin: Option<u32>,
    /// Tokens that end a text.
    pub end: Vec<u32>,
    /// What executes: `cpu, 2 threads, avx2`, or the name of a device.
    pub device: String,
    /// Kernels that a step of one token launches.
    pub launches: usize,
    /// What was proved of the plan, line by line; empty if that was not asked for.
    pub verified: Vec<String>,
}

/// A named value of the last step.
#[derive(Clone, PartialEq, Debug)]
pub struct Tap<'a> {
    /// Name, such as `layer.3.route.ids`.
    pub name: &'a str,
    /// Whether the rows continue those of the step before: axis 0 counts columns, outputs or blocks that the step
    /// completes, and the other axes are constant.
    pub appends: bool,
    /// Extents in this step, slowest first.
    pub extents: Vec<usize>,
    /// Elements in C order.
    pub data: TapData<'a>,
}

/// Elements of a named value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TapData<'a> {
    /// Numbers.
    F32(&'a [f32]),
    /// Integers and ids; an absent id is -1.
    I32(&'a [i32]),
}

/// Executes the steps of one sequence.
pub trait Engine {
    /// What is known before the first step.
    fn facts(&self) -> &Facts;

    /// Feeds tokens at the positions that follow; `outputs` of them, the last ones, get logits.
    fn step(&mut self, tokens: &[u32], outputs: usize) -> Result<(), Diagnostic>;

    /// Logits of the last step, `[outputs, vocabulary]`; none with [`Facts::greedy`].
    fn logits(&self) -> &[f32];

    /// The most probable tokens of the last step, `[outputs]`, with [`Facts::greedy`].
    fn greedy(&self) -> &[u32];

    /// Number of tokens fed.
    fn position(&self) -> usize;

    /// Begins a new sequence.
    fn reset(&mut self);

    /// Names of all values that can be tapped.
    fn named_values(&self) -> Vec<String>;

    /// Keeps these values of each step from now on.
    fn set_taps(&mut self, names: &[String]) -> Result<(), Diagnostic>;

    /// The kept values of the last step.
    fn taps(&self) -> Vec<Tap<'_>>;
}
