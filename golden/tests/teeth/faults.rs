//! Faulty arithmetic: domains of the kernel machine that differ from the contract in one thing, as compilers and devices do.

use std::marker::PhantomData;

use ds4_ir::numerics::{Arith, Concrete};
use ds4_kernels::machine::Domain;

/// A float, and the factors of which it is the rounded product, if it was just made so.
#[derive(Clone, Copy)]
pub struct Num {
    value: f32,
    product: Option<[f32; 2]>,
}

impl From<f32> for Num {
    fn from(value: f32) -> Num {
        Num { value, product: None }
    }
}

/// What a faulty arithmetic does in another way. What is not named here is right.
pub trait Fault: Copy {
    fn add(x: Num, y: Num) -> f32 {
        x.value + y.value
    }
    fn sub(x: Num, y: Num) -> f32 {
        x.value - y.value
    }
    fn mul(x: Num, y: Num) -> f32 {
        x.value * y.value
    }
    fn div(x: f32, y: f32) -> f32 {
        x / y
    }
    fn sqrt(x: f32) -> f32 {
        x.sqrt()
    }
    fn neg(x: f32) -> f32 {
        -x
    }
    fn round_even(x: f32) -> f32 {
        x.round_ties_even()
    }
    fn floor(x: f32) -> f32 {
        x.floor()
    }
    fn less(x: f32, y: f32) -> bool {
        x < y
    }
    fn equal(x: f32, y: f32) -> bool {
        x == y
    }
    fn float_of(x: i32) -> f32 {
        x as f32
    }
    fn sar(x: i32, count: i32) -> i32 {
        x.wrapping_shr(count as u32)
    }
}

/// Products are fused into sums that take them. Products that a kernel stored are fused as well where another loads them,
/// which no compiler does; no case has one but `map`'s, which have single kernels for what is meant.
#[derive(Clone, Copy)]
pub struct Contracted;

// the fault that is planted
fn fused(x: f32, y: f32, z: f32) -> f32 {
    x.mul_add(y, z)
}

impl Fault for Contracted {
    fn add(x: Num, y: Num) -> f32 {
        match (x.product, y.product) {
            (Some([a, b]), _) => fused(a, b, y.value),
            (_, Some([a, b])) => fused(a, b, x.value),
            _ => x.value + y.value,
        }
    }
    fn sub(x: Num, y: Num) -> f32 {
        match (x.product, y.product) {
            (Some([a, b]), _) => fused(a, b, -y.value),
            (_, Some([a, b])) => fused(-a, b, x.value),
            _ => x.value - y.value,
        }
    }
}

/// Subnormal operands and results are zeros.
#[derive(Clone, Copy)]
pub struct Flushed;

fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

impl Fault for Flushed {
    fn add(x: Num, y: Num) -> f32 {
        flushed(flushed(x.value) + flushed(y.value))
    }
    fn sub(x: Num, y: Num) -> f32 {
        flushed(flushed(x.value) - flushed(y.value))
    }
    fn mul(x: Num, y: Num) -> f32 {
        flushed(flushed(x.value) * flushed(y.value))
    }
    fn div(x: f32, y: f32) -> f32 {
        flushed(flushed(x) / flushed(y))
    }
    fn sqrt(x: f32) -> f32 {
        flushed(x).sqrt()
    }
}

/// Only results are flushed, of sums and products.
#[derive(Clone, Copy)]
pub struct FlushedResults;

impl Fault for FlushedResults {
    fn add(x: Num, y: Num) -> f32 {
        flushed(x.value + y.value)
    }
    fn sub(x: Num, y: Num) -> f32 {
        flushed(x.value - y.value)
    }
    fn mul(x: Num, y: Num) -> f32 {
        flushed(x.value * y.value)
    }
}

/// Quotients by the reciprocal, roots by the reciprocal root.
#[derive(Clone, Copy)]
pub struct Approximate;

impl Fault for Approximate {
    fn div(x: f32, y: f32) -> f32 {
        x * (1.0 / y)
    }
    fn sqrt(x: f32) -> f32 {
        x * (1.0 / x.sqrt())
    }
}

/// Rounded towards zero.
#[derive(Clone, Copy)]
pub struct Truncated;

fn truncated(exact: f64) -> f32 {
    let near = exact as f32;
    match f64::from(near).abs() > exact.abs() && near.is_finite() {
        true => f32::from_bits(near.to_bits() - 1),
        false => near,
    }
}

impl Fault for Truncated {
    fn add(x: Num, y: Num) -> f32 {
        truncated(f64::from(x.value) + f64::from(y.value))
    }
    fn sub(x: Num, y: Num) -> f32 {
        truncated(f64::from(x.value) - f64::from(y.value))
    }
    fn mul(x: Num, y: Num) -> f32 {
        truncated(f64::from(x.value) * f64::from(y.value))
    }
    fn div(x: f32, y: f32) -> f32 {
        truncated(f64::from(x) / f64::from(y))
    }
    fn sqrt(x: f32) -> f32 {
        truncated(f64::from(x).sqrt())
    }
    fn float_of(x: i32) -> f32 {
        truncated(f64::from(x))
    }
}

/// Operands of differences, quotients and comparisons are exchanged.
#[derive(Clone, Copy)]
pub struct Exchanged;

impl Fault for Exchanged {
    fn sub(x: Num, y: Num) -> f32 {
        y.value - x.value
    }
    fn div(x: f32, y: f32) -> f32 {
        y / x
    }
    fn less(x: f32, y: f32) -> bool {
        y < x
    }
}

/// There is no -0.
#[derive(Clone, Copy)]
pub struct Unsigned;

impl Fault for Unsigned {
    fn add(x: Num, y: Num) -> f32 {
        x.value + y.value + 0.0
    }
    fn sub(x: Num, y: Num) -> f32 {
        x.value - y.value + 0.0
    }
    fn mul(x: Num, y: Num) -> f32 {
        x.value * y.value + 0.0
    }
    fn neg(x: f32) -> f32 {
        0.0 - x
    }
}

/// Products are reassociated: `x * (a * b)` is `(x * a) * b`.
#[derive(Clone, Copy)]
pub struct Reassociated;

impl Fault for Reassociated {
    fn mul(x: Num, y: Num) -> f32 {
        match (x.product, y.product) {
            (_, Some([a, b])) => x.value * a * b,
            (Some([a, b]), None) => a * (b * y.value),
            _ => x.value * y.value,
        }
    }
}

/// Ties are rounded away from zero, and what is rounded down is rounded towards zero.
#[derive(Clone, Copy)]
pub struct OtherIntegers;

impl Fault for OtherIntegers {
    fn round_even(x: f32) -> f32 {
        x.round()
    }
    fn floor(x: f32) -> f32 {
        x.trunc()
    }
}

/// Comparisons hold where an operand is NaN.
#[derive(Clone, Copy)]
pub struct Unordered;

impl Fault for Unordered {
    fn less(x: f32, y: f32) -> bool {
        !matches!(x.partial_cmp(&y), Some(std::cmp::Ordering::Equal | std::cmp::Ordering::Greater))
    }
    fn equal(x: f32, y: f32) -> bool {
        !matches!(x.partial_cmp(&y), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Greater))
    }
}

/// Floats are equal if their bits are.
#[derive(Clone, Copy)]
pub struct EqualBits;

impl Fault for EqualBits {
    fn equal(x: f32, y: f32) -> bool {
        x.to_bits() == y.to_bits()
    }
}

/// A right shift leaves no sign behind.
#[derive(Clone, Copy)]
pub struct LogicalShift;

impl Fault for LogicalShift {
    fn sar(x: i32, count: i32) -> i32 {
        (x as u32).wrapping_shr(count as u32) as i32
    }
}

/// Nothing is wrong.
#[derive(Clone, Copy)]
pub struct Sound;

impl Fault for Sound {}

/// The arithmetic with a fault.
#[derive(Clone, Copy)]
pub struct Faulty<R>(PhantomData<R>);

impl<R> Faulty<R> {
    pub fn new() -> Self {
        Faulty(PhantomData)
    }
}

/// Methods on words and truth values, as plain values have them.
macro_rules! sound {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {$(
        fn $name(&self, $($arg: $ty),*) -> $result {
            Concrete.$name($($arg),*)
        }
    )*};
}

impl<R: Fault> Arith for Faulty<R> {
    type F = Num;
    type I = i32;
    type B = bool;

    fn float(&self, bits: u32) -> Num {
        f32::from_bits(bits).into()
    }
    fn add(&self, x: Num, y: Num) -> Num {
        R::add(x, y).into()
    }
    fn sub(&self, x: Num, y: Num) -> Num {
        R::sub(x, y).into()
    }
    fn mul(&self, x: Num, y: Num) -> Num {
        Num { value: R::mul(x, y), product: Some([x.value, y.value]) }
    }
    fn div(&self, x: Num, y: Num) -> Num {
        R::div(x.value, y.value).into()
    }
    fn sqrt(&self, x: Num) -> Num {
        R::sqrt(x.value).into()
    }
    fn neg(&self, x: Num) -> Num {
        R::neg(x.value).into()
    }
    fn abs(&self, x: Num) -> Num {
        x.value.abs().into()
    }
    fn floor(&self, x: Num) -> Num {
        R::floor(x.value).into()
    }
    fn ceil(&self, x: Num) -> Num {
        x.value.ceil().into()
    }
    fn trunc(&self, x: Num) -> Num {
        x.value.trunc().into()
    }
    fn round_even(&self, x: Num) -> Num {
        R::round_even(x.value).into()
    }
    fn bits(&self, x: Num) -> i32 {
        x.value.to_bits() as i32
    }
    fn from_bits(&self, word: i32) -> Num {
        f32::from_bits(word as u32).into()
    }
    fn float_of(&self, word: i32) -> Num {
        R::float_of(word).into()
    }
    fn int_of(&self, x: Num) -> i32 {
        x.value as i32
    }
    fn sar(&self, x: i32, count: i32) -> i32 {
        R::sar(x, count)
    }
    fn less(&self, x: Num, y: Num) -> bool {
        R::less(x.value, y.value)
    }
    fn equal(&self, x: Num, y: Num) -> bool {
        R::equal(x.value, y.value)
    }
    fn select(&self, c: bool, yes: Num, no: Num) -> Num {
        if c { yes } else { no }
    }
    sound! {
        int(word: u32) -> i32;
        add_int(x: i32, y: i32) -> i32;
        sub_int(x: i32, y: i32) -> i32;
        mul_int(x: i32, y: i32) -> i32;
        and(x: i32, y: i32) -> i32;
        or(x: i32, y: i32) -> i32;
        xor(x: i32, y: i32) -> i32;
        shl(x: i32, count: i32) -> i32;
        shr(x: i32, count: i32) -> i32;
        less_int(x: i32, y: i32) -> bool;
        below(x: i32, y: i32) -> bool;
        equal_int(x: i32, y: i32) -> bool;
        both(x: bool, y: bool) -> bool;
        either(x: bool, y: bool) -> bool;
        not(x: bool) -> bool;
        select_int(c: bool, yes: i32, no: i32) -> i32;
    }
}

impl<R: Fault> Domain for Faulty<R> {
    fn known(&self, word: i32) -> Option<u32> {
        Some(word as u32)
    }
    fn holds(&self, truth: bool) -> Option<bool> {
        Some(truth)
    }
    fn rounded_float_of(&self, x: i32) -> Num {
        R::float_of(x).into()
    }
}
