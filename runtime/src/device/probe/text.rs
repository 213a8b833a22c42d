//! The contract's arithmetic as WGSL text: an instance of [`Arith`] that writes one `let` for each operation.
//!
//! It follows the rules of strict emission: zeros and numbers that are not finite come from a uniform, comparisons and
//! signs are taken on bits, and the square root is the one of the prelude.

use std::cell::{Cell, RefCell};

use ds4_ir::numerics::Arith;

/// A named value of the text.
#[derive(Clone, Copy, Debug)]
pub struct Name(&'static str, u32);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The kernel's own arguments have no number.
            Name(name, u32::MAX) => f.write_str(name),
            Name(letter, number) => write!(f, "{letter}{number}"),
        }
    }
}

/// The arguments of a kernel's body.
pub(super) const ARGUMENTS: [Name; 3] = [Name("a", u32::MAX), Name("b", u32::MAX), Name("c", u32::MAX)];

/// A body in the making.
#[derive(Default)]
pub struct Text {
    lines: RefCell<String>,
    count: Cell<u32>,
}

impl Text {
    /// The lines that were written.
    pub(super) fn into_lines(self) -> String {
        self.lines.into_inner()
    }

    /// Letters are such that no name is a type: `v` floats, `w` words, `b` truth values.
    fn named(&self, letter: &'static str, expression: std::fmt::Arguments<'_>) -> Name {
        let name = Name(letter, self.count.replace(self.count.get() + 1));
        *self.lines.borrow_mut() += &format!("    let {name} = {expression};\n");
        name
    }
}

/// Methods that write one expression each: letter of the result, then name, arguments and format.
macro_rules! expressions {
    ($($letter:literal $name:ident($($argument:ident),*) $format:literal;)*) => {
        $(fn $name(&self, $($argument: Name),*) -> Name {
            self.named($letter, format_args!($format))
        })*
    };
}

impl Arith for Text {
    type F = Name;
    type I = Name;
    type B = Name;

    fn float(&self, bits: u32) -> Name {
        let magnitude = bits & 0x7fff_ffff;
        match magnitude == 0 || magnitude >= 0x7f80_0000 {
            true => self.named("v", format_args!("bitcast<f32>({bits:#010x}u ^ opaque.x)")),
            false => self.named("v", format_args!("bitcast<f32>({bits:#010x}u)")),
        }
    }

    fn int(&self, word: u32) -> Name {
        self.named("w", format_args!("bitcast<i32>({word:#010x}u)"))
    }

    expressions! {
        "v" add(x, y) "{x} + {y}";
        "v" sub(x, y) "{x} - {y}";
        "v" mul(x, y) "{x} * {y}";
        "v" div(x, y) "{x} / {y}";
        "v" sqrt(x) "square_root({x})";
        "v" neg(x) "negated({x})";
        "v" abs(x) "magnitude({x})";
        "v" floor(x) "floor({x})";
        "v" ceil(x) "ceil({x})";
        "v" trunc(x) "trunc({x})";
        "v" round_even(x) "round({x})";
        "w" bits(x) "bitcast<i32>({x})";
        "v" from_bits(word) "bitcast<f32>({word})";
        "v" float_of(word) "f32({word})";
        "w" int_of(x) "i32({x})";
        "w" add_int(x, y) "{x} + {y}";
        "w" sub_int(x, y) "{x} - {y}";
        "w" mul_int(x, y) "{x} * {y}";
        "w" and(x, y) "{x} & {y}";
        "w" or(x, y) "{x} | {y}";
        "w" xor(x, y) "{x} ^ {y}";
        "w" shl(x, count) "{x} << bitcast<u32>({count})";
        "w" shr(x, count) "bitcast<i32>(bitcast<u32>({x}) >> bitcast<u32>({count}))";
        "w" sar(x, count) "{x} >> bitcast<u32>({count})";
        "b" less(x, y) "is_less({x}, {y})";
        "b" equal(x, y) "is_equal({x}, {y})";
        "b" less_int(x, y) "{x} < {y}";
        "b" below(x, y) "bitcast<u32>({x}) < bitcast<u32>({y})";
        "b" equal_int(x, y) "{x} == {y}";
        "b" both(x, y) "{x} && {y}";
        "b" either(x, y) "{x} || {y}";
        "b" not(x) "!{x}";
        "v" select(c, yes, no) "select({no}, {yes}, {c})";
        "w" select_int(c, yes, no) "select({no}, {yes}, {c})";
    }
}
