//! `top_k`, `arg_max` and `sort_ids`: order along the last axis.

use std::ops::Range;

use ds4_ir::numerics::rank;

use super::access::Place;
use super::extents::Ext;
use super::kernel::{FaultKind, Kernel, MASKED, Scratch, Size, StepView};
use super::nest::Nest;

/// Which of the three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The indices of the `k` largest, ascending.
    TopK(usize),
    /// The index of the largest.
    ArgMax,
    /// The ids, ascending; whether they may be masked (those of a stored table are not: -1 there is a fault).
    Sort { masked: bool },
}

/// A prepared choice. Operands of the nest: keys or ids, output, candidates.
pub(crate) struct Choose {
    pub(crate) choice: Choice,
    pub(crate) rows: Nest,
    /// The last axis and its strides in keys, output and candidates.
    pub(crate) n: Ext,
    pub(crate) key: usize,
    pub(crate) out_stride: usize,
    pub(crate) candidate: usize,
    pub(crate) keys: Place,
    pub(crate) candidates: Option<Place>,
    pub(crate) out: Place,
    /// For reports.
    pub(crate) value: ds4_ir::Value,
}

impl Kernel for Choose {
    fn size(&self, step: &StepView<'_>) -> Size {
        let rows = self.rows.count(step.values);
        Size { tasks: rows, nanoseconds: rows * (50 + 4 * step.get(self.n)) }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let n = step.get(self.n);
        let mut walk = self.rows.walk(step.values, tasks.start);
        let mut at = [0; 3];
        walk.offsets(&mut at);
        let keys = self.keys.at(step.values);
        let out = self.out.at(step.values);
        let candidates = self.candidates.as_ref().map(|c| c.at(step.values));
        for _ in tasks {
            let row = Row {
                keys: keys.wrapping_add(at[0]),
                candidates: candidates.map(|c| c.wrapping_add(at[2]).cast_const()),
                out: out.wrapping_add(at[1]),
                n,
            };
            let valid = match self.choice {
                Choice::TopK(k) => self.top_k(&row, k, &mut scratch.indices),
                Choice::ArgMax => self.arg_max(&row),
                Choice::Sort { masked } => self.sort(&row, masked, &mut scratch.indices),
            };
            if !valid {
                step.faults.note(FaultKind::Id, self.value);
            }
            walk.advance(&mut at);
        }
    }
}

/// One row of the last axis.
struct Row {
    keys: *const u32,
    candidates: Option<*const u32>,
    out: *mut u32,
    n: usize,
}

impl Choose {
    /// The rank of key `i`: larger is better.
    #[inline]
    fn rank(&self, row: &Row, i: u32) -> i32 {
        // SAFETY: `i` is below `n`, and the keys lie inside their memory (checked at load).
        rank(f32::from_bits(unsafe { *row.keys.add(i as usize * self.key) }))
    }

    fn put(&self, row: &Row, at: usize, word: u32) {
        // SAFETY: `at` is an index of the output's last axis, inside its slot (checked at load).
        unsafe { *row.out.add(at * self.out_stride) = word };
    }

    /// False if a candidate is not its own index.
    fn top_k(&self, row: &Row, k: usize, indices: &mut Vec<u32>) -> bool {
        indices.clear();
        let mut valid = true;
        for i in 0..row.n {
            if let Some(candidates) = row.candidates {
                // SAFETY: the candidates lie inside their memory (checked at load).
                let id = unsafe { *candidates.add(i * self.candidate) };
                if id == MASKED {
                    continue;
                }
                valid &= id as usize == i;
            }
            indices.push(i as u32);
        }
        if k < indices.len() && k > 0 {
            indices.select_nth_unstable_by(k - 1, |&i, &j| self.rank(row, j).cmp(&self.rank(row, i)).then(i.cmp(&j)));
        }
        indices.truncate(k);
        indices.sort_unstable();
        for at in 0..k {
            self.put(row, at, indices.get(at).copied().unwrap_or(MASKED));
        }
        valid
    }

    /// False if there is no element.
    fn arg_max(&self, row: &Row) -> bool {
        let mut best = (i32::MIN, 0);
        for i in 0..row.n as u32 {
            let rank = self.rank(row, i);
            if rank > best.0 {
                best = (rank, i);
            }
        }
        self.put(row, 0, best.1);
        row.n > 0
    }

    /// False if a word is no id.
    fn sort(&self, row: &Row, masked: bool, indices: &mut Vec<u32>) -> bool {
        indices.clear();
        for i in 0..row.n {
            // SAFETY: the ids lie inside their memory (checked at load).
            indices.push(unsafe { *row.keys.add(i * self.key) });
        }
        indices.sort_unstable();
        for (at, &id) in indices.iter().enumerate() {
            self.put(row, at, id);
        }
        indices.iter().all(|&id| masked && id == MASKED || id as i32 >= 0)
    }
}
