//! `top_k`, `arg_max` and `sort_ids`: one row after the other, each by all lanes.

use ds4_ir::Op;

use crate::kernel::{MaskedId, Word};
use crate::schedule::body::Element;
use crate::schedule::choose::Row;

use super::arrays::Cells;
use super::index::Index;
use super::kernel::{Emit, Positions};
use super::refusal::Refusal;

impl Emit<'_> {
    /// `top_k`, `arg_max` or `sort_ids`
    pub(super) fn choose(&self, i: usize, scratch: Option<Cells>) {
        let b = &self.b;
        let mut space = self.space(i);
        if self.op(self.region.values[i]) != Op::ArgMax
            && let Some(last) = space.axes.last_mut()
        {
            last.clear();
        }
        let walk = Positions::of(self, &space);
        let turn = |number: Word| {
            let (at, inside) = self.position(&space, &walk, &Index::word(b, number, walk.most));
            self.when(inside, || self.row(i, &at, scratch));
        };
        match walk.total.is_constant() {
            Some(1) => turn(b.word(0)),
            _ => b.repeat("row", b.word(0), walk.total, 1, |row| {
                b.barrier();
                turn(row);
            }),
        }
    }

    fn row(&self, i: usize, at: &[Index], scratch: Option<Cells>) {
        let b = &self.b;
        let v = self.region.values[i];
        let args = self.graph.args(v);
        let rank = self.graph.dims_of(args[0]).len();
        let n = self.dim(self.graph.dims_of(args[0])[rank - 1]);
        let below = u64::from(n.largest().unwrap_or(u32::MAX)).max(1);
        let along = |j: Word, below: u64| [&at[..rank - 1], &[Index::word(b, j, below)]].concat();
        let key = |j: Word| self.element(args[0], &along(j, below));
        let candidate = |j: Word| -> MaskedId {
            match self.element(args[1], &along(j, below)) {
                Element::Id(id) => id,
                _ => {
                    self.refuse(Refusal::NoSchedule(v));
                    b.masked()
                }
            }
        };
        let k = self.graph.dims_of(v).last().map_or(0, |&d| self.dim(d).largest().unwrap_or(0));
        let store = |j: Word, element: Element| match self.op(v) {
            Op::ArgMax => self.keep(i, at, element),
            _ => self.keep(i, &along(j, u64::from(k).max(1)), element),
        };
        let candidate: Option<&dyn Fn(Word) -> MaskedId> = if args.len() > 1 { Some(&candidate) } else { None };
        let row = Row { b, inside: b.truth(true), n, key: &key, candidate, store: &store };
        let scratch = scratch.and_then(|cells| Some((self.pools[cells.pool]?, cells.from)));
        match (self.op(v), scratch) {
            (Op::SortIds, _) => row.sort_ids(),
            (Op::TopK, Some(_)) if k == 0 => {}
            (Op::TopK, Some(scratch)) => row.top_k(k, scratch),
            (Op::ArgMax, Some(scratch)) => row.arg_max(scratch),
            _ => self.refuse(Refusal::NoSchedule(v)),
        }
    }
}
