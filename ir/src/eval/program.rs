//! Bodies: what a `map` does to one element.

use super::tensor::{MASKED, canonical_bits};
use crate::numerics;
use crate::scalar::{BodyRow, ScalarOp, ScalarRow, operands, param_of, reachable};

/// A body as a list of nodes, operands before users.
pub(super) struct Program {
    nodes: Vec<Node>,
}

/// A node: for `param` its index, for constants the word, else the places of its operands in the list.
struct Node {
    op: ScalarOp,
    words: [u32; 3],
}

impl Program {
    /// The program of a verified body.
    pub fn of(rows: &[ScalarRow], body: &BodyRow) -> Program {
        let order = reachable(rows, body.result);
        let place = |x: u32| order.partition_point(|s| s.0 < x) as u32;
        let node = |row: &ScalarRow| {
            let op = ScalarOp::from_number(row.op).expect("a verified node has a known operation");
            let mut words = row.words;
            if op == ScalarOp::Param {
                words[0] = param_of(row.words[0]).expect("a verified parameter has a type").0;
            }
            for (word, &x) in words.iter_mut().zip(operands(row)) {
                *word = place(x);
            }
            Node { op, words }
        };
        Program { nodes: order.iter().map(|x| node(&rows[x.0 as usize])).collect() }
    }

    /// The body's result on these parameters; `scratch` is a place for the nodes' values.
    pub fn run(&self, params: &[u32], scratch: &mut Vec<u32>) -> Result<u32, String> {
        scratch.clear();
        for Node { op, words } in &self.nodes {
            let word = match op {
                ScalarOp::Param => params[words[0] as usize],
                ScalarOp::F32 | ScalarOp::I32 => words[0],
                _ => {
                    let operand = |i: usize| scratch.get(words[i] as usize).copied().unwrap_or(0);
                    apply(*op, operand(0), operand(1), operand(2))?
                }
            };
            scratch.push(word);
        }
        // The result is the last node: every other one is an operand, hence earlier.
        Ok(scratch.last().copied().unwrap_or(0))
    }
}

/// One operation on words: f32 bits, i32, 0 or 1, ids.
pub(crate) fn apply(op: ScalarOp, a: u32, b: u32, c: u32) -> Result<u32, String> {
    use ScalarOp::*;
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let (i, j) = (a as i32, b as i32);
    let float = |value: f32| value.to_bits();
    let int = |value: i32| value as u32;
    Ok(match op {
        Param | F32 | I32 => a,
        Add => float(x + y),
        Sub => float(x - y),
        Mul => float(x * y),
        Div => float(x / y),
        Sqrt => float(x.sqrt()),
        Neg => a ^ 0x8000_0000,
        Abs => a & 0x7fff_ffff,
        Min => float(numerics::min(x, y)),
        Max => float(numerics::max(x, y)),
        Exp => float(numerics::exp(x)),
        Log => float(numerics::log(x)),
        Log1p => float(numerics::log1p(x)),
        Sin => float(numerics::sin(x)),
        Cos => float(numerics::cos(x)),
        Floor => float(x.floor()),
        Ceil => float(x.ceil()),
        Trunc => float(x.trunc()),
        RoundEven => float(x.round_ties_even()),
        RoundF16 => float(numerics::round_to_f16(x)),
        RoundBf16 => float(numerics::round_to_bf16(x)),
        RoundE4m3 => float(numerics::round_to_e4m3(x)),
        RoundE2m1 => float(numerics::round_to_e2m1(x)),
        SelectF32 | SelectI => [c, b][usize::from(a != 0)],
        FloatOf => float(i as f32),
        FromBits => a,
        ToBits => canonical_bits(a),
        AddI => int(i.wrapping_add(j)),
        SubI => int(i.wrapping_sub(j)),
        MulI => int(i.wrapping_mul(j)),
        // The divisor is a positive constant: the quotient rounded down, the remainder never negative.
        DivI => int(i.div_euclid(j)),
        RemI => int(i.rem_euclid(j)),
        MinI => int(i.min(j)),
        MaxI => int(i.max(j)),
        AndI => a & b,
        OrI => a | b,
        XorI => a ^ b,
        ShlI => a << b,
        ShrI => a >> b,
        SarI => int(i >> b),
        LtF => (x < y).into(),
        EqF => (x == y).into(),
        LtI => (i < j).into(),
        EqI => (i == j).into(),
        And => a & b,
        Or => a | b,
        Not => 1 - a,
        IdWhere if a == 0 => MASKED,
        IdWhere if j < 0 => return Err(format!("`id_where` makes an id of {j}")),
        IdWhere => b,
        Present => (a != MASKED).into(),
    })
}
