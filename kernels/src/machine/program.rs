//! What the machine finds once per kernel: the order in which expressions are evaluated, and which statements make the lanes
//! meet.

use crate::kernel::{Block, Expr, Kernel, Stmt};

/// A kernel prepared for running.
pub(super) struct Program {
    /// For each statement, the expressions that it needs, operands first.
    pub(super) orders: Vec<Vec<Expr>>,
    /// For each statement, whether lanes meet in it.
    pub(super) meets: Vec<bool>,
}

impl Program {
    /// The program of a verified kernel.
    pub(super) fn of(kernel: &Kernel) -> Program {
        let orders = kernel.stmts.iter().map(|stmt| order(kernel, stmt)).collect();
        let mut meets = vec![false; kernel.stmts.len()];
        for part in &kernel.parts {
            mark(kernel, part.body, &mut meets);
        }
        Program { orders, meets }
    }
}

/// The expressions below a statement's own, ascending, which is operands first.
fn order(kernel: &Kernel, stmt: &Stmt) -> Vec<Expr> {
    let mut stack: Vec<Expr> = stmt.exprs().collect();
    let mut found = std::collections::BTreeSet::from_iter(stack.iter().copied());
    while let Some(x) = stack.pop() {
        stack.extend(kernel.expr(x).operands().filter(|&y| found.insert(y)));
    }
    found.into_iter().collect()
}

fn mark(kernel: &Kernel, block: Block, meets: &mut [bool]) -> bool {
    let mut any = false;
    for at in kernel.statements(block) {
        let stmt = kernel.stmts[at];
        let mut here = matches!(stmt, Stmt::Barrier { .. } | Stmt::Shuffle { .. });
        for inner in stmt.blocks() {
            here |= mark(kernel, inner, meets);
        }
        meets[at] = here;
        any |= here;
    }
    any
}
