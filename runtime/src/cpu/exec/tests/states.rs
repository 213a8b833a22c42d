//! States over several steps.

use ds4_ir::{Builder, DimOp, ScalarOp, ScalarType, Tree, Type};

use super::Case;
use super::maps::{floats, masked, unary};

#[test]
fn a_ring_is_written_and_read() {
    let mut b = Builder::new();
    let (t, d, window) = (b.columns(), b.n(40), 16);
    let state = b.add_state("ring", Type::F32, &[window, 40]);
    let position = b.dims.dim(DimOp::Position);
    let start = b.extent(position);
    let one = b.n(1);
    let start = b.reshape(start, &[one]);
    let start = b.broadcast(start, &[t]);
    let i = b.iota(&[t], 0);
    let (p, q) = (b.scalars.param(0, ScalarType::I32), b.scalars.param(1, ScalarType::I32));
    let size = b.scalars.i32(window as i32);
    let sum = b.scalars.op(ScalarOp::AddI, &[p, q]).unwrap();
    let place = b.scalars.op(ScalarOp::RemI, &[sum, size]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32; 2], place).unwrap();
    let places = b.map(body, &[i, start]);
    let ids = masked(&mut b, places);
    let table = floats(&mut b, "rows", &[16, 40]);
    let rows = b.gather(0, 0, table, places);
    let old = b.read(state);
    let before = unary(&mut b, ScalarOp::Neg, old);
    let new = b.write(old, ids, rows);
    let seen = b.gather(0, 0, new, ids);
    let query = b.reshape(rows, &[t, one, d]);
    let keys = b.reshape(seen, &[t, one, d]);
    let dots = b.product(Tree::Lanes(32), query, keys, None);
    for (name, v) in [("before", before), ("dots", dots), ("places", places)] {
        b.tap(name, v);
        if name != "dots" {
            b.output(name, v);
        }
    }
    Case::new(b, 64, 5).check(&[1, 5, 3, 5, 2, 4, 5]);
}
