//! Scalar bodies as expressions.

use ds4_ir::numerics::{Arith, functions, order, round, trigonometry};
use ds4_ir::scalar::{Scalar, param_of, reachable};
use ds4_ir::{Body, ScalarOp};

use crate::kernel::{Builder, Handle, MaskedId, Number, Truth, Word};

use super::scene::{Refusal, Scene};

/// A value of a body.
#[derive(Clone, Copy)]
pub(crate) enum Element {
    /// A float.
    F(Number),
    /// An i32.
    I(Word),
    /// A truth value.
    B(Truth),
    /// An id.
    Id(MaskedId),
}

/// A parameter of a body. Of an id a body asks only whether it is present; its branch has been made by then.
#[derive(Clone, Copy)]
pub(crate) enum Param {
    /// A float.
    F(Number),
    /// An i32.
    I(Word),
    /// Whether the id is not masked.
    Present(Truth),
}

/// What a body gives for these parameters.
///
/// The functions of the contract are emitted from their one definition; each node that has a definition of its own is named,
/// so that it is computed once.
pub(crate) fn body(scene: &Scene<'_>, b: &Builder, body: Body, params: &[Param]) -> Result<Element, Refusal> {
    let graph = scene.graph;
    let result = graph.bodies[body.0 as usize].result;
    let order = reachable(graph.scalars, result);
    let mut values: Vec<Option<Element>> = Vec::with_capacity(order.len());
    for x in &order {
        let row = &graph.scalars[x.0 as usize];
        let op = ScalarOp::from_number(row.op).ok_or_else(|| malformed("an unknown scalar operation"))?;
        let operand = |i: usize| {
            let place = order.binary_search(&Scalar(row.words[i])).ok()?;
            values.get(place).copied().flatten()
        };
        values.push(match op {
            ScalarOp::Param => {
                let (index, _) = param_of(row.words[0]).ok_or_else(|| malformed("an unknown parameter"))?;
                match params.get(index as usize).ok_or_else(|| malformed("a missing parameter"))? {
                    Param::F(x) => Some(Element::F(*x)),
                    Param::I(x) => Some(Element::I(*x)),
                    Param::Present(x) => Some(Element::B(*x)),
                }
            }
            ScalarOp::F32 => Some(Element::F(b.float(row.words[0]))),
            ScalarOp::I32 => Some(Element::I(b.word(row.words[0]))),
            _ => Some(apply(b, op, operand).ok_or_else(|| malformed("a scalar operation on wrong types"))?),
        });
    }
    values.pop().flatten().ok_or_else(|| malformed("an empty body"))
}

fn malformed(what: &str) -> Refusal {
    Refusal::Unsupported(format!("{what} in a body"))
}

/// One operation; `None` if an operand has the wrong type.
fn apply(b: &Builder, op: ScalarOp, operand: impl Fn(usize) -> Option<Element>) -> Option<Element> {
    use ScalarOp::*;
    let f = |i: usize| match operand(i)? {
        Element::F(x) => Some(x),
        _ => None,
    };
    let w = |i: usize| match operand(i)? {
        Element::I(x) => Some(x),
        _ => None,
    };
    let t = |i: usize| match operand(i)? {
        Element::B(x) => Some(x),
        _ => None,
    };
    let named = |name: &str, x: Number| Some(Element::F(b.name(name, x)));
    let float = |x: Number| Some(Element::F(x));
    let int = |x: Word| Some(Element::I(x));
    let truth = |x: Truth| Some(Element::B(x));
    match op {
        Param | F32 | I32 => None,
        Add => float(b.add(f(0)?, f(1)?)),
        Sub => float(b.sub(f(0)?, f(1)?)),
        Mul => float(b.mul(f(0)?, f(1)?)),
        Div => float(b.div(f(0)?, f(1)?)),
        Sqrt => float(b.sqrt(f(0)?)),
        Neg => float(b.neg(f(0)?)),
        Abs => float(b.abs(f(0)?)),
        Min => named("min", order::min(b, f(0)?, f(1)?)),
        Max => named("max", order::max(b, f(0)?, f(1)?)),
        Exp => named("exp", functions::exp(b, f(0)?)),
        Log => named("log", functions::log(b, f(0)?)),
        Log1p => named("log1p", functions::log1p(b, f(0)?)),
        Sin => named("sin", trigonometry::sin(b, f(0)?)),
        Cos => named("cos", trigonometry::cos(b, f(0)?)),
        Floor => float(b.floor(f(0)?)),
        Ceil => float(b.ceil(f(0)?)),
        Trunc => float(b.trunc(f(0)?)),
        RoundEven => float(b.round_even(f(0)?)),
        RoundF16 => named("f16", round::round_to_f16(b, f(0)?)),
        RoundBf16 => named("bf16", round::round_to_bf16(b, f(0)?)),
        RoundE4m3 => named("e4m3", round::round_to_e4m3(b, f(0)?)),
        RoundE2m1 => named("e2m1", round::round_to_e2m1(b, f(0)?)),
        SelectF32 => float(b.select(t(0)?, f(1)?, f(2)?)),
        FloatOf => float(b.rounded_float_of(w(0)?)),
        FromBits => float(b.from_bits(w(0)?)),
        ToBits => int(b.bits(order::canonical(b, f(0)?))),
        AddI => int(b.add_int(w(0)?, w(1)?)),
        SubI => int(b.sub_int(w(0)?, w(1)?)),
        MulI => int(b.mul_int(w(0)?, w(1)?)),
        DivI => int(div_down(b, w(0)?, b.constant_of(w(1)?)?)),
        RemI => {
            let (x, by) = (w(0)?, w(1)?);
            int(b.sub_int(x, b.mul_int(div_down(b, x, b.constant_of(by)?), by)))
        }
        MinI => int(b.select_int(b.less_int(w(1)?, w(0)?), w(1)?, w(0)?)),
        MaxI => int(b.select_int(b.less_int(w(0)?, w(1)?), w(1)?, w(0)?)),
        AndI => int(b.and(w(0)?, w(1)?)),
        OrI => int(b.or(w(0)?, w(1)?)),
        XorI => int(b.xor(w(0)?, w(1)?)),
        ShlI => int(b.shl(w(0)?, w(1)?)),
        ShrI => int(b.shr(w(0)?, w(1)?)),
        SarI => int(b.sar(w(0)?, w(1)?)),
        SelectI => int(b.select_int(t(0)?, w(1)?, w(2)?)),
        LtF => truth(b.less(f(0)?, f(1)?)),
        EqF => truth(b.equal(f(0)?, f(1)?)),
        LtI => truth(b.less_int(w(0)?, w(1)?)),
        EqI => truth(b.equal_int(w(0)?, w(1)?)),
        And => truth(b.both(t(0)?, t(1)?)),
        Or => truth(b.either(t(0)?, t(1)?)),
        Not => truth(b.not(t(0)?)),
        IdWhere => Some(Element::Id(b.id_where(t(0)?, w(1)?))),
        Present => truth(t(0)?),
    }
}

/// The signed quotient rounded down, from an unsigned division: a negative `x` is turned into its complement and back.
fn div_down(b: &Builder, x: Word, by: u32) -> Word {
    let sign = b.sar(x, b.word(31));
    b.xor(b.div_int(b.xor(x, sign), by), sign)
}

/// The expression of an element, for storing.
pub(crate) fn store(b: &Builder, memory: crate::kernel::Memory, index: Word, element: Element) -> Result<(), Refusal> {
    match element {
        Element::F(x) => b.store(memory, index, x),
        Element::I(x) => b.store(memory, index, x),
        Element::Id(x) => b.store(memory, index, x),
        Element::B(x) => {
            return Err(Refusal::Unsupported(format!("{:?} is a truth value and is not stored", x.expr())));
        }
    }
    Ok(())
}
