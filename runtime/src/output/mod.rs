//! Output files: arrays in NumPy's formats, complete under their name or not there at all.

mod crc;
mod npy;
mod npz;
mod partial;

pub use npy::{Element, NpyRows, npy_header};
pub use npz::{NPZ_LARGEST, write_npz};
pub use partial::Partial;

#[cfg(test)]
mod tests;
