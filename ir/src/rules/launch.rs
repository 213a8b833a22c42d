//! Laws of launches: by which lists of values that are computed together compute what launches of single values do.
//!
//! A law of launches changes no value, only by whom and when it is computed, and where it lies. Nothing is matched: the lists
//! themselves are the certificate, and the check of a plan ([`crate::plan::check`]) evaluates each side condition on them.

use super::{Head, Proof};

/// A side condition of a law, evaluated by the check of a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Condition {
    /// Whatever a launch reads, an earlier launch or the region itself has computed.
    Before,
    /// No region reads what another one of its launch computes.
    Apart,
    /// No state is written twice by one value.
    WrittenOnce,
    /// A split divides axes that are constant, and others position by position.
    Tiles,
    /// What an operation needs in one piece no split divides: the rows of a choice, the blocks of 32 of a quantisation.
    Whole,
    /// What a region reads and does not compute has memory.
    Memory,
    /// Slots that are needed at one time share no byte.
    Lives,
    /// A slot inside another one is an operand's place in a concatenation.
    Within,
    /// Nobody reads the version of a state that was replaced, from the launch on that replaces it.
    Replaced,
    /// A version of a state is written behind the one that it replaces.
    Versions,
    /// Outputs, named values and last versions of states are computed.
    Needed,
    /// A launch's kernels write what the launch stores.
    Writes,
    /// A launch's kernels read what the launch reads.
    Reads,
    /// A kernel's grid has the workgroups of the splits.
    Grid,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Condition; 14] = [
        Condition::Before,
        Condition::Apart,
        Condition::WrittenOnce,
        Condition::Tiles,
        Condition::Whole,
        Condition::Memory,
        Condition::Lives,
        Condition::Within,
        Condition::Replaced,
        Condition::Versions,
        Condition::Needed,
        Condition::Writes,
        Condition::Reads,
        Condition::Grid,
    ];

    /// The name that reports use.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The function that evaluates it.
    pub fn evaluated_by(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Condition::Before => ("what is read was computed before", "plan::launches, reads"),
            Condition::Apart => ("regions of a launch read nothing of each other", "plan::launches, reads"),
            Condition::WrittenOnce => ("no write is done again", "plan::launches, region"),
            Condition::Tiles => {
                ("tiles divide constant axes, others go position by position", "plan::split, check_split")
            }
            Condition::Whole => {
                ("rows of a choice and blocks of a quantisation stay whole", "plan::split, stays_whole")
            }
            Condition::Memory => ("what is read outside of its region has memory", "plan::launches, memory_of"),
            Condition::Lives => ("memory that is needed at one time is apart", "plan::check, check_overlap"),
            Condition::Within => ("memory inside other memory is an operand's place", "plan::check, check_slots"),
            Condition::Replaced => ("nobody reads a version that was replaced", "plan::launches, replacements"),
            Condition::Versions => ("versions are written in order", "plan::launches, replaces"),
            Condition::Needed => ("outputs, named values and states are computed", "plan::launches, end"),
            Condition::Writes => ("kernels write what their launch stores", "plan::bindings, check_memory"),
            Condition::Reads => ("kernels read what their launch reads", "plan::bindings, check_memory"),
            Condition::Grid => ("a grid has the workgroups of the splits", "plan::bindings, check_grid"),
        }
    }

    /// Refuses what does not keep the condition.
    pub(crate) fn ensure(self, holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
        match holds || hook::is_off(self) {
            true => Ok(()),
            false => Err(fault()),
        }
    }
}

/// Switching a condition off, for the tests that show that nothing else refuses what it refuses.
#[cfg(test)]
pub(crate) mod hook {
    use super::Condition;
    use std::cell::Cell;

    thread_local! {
        static OFF: Cell<Option<Condition>> = const { Cell::new(None) };
    }

    pub(crate) fn is_off(condition: Condition) -> bool {
        OFF.get() == Some(condition)
    }

    /// Runs `body` without the condition.
    pub(crate) fn without<T>(condition: Condition, body: impl FnOnce() -> T) -> T {
        OFF.set(Some(condition));
        let result = body();
        OFF.set(None);
        result
    }
}

#[cfg(not(test))]
mod hook {
    pub(super) fn is_off(_: super::Condition) -> bool {
        false
    }
}

/// A law of launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchRule {
    /// Number, name, law and proof.
    pub head: Head,
    /// Its side conditions.
    pub conditions: &'static [Condition],
}

const fn rule(
    number: u32,
    name: &'static str,
    law: &'static str,
    family: &'static str,
    conditions: &'static [Condition],
) -> LaunchRule {
    LaunchRule { head: Head { number, name, law, family, proof: Proof::Lists }, conditions }
}

/// A region goes on with what it has computed.
pub const ABSORB: u32 = 901;
/// Several regions compute one value.
pub const DUPLICATE: u32 = 902;
/// A gather is done by who reads it.
pub const LOOK_UP: u32 = 903;
/// Regions side by side.
pub const PAIR: u32 = 904;
/// Launches in another order.
pub const REORDER: u32 = 905;
/// What nobody needs is left out.
pub const LEAVE_OUT: u32 = 906;
/// Workgroups share a value.
pub const SPLIT: u32 = 907;
/// A value without memory.
pub const INTERIOR: u32 = 908;
/// Memory for one value after the other.
pub const REUSE: u32 = 909;
/// An operand at its place in a concatenation.
pub const IN_PLACE: u32 = 910;
/// A state in place of the one before.
pub const REPLACE: u32 = 911;
/// A launch as kernels.
pub const KERNELS: u32 = 912;

/// The laws, ascending by number.
pub const RULES: [LaunchRule; 12] = [
    rule(
        ABSORB,
        "absorb",
        "a region that computes a value and then its reader gives what a launch of each gives",
        "regions",
        &[Condition::Before],
    ),
    rule(
        DUPLICATE,
        "duplicate",
        "a value that several regions compute, each for itself, is the same in all of them",
        "regions",
        &[Condition::Before, Condition::WrittenOnce],
    ),
    rule(
        LOOK_UP,
        "look-up",
        "a gather that its reader does gives the reader what a launch of the gather stores",
        "regions",
        &[Condition::Before, Condition::Memory],
    ),
    rule(
        PAIR,
        "pair",
        "regions that read nothing of each other, side by side, give what one after the other gives",
        "order",
        &[Condition::Apart, Condition::WrittenOnce],
    ),
    rule(
        REORDER,
        "reorder",
        "launches give the same in any order in which each comes behind what it reads",
        "order",
        &[Condition::Before, Condition::Replaced, Condition::Versions],
    ),
    rule(LEAVE_OUT, "leave-out", "what nothing needs need not be computed", "order", &[Condition::Needed]),
    rule(
        SPLIT,
        "split",
        "workgroups that compute parts of a value along axes that no tree runs along give the whole",
        "splits",
        &[Condition::Tiles, Condition::Whole],
    ),
    rule(
        INTERIOR,
        "interior",
        "a value that only regions that compute it read needs no memory",
        "memory",
        &[Condition::Memory],
    ),
    rule(
        REUSE,
        "reuse",
        "memory of a value that nobody reads any more may hold another",
        "memory",
        &[Condition::Lives],
    ),
    rule(
        IN_PLACE,
        "in-place",
        "an operand of a concatenation, computed at its place there, need not be copied",
        "memory",
        &[Condition::Within, Condition::Lives],
    ),
    rule(
        REPLACE,
        "replace",
        "a state is replaced in place, behind all readers of what it held",
        "memory",
        &[Condition::Replaced, Condition::Versions, Condition::WrittenOnce],
    ),
    rule(
        KERNELS,
        "kernels",
        "a launch's kernels write what it stores, read what it reads, and have the workgroups of its splits",
        "kernels",
        &[Condition::Writes, Condition::Reads, Condition::Grid],
    ),
];

/// The law with a number.
pub fn find(number: u32) -> Option<&'static LaunchRule> {
    RULES.iter().find(|rule| rule.head.number == number)
}
