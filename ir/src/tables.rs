//! Struct-of-arrays tables that are almost a file format.
//!
//! [`crate::tables!`] declares a set of columns twice: as owned vectors that a pass builds, and as slices
//! that every reader takes. The slices view either the vectors or the sections of a mapped plan, so nothing is
//! copied when a plan is loaded.

/// A column as raw little-endian bytes with the section number that the plan file gives it.
pub struct Section<'a> {
    /// Section number; unique over all tables of a plan.
    pub number: u32,
    /// Column name, for reports.
    pub name: &'static str,
    /// Bytes of one entry.
    pub entry: usize,
    /// The column's bytes.
    pub bytes: &'a [u8],
}

/// Declares owned tables, their view and their sections.
///
/// Every entry type is plain data (`bytemuck::Pod`) made of `u32` words or of bytes.
#[macro_export]
macro_rules! tables {
    (
        $(#[$owned_meta:meta])* owned $owned:ident;
        $(#[$view_meta:meta])* view $view:ident;
        $($(#[$meta:meta])* $number:literal $name:ident: $entry:ty;)*
    ) => {
        $(#[$owned_meta])*
        #[derive(Clone, Default, Debug, PartialEq)]
        pub struct $owned {
            $($(#[$meta])* pub $name: Vec<$entry>,)*
        }

        $(#[$view_meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a> {
            $($(#[$meta])* pub $name: &'a [$entry],)*
        }

        impl $owned {
            /// The tables as slices.
            pub fn view(&self) -> $view<'_> {
                $view { $($name: &self.$name,)* }
            }
        }

        impl<'a> $view<'a> {
            /// The columns as sections of a plan file, in the order of their numbers.
            pub fn sections(&self) -> Vec<$crate::tables::Section<'a>> {
                vec![$($crate::tables::Section {
                    number: $number,
                    name: stringify!($name),
                    entry: size_of::<$entry>(),
                    bytes: bytemuck::cast_slice(self.$name),
                },)*]
            }

            /// A copy that can be changed.
            pub fn to_tables(&self) -> $owned {
                $owned { $($name: self.$name.to_vec(),)* }
            }

            /// Views the sections that `find` gives by number; a missing section, a length that is no whole number
            /// of entries or a misaligned one is named in the error.
            pub fn from_sections(
                mut find: impl FnMut(u32) -> Option<&'a [u8]>,
            ) -> Result<Self, (u32, &'static str)> {
                Ok($view {
                    $($name: match find($number) {
                        Some(bytes) => bytemuck::try_cast_slice(bytes).map_err(|_| ($number, stringify!($name)))?,
                        None => return Err(($number, stringify!($name))),
                    },)*
                })
            }
        }
    };
}
