//! How the leaves of a sum are shared out among a workgroup's lanes.

use ds4_ir::graph::Graph;
use ds4_ir::{Bounds, Op, Tree, Type, Value};

use super::axes::Extent;
use super::refusal::Refusal;
use super::space::Space;

/// Most leaves of a reduction that one lane adds one by one, without a loop.
const FEW: u32 = 16;
/// The same of a product, whose leaves are long.
const FEW_TERMS: u32 = 4;
/// Most leaves of a maximum that one lane takes.
const ALONE: u32 = 64;
/// Lanes that share a maximum of more.
const WIDE: u32 = 32;
/// Lanes that exchange by shuffles at the end of a tree.
pub(super) const SHUFFLED: u32 = 8;
/// Most results that one group of lanes sums at once.
const BLOCK: u32 = 8;
/// Most positions of an axis that are summed at once beside each other.
const COLUMNS: u32 = 8;

/// How the leaves of one result are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// One lane takes all, ascending, in a loop.
    Alone,
    /// One lane takes all, each by itself, and joins them as a tree of so many lanes does.
    Unrolled(u32),
    /// Leaf `u` belongs to lane `u mod n`.
    Lanes(u32),
}

impl Share {
    /// The share that honours the tree of a reduction or product.
    pub(super) fn of(graph: &Graph<'_>, bounds: Bounds, v: Value, lanes: u32) -> Result<Share, Refusal> {
        let number = graph.attrs(v)[usize::from(graph.op(v) == Op::Reduce)];
        let tree = Tree::from_number(number).ok_or(Refusal::NoSchedule(v))?;
        let leaves = leaves(graph, v);
        let few = if graph.op(v) == Op::Reduce { FEW } else { FEW_TERMS };
        match tree {
            Tree::Seq => Ok(Share::Alone),
            Tree::Free if leaves.most(graph.dims, bounds) <= ALONE => Ok(Share::Alone),
            Tree::Free => Ok(Share::Lanes(WIDE)),
            Tree::Lanes(n) if leaves.constant().is_some_and(|leaves| leaves <= few) => Ok(Share::Unrolled(n)),
            Tree::Lanes(n) if n <= lanes => Ok(Share::Lanes(n)),
            Tree::Lanes(wanted) => Err(Refusal::Lanes { value: v, wanted, available: lanes }),
        }
    }

    /// Barriers of one turn.
    pub(super) fn barriers(self) -> u32 {
        match self {
            Share::Lanes(n) if n / 2 >= SHUFFLED => (n / 2 / SHUFFLED).ilog2() + 1,
            _ => 0,
        }
    }

    /// Results that a workgroup sums at the same time, a block at each.
    pub(super) fn trees(self, lanes: u32) -> u32 {
        match self {
            Share::Lanes(n) => lanes / n,
            _ => lanes,
        }
    }
}

/// Number of leaves of each result: elements, or blocks of 32 for q8 activations.
pub(super) fn leaves(graph: &Graph<'_>, v: Value) -> Extent {
    let args = graph.args(v);
    let axis = match graph.op(v) {
        Op::Reduce => graph.attrs(v)[2] as usize,
        _ => graph.dims_of(args[0]).len() - 1,
    };
    match Extent::of(graph.dims, graph.dims_of(args[0])[axis]) {
        Extent::Const(n) if graph.ty(args[0]) == Type::Q8 => Extent::Const(n / 32),
        extent => extent,
    }
}

/// Results of a product that share what they load: rows of `w` on one row of `x`, and rows of `x` on one row of `w`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block {
    /// Rows of `w`.
    pub(super) rows: u32,
    /// The axis of the result whose positions are summed beside each other, with their largest number.
    pub(super) columns: Option<(usize, u32)>,
}

impl Block {
    /// One result.
    pub(super) const ONE: Block = Block { rows: 1, columns: None };

    /// The block of a product over a space. `gathered` says whether ids choose each row of `w` on its own.
    pub(super) fn of(graph: &Graph<'_>, bounds: Bounds, v: Value, space: &Space, share: Share, lanes: u32) -> Block {
        let batch = graph.dims_of(graph.args(v)[1]).len() - 2;
        let last = space.axes.len() - 1;
        let columns = (batch..last).rev().find_map(|axis| {
            let [factor] = space.axes[axis][..] else { return None };
            let most = factor.extent.most(graph.dims, bounds);
            let local = factor.walk == super::axes::Walk::Local;
            (local && (2..=COLUMNS).contains(&most)).then_some((axis, most))
        });
        let columns = columns.filter(|_| !matches!(share, Share::Unrolled(_)));
        let beside = columns.map_or(1, |(_, n)| n);
        let results = space.count(graph.dims, bounds) / u64::from(beside);
        let fits = |&rows: &u32| {
            let divides = space.local_constant(last).is_some_and(|n| n.is_multiple_of(rows));
            divides && rows * beside <= BLOCK && results >= u64::from(rows * share.trees(lanes))
        };
        let one_gather = !rows_are_gathered(graph, graph.args(v)[1]);
        let shared = matches!(share, Share::Lanes(_)) && one_gather;
        let rows = [4, 2].into_iter().filter(|_| shared).find(fits).unwrap_or(1);
        Block { rows, columns }
    }

    /// Results of a block.
    pub(super) fn results(self) -> u32 {
        self.rows * self.columns.map_or(1, |(_, n)| n)
    }
}

/// Whether ids may differ from row to row of a product's second operand, behind its batch axes.
fn rows_are_gathered(graph: &Graph<'_>, w: Value) -> bool {
    let mut at = w;
    loop {
        match graph.op(at) {
            Op::Gather => {
                let ids = graph.dims_of(graph.args(at)[1]).len();
                let rank = graph.dims_of(at).len();
                return graph.attrs(at)[0] as usize + ids - graph.attrs(at)[1] as usize > rank - 2 || at != w;
            }
            op if op.is_view() => at = graph.args(at)[0],
            _ => return false,
        }
    }
}
