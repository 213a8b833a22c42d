//! The instruction of each operator.

use crate::kernel::Operator;

/// The instruction that sets `to` to an operator's result.
pub(super) fn operator(op: Operator, to: &str, args: &[String]) -> String {
    use Operator::*;
    let arg = |i: usize| args.get(i).map_or("", String::as_str);
    let (x, y, z) = (arg(0), arg(1), arg(2));
    let one = |name: &str| format!("{name} {to}, {x};");
    let two = |name: &str| format!("{name} {to}, {x}, {y};");
    match op {
        Add => two("add.rn.f32"),
        Sub => two("sub.rn.f32"),
        Mul => two("mul.rn.f32"),
        Div => two("div.rn.f32"),
        Sqrt => one("sqrt.rn.f32"),
        Neg => format!("xor.b32 {to}, {x}, 0x80000000;"),
        Abs => format!("and.b32 {to}, {x}, 0x7fffffff;"),
        Floor => one("cvt.rmi.f32.f32"),
        Ceil => one("cvt.rpi.f32.f32"),
        Trunc => one("cvt.rzi.f32.f32"),
        RoundEven => one("cvt.rni.f32.f32"),
        Bits | FromBits => one("mov.b32"),
        FloatOf => one("cvt.rn.f32.s32"),
        IntOf => one("cvt.rzi.s32.f32"),
        AddInt => two("add.u32"),
        SubInt => two("sub.u32"),
        MulInt => two("mul.lo.u32"),
        DivInt => two("div.u32"),
        RemInt => two("rem.u32"),
        And => two("and.b32"),
        Or => two("or.b32"),
        Xor => two("xor.b32"),
        Shl => two("shl.b32"),
        Shr => two("shr.u32"),
        Sar => two("shr.s32"),
        DotBytes => format!("dp4a.s32.s32 {to}, {x}, {y}, 0;"),
        Less => two("setp.lt.f32"),
        Equal => two("setp.eq.f32"),
        LessInt => two("setp.lt.s32"),
        Below => two("setp.lt.u32"),
        EqualInt => two("setp.eq.b32"),
        Both => two("and.pred"),
        Either => two("or.pred"),
        Not => one("not.pred"),
        Select => format!("selp.f32 {to}, {y}, {z}, {x};"),
        SelectInt => format!("selp.b32 {to}, {y}, {z}, {x};"),
        IdWhere => format!("selp.b32 {to}, {y}, {}, {x};", word(u32::MAX)),
        Float | Int | Truth | Local | Extent | Group | Lane | Masked => String::new(),
    }
}

/// A constant float, by its bits.
pub(super) fn float(bits: u32) -> String {
    format!("0f{bits:08X}")
}

/// A constant word.
pub(super) fn word(word: u32) -> String {
    if word < 1 << 16 { word.to_string() } else { format!("{word:#x}") }
}

/// The values of an instruction's float constants, for a reader.
pub(super) fn values(instruction: &str) -> Option<String> {
    let operands = instruction.trim_end_matches(';').split([' ', ',']);
    let bits = operands.filter_map(|operand| u32::from_str_radix(operand.strip_prefix("0f")?, 16).ok());
    let values: Vec<String> = bits.map(|bits| format!("{:?}", f32::from_bits(bits))).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
