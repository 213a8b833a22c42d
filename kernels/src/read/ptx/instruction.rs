//! What instructions mean.

use crate::kernel::Operator;

/// The operator of an instruction whose operands stand in the operator's order, each of the operator's type.
pub(super) fn operator(name: &str) -> Option<Operator> {
    use Operator::*;
    Some(match name {
        "add.rn.f32" => Add,
        "sub.rn.f32" => Sub,
        "mul.rn.f32" => Mul,
        "div.rn.f32" => Div,
        "sqrt.rn.f32" => Sqrt,
        "cvt.rmi.f32.f32" => Floor,
        "cvt.rpi.f32.f32" => Ceil,
        "cvt.rzi.f32.f32" => Trunc,
        "cvt.rni.f32.f32" => RoundEven,
        "cvt.rn.f32.s32" => FloatOf,
        "cvt.rzi.s32.f32" => IntOf,
        "add.u32" => AddInt,
        "sub.u32" => SubInt,
        "mul.lo.u32" => MulInt,
        "div.u32" => DivInt,
        "rem.u32" => RemInt,
        "and.b32" => And,
        "or.b32" => Or,
        "xor.b32" => Xor,
        "shl.b32" => Shl,
        "shr.u32" => Shr,
        "shr.s32" => Sar,
        "setp.lt.f32" => Less,
        "setp.eq.f32" => Equal,
        "setp.lt.s32" => LessInt,
        "setp.lt.u32" => Below,
        "setp.eq.b32" => EqualInt,
        "and.pred" => Both,
        "or.pred" => Either,
        "not.pred" => Not,
        _ => return None,
    })
}

/// What is wrong with an instruction that no table has.
pub(super) fn refusal(name: &str) -> String {
    let rounded = ["add", "sub", "mul", "div", "sqrt"].into_iter().find(|op| name == format!("{op}.f32"));
    match rounded {
        Some(op) => format!("`{name}` lacks `.rn`: without it a compiler may contract it; wanted `{op}.rn.f32`"),
        None => format!("`{name}` is no instruction of emitted text"),
    }
}
