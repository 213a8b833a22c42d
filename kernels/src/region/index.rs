//! Indices as sums of words times factors, so that views compose without divisions wherever strides express them.

use ds4_ir::numerics::Arith;

use crate::kernel::{Builder, Expr, Handle, Word};

/// A word that stands for one that is not known yet. It never reaches a kernel: what depends on it stays unknown.
const UNKNOWN: u32 = u32::MAX;

/// A word with its bound, and what it is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Atom {
    word: Word,
    /// All values are below.
    below: u64,
    part: Option<Part>,
}

/// An atom that is a quotient or a remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    whole: Word,
    whole_below: u64,
    by: u32,
    rest: bool,
}

/// A sum of words times factors, and a constant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Index {
    constant: u32,
    /// Ascending by word, no word twice.
    terms: Vec<(Atom, u32)>,
}

impl Index {
    /// A constant.
    pub(super) fn constant(n: u32) -> Index {
        Index { constant: n, terms: Vec::new() }
    }

    /// A word below a bound.
    pub(super) fn word(b: &Builder, word: Word, below: u64) -> Index {
        match b.constant_of(word) {
            Some(n) => Index::constant(n),
            None if below <= 1 => Index::constant(0),
            None => Index { constant: 0, terms: vec![(Atom { word, below, part: None }, 1)] },
        }
    }

    /// What stands for an index below a bound that is not known yet.
    pub(super) fn unknown(below: u64) -> Index {
        Index { constant: 0, terms: vec![(Atom { word: Word::of(Expr(UNKNOWN)), below: below.max(2), part: None }, 1)] }
    }

    /// Whether it depends on what is not known yet.
    pub(super) fn is_unknown(&self) -> bool {
        self.terms.iter().any(|(atom, _)| atom.word.expr() == Expr(UNKNOWN))
    }

    /// The number, if it is one.
    pub(super) fn known(&self) -> Option<u32> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The smallest value that it may have.
    pub(super) fn least(&self) -> u32 {
        self.constant
    }

    /// All values are below.
    pub(super) fn below(&self) -> u64 {
        let terms = self.terms.iter().map(|(atom, times)| (atom.below - 1).saturating_mul(u64::from(*times)));
        terms.fold(u64::from(self.constant) + 1, u64::saturating_add)
    }

    /// Words that are the same exactly if the index is.
    pub(super) fn key(&self, into: &mut Vec<u32>) {
        into.extend([self.terms.len() as u32, self.constant]);
        into.extend(self.terms.iter().flat_map(|(atom, times)| [atom.word.expr().0, *times]));
    }

    /// The sum.
    pub(super) fn plus(&self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.constant = sum.constant.wrapping_add(other.constant);
        for &(atom, times) in &other.terms {
            match sum.terms.binary_search_by_key(&atom.word.expr(), |(a, _)| a.word.expr()) {
                Ok(at) => sum.terms[at].1 = sum.terms[at].1.wrapping_add(times),
                Err(at) => sum.terms.insert(at, (atom, times)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        sum.recombined()
    }

    /// The product with a number.
    pub(super) fn times(&self, n: u32) -> Index {
        if n == 0 {
            return Index::constant(0);
        }
        let terms = self.terms.iter().map(|&(atom, times)| (atom, times.wrapping_mul(n))).collect();
        Index { constant: self.constant.wrapping_mul(n), terms }
    }

    /// The difference from an index that is not larger.
    pub(super) fn minus(&self, b: &Builder, other: &Index) -> Index {
        match other.known() {
            Some(n) if n <= self.constant => Index { constant: self.constant - n, ..self.clone() },
            _ if self.is_unknown() => Index::unknown(self.below()),
            _ => Index::word(b, b.sub_int(self.value(b), other.value(b)), self.below()),
        }
    }

    /// Quotients and remainders of one word by one number joined again.
    fn recombined(mut self) -> Index {
        loop {
            let Some((high, low)) = self.pair() else { return self };
            let (atom, times) = self.terms[low];
            let Some(part) = atom.part else { return self };
            let whole = Atom { word: part.whole, below: part.whole_below, part: None };
            self.terms.remove(high.max(low));
            self.terms.remove(high.min(low));
            self = self.plus(&Index { constant: 0, terms: vec![(whole, times)] });
        }
    }

    fn pair(&self) -> Option<(usize, usize)> {
        for (low, (atom, times)) in self.terms.iter().enumerate() {
            let Some(rest) = atom.part.filter(|part| part.rest) else { continue };
            let other = Some(Part { rest: false, ..rest });
            let joins = |(a, t): &(Atom, u32)| a.part == other && Some(*t) == times.checked_mul(rest.by);
            if let Some(high) = self.terms.iter().position(joins) {
                return Some((high, low));
            }
        }
        None
    }

    /// Quotient and remainder by a positive number.
    pub(super) fn split(&self, b: &Builder, n: u32) -> (Index, Index) {
        let (outer, mut inner): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(_, times)| times.is_multiple_of(n));
        let outer = outer.into_iter().map(|(atom, times)| (atom, times / n)).collect();
        let high = Index { constant: self.constant / n, terms: outer };
        inner.sort_by_key(|(atom, _)| atom.word.expr());
        let low = Index { constant: self.constant % n, terms: inner };
        if low.below() <= u64::from(n) {
            return (high, low);
        }
        if low.is_unknown() {
            return (high.plus(&Index::unknown(low.below() / u64::from(n) + 1)), Index::unknown(n.into()));
        }
        let (unit, small) = low.small_part(n);
        let large = low.terms.iter().filter(|(_, times)| times.is_multiple_of(unit));
        let scaled = large.map(|&(atom, times)| (atom, times / unit)).collect();
        let (quotient, rest) = Index { constant: low.constant / unit, terms: scaled }.divided(b, n / unit);
        (high.plus(&quotient), rest.times(unit).plus(&small))
    }

    /// The largest divisor of `n` that all terms have but those that together stay below it, and these.
    fn small_part(&self, n: u32) -> (u32, Index) {
        let mut units: Vec<u32> = self.terms.iter().map(|(_, times)| gcd(n, *times)).collect();
        units.sort_unstable_by(|a, b| b.cmp(a));
        for unit in units {
            let terms = self.terms.iter().filter(|(_, times)| !times.is_multiple_of(unit)).copied().collect();
            let small = Index { constant: self.constant % unit, terms };
            if small.below() <= u64::from(unit) {
                return (unit, small);
            }
        }
        let unit = self.terms.iter().map(|term| term.1).chain([self.constant, n]).fold(0, gcd);
        (unit, Index::default())
    }

    fn divided(&self, b: &Builder, by: u32) -> (Index, Index) {
        let (whole, whole_below) = (self.value(b), self.below());
        let part = |word: Word, below: u64, rest: bool| {
            let part = Some(Part { whole, whole_below, by, rest });
            match b.constant_of(word) {
                Some(n) => Index::constant(n),
                None => Index { constant: 0, terms: vec![(Atom { word, below, part }, 1)] },
            }
        };
        let quotient = part(b.div_int(whole, by), (whole_below - 1) / u64::from(by) + 1, false);
        (quotient, part(b.rem_int(whole, by), by.into(), true))
    }

    /// The word.
    pub(super) fn value(&self, b: &Builder) -> Word {
        let terms = self.terms.iter().map(|(atom, times)| b.mul_int(atom.word, b.word(*times)));
        let sum = terms.reduce(|x, y| b.add_int(x, y));
        match sum {
            Some(sum) => b.add_int(sum, b.word(self.constant)),
            None => b.word(self.constant),
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
