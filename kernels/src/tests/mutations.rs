//! Kernels with a random change: the verifier and the machine answer, and never panic.

use ds4_ir::{Builder, ReduceKind, Tree};

use crate::kernel::{Block, Expr, Kernel, Local, Memory, Stmt, verify};
use crate::machine::{Cells, LaneOrder, Machine};

use super::bench::{Bench, Checkpoint, D, Random, Small};

fn kernels() -> Vec<Kernel> {
    let mut random = Random(300);
    let mut b = Builder::new();
    let x = b.floats(&[8, 40], &random.tame(320));
    let x = b.per_column(x);
    let ids = b.ids(&[8, 40], &(0..320).map(|i| if i % 3 == 0 { -1 } else { i % 40 }).collect::<Vec<_>>());
    let ids = b.per_column(ids);
    b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, x, Some(ids));
    b.top_k(3, x, Some(ids));
    Bench::new(b, Checkpoint::default(), &[]).all_kernels()
}

/// Changes one field of one row to a number that is near what tables hold.
fn mutate(kernel: &mut Kernel, random: &mut Random) {
    let number = |random: &mut Random| match random.next() % 8 {
        0 => u32::MAX,
        _ => random.next() % 80,
    };
    let new = number(random);
    let pick = |random: &mut Random, len: usize| random.next() as usize % len.max(1);
    match random.next() % 6 {
        0 => {
            let at = pick(random, kernel.exprs.len());
            let word = pick(random, 3);
            kernel.exprs[at].words[word] = new;
        }
        1 => {
            let (at, other) = (pick(random, kernel.exprs.len()), pick(random, kernel.exprs.len()));
            kernel.exprs[at].op = kernel.exprs[other].op;
        }
        2 => {
            let at = pick(random, kernel.stmts.len());
            kernel.stmts[at] = match kernel.stmts[at] {
                Stmt::Let { local, .. } => Stmt::Let { local, value: Expr(new) },
                Stmt::Set { value, .. } => Stmt::Set { local: Local(new), value },
                Stmt::Load { local, index, .. } => Stmt::Load { local, memory: Memory(new), index },
                Stmt::Store { memory, value, .. } => Stmt::Store { memory, index: Expr(new), value },
                Stmt::If { condition, then, .. } => Stmt::If { condition, then, otherwise: Block(new) },
                Stmt::For { index, start, end, body, .. } => Stmt::For { index, start, end, step: new, body },
                Stmt::Shuffle { local, value, width, .. } => Stmt::Shuffle { local, value, distance: new, width },
                _ => Stmt::Barrier { buffers: new % 2 == 1 },
            };
        }
        3 => {
            let at = pick(random, kernel.blocks.len());
            kernel.blocks[at].len = new;
        }
        4 => {
            let at = pick(random, kernel.extents.len());
            let row = &mut kernel.extents[at];
            *[&mut row.most, &mut row.times, &mut row.per][pick(random, 3)] = new;
        }
        _ => {
            let (a, b) = (pick(random, kernel.stmts.len()), pick(random, kernel.stmts.len()));
            kernel.stmts.swap(a, b);
        }
    }
}

#[test]
fn any_change_is_answered() {
    let kernels = kernels();
    let mut random = Random(301);
    let (mut refused, mut trapped, mut ran) = (0, 0, 0);
    for round in 0..1000 {
        let mut kernel = kernels[round % kernels.len()].clone();
        mutate(&mut kernel, &mut random);
        if verify(&kernel).is_err() {
            refused += 1;
            continue;
        }
        // A grid or a loop that a change made huge says nothing more than a small one.
        let huge = kernel.extents.iter().any(|row| row.largest().is_none_or(|n| n > 200));
        if huge || kernel.grid_in(&|_| 2).is_none_or(|grid| grid.total() > 200) {
            continue;
        }
        let mut cells: Vec<_> = kernel.arguments().map(|_| Cells::of_words(&D, &[1; 320])).collect();
        match Machine::new(&kernel, &D, LaneOrder::Ascending).unwrap().run(&|_| 2, &mut cells) {
            Ok(()) => ran += 1,
            Err(_) => trapped += 1,
        }
    }
    assert!(refused > 200 && trapped > 5 && ran > 30, "{refused} {trapped} {ran}");
}
