//! The contract's arithmetic as expressions: the functions of [`ds4_ir::numerics`] are emitted from their one definition.

use ds4_ir::numerics::Arith;

use super::builder::{Builder, Handle, Number, Truth, Word};
use super::operator::Operator;

macro_rules! operations {
    ($($name:ident = $op:ident ($($arg:ident: $ty:ident),*) -> $result:ident;)*) => {$(
        fn $name(&self, $($arg: $ty),*) -> $result {
            self.apply(Operator::$op, &[$($arg.expr()),*])
        }
    )*};
}

impl Arith for Builder {
    type F = Number;
    type I = Word;
    type B = Truth;

    fn float(&self, bits: u32) -> Number {
        self.number(f32::from_bits(bits))
    }
    fn int(&self, word: u32) -> Word {
        self.word(word)
    }
    fn from_bits(&self, word: Word) -> Number {
        self.apply(Operator::FromBits, &[word.expr()])
    }

    operations! {
        add = Add(x: Number, y: Number) -> Number;
        sub = Sub(x: Number, y: Number) -> Number;
        mul = Mul(x: Number, y: Number) -> Number;
        div = Div(x: Number, y: Number) -> Number;
        sqrt = Sqrt(x: Number) -> Number;
        neg = Neg(x: Number) -> Number;
        abs = Abs(x: Number) -> Number;
        floor = Floor(x: Number) -> Number;
        ceil = Ceil(x: Number) -> Number;
        trunc = Trunc(x: Number) -> Number;
        round_even = RoundEven(x: Number) -> Number;
        bits = Bits(x: Number) -> Word;
        float_of = FloatOf(x: Word) -> Number;
        int_of = IntOf(x: Number) -> Word;
        add_int = AddInt(x: Word, y: Word) -> Word;
        sub_int = SubInt(x: Word, y: Word) -> Word;
        mul_int = MulInt(x: Word, y: Word) -> Word;
        and = And(x: Word, y: Word) -> Word;
        or = Or(x: Word, y: Word) -> Word;
        xor = Xor(x: Word, y: Word) -> Word;
        shl = Shl(x: Word, count: Word) -> Word;
        shr = Shr(x: Word, count: Word) -> Word;
        sar = Sar(x: Word, count: Word) -> Word;
        less = Less(x: Number, y: Number) -> Truth;
        equal = Equal(x: Number, y: Number) -> Truth;
        less_int = LessInt(x: Word, y: Word) -> Truth;
        below = Below(x: Word, y: Word) -> Truth;
        equal_int = EqualInt(x: Word, y: Word) -> Truth;
        both = Both(x: Truth, y: Truth) -> Truth;
        either = Either(x: Truth, y: Truth) -> Truth;
        not = Not(x: Truth) -> Truth;
        select = Select(c: Truth, yes: Number, no: Number) -> Number;
        select_int = SelectInt(c: Truth, yes: Word, no: Word) -> Word;
    }
}
