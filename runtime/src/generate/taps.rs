//! Named values over all steps, as arrays of an archive.

use std::collections::BTreeMap;
use std::path::Path;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::{Tap, TapData};
use crate::output::{Element, NPZ_LARGEST, write_npz};

/// The arrays by name.
///
/// Values whose rows continue from step to step are one array, joined along axis 0. Any other value is one array per
/// step, named `NAME@POSITION` after the position of the step's first token.
#[derive(Default, Debug)]
pub struct TapArchive {
    arrays: BTreeMap<String, Array>,
    bytes: usize,
}

#[derive(Debug)]
struct Array {
    element: Element,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl TapArchive {
    /// Adds a value of a step. An error as soon as the archive at `path` would be too large for its format.
    pub fn push(&mut self, tap: &Tap<'_>, position: usize, path: &Path) -> Result<(), Diagnostic> {
        let (element, data) = match tap.data {
            TapData::F32(data) => (Element::F32, bytemuck::cast_slice::<f32, u8>(data)),
            TapData::I32(data) => (Element::I32, bytemuck::cast_slice::<i32, u8>(data)),
        };
        self.bytes += data.len();
        if self.bytes > NPZ_LARGEST {
            return Err(too_large(tap.name, position, path));
        }
        let name = match tap.appends {
            true => tap.name.to_string(),
            false => format!("{}@{position}", tap.name),
        };
        match self.arrays.get_mut(&name) {
            Some(array) => array.append(&tap.extents, data),
            None => {
                let shape = tap.extents.clone();
                let data = data.to_vec();
                let array = Array { element, shape, data };
                self.arrays.insert(name, array);
            }
        }
        Ok(())
    }

    /// Writes the archive, names ascending.
    pub fn write(&self, path: &Path) -> Result<(), Diagnostic> {
        let arrays = self.arrays.iter().map(|(name, array)| {
            let Array { element, shape, data } = array;
            (name.as_str(), *element, shape.as_slice(), data.as_slice())
        });
        write_npz(path, &arrays.collect::<Vec<_>>())
    }
}

impl Array {
    fn append(&mut self, extents: &[usize], data: &[u8]) {
        assert!(!extents.is_empty() && self.shape[1..] == extents[1..], "rows that continue have constant axes");
        self.shape[0] += extents[0];
        self.data.extend_from_slice(data);
    }
}

fn too_large(name: &str, position: usize, path: &Path) -> Diagnostic {
    Diagnostic::new(codes::OUTPUT_LARGE, "the archive is larger than its format holds")
        .at(Place::file(path.display().to_string()))
        .wanted(format!("at most {NPZ_LARGEST} bytes"), format!("more, with `{name}` at position {position}"))
        .help("tap fewer values, or feed fewer tokens")
}
