//! Entities: `u32` newtypes that index struct-of-arrays tables.

/// An entity id: a dense `u32` index into its tables.
pub trait Entity: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug {
    /// The id of row `index`.
    fn new(index: u32) -> Self;
    /// The row of this id.
    fn index(self) -> usize;
}

/// Declares entity newtypes, each with the prefix under which it prints (`v17`).
#[macro_export]
macro_rules! entities {
    ($($(#[$meta:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $crate::entity::Entity for $name {
            fn new(index: u32) -> Self {
                Self(index)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
    )*};
}

/// A run of entries in a pool: argument lists and other variable-length rows of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Run {
    /// First entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

impl Run {
    /// The entries of this run in `pool`.
    pub fn of<T>(self, pool: &[T]) -> &[T] {
        &pool[self.start as usize..(self.start + self.len) as usize]
    }

    /// Appends `items` to `pool` and gives their run.
    pub fn push<T: Copy>(pool: &mut Vec<T>, items: &[T]) -> Run {
        let run = Run { start: pool.len() as u32, len: items.len() as u32 };
        pool.extend_from_slice(items);
        run
    }
}
