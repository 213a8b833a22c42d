//! Why values are no region.

use std::fmt;

use ds4_ir::Value;

/// Why values are no region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no value.
    Empty,
    /// The tiles do not divide this axis of the anchor.
    Tiles {
        /// The anchor.
        value: Value,
        /// Its axis.
        axis: usize,
    },
    /// The operation needs this axis of its result whole.
    AxisSplit {
        /// The value.
        value: Value,
        /// Its axis.
        axis: usize,
    },
    /// A workgroup has part of a block of 32 that is quantised together.
    Blocks(Value),
    /// Nothing in the region reads the value, and it is not split as the anchor is.
    OtherSink {
        /// The value.
        value: Value,
        /// The anchor.
        anchor: Value,
    },
    /// A state that the region writes is read in it.
    WriteIsRead(Value),
    /// Workgroup memory is too small.
    OnChip {
        /// Bytes that the region needs.
        wanted: u32,
        /// Bytes of the device.
        available: u32,
    },
    /// The order of a sum wants more lanes than the workgroup has.
    Lanes {
        /// The value.
        value: Value,
        /// Lanes of its tree.
        wanted: u32,
        /// Lanes of the workgroup.
        available: u32,
    },
    /// A lane is longer in loops than the device lets it be.
    Iterations {
        /// Iterations of all loops of a lane, at most.
        wanted: u64,
        /// What the device does.
        available: u32,
    },
    /// The region reads this value, does not compute it, and it has no slot.
    NotStored(Value),
    /// No schedule does this value inside a region.
    NoSchedule(Value),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Empty => f.write_str("a region has a value"),
            Refusal::Tiles { value, axis } => write!(f, "the tiles do not divide axis {axis} of {value}"),
            Refusal::AxisSplit { value, axis } => write!(f, "{value} needs its axis {axis} in one workgroup"),
            Refusal::Blocks(value) => write!(f, "a workgroup has part of a block of 32 that {value} quantises"),
            Refusal::OtherSink { value, anchor } => write!(f, "{value} is not split as {anchor} is"),
            Refusal::WriteIsRead(value) => write!(f, "the state that {value} writes is read in the same region"),
            Refusal::OnChip { wanted, available } => {
                write!(f, "{wanted} bytes of workgroup memory are needed, {available} are available")
            }
            Refusal::Lanes { value, wanted, available } => {
                write!(f, "the order of {value} wants {wanted} lanes, {available} are available")
            }
            Refusal::Iterations { wanted, available } => {
                write!(f, "a lane's loops have up to {wanted} iterations, the device does {available}")
            }
            Refusal::NotStored(value) => write!(f, "{value} is read, not computed here, and has no slot"),
            Refusal::NoSchedule(value) => write!(f, "no schedule computes {value} beside others"),
        }
    }
}

impl std::error::Error for Refusal {}
