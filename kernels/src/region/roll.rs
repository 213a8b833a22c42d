//! Chains that repeat themselves: iterations of a loop, instead of text for each.
//!
//! A chain of small values may compute the same again and again from what it computed before, as an iterated normalisation does.
//! The first iteration is written out, and what the others take from the one before them begins in mutable locals; those between
//! are one loop. What stands behind it and reads more of the last iteration than the loop carries finds that one written out.

use std::ops::Range;

use ds4_ir::{Dim, Op, Value};

use crate::kernel::{ExtentRow, Number, Var, Word};
use crate::schedule::body::Element;

use super::axes::Axis;
use super::index::Index;
use super::kernel::Emit;
use super::plan::Place;

/// Fewest iterations that a loop has.
const FEWEST: usize = 3;

/// Iterations of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Roll {
    /// Places in the chain of the iterations that are a loop: all but the first, and sometimes the last.
    pub(super) looped: Range<usize>,
    /// Values of an iteration.
    pub(super) period: usize,
    /// Places within an iteration of the values that the next one reads.
    carried: Vec<usize>,
}

/// What a value of a chain is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Token<'a> {
    /// An operation on what the chain computes, and where it stands.
    Made { op: Op, ty: ds4_ir::Type, attrs: &'a [u32], dims: &'a [Dim], axes: &'a [Axis], operands: usize },
    /// A value of the chain, by its place there.
    Link(usize),
    /// A value that does not depend on the chain.
    Same(Value),
}

/// The loop that leaves out the most of a chain's text, if there is any.
pub(super) fn roll(emit: &Emit<'_>, chain: &[usize]) -> Option<Roll> {
    let made: Vec<Vec<Token<'_>>> = chain.iter().map(|&i| tokens(emit, chain, i)).collect();
    let is_local = |at: usize| {
        let planned = &emit.plan.values[chain[at]];
        planned.place == Place::Registers
            && !planned.stored
            && matches!(emit.op(emit.region.values[chain[at]]), Op::Map | Op::Reduce)
    };
    let mut best: Option<Roll> = None;
    for period in 1..=chain.len() / (FEWEST + 1) {
        let mut from = period;
        while from < chain.len() {
            let repeats = |at: usize| is_local(at) && is_shifted(&made[at - period], &made[at], period);
            let end = (from..chain.len()).find(|&at| !repeats(at)).unwrap_or(chain.len());
            // What is read behind the loop may be of the last iteration, which is no part of it then.
            let most = (end - from) / period;
            let found = (most.saturating_sub(1)..=most).rev().filter(|&n| n >= FEWEST).find_map(|iterations| {
                let looped = from..from + iterations * period;
                let found = Roll { carried: carried(&made, &looped, period), looped, period };
                is_closed(&made, &found).then_some(found)
            });
            let saved = |roll: &Roll| roll.looped.len() - roll.period;
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| saved(&found) > saved(best))
            {
                best = Some(found);
            }
            from = end + 1;
        }
    }
    best
}

/// What a value is made of, operators in front of their operands.
fn tokens<'a>(emit: &'a Emit<'_>, chain: &[usize], i: usize) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let v = emit.region.values[i];
    made_of(emit, v, Some(i), &mut found);
    for &a in emit.graph.args(v) {
        operand(emit, chain, a, &mut found);
    }
    found
}

fn made_of<'a>(emit: &'a Emit<'_>, v: Value, place: Option<usize>, found: &mut Vec<Token<'a>>) {
    let graph = &emit.graph;
    let axes = place.map_or(&[][..], |i| &emit.plan.locality.axes[i][..]);
    let operands = graph.args(v).len();
    found.push(Token::Made {
        op: graph.op(v),
        ty: graph.ty(v),
        attrs: graph.attrs(v),
        dims: graph.dims_of(v),
        axes,
        operands,
    });
}

fn operand<'a>(emit: &'a Emit<'_>, chain: &[usize], v: Value, found: &mut Vec<Token<'a>>) {
    let place = emit.find(v);
    if let Some(at) = place.and_then(|i| chain.binary_search(&i).ok()) {
        return found.push(Token::Link(at));
    }
    let computed_here = place.is_some_and(|i| matches!(emit.plan.values[i].place, Place::View | Place::Inline));
    if !computed_here || !depends(emit, chain, v) {
        return found.push(Token::Same(v));
    }
    made_of(emit, v, place, found);
    for &a in emit.graph.args(v) {
        operand(emit, chain, a, found);
    }
}

/// Whether a value that is computed where it is read reads the chain.
fn depends(emit: &Emit<'_>, chain: &[usize], v: Value) -> bool {
    let Some(i) = emit.find(v) else { return false };
    if chain.binary_search(&i).is_ok() {
        return true;
    }
    let here = matches!(emit.plan.values[i].place, Place::View | Place::Inline);
    here && emit.graph.args(v).iter().any(|&a| depends(emit, chain, a))
}

/// Whether a value is made as the one `period` places before it, of what stands as far behind.
fn is_shifted(before: &[Token<'_>], now: &[Token<'_>], period: usize) -> bool {
    let pair = |(a, b): (&Token<'_>, &Token<'_>)| match (a, b) {
        (Token::Link(a), Token::Link(b)) => *b == a + period,
        (a, b) => a == b,
    };
    before.len() == now.len() && before.iter().zip(now).all(pair)
}

fn links<'t>(made: &'t [Token<'_>]) -> impl Iterator<Item = usize> + 't {
    made.iter().filter_map(|token| match token {
        Token::Link(at) => Some(*at),
        _ => None,
    })
}

/// Places within an iteration of what the first looped one reads of the one before.
fn carried(made: &[Vec<Token<'_>>], looped: &Range<usize>, period: usize) -> Vec<usize> {
    let before = looped.start - period..looped.start;
    let first = looped.start..looped.start + period;
    let mut carried: Vec<usize> =
        first.flat_map(|at| links(&made[at])).filter(|at| before.contains(at)).map(|at| at - before.start).collect();
    carried.sort_unstable();
    carried.dedup();
    carried
}

/// Whether iterations read nothing but themselves and the one before them, and what stands behind the loop nothing of it but what
/// the last of them carries.
fn is_closed(made: &[Vec<Token<'_>>], roll: &Roll) -> bool {
    let Roll { looped, period, carried } = roll;
    let within =
        (looped.start..looped.start + period).flat_map(|at| links(&made[at])).all(|at| at + period >= looped.start);
    let last = looped.end - period;
    let is_carried = |at: usize| at >= last && carried.contains(&(at - last));
    let behind = (looped.end..made.len()).flat_map(|at| links(&made[at]));
    within && behind.filter(|at| looped.contains(at)).all(is_carried)
}

/// A mutable local for an element that an iteration takes from the one before.
enum Carrier {
    F(Var<Number>),
    I(Var<Word>),
}

impl Emit<'_> {
    /// The values of a chain at a position, with a loop where they repeat themselves.
    pub(super) fn chain_with_loop(&self, chain: &[usize], roll: &Roll, lead: Option<&Index>) {
        let Roll { looped, period, carried } = roll;
        let (first, last) = (looped.start - period, looped.end - period);
        self.chain_part(&chain[..looped.start], lead);
        let places = carried
            .iter()
            .flat_map(|&k| self.chain_positions(chain[first + k], lead).into_iter().map(move |at| (k, at)));
        let places: Vec<(usize, Vec<Index>)> = places.collect();
        let value = |from: usize, k: usize| self.region.values[chain[from + k]];
        let carriers: Vec<Carrier> = places.iter().map(|(k, at)| self.carrier(value(first, *k), at)).collect();
        let outside = self.registers.borrow().clone();
        let turns = ExtentRow::constant((looped.len() / period) as u32);
        self.b.repeat("iteration", self.b.word(0), turns, 1, |_| {
            for ((k, at), carrier) in places.iter().zip(&carriers) {
                self.insert(value(first, *k), at, self.carried_now(carrier));
            }
            self.chain_part(&chain[looped.start..looped.start + period], lead);
            for ((k, at), carrier) in places.iter().zip(&carriers) {
                match (carrier, self.element(value(looped.start, *k), at)) {
                    (Carrier::F(var), Element::F(x)) => self.b.set(*var, x),
                    (Carrier::I(var), Element::I(x)) => self.b.set(*var, x),
                    _ => self.no_schedule(value(first, *k)),
                }
            }
        });
        // What the loop made is known in it only.
        *self.registers.borrow_mut() = outside;
        for ((k, at), carrier) in places.iter().zip(&carriers) {
            self.insert(value(last, *k), at, self.carried_now(carrier));
        }
        self.chain_part(&chain[looped.end..], lead);
    }

    fn carrier(&self, v: Value, at: &[Index]) -> Carrier {
        match self.element(v, at) {
            Element::I(x) => Carrier::I(self.b.var("carried", x)),
            Element::F(x) => Carrier::F(self.b.var("carried", x)),
            _ => {
                self.no_schedule(v);
                Carrier::I(self.b.var("carried", self.b.word(0)))
            }
        }
    }

    fn carried_now(&self, carrier: &Carrier) -> Element {
        match carrier {
            Carrier::F(var) => Element::F(self.b.value("before", *var)),
            Carrier::I(var) => Element::I(self.b.value("before", *var)),
        }
    }
}
