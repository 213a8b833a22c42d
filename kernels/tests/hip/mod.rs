//! What the tests of HIP text with outside tools share.

pub mod samples;
pub mod tools;
