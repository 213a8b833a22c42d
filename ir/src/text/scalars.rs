//! Scalar expressions as written, before their parameters have types.

use std::ops::Range;

use super::cursor::{Cursor, Read};
use super::lexer::Kind;
use super::limits;
use super::literal::Literal;
use crate::ScalarType;
use crate::diagnostic::codes;
use crate::scalar::ScalarOp;

/// A scalar expression and its place.
pub(super) struct Expression {
    pub node: Node,
    pub range: Range<usize>,
}

/// What an expression is.
pub(super) enum Node {
    /// `x0`, outside of bodies `x0:f32`.
    Param(u32, Option<ScalarType>),
    /// `0.5`, `inf`, `f32(0x3f000000)`
    F32(f32),
    /// `3`, `-3`, `0xff`
    I32(i32),
    /// `%17`: a row of the scalar table.
    Row(u32),
    /// A node of the body that has a name.
    Named(String),
    /// `add(x0, x1)`
    Op(ScalarOp, Vec<Expression>),
}

/// The nodes of a body that have names, then its result.
pub(super) struct Definition {
    pub named: Vec<(String, Range<usize>, Expression)>,
    pub result: Expression,
}

/// `{ name = expression ... expression }`
pub(super) fn block(cursor: &mut Cursor) -> Read<Definition> {
    cursor.mark(b'{')?;
    let mut named = Vec::new();
    while cursor.peek().kind == Kind::Word && cursor.peek_second().kind == Kind::Mark(b'=') {
        let token = cursor.next();
        let name = cursor.text_of(token);
        if name == "inf" || param_index(name).is_some() {
            let message = format!("`{name}` means something else, no node can have this name");
            return Err(cursor.fault(codes::TEXT_DUPLICATE, token.range(), message));
        }
        cursor.next();
        named.push((name.to_string(), token.range(), expression(cursor, 0)?));
    }
    let result = expression(cursor, 0)?;
    cursor.mark(b'}')?;
    Ok(Definition { named, result })
}

/// An expression inside `depth` operations.
pub(super) fn expression(cursor: &mut Cursor, depth: usize) -> Read<Expression> {
    let start = cursor.peek().start;
    let node = match cursor.peek().kind {
        Kind::Number => constant(cursor, false)?,
        Kind::Mark(b'-') => {
            cursor.next();
            constant(cursor, true)?
        }
        Kind::Mark(b'%') => {
            cursor.next();
            Node::Row(cursor.unsigned("a row of the scalar table")?.0)
        }
        Kind::Word => word(cursor, depth)?,
        _ => return Err(cursor.unexpected("a scalar expression")),
    };
    Ok(Expression { node, range: start..cursor.end_of_last() })
}

fn constant(cursor: &mut Cursor, is_negative: bool) -> Read<Node> {
    if is_negative && cursor.is_word("inf") {
        cursor.next();
        return Ok(Node::F32(f32::NEG_INFINITY));
    }
    let (literal, range) = cursor.literal("a constant")?;
    if let Literal::Float(value) = literal {
        return Ok(Node::F32(if is_negative { -value } else { value }));
    }
    match integer(literal, is_negative) {
        Some(value) => Ok(Node::I32(value)),
        None => Err(cursor.fault(codes::TEXT_NUMBER, range, "an integer does not fit in 32 bits")),
    }
}

/// A 32-bit integer: a decimal one in the signed range, or bits.
pub(super) fn integer(literal: Literal, is_negative: bool) -> Option<i32> {
    match literal {
        Literal::Decimal(n) if is_negative => i32::try_from(-i64::try_from(n).ok()?).ok(),
        Literal::Decimal(n) => i32::try_from(n).ok(),
        Literal::Bits(n) if !is_negative => u32::try_from(n).ok().map(|n| n as i32),
        _ => None,
    }
}

fn word(cursor: &mut Cursor, depth: usize) -> Read<Node> {
    let token = cursor.next();
    let name = cursor.text_of(token);
    if cursor.is_mark(b'(') {
        return if name == "f32" { bits(cursor) } else { operation(cursor, name, token.range(), depth) };
    }
    if name == "inf" {
        return Ok(Node::F32(f32::INFINITY));
    }
    let Some(index) = param_index(name) else {
        return Ok(Node::Named(name.into()));
    };
    if !cursor.take_mark(b':') {
        return Ok(Node::Param(index, None));
    }
    scalar_type(cursor).map(|ty| Node::Param(index, Some(ty)))
}

/// The index of `x17`.
fn param_index(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('x')?;
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|&n: &u32| is_plain && n < 1 << 24)
}

/// The name of a scalar type.
pub(super) fn scalar_type(cursor: &mut Cursor) -> Read<ScalarType> {
    let (name, range) = cursor.word("a scalar type")?;
    let types = [ScalarType::F32, ScalarType::I32, ScalarType::Bool, ScalarType::Id];
    let ty = types.into_iter().find(|ty| ty.name() == name);
    ty.ok_or_else(|| {
        let fault = cursor.unknown("scalar type", name, range);
        Box::new(fault.wanted("f32, i32 or id", name))
    })
}

/// `(0x3f800000)` behind `f32`.
fn bits(cursor: &mut Cursor) -> Read<Node> {
    cursor.mark(b'(')?;
    let (bits, _) = cursor.unsigned("the bits of a float")?;
    cursor.mark(b')')?;
    Ok(Node::F32(f32::from_bits(bits)))
}

fn operation(cursor: &mut Cursor, name: &str, range: Range<usize>, depth: usize) -> Read<Node> {
    let op = ScalarOp::ALL.iter().find(|op| op.name() == name);
    let Some(&op) = op else {
        return Err(cursor.unknown("scalar operation", name, range));
    };
    if depth >= limits::NESTING {
        let mut fault = cursor.too_large("the nesting of a scalar expression", limits::NESTING, range);
        fault.help = "name an inner node: `{ t = mul(x0, x1) add(t, 1.0) }`".into();
        return Err(fault);
    }
    cursor.mark(b'(')?;
    let mut operands = vec![expression(cursor, depth + 1)?];
    // No operation takes more than three.
    while operands.len() < 4 && cursor.take_mark(b',') {
        operands.push(expression(cursor, depth + 1)?);
    }
    cursor.mark(b')')?;
    Ok(Node::Op(op, operands))
}
