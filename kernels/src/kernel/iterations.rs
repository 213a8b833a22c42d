//! How often a lane comes round in loops, at most.
//!
//! A device may end loops that run long: Mesa's llvmpipe counts the iterations of all loops of a lane together, and behind
//! 65,535 of them every loop ends, without a word (`LP_MAX_TGSI_LOOP_ITERATIONS` in its `lp_bld_limits.h`). Whoever runs a
//! kernel there has to know before.

use super::operator::Operator;
use super::tables::{Block, Expr, Kernel, Stmt};

/// Iterations of the two loops in the text of a square root. The root is estimated with 24 bits and corrected in steps of its
/// 25th; an estimate within 8 ulp takes 16 steps at most.
const ROOT: u64 = 18;

impl Kernel {
    /// An upper bound for the iterations of all loops that one lane runs, at the largest extents. The last test of a loop counts
    /// as one, and so does every loop of a branch that is not taken.
    pub fn iterations(&self) -> u64 {
        let count = Count { kernel: self, roots: roots(self) };
        let most = self.parts.iter().map(|part| count.block(part.body)).max().unwrap_or(0);
        let loops = self.stmts.iter().filter(|stmt| matches!(stmt, Stmt::For { .. })).count() as u64;
        most.saturating_add(loops)
    }
}

/// Iterations of the square roots in each expression, as often as its text has them.
fn roots(kernel: &Kernel) -> Vec<u64> {
    let mut roots: Vec<u64> = Vec::with_capacity(kernel.exprs.len());
    for row in &kernel.exprs {
        let own = if row.op == Operator::Sqrt { ROOT } else { 0 };
        let of = |x: Expr| roots.get(x.0 as usize).copied().unwrap_or(0);
        roots.push(row.operands().fold(own, |sum, x| sum.saturating_add(of(x))));
    }
    roots
}

struct Count<'a> {
    kernel: &'a Kernel,
    roots: Vec<u64>,
}

impl Count<'_> {
    fn block(&self, block: Block) -> u64 {
        self.kernel.block(block).iter().fold(0, |sum, stmt| sum.saturating_add(self.stmt(stmt)))
    }

    fn stmt(&self, stmt: &Stmt) -> u64 {
        let own = stmt.exprs().fold(0u64, |sum, x| sum.saturating_add(self.roots[x.0 as usize]));
        let inner = stmt.blocks().fold(0u64, |sum, block| sum.saturating_add(self.block(block)));
        match *stmt {
            Stmt::For { end, step, .. } => {
                let most = self.kernel.extents[end.0 as usize].largest().unwrap_or(u32::MAX);
                let turns = u64::from(most.div_ceil(step.max(1)));
                own.saturating_add(turns.saturating_mul(inner.saturating_add(1))).saturating_add(1)
            }
            _ => own.saturating_add(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::{Builder, ExtentRow};
    use ds4_ir::Dim;

    #[test]
    fn loops_within_loops_multiply_and_parts_do_not_add() {
        let b = Builder::new("k", &[], 64);
        let rows = ExtentRow { scalar: Some(Dim(0)), most: 10, times: 2, per: 1 };
        b.repeat("row", b.word(0), rows, 1, |_| {
            b.repeat("i", b.lane(), ExtentRow::constant(100), 64, |_| {});
        });
        // 20 turns of one and of a loop of two turns and its last test; the last test; and two loops.
        assert_eq!(b.finish().iterations(), 20 * (1 + 2 + 1) + 1 + 2);
    }
}
