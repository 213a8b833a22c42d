//! A domain of terms for tests: each value knows the operations that made it, as a hash of their structure.
//!
//! Equal hashes in two runs mean that both performed the same operations on the same elements of memory. Between targets,
//! what is computed from constants, lanes and coordinates alone counts as a constant ([`Terms::folding`]): they are free in
//! how they address memory. Between two texts of one target nothing is folded, and the indices and conditions that were asked
//! for count too ([`Terms::spelled`]).

use std::cell::Cell;

use ds4_ir::numerics::{Arith, Concrete};

use crate::machine::{Cells, Domain, Numbers, Value};

use super::bench::canonical_bits;

/// The domain.
pub(super) struct Terms {
    folds: bool,
    /// The hash of what was asked for so far.
    asked: Cell<u64>,
}

/// A value with the term that made it; `None` of a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<T> {
    value: T,
    made: Option<u64>,
}

/// One hash of numbers in a row.
fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |state, word| {
        let mixed = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed ^ mixed >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
    })
}

/// A value as 32 bits; all NaN are one.
pub(super) trait Bits: Copy {
    fn word(self) -> u32;
}

impl Bits for f32 {
    fn word(self) -> u32 {
        canonical_bits(self.to_bits())
    }
}

impl Bits for i32 {
    fn word(self) -> u32 {
        self as u32
    }
}

impl Bits for bool {
    fn word(self) -> u32 {
        self.into()
    }
}

impl<T: Bits> Term<T> {
    fn word(&self) -> u32 {
        self.value.word()
    }

    /// The hash of the term.
    fn hash(self) -> u64 {
        self.made.unwrap_or_else(|| hash([0, self.value.word().into()]))
    }
}

/// The result of the operation called `name`.
fn made<T>(name: &str, value: T, operands: &[(Option<u64>, u64)]) -> Term<T> {
    let constant = operands.iter().all(|(made, _)| made.is_none());
    let words = name.bytes().map(u64::from).chain(operands.iter().map(|&(_, hash)| hash));
    Term { value, made: (!constant).then(|| hash(words)) }
}

macro_rules! operations {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($arg: Term<$ty>),*) -> Term<$result> {
            made(stringify!($name), Concrete.$name($($arg.value),*), &[$(($arg.made, $arg.hash())),*])
        }
    )*};
}

impl Terms {
    /// Constants are folded.
    pub(super) fn folding() -> Terms {
        Terms { folds: true, asked: Cell::new(0) }
    }

    /// Terms are as the text says.
    pub(super) fn spelled() -> Terms {
        Terms { folds: false, asked: Cell::new(0) }
    }

    /// The hash of all indices and conditions so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.get()
    }

    fn ask<T: Bits>(&self, term: Term<T>) -> T {
        if !self.folds {
            self.asked.set(hash([self.asked.get(), term.hash()]));
        }
        term.value
    }

    fn constant<T: Bits>(&self, value: T) -> Term<T> {
        let made = (!self.folds).then(|| hash([0, value.word().into()]));
        Term { value, made }
    }

    /// A choice; where a constant decides, it is what was chosen.
    fn choose<T: Bits>(c: Term<bool>, yes: Term<T>, no: Term<T>) -> Term<T> {
        let chosen = if c.value { yes } else { no };
        if c.made.is_none() {
            return chosen;
        }
        Term { made: Some(hash([1, c.hash(), yes.hash(), no.hash()])), ..chosen }
    }
}

impl Arith for Terms {
    type F = Term<f32>;
    type I = Term<i32>;
    type B = Term<bool>;

    fn float(&self, bits: u32) -> Term<f32> {
        self.constant(f32::from_bits(bits))
    }
    fn int(&self, word: u32) -> Term<i32> {
        self.constant(word as i32)
    }
    fn select(&self, c: Term<bool>, yes: Term<f32>, no: Term<f32>) -> Term<f32> {
        Terms::choose(c, yes, no)
    }
    fn select_int(&self, c: Term<bool>, yes: Term<i32>, no: Term<i32>) -> Term<i32> {
        Terms::choose(c, yes, no)
    }

    operations! {
        add(x: f32, y: f32) -> f32;
        sub(x: f32, y: f32) -> f32;
        mul(x: f32, y: f32) -> f32;
        div(x: f32, y: f32) -> f32;
        sqrt(x: f32) -> f32;
        neg(x: f32) -> f32;
        abs(x: f32) -> f32;
        floor(x: f32) -> f32;
        ceil(x: f32) -> f32;
        trunc(x: f32) -> f32;
        round_even(x: f32) -> f32;
        bits(x: f32) -> i32;
        from_bits(x: i32) -> f32;
        float_of(x: i32) -> f32;
        int_of(x: f32) -> i32;
        add_int(x: i32, y: i32) -> i32;
        sub_int(x: i32, y: i32) -> i32;
        mul_int(x: i32, y: i32) -> i32;
        and(x: i32, y: i32) -> i32;
        or(x: i32, y: i32) -> i32;
        xor(x: i32, y: i32) -> i32;
        shl(x: i32, y: i32) -> i32;
        shr(x: i32, y: i32) -> i32;
        sar(x: i32, y: i32) -> i32;
        less(x: f32, y: f32) -> bool;
        equal(x: f32, y: f32) -> bool;
        less_int(x: i32, y: i32) -> bool;
        below(x: i32, y: i32) -> bool;
        equal_int(x: i32, y: i32) -> bool;
        both(x: bool, y: bool) -> bool;
        either(x: bool, y: bool) -> bool;
        not(x: bool) -> bool;
    }
}

impl Domain for Terms {
    fn known(&self, word: Term<i32>) -> Option<u32> {
        Some(self.ask(word) as u32)
    }
    fn holds(&self, truth: Term<bool>) -> Option<bool> {
        Some(self.ask(truth))
    }
    fn div_int(&self, x: Term<i32>, by: u32) -> Option<Term<i32>> {
        let value = Concrete.div_int(x.value, by)?;
        Some(made("div_int", value, &[(x.made, x.hash()), (None, by.into())]))
    }
    fn rem_int(&self, x: Term<i32>, by: u32) -> Option<Term<i32>> {
        let value = Concrete.rem_int(x.value, by)?;
        Some(made("rem_int", value, &[(x.made, x.hash()), (None, by.into())]))
    }
    fn rounded_float_of(&self, x: Term<i32>) -> Term<f32> {
        made("rounded_float_of", x.value as f32, &[(x.made, x.hash())])
    }
    fn dot_bytes(&self, x: Term<i32>, y: Term<i32>) -> Term<i32> {
        made("dot_bytes", Concrete.dot_bytes(x.value, y.value), &[(x.made, x.hash()), (y.made, y.hash())])
    }
}

/// The cells of the argument with this number, each written one a leaf.
pub(super) fn leaves(argument: usize, cells: &Cells<Numbers>) -> Cells<Terms> {
    let leaf = |at: usize| Some(hash([2, argument as u64, at as u64]));
    let value = |at: usize| match cells.value(at)? {
        Value::F(value) => Some(Value::F(Term { value, made: leaf(at) })),
        Value::I(value) => Some(Value::I(Term { value, made: leaf(at) })),
        Value::B(_) => None,
    };
    Cells::of_values((0..cells.len()).map(value).collect())
}

/// The words of cells, of NaN the canonical one, with the hashes of their terms.
pub(super) fn terms(cells: &[Cells<Terms>]) -> Vec<Option<(u32, u64)>> {
    let all = cells.iter().flat_map(|cells| (0..cells.len()).map(|at| cells.value(at)));
    let term = |value: Value<Terms>| match value {
        Value::F(x) => Some((x.word(), x.hash())),
        Value::I(x) => Some((x.word(), x.hash())),
        Value::B(_) => None,
    };
    all.map(|value| value.and_then(term)).collect()
}
