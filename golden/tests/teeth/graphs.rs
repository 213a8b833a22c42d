//! Faulty graphs: a case with one thing changed, as a schedule or a pass may get it wrong.

use ds4_golden::cases::Case;
use ds4_golden::expect::evaluate;
use ds4_ir::eval::{Evaluator, MASKED, States, Tensor};
use ds4_ir::numerics::rank;
use ds4_ir::scalar::ScalarRow;
use ds4_ir::{GraphTables, Op, ReduceKind, ScalarOp, Tree, Type, Value};

/// Whether a changed graph gives other words, or none at all.
pub fn is_other(case: &Case, change: impl FnOnce(&mut GraphTables)) -> bool {
    let mut changed = Case {
        family: case.family,
        name: case.name.clone(),
        graph: case.graph.clone(),
        weights: case.weights.clone(),
        bounds: case.bounds,
        feeds: case.feeds.clone(),
        profiles: case.profiles,
    };
    change(&mut changed.graph);
    let wanted = evaluate(case).unwrap();
    evaluate(&changed).map_or(true, |found| found != wanted)
}

/// The sums of a case: the value, the place of its tree in the pool of attributes, its tree and the number of its leaves.
fn sums(case: &Case) -> Vec<(Value, usize, Tree, u32)> {
    let graph = case.graph.view();
    let mut sums = Vec::new();
    for v in graph.values() {
        let first = graph.value_attrs[v.0 as usize].start as usize;
        let of = |arg: usize| graph.max_extents(graph.value_shape[graph.args(v)[arg].0 as usize], case.bounds);
        let (at, leaves) = match graph.op(v) {
            Op::Reduce if graph.ty(v) == Type::F32 && graph.attrs(v)[0] == ReduceKind::Sum as u32 => {
                (first + 1, of(0)[graph.attrs(v)[2] as usize])
            }
            Op::Product => {
                let per = if graph.ty(graph.args(v)[0]) == Type::Q8 { 32 } else { 1 };
                (first, of(1).last().unwrap() / per)
            }
            _ => continue,
        };
        sums.push((v, at, Tree::from_number(graph.attrs[at]).unwrap(), leaves as u32));
    }
    sums
}

/// Other trees that are another order for so many leaves.
fn others(tree: Tree, leaves: u32) -> Vec<Tree> {
    let others = match tree {
        Tree::Seq => vec![Tree::Lanes(2)],
        Tree::Lanes(n) => vec![Tree::Seq, Tree::Lanes(n / 2), Tree::Lanes(2 * n)],
        Tree::Free => Vec::new(),
    };
    // The first halving of the wider tree is what lanes of the narrower one add, if they have two leaves at most.
    let is_other = |other: &Tree| match (tree, *other) {
        (Tree::Lanes(a), Tree::Lanes(b)) => leaves > a.max(b),
        _ => leaves > 2,
    };
    others.into_iter().filter(is_other).collect()
}

/// For each sum of a case, with each other tree that it may get by mistake, whether its words change.
pub fn with_other_trees(case: &Case) -> Vec<(Value, Tree, Tree, bool)> {
    let mut found = Vec::new();
    for (v, at, tree, leaves) in sums(case) {
        for other in others(tree, leaves) {
            let changed = is_other(case, |tables| tables.attrs[at] = other.number());
            found.push((v, tree, other, changed));
        }
    }
    found
}

/// Operations whose operands are not to be exchanged: the places of the two.
fn exchangeable(op: ScalarOp) -> Option<[usize; 2]> {
    use ScalarOp::*;
    match op {
        Sub | Div | SubI | LtF | LtI => Some([0, 1]),
        SelectF32 | SelectI => Some([1, 2]),
        _ => None,
    }
}

/// What an operation may be mistaken for.
fn mistaken(op: ScalarOp) -> &'static [ScalarOp] {
    use ScalarOp::*;
    match op {
        Add => &[Sub],
        Mul => &[Div],
        Neg => &[Abs],
        Abs => &[Neg],
        Min => &[Max],
        Max => &[Min],
        Sin => &[Cos],
        Cos => &[Sin],
        Log => &[Log1p],
        Log1p => &[Log],
        Floor => &[Trunc, Ceil, RoundEven],
        Ceil => &[Trunc, Floor, RoundEven],
        Trunc => &[Floor, Ceil, RoundEven],
        RoundEven => &[Floor, Ceil, Trunc],
        RoundF16 => &[RoundBf16],
        RoundBf16 => &[RoundF16],
        RoundE4m3 => &[RoundF16, RoundBf16],
        RoundE2m1 => &[RoundE4m3],
        AddI => &[SubI, OrI],
        MulI => &[AddI],
        DivI => &[RemI],
        RemI => &[DivI, AndI],
        MinI => &[MaxI],
        MaxI => &[MinI],
        AndI => &[OrI],
        OrI => &[XorI, AddI],
        XorI => &[OrI, SubI],
        ShlI => &[ShrI],
        ShrI => &[SarI],
        SarI => &[ShrI],
        LtF => &[EqF],
        EqF => &[LtF],
        LtI => &[EqI],
        EqI => &[LtI],
        And => &[Or],
        Or => &[And],
        _ => &[],
    }
}

/// For each scalar operation of a case, exchanged or mistaken for another one, whether words change.
pub fn with_other_scalars(case: &Case) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (i, row) in case.graph.scalars.iter().enumerate() {
        let op = ScalarOp::from_number(row.op).unwrap();
        let mut try_row = |what: String, new: ScalarRow| {
            found.push((what, is_other(case, |tables| tables.scalars[i] = new)));
        };
        if let Some([a, b]) = exchangeable(op) {
            let mut new = *row;
            new.words.swap(a, b);
            try_row(format!("{} exchanged", op.name()), new);
        }
        for &other in mistaken(op) {
            try_row(format!("{} for {}", other.name(), op.name()), ScalarRow { op: other as u32, ..*row });
        }
    }
    found
}

/// For each concat of different operands of one shape, whether words change where two are exchanged.
pub fn with_exchanged_parts(case: &Case) -> Vec<bool> {
    let graph = case.graph.view();
    let concats = graph.values().filter(|&v| graph.op(v) == Op::Concat && graph.args(v)[0] != graph.args(v)[1]);
    let exchanged = concats.map(|v| {
        let first = graph.value_args[v.0 as usize].start as usize;
        is_other(case, |tables| tables.args.swap(first, first + 1))
    });
    exchanged.collect()
}

/// A wrong rule of choosing: `key` ranks, `last` says whether the last of equals wins.
pub struct Rule {
    pub name: &'static str,
    pub key: fn(f32) -> i64,
    pub last: bool,
}

/// The contract's rule, and wrong ones.
pub const RULES: [Rule; 5] = [
    Rule { name: "the contract's", key: |x| rank(x).into(), last: false },
    Rule { name: "the last of equals", key: |x| rank(x).into(), last: true },
    Rule { name: "-0 below +0", key: |x| if x.is_nan() { i64::MIN } else { order(x) }, last: false },
    Rule { name: "NaN above all", key: |x| if x.is_nan() { i64::MAX } else { rank(x).into() }, last: false },
    Rule { name: "subnormals are zeros", key: |x| rank(if x.is_subnormal() { 0.0 } else { x }).into(), last: false },
];

/// The order of bits: -0 just below +0.
fn order(x: f32) -> i64 {
    i64::from(ds4_ir::numerics::order::plain::key(x))
}

/// Whether a rule gives other words than the evaluator for a `top_k` or `arg_max` of a case.
pub fn chooses_otherwise(case: &Case, rule: &Rule) -> bool {
    let graph = case.graph.view();
    let choices = graph.values().filter(|&v| matches!(graph.op(v), Op::TopK | Op::ArgMax));
    let evaluator = Evaluator::new(graph, &case.weights);
    choices.into_iter().any(|v| {
        let wanted = [&[v], graph.args(v)].concat();
        let mut states = States::new(&graph);
        case.feeds.iter().any(|feed| {
            let tensors = evaluator.step(&mut states, feed.step, &feed.tokens, &wanted).unwrap();
            chosen(graph.op(v), &tensors, rule) != tensors[0].bits()
        })
    })
}

fn chosen(op: Op, tensors: &[Tensor], rule: &Rule) -> Vec<u32> {
    let (out, keys, candidates) = (&tensors[0], &tensors[1], tensors.get(2));
    let n = keys.extents.last().copied().unwrap();
    let k = if op == Op::ArgMax { 1 } else { out.extents.last().copied().unwrap() };
    let mut words = Vec::new();
    for (r, row) in keys.floats().chunks_exact(n).enumerate() {
        let eligible = |&i: &usize| candidates.is_none_or(|ids| ids.bits()[r * n + i] != MASKED);
        let mut indices: Vec<usize> = (0..n).filter(eligible).collect();
        let tie = |i: usize| if rule.last { n - i } else { i };
        indices.sort_by_key(|&i| (std::cmp::Reverse((rule.key)(row[i])), tie(i)));
        indices.truncate(k);
        indices.sort_unstable();
        words.extend(indices.iter().map(|&i| i as u32));
        words.resize((r + 1) * k, MASKED);
    }
    words
}
