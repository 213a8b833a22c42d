//! Output files: arrays in NumPy's formats, complete under their name or not there at all.

mod crc;
mod npy;
mod npz;

pub use ds4_ir::output::Partial;
pub use npy::{Element, NpyRows, npy_header};
pub use npz::{NPZ_LARGEST, write_npz};

#[cfg(test)]
mod tests;
