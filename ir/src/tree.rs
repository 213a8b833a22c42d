//! Reduction trees: the order of a sum is data.
//!
//! `lanes(L)`: leaf `u` belongs to lane `u mod L`; a lane adds its leaves ascending, starting from its first; then
//! lanes combine by halving, `l += l + L/2`, `L/4`, ... `1`. A lane or leaf that is absent adds nothing. Since
//! `x + (-0.0) = x` for every `x`, an absent leaf may be read as -0.0, and the sum of no leaves is -0.0.

/// A reduction tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tree {
    /// Order-free: integer sums, minimum and maximum.
    Free,
    /// Ascending.
    Seq,
    /// `lanes(L)`, `L` a power of two of at least 2.
    Lanes(u32),
}

impl Tree {
    /// The contract's tree for a float sum over `leaves` elements.
    pub fn for_leaves(leaves: u32) -> Tree {
        match leaves {
            0..=4 => Tree::Seq,
            5..=511 => Tree::Lanes(32),
            _ => Tree::Lanes(128),
        }
    }

    /// The tree of a quantised product over its block leaves.
    pub const BLOCKS: Tree = Tree::Lanes(32);

    /// The number that tables store: 0 free, 1 seq, otherwise the lanes.
    pub fn number(self) -> u32 {
        match self {
            Tree::Free => 0,
            Tree::Seq => 1,
            Tree::Lanes(lanes) => lanes,
        }
    }

    /// The tree of a stored number, if it is one.
    pub fn from_number(number: u32) -> Option<Tree> {
        match number {
            0 => Some(Tree::Free),
            1 => Some(Tree::Seq),
            n if n.is_power_of_two() && n <= 1024 => Some(Tree::Lanes(n)),
            _ => None,
        }
    }
}
