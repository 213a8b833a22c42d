//! From a planned region to its kernel.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use ds4_ir::graph::Graph;
use ds4_ir::numerics::Arith;
use ds4_ir::{Dim, Op, Value};

use crate::kernel::{self, Builder, ExtentRow, Kernel, Memory, Stmt, Truth, Word};
use crate::schedule::Scene;
use crate::schedule::body::Element;

use super::arrays::POOLS;
use super::axes::{Extent, Factor, Walk};
use super::index::Index;
use super::locality::{Region, work_dims};
use super::plan::RegionPlan;
use super::refusal::Refusal;
use super::space::Space;

/// A kernel that is being made. A fault is kept where it is found; what is made behind it does not matter.
pub(super) struct Emit<'e> {
    pub(super) scene: &'e Scene<'e>,
    pub(super) graph: Graph<'e>,
    pub(super) region: &'e Region<'e>,
    pub(super) plan: &'e RegionPlan,
    pub(super) b: Builder,
    /// This workgroup's position along each axis of the grid.
    pub(super) groups: Vec<Index>,
    /// The workgroup's arrays.
    pub(super) pools: [Option<Memory>; 3],
    /// Elements in locals, by value and position.
    pub(super) registers: RefCell<HashMap<Vec<u32>, Element>>,
    /// Ids that are known to be present here, by gather and the position of the id.
    pub(super) known_ids: RefCell<Vec<(Vec<u32>, Index)>>,
    fault: Cell<Option<Refusal>>,
}

/// The kernel of a region.
///
/// # Errors
/// An operand that the region does not compute has no slot, or is reached in a way that no schedule knows.
pub fn kernel(scene: &Scene<'_>, region: &Region<'_>, plan: &RegionPlan) -> Result<Kernel, Refusal> {
    let &anchor = region.values.last().ok_or(Refusal::Empty)?;
    let path = scene.graph.span_path(scene.graph.value_span[anchor.0 as usize]);
    let name = if path.is_empty() { format!("region.{anchor}") } else { format!("{path}.region.{anchor}") };
    let b = Builder::new(&name, region.values, plan.lanes);
    b.about(&about(&scene.graph, region));
    let groups = plan.locality.atoms.iter().map(|&atom| {
        let row = extent_row(scene, atom);
        let word = b.group(row);
        Index::word(&b, word, row.largest().unwrap_or(u32::MAX).max(1).into())
    });
    let groups = groups.collect();
    let mut pools = [None; 3];
    for (pool, (&len, (element, name))) in pools.iter_mut().zip(plan.arrays.lens.iter().zip(POOLS)) {
        *pool = (len > 0).then(|| b.shared(element, len, name));
    }
    let emit = Emit {
        scene,
        graph: scene.graph,
        region,
        plan,
        b,
        groups,
        pools,
        registers: RefCell::default(),
        known_ids: RefCell::default(),
        fault: Cell::new(None),
    };
    for step in &plan.steps {
        emit.step(step);
    }
    match emit.fault.get() {
        Some(refusal) => Err(refusal),
        None => Ok(arguments_first(emit.b.finish())),
    }
}

/// The kernel with its arguments in front of its arrays, as every text has them.
fn arguments_first(mut made: Kernel) -> Kernel {
    let mut order: Vec<usize> = (0..made.memories.len()).collect();
    order.sort_by_key(|&m| (made.memories[m].space == kernel::Space::Workgroup, m));
    let mut places = vec![Memory(0); order.len()];
    for (place, &m) in (0..).zip(&order) {
        places[m] = Memory(place);
    }
    made.memories = order.iter().map(|&m| made.memories[m].clone()).collect();
    for stmt in &mut made.stmts {
        if let Stmt::Load { memory, .. } | Stmt::Store { memory, .. } = stmt {
            *memory = places[memory.0 as usize];
        }
    }
    made
}

/// `v3, v5 .. v9: 12 values`
fn about(graph: &Graph<'_>, region: &Region<'_>) -> String {
    let computed: Vec<Value> = region.values.iter().copied().filter(|&v| !graph.op(v).is_view()).collect();
    let list = |part: &[Value]| part.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    let count = computed.len();
    match count {
        0..=12 => format!("{count} values: {}", list(&computed)),
        _ => format!("{count} values: {}, .., {}", list(&computed[..6]), list(&computed[count - 6..])),
    }
}

/// An extent as kernels have it.
pub(super) fn extent_row(scene: &Scene<'_>, extent: Extent) -> ExtentRow {
    match extent {
        Extent::Const(n) => ExtentRow::constant(n),
        Extent::Dim(dim) => scene.extent(dim, 1),
    }
}

impl Emit<'_> {
    /// Notes the first fault.
    pub(super) fn refuse(&self, refusal: Refusal) {
        if self.fault.get().is_none() {
            self.fault.set(Some(refusal));
        }
    }

    /// The place of a value in the region's list.
    pub(super) fn find(&self, v: Value) -> Option<usize> {
        self.region.values.binary_search(&v).ok()
    }

    /// A dimension as kernels have it.
    pub(super) fn dim(&self, dim: Dim) -> ExtentRow {
        self.scene.extent(dim, 1)
    }

    /// The value of a dimension as an index.
    pub(super) fn dim_index(&self, dim: Dim) -> Index {
        let row = self.dim(dim);
        Index::word(&self.b, self.b.extent_value(row), u64::from(row.largest().unwrap_or(u32::MAX - 1)) + 1)
    }

    /// The positions of a value that a workgroup has.
    pub(super) fn space(&self, i: usize) -> Space {
        Space::of(self.graph.dims, work_dims(&self.graph, self.region.values[i]), &self.plan.locality.axes[i])
    }

    /// The workgroup's position along a factor that the grid walks.
    pub(super) fn grid(&self, atom: u32, step: u32, extent: Extent) -> Index {
        let group = &self.groups[atom as usize];
        if step == 1 && extent == self.plan.locality.atoms[atom as usize] {
            return group.clone();
        }
        let (position, _) = group.split(&self.b, step);
        match extent {
            Extent::Const(n) => position.split(&self.b, n).1,
            Extent::Dim(_) => position,
        }
    }

    /// The positions along each axis from those along the factors that the workgroup walks, slowest first.
    pub(super) fn coordinates(&self, space: &Space, locals: &[Index]) -> Vec<Index> {
        let mut locals = locals.iter();
        let axis = |factors: &Vec<Factor>| {
            let mut at = Index::default();
            for factor in factors {
                let position = match factor.walk {
                    Walk::Local => locals.next().cloned().unwrap_or_default(),
                    Walk::Grid { atom, step } => self.grid(atom, step, factor.extent),
                    Walk::Fixed => Index::default(),
                };
                at = at.times(factor.extent.constant().unwrap_or(0)).plus(&position);
            }
            at
        };
        space.axes.iter().map(axis).collect()
    }

    /// The cell of an element among those of a value, if the workgroup has it.
    pub(super) fn cell(&self, i: usize, coordinates: &[Index]) -> Index {
        let space = self.space(i);
        let mut cell = Index::default();
        for (factors, coordinate) in space.axes.iter().zip(coordinates) {
            let mut rest = coordinate.clone();
            let mut positions = Vec::with_capacity(factors.len());
            for (place, factor) in factors.iter().enumerate().rev() {
                let (outer, position) = match factor.extent {
                    Extent::Const(n) if place > 0 => rest.split(&self.b, n),
                    _ => (Index::default(), rest),
                };
                positions.push(position);
                rest = outer;
            }
            for (factor, position) in factors.iter().zip(positions.iter().rev()) {
                match factor.walk {
                    Walk::Local => {
                        let most = factor.extent.most(self.graph.dims, self.scene.bounds);
                        cell = cell.times(most).plus(position);
                    }
                    Walk::Grid { atom, step } => {
                        if self.grid(atom, step, factor.extent) != *position && !position.is_unknown() {
                            self.refuse(Refusal::NoSchedule(self.region.values[i]));
                        }
                    }
                    Walk::Fixed => {}
                }
            }
        }
        cell
    }

    /// Whether this workgroup stores a value that others compute as well; `None` if it is the only one.
    pub(super) fn first_group(&self, i: usize) -> Option<Truth> {
        let own = self.plan.locality.atoms_of(i);
        let others = self.groups.iter().zip(own).filter(|(group, own)| !own && group.known() != Some(0));
        let zero = others.map(|(group, _)| self.b.equal_int(group.value(&self.b), self.b.word(0)));
        zero.reduce(|x, y| self.b.both(x, y))
    }

    /// Runs `body` under a condition, if there is one.
    pub(super) fn when(&self, condition: Option<Truth>, body: impl FnOnce()) {
        match condition {
            Some(condition) => self.b.when(condition, body),
            None => body(),
        }
    }

    /// Runs `body` at each position of a space, each once, shared out among the lanes.
    pub(super) fn each(&self, space: &Space, body: impl FnOnce(&[Index])) {
        let walk = Positions::of(self, space);
        let lanes = self.b.lanes();
        let run = |number: Word| {
            let number = Index::word(&self.b, number, walk.most);
            let (coordinates, inside) = self.position(space, &walk, &number);
            self.when(inside, || body(&coordinates));
        };
        match walk.total.is_constant() {
            Some(n) if n == lanes => run(self.b.lane()),
            Some(n) if n < lanes => self.b.when(self.b.below(self.b.lane(), self.b.word(n)), || run(self.b.lane())),
            _ => self.b.repeat("i", self.b.lane(), walk.total, lanes, run),
        }
    }

    /// The position with a number, and whether there is one.
    pub(super) fn position(&self, space: &Space, walk: &Positions, number: &Index) -> (Vec<Index>, Option<Truth>) {
        let mut locals = vec![Index::default(); walk.order.len()];
        let mut rest = number.clone();
        let mut inside = None;
        for (turn, &(place, extent)) in walk.order.iter().enumerate().rev() {
            if turn == 0 {
                locals[place] = rest;
                break;
            }
            let most = extent.most(self.graph.dims, self.scene.bounds).max(1);
            let (outer, here) = rest.split(&self.b, most);
            if let Extent::Dim(dim) = extent {
                let below = self.b.below(here.value(&self.b), self.b.extent_value(self.dim(dim)));
                inside = Some(inside.map_or(below, |inside| self.b.both(inside, below)));
            }
            locals[place] = here;
            rest = outer;
        }
        (self.coordinates(space, &locals), inside)
    }

    /// The operation of a value.
    pub(super) fn op(&self, v: Value) -> Op {
        self.graph.op(v)
    }
}

/// How positions of a space are numbered: those of an axis that a step chooses outermost, so that no number is wasted on it.
pub(super) struct Positions {
    /// Place among the walked factors, and extent, slowest first.
    order: Vec<(usize, Extent)>,
    /// How many there are.
    pub(super) total: ExtentRow,
    /// At most.
    pub(super) most: u64,
}

impl Positions {
    pub(super) fn of(emit: &Emit<'_>, space: &Space) -> Positions {
        let mut order: Vec<(usize, Extent)> = space.locals().enumerate().collect();
        order.sort_by_key(|(place, extent)| (extent.constant().is_some(), *place));
        let most = |extent: &Extent| extent.most(emit.graph.dims, emit.scene.bounds);
        let inner = order.iter().skip(1).fold(1u32, |n, (_, extent)| n.saturating_mul(most(extent)));
        let first = order.first().map_or(ExtentRow::constant(1), |&(_, extent)| extent_row(emit.scene, extent));
        let total = ExtentRow { times: first.times.saturating_mul(inner), ..first };
        let most = u64::from(total.largest().unwrap_or(u32::MAX)).max(1);
        Positions { order, total, most }
    }
}
