//! The values that kernels compute with.

use ds4_ir::numerics::{Arith, Concrete};

/// A domain: the contract's arithmetic, and what can be known of its words and truth values.
///
/// The default bodies build what [`Arith`] lacks from what it has, so that a domain of terms needs no operation beyond the
/// contract's.
pub trait Domain: Arith {
    /// The word, if it is known: indices, loop starts and ids must be.
    fn known(&self, word: Self::I) -> Option<u32>;
    /// The truth value, if it is known: conditions of branches must be.
    fn holds(&self, truth: Self::B) -> Option<bool>;
    /// Unsigned quotient by a positive number.
    fn div_int(&self, x: Self::I, by: u32) -> Option<Self::I> {
        Some(self.int(self.known(x)?.checked_div(by)?))
    }
    /// Unsigned remainder by a positive number.
    fn rem_int(&self, x: Self::I, by: u32) -> Option<Self::I> {
        Some(self.int(self.known(x)?.checked_rem(by)?))
    }

    /// The signed word as a float, rounded to nearest even: one rounded sum of two exact halves.
    fn rounded_float_of(&self, x: Self::I) -> Self::F {
        let upper = self.float_of(self.sar(x, self.int(16)));
        let lower = self.float_of(self.and(x, self.int(0xffff)));
        self.add(self.mul(upper, self.float(65536f32.to_bits())), lower)
    }

    /// The sum of the products of four pairs of signed bytes.
    fn dot_bytes(&self, x: Self::I, y: Self::I) -> Self::I {
        let byte = |w: Self::I, j: u32| self.sar(self.shl(w, self.int(24 - 8 * j)), self.int(24));
        let product = |j: u32| self.mul_int(byte(x, j), byte(y, j));
        let low = self.add_int(product(0), product(1));
        self.add_int(low, self.add_int(product(2), product(3)))
    }
}

/// Plain values.
pub type Numbers = Concrete;

impl Domain for Concrete {
    fn known(&self, word: i32) -> Option<u32> {
        Some(word as u32)
    }
    fn holds(&self, truth: bool) -> Option<bool> {
        Some(truth)
    }
    fn rounded_float_of(&self, x: i32) -> f32 {
        x as f32
    }
}

/// A value of one of the kernel's types. A masked id is a word, all ones where it is masked.
pub enum Value<D: Domain> {
    /// A float.
    F(D::F),
    /// A word or an id.
    I(D::I),
    /// A truth value.
    B(D::B),
}

impl<D: Domain> Clone for Value<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Domain> Copy for Value<D> {}
