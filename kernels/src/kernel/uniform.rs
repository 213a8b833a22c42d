//! Which locals an expression reads, and which expressions have the same value in every lane of a workgroup.

use super::operator::Operator;
use super::tables::{Expr, Kernel, Local};

/// What each expression depends on.
pub(super) struct Dependence {
    /// Locals read, ascending.
    locals: Vec<Vec<Local>>,
    /// Whether the lane's number enters.
    lane: Vec<bool>,
    /// Locals with the same value in every lane. Loads, shuffles and mutable locals count as different, which is safe.
    uniform: Vec<bool>,
}

impl Dependence {
    /// The dependences of verified rows; no local is known to be uniform yet.
    pub(super) fn of(kernel: &Kernel) -> Dependence {
        let mut found = Dependence {
            locals: Vec::with_capacity(kernel.exprs.len()),
            lane: Vec::with_capacity(kernel.exprs.len()),
            uniform: vec![false; kernel.locals.len()],
        };
        for row in &kernel.exprs {
            let mut locals: Vec<Local> = row.operands().flat_map(|y| found.locals(y).to_vec()).collect();
            if row.op == Operator::Local {
                locals.push(Local(row.words[0]));
            }
            locals.sort();
            locals.dedup();
            let lane = row.op == Operator::Lane || row.operands().any(|y| found.lane[y.0 as usize]);
            found.locals.push(locals);
            found.lane.push(lane);
        }
        found
    }

    /// The locals that `x` reads.
    pub(super) fn locals(&self, x: Expr) -> &[Local] {
        &self.locals[x.0 as usize]
    }

    /// Notes that an immutable local has the value of `x`.
    pub(super) fn bind(&mut self, local: Local, x: Expr) {
        self.uniform[local.0 as usize] = self.is_uniform(x);
    }

    /// Whether `x` is the same in every lane.
    pub(super) fn is_uniform(&self, x: Expr) -> bool {
        !self.lane[x.0 as usize] && self.locals(x).iter().all(|l| self.uniform[l.0 as usize])
    }
}
