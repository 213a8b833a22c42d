//! Kernels of every kind: each operation of the value graph, each storage format, each tree.

use ds4_ir::{Builder, DimOp, Format, ReduceKind, ScalarOp, ScalarType, Tree, Type, Value};

use crate::emit::StepBlock;
use crate::kernel::Kernel;

use super::bench::{Bench, Checkpoint, Random, Small};
use super::beside::launches;

/// Graphs with all of them.
pub(crate) fn benches() -> Vec<Bench> {
    let mut benches = vec![maps(), reductions(), choices(), moves()];
    for format in Format::ALL {
        benches.push(weights(format));
    }
    benches
}

/// The kernels, alone and side by side, each with its step's block.
pub(crate) fn kernels() -> Vec<(Kernel, StepBlock)> {
    let of = |bench: Bench| {
        let mut kernels = bench.all_kernels();
        kernels.extend(launches(&kernels));
        let block = StepBlock::of(&kernels);
        kernels.into_iter().map(move |kernel| (kernel, block.clone()))
    };
    benches().into_iter().flat_map(of).collect()
}

fn rows(b: &mut Builder, random: &mut Random, shape: &[u32]) -> Value {
    let count: u32 = shape.iter().product();
    let table = b.floats(shape, &random.tame(count as usize));
    b.per_column(table)
}

/// Ids of a table of 4 rows, some masked.
fn masks(b: &mut Builder, shape: &[u32]) -> Value {
    let count: u32 = shape.iter().product();
    let ids: Vec<i32> = (0..count).map(|i| if i % 5 == 4 { -1 } else { (i % 4) as i32 }).collect();
    let ids = b.ids(shape, &ids);
    b.per_column(ids)
}

fn maps() -> Bench {
    let mut random = Random(400);
    let mut b = Builder::new();
    let floats = [(); 2].map(|()| rows(&mut b, &mut random, &[8, 37]));
    let words: Vec<i32> = (0..8 * 37).map(|_| random.next() as i32).collect();
    let ints = b.ints(&[8, 37], &words);
    let ints = b.per_column(ints);
    for &op in ScalarOp::ALL {
        use ScalarOp::*;
        let Some((args, result)) = op.signature() else { continue };
        let constant = matches!(op, DivI | RemI | ShlI | ShrI | SarI);
        if args.iter().chain([&result]).any(|&ty| ty != ScalarType::F32 && ty != ScalarType::I32) || op == RoundE2m1 {
            continue;
        }
        let operand = |i: usize| if args[i] == ScalarType::F32 { floats[i % 2] } else { ints };
        if !constant {
            b.apply(op, &(0..args.len()).map(operand).collect::<Vec<_>>());
            continue;
        }
        let s = &mut b.scalars;
        let (x, seven) = (s.param(0, ScalarType::I32), s.i32(7));
        let result = s.op(op, &[x, seven]).unwrap();
        let body = s.body(&[ScalarType::I32], result).unwrap();
        b.map(body, &[ints]);
    }
    b.tokens();
    let (columns, three) = (b.columns(), b.n(3));
    b.iota(&[columns, three], 1);
    Bench::new(b, Checkpoint::default(), &[])
}

fn reductions() -> Bench {
    let mut random = Random(401);
    let mut b = Builder::new();
    for (n, tree) in [(4, Tree::Seq), (37, Tree::Lanes(32)), (300, Tree::Lanes(128))] {
        let x = rows(&mut b, &mut random, &[8, n]);
        let mask = masks(&mut b, &[8, n]);
        for mask in [None, Some(mask)] {
            b.reduce(ReduceKind::Sum, tree, 1, x, mask);
            b.reduce(ReduceKind::Max, Tree::Free, 1, x, mask);
        }
        let w = b.floats(&[5, n], &random.tame(5 * n as usize));
        b.product(tree, x, w, None);
    }
    Bench::new(b, Checkpoint::default(), &[])
}

fn choices() -> Bench {
    let mut random = Random(402);
    let mut b = Builder::new();
    let x = rows(&mut b, &mut random, &[8, 100]);
    let ids = b.ids(&[8, 100], &(0..800).map(|i| if i % 5 == 4 { -1 } else { i % 100 }).collect::<Vec<_>>());
    let ids = b.per_column(ids);
    b.top_k(5, x, None);
    b.top_k(5, x, Some(ids));
    b.arg_max(x);
    b.sort_ids(ids);
    Bench::new(b, Checkpoint::default(), &[])
}

fn moves() -> Bench {
    let mut random = Random(403);
    let mut b = Builder::new();
    let x = rows(&mut b, &mut random, &[8, 4, 6]);
    let y = rows(&mut b, &mut random, &[8, 4, 6]);
    b.concat(1, &[x, y]);
    let turned = b.permute(x, &[0, 2, 1]);
    let ids = masks(&mut b, &[8, 3]);
    b.gather(1, 1, x, ids);
    let state = b.add_state("rows", Type::F32, &[16, 4, 6]);
    let old = b.read(state);
    let first = b.ids(&[8], &[9, 1, 15, -1, 0, 4, -1, 3]);
    let first = b.per_column(first);
    b.write(old, first, x);
    let position = b.dims.dim(DimOp::Position);
    b.extent(position);
    Bench::placed(b, Checkpoint::default(), &[], &[turned], &[])
}

/// Products, gathered products and widening of a format.
fn weights(format: Format) -> Bench {
    let mut random = Random(404 + format as u64);
    let mut b = Builder::new();
    let k = format.block_len().max(32) as u32;
    let w = b.add_weight("w", Type::weight(format), &[4, k]);
    let w = b.weight(w);
    b.widen(w);
    if !format.is_integer() {
        let x = rows(&mut b, &mut random, &[8, k]);
        b.product(Tree::Lanes(32), x, w, None);
        if format.takes_q8() {
            let x = b.quantise(x);
            b.product(Tree::BLOCKS, x, w, None);
        }
    }
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(format, [1, 4, k as usize], &mut random);
    Bench::new(b, checkpoint, &[])
}
