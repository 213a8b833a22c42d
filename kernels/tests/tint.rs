//! The WGSL of kernels is valid for a second compiler, `tint`, which also checks that barriers and shuffles are uniform.
//!
//! `tint` comes with Chromium's sources and is in no package registry that tests may rely on. So where it is not on the
//! path this is a skip, in continuous integration too.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use ds4_ir::graph::Constant;
use ds4_ir::plan::SlotRow;
use ds4_ir::plan::layout::layouts;
use ds4_ir::scalar::Scalars;
use ds4_ir::{Bounds, Builder, Format, Op, ReduceKind, Scalar, ScalarOp, ScalarType, Tree, Type, Value};
use ds4_kernels::emit::{StepBlock, wgsl};
use ds4_kernels::kernel::{Access, Kernel, Stmt};
use ds4_kernels::schedule::{ScaleBlocks, Scene, kernels, side_by_side};

/// Whether `tint` is on the path.
fn is_installed() -> bool {
    let installed = Command::new("tint").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !installed {
        println!("skipped: `tint` is not on the path");
    }
    installed
}

/// What `tint` says against a text.
fn complaints(text: &str) -> Option<String> {
    let mut file = tempfile::Builder::new().suffix(".wgsl").tempfile().unwrap();
    // naga has no such line, and needs none.
    write!(file, "enable subgroups;\n{text}").unwrap();
    let output = Command::new("tint").args(["--format", "wgsl"]).arg(file.path()).output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A value of each schedule, products of every format.
fn graph() -> Builder {
    let mut b = Builder::new();
    let x = table(&mut b, "x", Type::F32, &[8, 1024]);
    let exp = map(&mut b, &[ScalarType::F32], &[x], |s, p| {
        let (exp, root) = (s.op(ScalarOp::Exp, &[p[0]]).unwrap(), s.op(ScalarOp::Sqrt, &[p[0]]).unwrap());
        s.op(ScalarOp::Div, &[exp, root]).unwrap()
    });
    for op in [ScalarOp::Neg, ScalarOp::Abs, ScalarOp::RoundEven, ScalarOp::Floor] {
        map(&mut b, &[ScalarType::F32], &[exp], |s, p| s.op(op, &[p[0]]).unwrap());
    }
    let words = table(&mut b, "words", Type::I32, &[8, 1024]);
    let ids = map(&mut b, &[ScalarType::I32], &[words], |s, p| {
        let limit = s.i32(8);
        let below = s.op(ScalarOp::LtI, &[p[0], limit]).unwrap();
        s.op(ScalarOp::IdWhere, &[below, p[0]]).unwrap()
    });
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)] {
        b.reduce(ReduceKind::Sum, tree, 1, x, None);
    }
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, Some(ids));
    b.top_k(6, x, Some(ids));
    b.arg_max(x);
    b.sort_ids(ids);
    let column = b.cut(ids, 1, 0, 1);
    let columns = b.columns();
    let column = b.reshape(column, &[columns]);
    b.gather(0, 0, x, column);
    let codes = b.quantise(x);
    for format in Format::ALL.into_iter().filter(|format| !format.is_integer()) {
        let w = b.add_weight(format.name(), Type::weight(format), &[5, 1024]);
        let w = b.weight(w);
        b.product(Tree::Lanes(128), x, w, None);
        b.widen(w);
        if format.takes_q8() {
            b.product(Tree::BLOCKS, codes, w, None);
        }
    }
    b
}

fn table(b: &mut Builder, name: &str, ty: Type, extents: &[u32]) -> Value {
    let count: u32 = extents.iter().product();
    let constant: Constant = b.add_constant(name, ty, extents, &vec![0; count as usize]);
    let table = b.constant(constant);
    let (start, columns) = (b.n(0), b.columns());
    b.slice(table, 0, start, columns)
}

fn map(
    b: &mut Builder,
    types: &[ScalarType],
    args: &[Value],
    make: impl FnOnce(&mut Scalars, &[Scalar]) -> Scalar,
) -> Value {
    let params: Vec<Scalar> = (0..).zip(types).map(|(i, &ty)| b.scalars.param(i, ty)).collect();
    let result = make(&mut b.scalars, &params);
    let body = b.scalars.body(types, result).unwrap();
    b.map(body, args)
}

/// Neighbours that are independent and have the same lanes, side by side.
fn beside(kernels: &[Kernel]) -> Vec<Kernel> {
    let writes = |kernel: &Kernel, other: &Kernel| {
        let mut written = kernel.arguments().filter(|(_, _, row)| row.access != Access::Read);
        written.any(|(_, source, _)| other.arguments().any(|(_, used, _)| used == source))
    };
    let pairs =
        kernels.windows(2).filter(|k| k[0].lanes == k[1].lanes && !writes(&k[0], &k[1]) && !writes(&k[1], &k[0]));
    pairs.enumerate().map(|(i, pair)| side_by_side(&format!("beside.{i}"), pair.to_vec()).unwrap()).collect()
}

/// The texts of all kernels of the graph, alone and side by side.
fn texts() -> Vec<String> {
    let tables = graph().finish();
    let graph = tables.view();
    let bounds = Bounds { context: 64, columns: 8, outputs: 8 };
    let is_stored = |v: &Value| match graph.op(*v) {
        Op::Weight | Op::Const => false,
        op => !op.is_view() && graph.ty(*v).format().is_none(),
    };
    let slot = |value| SlotRow { value, within: value, offset: 0, bytes: 0 };
    let slots: Vec<SlotRow> = graph.values().filter(is_stored).map(slot).collect();
    let layouts = layouts(&graph, bounds, &slots);
    let scales = vec![ScaleBlocks { rows: 2, cols: 32 }; graph.weights.len()];
    let scene = Scene { graph, bounds, slots: &slots, layouts: &layouts, scales: &scales };
    let mut kernels: Vec<_> = graph.values().flat_map(|v| kernels(&scene, v).unwrap()).collect();
    let together = beside(&kernels);
    assert!(
        together.iter().filter(|kernel| kernel.stmts.iter().any(|stmt| matches!(stmt, Stmt::Barrier { .. }))).count()
            > 3
    );
    kernels.extend(together);
    let block = StepBlock::of(&kernels);
    kernels.iter().map(|kernel| wgsl::emit(kernel, &block).unwrap()).collect()
}

#[test]
fn tint_takes_every_kernel() {
    if !is_installed() {
        return;
    }
    let texts = texts();
    assert!(texts.len() > 40);
    assert!(texts.iter().any(|text| text.contains("subgroupShuffleXor")));
    for text in texts {
        assert_eq!(complaints(&text), None, "{text}");
    }
}

/// `tint` refuses what naga does not see: a barrier that only some lanes reach, and a shuffle of them.
#[test]
fn tint_refuses_lanes_that_part() {
    if !is_installed() {
        return;
    }
    let kernel = |body: &str| {
        format!(
            "var<workgroup> cells: array<u32, 64>;\n@compute @workgroup_size(64)\n\
             fn kernel(@builtin(local_invocation_index) lane: u32) {{\n    {body}\n}}\n"
        )
    };
    assert_eq!(complaints(&kernel("cells[lane] = subgroupShuffleXor(lane, 1u); workgroupBarrier();")), None);
    let parted = complaints(&kernel("if (lane < 3u) { workgroupBarrier(); }")).unwrap();
    assert!(parted.contains("uniform control flow"), "{parted}");
    let parted = complaints(&kernel("if (lane < 3u) { cells[lane] = subgroupShuffleXor(lane, 1u); }")).unwrap();
    assert!(parted.contains("uniform control flow"), "{parted}");
}
