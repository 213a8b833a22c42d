//! Sums and maxima over leaves, in the order of their tree.

use ds4_ir::Tree;
use ds4_ir::numerics::Arith;

use crate::kernel::{Builder, Handle, Type, Var, Word};

use super::axes::{Axes, Item};
use super::map::{LANES, for_each};
use super::scene::Refusal;

/// Most lanes of a tree: one workgroup.
const MOST: u32 = 256;
/// Lanes that exchange by shuffles at the end of a tree.
const SHUFFLED: u32 = 8;

/// How the leaves of one element are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// One lane takes all, ascending.
    Alone,
    /// Leaf `u` belongs to lane `u mod n`.
    Lanes(u32),
}

impl Share {
    /// The share that honours a tree; `leaves` is the largest number of leaves.
    pub(super) fn of(tree: Tree, leaves: u32) -> Result<Share, Refusal> {
        match tree {
            Tree::Seq => Ok(Share::Alone),
            Tree::Free if leaves <= LANES => Ok(Share::Alone),
            Tree::Free => Ok(Share::Lanes(32)),
            Tree::Lanes(n) if n <= MOST => Ok(Share::Lanes(n)),
            Tree::Lanes(n) => Err(Refusal::Unsupported(format!("a tree of {n} lanes; available {MOST}"))),
        }
    }

    /// Lanes of a workgroup.
    pub(super) fn workgroup(self) -> u32 {
        match self {
            Share::Alone => LANES,
            Share::Lanes(n) => n.max(LANES),
        }
    }
}

/// What a reduction does with two partial results.
pub(super) struct Rule<'r, T> {
    /// The result of no leaves, which changes nothing: of sums -0.0.
    pub(super) none: T,
    /// The result of two parts, the earlier first.
    pub(super) join: &'r dyn Fn(T, T) -> T,
}

/// The leaves of one element that a lane takes: from `first`, every `step`-th.
pub(super) struct Part<'i> {
    pub(super) item: &'i Item,
    pub(super) first: Word,
    pub(super) step: u32,
}

/// Reduces the leaves of every item of `axes`: `leaves` adds those of one lane to the variable, `finish` stores the result.
pub(super) fn reduce<T: Handle>(
    b: &Builder,
    axes: &Axes,
    share: Share,
    rule: &Rule<'_, T>,
    leaves: impl FnOnce(Part<'_>, Var<T>) -> Result<(), Refusal>,
    finish: impl FnOnce(&Item, T) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let Share::Lanes(width) = share else {
        return for_each(b, axes, |item| {
            let sum = b.var("sum", rule.none);
            leaves(Part { item, first: b.word(0), step: 1 }, sum)?;
            finish(item, b.value("total", sum))
        });
    };
    let trees = b.lanes() / width;
    let group = b.group(axes.total(trees)?);
    let (lane, number) = match trees {
        1 => (b.lane(), group),
        _ => {
            let number = b.add_int(b.mul_int(group, b.word(trees)), b.div_int(b.lane(), width));
            (b.name("leaf", b.rem_int(b.lane(), width)), b.name("i", number))
        }
    };
    let item = axes.item(b, number)?;
    let at = item.at.iter().map(|&i| b.name("at", i)).collect();
    let item = Item { at, inside: item.inside };
    let sum = b.var("sum", rule.none);
    let mut done = Ok(());
    b.when(item.inside, || done = leaves(Part { item: &item, first: lane, step: width }, sum));
    done?;
    fold(b, width, lane, sum, rule);
    let mut done = Ok(());
    let first = b.both(item.inside, b.equal_int(lane, b.word(0)));
    b.when(first, || done = finish(&item, b.value("total", sum)));
    done
}

/// Folds the sums of `width` neighbouring lanes by halving; the first of them has the result.
///
/// In each halving the upper half offers its sums in the workgroup's memory, at cells that nobody has read yet, so one barrier
/// a halving is enough. The last three are shuffles among eight lanes.
fn fold<T: Handle>(b: &Builder, width: u32, lane: Word, sum: Var<T>, rule: &Rule<'_, T>) {
    let mut half = width / 2;
    if half >= SHUFFLED {
        let array = b.shared(if T::TYPE == Type::F32 { Type::F32 } else { Type::Word }, b.lanes(), "partial");
        while half >= SHUFFLED {
            let upper = b.not(b.below(lane, b.word(half)));
            let first = 2 * half == width;
            let upper = if first { upper } else { b.both(upper, b.below(lane, b.word(2 * half))) };
            b.when(upper, || b.store(array, b.lane(), b.value("mine", sum)));
            b.barrier();
            b.when(b.below(lane, b.word(half)), || {
                let other = b.load("other", array, b.add_int(b.lane(), b.word(half)));
                b.update(sum, |mine| (rule.join)(mine, other));
            });
            half /= 2;
        }
    }
    while half > 0 {
        let mine = b.value("mine", sum);
        let other = b.shuffle("other", mine, half, SHUFFLED);
        b.set(sum, (rule.join)(mine, other));
        half /= 2;
    }
}
