//! Which values of a region are computed once and kept, and which are computed again where they are read.

use ds4_ir::graph::Graph;
use ds4_ir::scalar::reachable;
use ds4_ir::{Body, Bounds, Dim, Op, ScalarOp, Value};

use super::arrays::Arrays;
use super::axes::Extent;
use super::locality::{Locality, Region, work_dims};
use super::plan::{Place, Planned};
use super::share::{Block, Share, leaves};
use super::space::Space;

/// Operations a lane may repeat, in total, rather than keep a value.
const REPEATED: u64 = 64;
/// Most times that an element is computed to save workgroup memory.
const AGAIN: u64 = 4;
/// Most elements of a value that one lane computes alone, without loops.
const SMALL: u64 = 32;
/// Most leaves of all elements of a reduction that one lane computes alone: each is a line of the text.
const FEW: u64 = 64;
/// Work of an element from which on lanes compute a small map together: that is less text and less time than one lane after all,
/// for a barrier.
const COSTLY: u64 = 40;
/// Most values, one the operand of the other, that are computed where the last one is read: the kernel is built by walking down
/// them.
const DEEP: u32 = 100;
/// Passes of `top_k` over its keys.
const PASSES: u64 = 34;

/// What is known before anything is decided.
pub(super) struct Facts<'a> {
    pub(super) graph: &'a Graph<'a>,
    pub(super) bounds: Bounds,
    pub(super) region: &'a Region<'a>,
    pub(super) locality: &'a Locality,
    pub(super) lanes: u32,
}

impl Facts<'_> {
    /// The value at a place of the region's list.
    pub(super) fn value(&self, i: usize) -> Value {
        self.region.values[i]
    }

    /// The place of a value in the region's list.
    pub(super) fn find(&self, v: Value) -> Option<usize> {
        self.region.values.binary_search(&v).ok()
    }

    /// The positions of a value that a workgroup has.
    pub(super) fn space(&self, i: usize) -> Space {
        Space::of(self.graph.dims, work_dims(self.graph, self.value(i)), &self.locality.axes[i])
    }
}

/// How a value is kept, as far as its readers see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// It is not: readers compute it.
    No,
    /// It is computed once.
    Yes,
    /// The same, and one lane may compute it with its neighbours.
    Small,
}

/// How a value does without workgroup memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spared {
    /// Its readers compute it.
    Inline,
    /// Its readers load it from its slot.
    Slot,
}

/// What was decided for each value of a region.
pub(super) struct Existence {
    pub(super) kept: Vec<Kept>,
    pub(super) stored: Vec<bool>,
    /// Kept in the slot only, and read back from there.
    pub(super) slot_only: Vec<bool>,
    elements: Vec<u64>,
    demand: Vec<u64>,
    /// Readers between a value and the next one that is kept, at most.
    depth: Vec<u32>,
    /// Whether a value of the region reads it, were it never so empty.
    read: Vec<bool>,
    views: Vec<bool>,
}

impl Existence {
    /// Decides from the readers up. Those that are `spared` workgroup memory are read back from their slots or computed where
    /// they are read.
    pub(super) fn of(facts: &Facts<'_>, stored: &[bool], spared: &[Option<Spared>]) -> Existence {
        let count = facts.region.values.len();
        let mut found = Existence {
            kept: vec![Kept::No; count],
            stored: stored.to_vec(),
            slot_only: spared.iter().map(|s| *s == Some(Spared::Slot)).collect(),
            elements: Vec::new(),
            demand: vec![0; count],
            depth: vec![0; count],
            read: vec![false; count],
            views: vec![false; count],
        };
        let spaces: Vec<Space> = (0..count).map(|i| facts.space(i)).collect();
        found.elements = spaces.iter().map(|space| space.count(facts.graph.dims, facts.bounds)).collect();
        for i in (0..count).rev() {
            found.views[i] = facts.graph.op(facts.value(i)).is_view();
            found.kept[i] = found.decided(facts, i, spared[i] == Some(Spared::Inline));
            let computed = found.computed(i);
            found.demand_operands(facts, i, computed, &spaces[i]);
        }
        found
    }

    /// How often an element of a value is computed.
    fn computed(&self, i: usize) -> u64 {
        match self.kept[i] {
            Kept::No => self.demand[i].saturating_add(if self.stored[i] { self.elements[i] } else { 0 }),
            _ => self.elements[i],
        }
    }

    fn decided(&self, facts: &Facts<'_>, i: usize, inline: bool) -> Kept {
        let v = facts.value(i);
        let again = self.computed(i).saturating_sub(self.elements[i]);
        match facts.graph.op(v) {
            Op::Reduce if self.is_small(facts, i) => Kept::Small,
            Op::Reduce | Op::Product | Op::Quantise | Op::TopK | Op::ArgMax | Op::SortIds | Op::Write => Kept::Yes,
            Op::Map if self.depth[i] > DEEP && !inline => Kept::Yes,
            Op::Map if inline || again == 0 && !self.stored[i] => Kept::No,
            Op::Map if self.is_small(facts, i) => match self.elements[i] > 1 && cost(facts.graph, v) >= COSTLY {
                true => Kept::Yes,
                false => Kept::Small,
            },
            Op::Map if again == 0 => Kept::No,
            Op::Map if again.saturating_mul(cost(facts.graph, v)) <= REPEATED * u64::from(facts.lanes) => Kept::No,
            Op::Map => Kept::Yes,
            Op::Concat if again > 0 && !inline => Kept::Yes,
            _ => Kept::No,
        }
    }

    /// Whether one lane may compute the value alone.
    fn is_small(&self, facts: &Facts<'_>, i: usize) -> bool {
        let v = facts.value(i);
        let leaves = match facts.graph.op(v) {
            Op::Reduce => leaves(facts.graph, v).constant(),
            _ => Some(1),
        };
        let all = per_row(facts, i).zip(leaves);
        all.is_some_and(|(n, leaves)| n <= SMALL && n.saturating_mul(leaves.into()) <= FEW)
    }

    fn demand_operands(&mut self, facts: &Facts<'_>, i: usize, computed: u64, space: &Space) {
        let v = facts.value(i);
        let args = facts.graph.args(v);
        let most = |extent: Extent| u64::from(extent.most(facts.graph.dims, facts.bounds));
        for (position, &operand) in args.iter().enumerate() {
            let Some(at) = facts.find(operand) else { continue };
            let each = match facts.graph.op(v) {
                Op::Reduce => computed.saturating_mul(most(leaves(facts.graph, v))),
                Op::Product => self.product_demand(facts, v, position, computed, space),
                Op::TopK => self.elements[at].saturating_mul(PASSES),
                Op::ArgMax => self.elements[at],
                Op::SortIds => computed.saturating_mul(self.elements[at]),
                Op::Concat => computed.saturating_mul(self.elements[at]) / self.elements[i].max(1),
                _ => computed,
            };
            self.demand[at] = self.demand[at].saturating_add(each);
            self.read[at] = true;
            let depth = if self.kept[i] == Kept::No { self.depth[i] + 1 } else { 1 };
            self.depth[at] = self.depth[at].max(depth);
        }
    }

    /// Elements of an operand that a product reads.
    fn product_demand(&self, facts: &Facts<'_>, v: Value, position: usize, computed: u64, space: &Space) -> u64 {
        let graph = facts.graph;
        let inner = graph.dims_of(graph.args(v)[0]).last();
        let length = inner.map_or(1, |&d| Extent::of(graph.dims, d).most(graph.dims, facts.bounds));
        let share = Share::of(graph, facts.bounds, v, facts.lanes).unwrap_or(Share::Alone);
        let block = Block::of(graph, facts.bounds, v, space, share, facts.lanes);
        let shared = match position {
            0 => block.rows,
            _ => block.columns.map_or(1, |(_, n)| n),
        };
        computed.saturating_mul(length.into()) / u64::from(shared)
    }

    /// Elements of a value in a workgroup.
    pub(super) fn elements(&self, i: usize) -> u64 {
        self.elements[i]
    }

    /// Whether a value of the region reads it.
    pub(super) fn is_read(&self, i: usize) -> bool {
        self.read[i]
    }

    /// The value with the largest array that can do without, and how.
    pub(super) fn largest_spared(&self, facts: &Facts<'_>, arrays: &Arrays) -> Option<(usize, Spared)> {
        let on_chip = (0..self.kept.len()).filter(|&i| arrays.is_on_chip(i));
        let candidates = on_chip.filter_map(|i| Some((i, self.spared(facts, i)?)));
        candidates.max_by_key(|&(i, _)| (self.elements[i], std::cmp::Reverse(i)))
    }

    /// How a value can do without workgroup memory.
    fn spared(&self, facts: &Facts<'_>, i: usize) -> Option<Spared> {
        // What several workgroups compute only one of them stores.
        let own = facts.locality.atoms_of(i);
        let mut atoms = own.iter().zip(&facts.locality.atoms);
        let alone = atoms.all(|(own, atom)| *own || atom.most(facts.graph.dims, facts.bounds) <= 1);
        if self.stored[i] && alone {
            return Some(Spared::Slot);
        }
        let op = facts.graph.op(facts.value(i));
        let again = self.demand[i] <= AGAIN.saturating_mul(self.elements[i]);
        (matches!(op, Op::Map | Op::Concat) && again).then_some(Spared::Inline)
    }

    /// What the plan says of each value.
    pub(super) fn planned(&self, arrays: &Arrays) -> Vec<Planned> {
        let planned = |i: usize| Planned {
            place: match self.kept[i] {
                _ if self.views[i] => Place::View,
                Kept::No => Place::Inline,
                _ if arrays.is_on_chip(i) => Place::OnChip,
                _ if self.stored[i] => Place::Stored,
                _ => Place::Registers,
            },
            stored: self.stored[i],
            elements: self.elements[i],
            computed: self.computed(i),
        };
        (0..self.kept.len()).map(planned).collect()
    }
}

/// Elements of a value in a workgroup, or, where its first axis is one that a step chooses, for each position of that axis;
/// `None` if they are no constant.
pub(super) fn per_row(facts: &Facts<'_>, i: usize) -> Option<u64> {
    let space = facts.space(i);
    let lead = usize::from(lead(facts, i).is_some());
    (lead..space.axes.len()).try_fold(1u64, |n, axis| n.checked_mul(space.local_constant(axis)?.into()))
}

/// The dimension of a value's first axis, if a step chooses it and a workgroup has all of it.
pub(super) fn lead(facts: &Facts<'_>, i: usize) -> Option<Dim> {
    lead_of(facts.graph, facts.region, facts.locality, i)
}

/// The same.
pub(super) fn lead_of(graph: &Graph<'_>, region: &Region<'_>, locality: &Locality, i: usize) -> Option<Dim> {
    let dim = *work_dims(graph, region.values[i]).first()?;
    let whole = locality.axes[i].first()?.is_whole();
    let chosen = Extent::of(graph.dims, dim).constant().is_none();
    (whole && chosen).then_some(dim)
}

/// About how much work one element of a map is.
fn cost(graph: &Graph<'_>, v: Value) -> u64 {
    let body = Body(graph.attrs(v)[0]);
    let nodes = reachable(graph.scalars, graph.bodies[body.0 as usize].result);
    let work: u64 = nodes.iter().map(|x| scalar_cost(ScalarOp::from_number(graph.scalars[x.0 as usize].op))).sum();
    work + 2 * graph.args(v).len() as u64
}

fn scalar_cost(op: Option<ScalarOp>) -> u64 {
    match op {
        Some(ScalarOp::Param | ScalarOp::F32 | ScalarOp::I32) => 0,
        Some(ScalarOp::Div | ScalarOp::Sqrt) => 8,
        Some(ScalarOp::Exp | ScalarOp::Log | ScalarOp::Log1p) => 40,
        Some(ScalarOp::Sin | ScalarOp::Cos) => 200,
        _ => 1,
    }
}
