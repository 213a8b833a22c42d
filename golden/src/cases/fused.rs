//! Graphs whose values are computed together: every kernel that comes out for each device profile.
//!
//! The graphs stand as text in `golden/fusions`, where the compiler's tests take them from as well. Their inputs are states that
//! nothing writes; here they are tables of plain numbers.

use ds4_ir::entity::Run;
use ds4_ir::graph::{Constant, ConstantRow, NamedRow};
use ds4_ir::text::parse;
use ds4_ir::{Bounds, Format, GraphTables, Op, Step};

use super::bytes::{ids, plain};
use super::inputs::{Random, RowKind};
use super::stored::Stored;
use super::{Case, Feed};

/// The family's name.
pub const FAMILY: &str = "fused";

/// Most columns of a step, and most tokens of a sequence.
const BOUNDS: Bounds = Bounds { context: 128, columns: 8, outputs: 8 };
/// Columns of the steps.
const STEPS: [u32; 4] = [1, 8, 5, 3];
/// Device profiles by which each is fused.
pub const PROFILES: &[&str] = &["generic", "h200", "lavapipe"];
/// Rows of the tables that tokens choose from.
const TOKENS: u32 = 64;

/// Declares the graphs: their names, and the texts of `golden/fusions`.
macro_rules! graphs {
    ($($name:literal,)*) => {
        /// Name and text of each graph.
        pub const GRAPHS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../fusions/", $name, ".ds4ir")))),*];
    };
}

graphs! {
    "arg_max_of_few",
    "attention_pooled",
    "attention_pooled_written",
    "attention_rope_after",
    "attention_rope_before",
    "attention_window",
    "attention_window_no_sink",
    "boundary_2_streams_1_iterations",
    "boundary_2_streams_20_iterations",
    "boundary_2_streams_5_iterations",
    "boundary_3_streams_1_iterations",
    "boundary_3_streams_20_iterations",
    "boundary_3_streams_5_iterations",
    "boundary_4_streams_1_iterations",
    "boundary_4_streams_20_iterations",
    "boundary_4_streams_5_iterations",
    "boundary_collapse_named",
    "boundary_norm_without_weight",
    "boundary_staggered",
    "boundary_wide",
    "experts_masked",
    "experts_routed",
    "experts_token_table",
    "experts_types",
    "glu_exchanged",
    "glu_extra_scale",
    "glu_f32_activations",
    "glu_gate_named",
    "glu_gelu",
    "glu_gelu_clamped",
    "glu_relu_squared",
    "glu_relu_squared_clamped",
    "glu_result_is_output",
    "glu_silu",
    "glu_silu_clamped",
    "glu_two_types",
    "glu_two_types_f32",
    "head_norm",
    "head_norm_without_weight",
    "inverse_rope",
    "joined_pair_on_two_rows",
    "latents",
    "norm_of_another_tree",
    "norm_readers",
    "norm_readers_by_views",
    "norm_without_weight_readers",
    "not_across_a_split",
    "not_around_a_product",
    "not_beyond_memory",
    "not_pair_on_two_rows",
    "not_with_a_write",
    "other_trees_stay",
    "pooling_16",
    "pooling_4",
    "products_on_one_row",
    "rounding_stays",
    "rounding_within",
    "router_sigmoid",
    "router_softplus",
    "router_token_table",
    "softmax_no_sink_mask_after",
    "softmax_no_sink_mask_before",
    "softmax_no_sink_mask_ids",
    "softmax_sink_mask_after",
    "softmax_sink_mask_before",
    "softmax_sink_mask_ids",
    "versions_in_order",
    "within_memory",
}

/// Bytes of weights beyond which a graph is for the search's tests only: it shows where fusion ends, and takes minutes where
/// kernels are interpreted.
const LARGE: usize = 32 << 20;

/// All cases.
pub fn cases() -> Vec<Case> {
    let all = GRAPHS.iter().map(|(name, text)| case(name, text));
    all.filter(|case| case.weights.bytes().len() < LARGE).collect()
}

fn case(name: &str, text: &str) -> Case {
    let mut random = Random::named(&format!("{FAMILY}/{name}"));
    let parsed = parse(text, name).unwrap_or_else(|fault| panic!("invariant: the texts are graphs: {fault}"));
    let graph = with_taps(with_tables(parsed, &mut random));
    let weights = weights(&graph, &mut random);
    let mut position = 0;
    let feeds = STEPS.map(|columns| {
        let tokens = (0..columns).map(|i| (7 * (position + i) + 3) % TOKENS).collect();
        let feed = Feed { step: Step { position, columns, outputs: columns }, tokens };
        position += columns;
        feed
    });
    Case { family: FAMILY, name: name.into(), graph, weights, bounds: BOUNDS, feeds: feeds.into(), profiles: PROFILES }
}

/// The graph with a table in the place of each state that nothing writes.
fn with_tables(mut graph: GraphTables, random: &mut Random) -> GraphTables {
    let view = graph.view();
    let of = |op| view.values().filter(move |&v| view.op(v) == op);
    let written: Vec<_> = of(Op::Write).filter_map(|v| view.state_of(v)).collect();
    let inputs: Vec<_> = of(Op::Read).filter(|&v| view.state_of(v).is_some_and(|s| !written.contains(&s))).collect();
    for v in inputs {
        let state = graph.states[graph.value_attrs[v.0 as usize].of(&graph.attrs)[0] as usize];
        let extents = graph.view().max_extents(state.shape, BOUNDS);
        let words = random.row(RowKind::Plain, extents.iter().product());
        let words = Run::push(&mut graph.constant_words, &words);
        let constant = Constant(graph.constants.len() as u32);
        graph.constants.push(ConstantRow { name: state.name, ty: state.ty, shape: state.shape, words });
        graph.value_op[v.0 as usize] = Op::Const as u32;
        graph.value_attrs[v.0 as usize] = Run::push(&mut graph.attrs, &[constant.0]);
    }
    graph
}

/// The graph with a tap in the place of each output that is not read as one: q8 values.
fn with_taps(mut graph: GraphTables) -> GraphTables {
    let view = graph.view();
    let (outputs, taps): (Vec<_>, Vec<_>) =
        view.outputs.iter().copied().partition(|row| view.ty(row.value).scalar().is_some());
    let is_new = |row: &NamedRow| graph.named.iter().all(|named| named.value != row.value);
    let taps: Vec<NamedRow> = taps.into_iter().filter(is_new).collect();
    graph.outputs = outputs;
    graph.named.extend(taps);
    graph
}

/// Plain weights; integers are ids below the first extent of the stacks of matrices.
fn weights(graph: &GraphTables, random: &mut Random) -> Stored {
    let graph = graph.view();
    let extents = |i: usize| graph.max_extents(graph.weights[i].shape, BOUNDS);
    let stacked = (0..graph.weights.len()).filter(|&i| extents(i).len() == 3);
    let parts = stacked.map(|i| extents(i)[0]).min().unwrap_or(1) as u32;
    let mut stored = Stored::default();
    for (i, row) in graph.weights.iter().enumerate() {
        let Some(format) = row.ty.format() else { continue };
        let of = extents(i);
        let at = |back: usize| of.len().checked_sub(back).map_or(1, |i| of[i]);
        let shape = [at(3), at(2), at(1)];
        let contents = match format {
            Format::I32 => ids(shape, parts, random),
            _ => plain(format, shape, random),
        };
        stored.add(format, shape, &contents);
    }
    stored
}
