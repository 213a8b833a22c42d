//! GGUF metadata values.

use ds4_ir::diagnostic::{Diagnostic, codes};

use super::cursor::Cursor;

/// Deepest nesting of arrays that is read. Files in use have none.
const MAX_DEPTH: u32 = 4;

/// A metadata value. Integers are widened: their stored width means nothing to a reader.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// u8, u16, u32 or u64.
    Unsigned(u64),
    /// i8, i16, i32 or i64.
    Signed(i64),
    /// f32.
    F32(f32),
    /// f64.
    F64(f64),
    /// bool.
    Bool(bool),
    /// UTF-8 string.
    Text(String),
    /// Array.
    List(List),
}

/// An array of one type.
#[derive(Clone, PartialEq, Debug)]
pub enum List {
    /// Unsigned integers.
    Unsigned(Vec<u64>),
    /// Signed integers.
    Signed(Vec<i64>),
    /// f32.
    F32(Vec<f32>),
    /// f64.
    F64(Vec<f64>),
    /// bool.
    Bool(Vec<bool>),
    /// Strings.
    Text(Vec<String>),
    /// Arrays of arrays.
    List(Vec<List>),
}

/// The value types of GGUF, by number.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Type {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    Text = 8,
    List = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl Type {
    const ALL: [Type; 13] = [
        Type::U8,
        Type::I8,
        Type::U16,
        Type::I16,
        Type::U32,
        Type::I32,
        Type::F32,
        Type::Bool,
        Type::Text,
        Type::List,
        Type::U64,
        Type::I64,
        Type::F64,
    ];

    /// Fewest bytes that a value takes.
    fn least(self) -> u64 {
        match self {
            Type::U8 | Type::I8 | Type::Bool => 1,
            Type::U16 | Type::I16 => 2,
            Type::U32 | Type::I32 | Type::F32 => 4,
            Type::Text | Type::U64 | Type::I64 | Type::F64 => 8,
            Type::List => 12,
        }
    }
}

impl Value {
    /// Reads the type and the value of `key`.
    pub(super) fn read(cursor: &mut Cursor, key: &str) -> Result<Value, Diagnostic> {
        Ok(match read_type(cursor, key)? {
            kind @ (Type::U8 | Type::U16 | Type::U32 | Type::U64) => Value::Unsigned(read_unsigned(cursor, kind)?),
            kind @ (Type::I8 | Type::I16 | Type::I32 | Type::I64) => Value::Signed(read_signed(cursor, kind)?),
            Type::F32 => Value::F32(f32::from_bits(cursor.u32(VALUE)?)),
            Type::F64 => Value::F64(f64::from_bits(cursor.u64(VALUE)?)),
            Type::Bool => Value::Bool(read_bool(cursor, key)?),
            Type::Text => Value::Text(cursor.string(VALUE)?),
            Type::List => Value::List(List::read(cursor, key, MAX_DEPTH)?),
        })
    }

    /// What the value is, for messages: `5`, `"yarn"`, `an array of 3`.
    pub fn describe(&self) -> String {
        match self {
            Value::Unsigned(v) => v.to_string(),
            Value::Signed(v) => v.to_string(),
            Value::F32(v) => format!("{v:?}"),
            Value::F64(v) => format!("{v:?}"),
            Value::Bool(v) => v.to_string(),
            Value::Text(v) => format!("{:?}", v.chars().take(60).collect::<String>()),
            Value::List(v) => format!("an array of {}", v.len()),
        }
    }
}

impl List {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            List::Unsigned(v) => v.len(),
            List::Signed(v) => v.len(),
            List::F32(v) => v.len(),
            List::F64(v) => v.len(),
            List::Bool(v) => v.len(),
            List::Text(v) => v.len(),
            List::List(v) => v.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(cursor: &mut Cursor, key: &str, depth: u32) -> Result<List, Diagnostic> {
        if depth == 0 {
            let message = format!("the arrays of key {key} are nested too deeply");
            return Err(
                bad(cursor, message).wanted(format!("at most {MAX_DEPTH} levels"), format!("more than {MAX_DEPTH}"))
            );
        }
        let kind = read_type(cursor, key)?;
        let count = cursor.count(kind.least(), "the length of an array")?;
        Ok(match kind {
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => {
                List::Unsigned(many(count, || read_unsigned(cursor, kind))?)
            }
            Type::I8 | Type::I16 | Type::I32 | Type::I64 => List::Signed(many(count, || read_signed(cursor, kind))?),
            Type::F32 => List::F32(many(count, || Ok(f32::from_bits(cursor.u32(VALUE)?)))?),
            Type::F64 => List::F64(many(count, || Ok(f64::from_bits(cursor.u64(VALUE)?)))?),
            Type::Bool => List::Bool(many(count, || read_bool(cursor, key))?),
            Type::Text => List::Text(many(count, || cursor.string(VALUE))?),
            Type::List => List::List(many(count, || List::read(cursor, key, depth - 1))?),
        })
    }
}

const VALUE: &str = "a metadata value";

fn many<T>(count: usize, mut read: impl FnMut() -> Result<T, Diagnostic>) -> Result<Vec<T>, Diagnostic> {
    // No reservation by `count`: what is reserved must have been read.
    let mut out = Vec::new();
    for _ in 0..count {
        out.push(read()?);
    }
    Ok(out)
}

fn bad(cursor: &Cursor, message: String) -> Diagnostic {
    let item = format!("byte {}", cursor.position());
    cursor.input.error(codes::METADATA, message, item)
}

fn read_type(cursor: &mut Cursor, key: &str) -> Result<Type, Diagnostic> {
    let number = cursor.u32("the type of a metadata value")?;
    Type::ALL.get(number as usize).copied().ok_or_else(|| {
        bad(cursor, format!("key {key} has a value of unknown type")).wanted("a type from 0 to 12", number)
    })
}

fn read_unsigned(cursor: &mut Cursor, kind: Type) -> Result<u64, Diagnostic> {
    Ok(match kind {
        Type::U8 => cursor.u8(VALUE)?.into(),
        Type::U16 => cursor.u16(VALUE)?.into(),
        Type::U32 => cursor.u32(VALUE)?.into(),
        _ => cursor.u64(VALUE)?,
    })
}

fn read_signed(cursor: &mut Cursor, kind: Type) -> Result<i64, Diagnostic> {
    Ok(match kind {
        Type::I8 => (cursor.u8(VALUE)? as i8).into(),
        Type::I16 => (cursor.u16(VALUE)? as i16).into(),
        Type::I32 => (cursor.u32(VALUE)? as i32).into(),
        _ => cursor.u64(VALUE)? as i64,
    })
}

fn read_bool(cursor: &mut Cursor, key: &str) -> Result<bool, Diagnostic> {
    match cursor.u8(VALUE)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(bad(cursor, format!("key {key} has a malformed bool")).wanted("0 or 1", other)),
    }
}
