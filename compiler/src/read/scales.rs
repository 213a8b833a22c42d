//! Joins FP8 and FP4 tensors with their scale tensors.

use std::collections::BTreeMap;

use ds4_ir::diagnostic::{Diagnostic, Place, codes};
use ds4_ir::{Code, Format};

use super::safetensors::{Entry, Stored};
use super::table::{FileId, Files, NewTensor, Scale, Tensors};

/// Elements of a row that share one FP4 scale.
const FP4_GROUP: u64 = 32;

/// A tensor and the file that holds it.
pub(super) struct Located {
    pub(super) file: FileId,
    pub(super) entry: Entry,
}

/// Makes the tensor table: scale tensors become a part of the tensors that they belong to.
///
/// `block` is the rectangle of an FP8 scale. The shapes of scales are checked against it.
pub(super) fn pair(files: &Files, located: Vec<Located>, block: Option<[u32; 2]>) -> Result<Tensors, Diagnostic> {
    let mut scales = BTreeMap::new();
    let mut weights = Vec::new();
    for one in located {
        if one.entry.stored == Stored::Scale {
            let name = one.entry.name.clone();
            if let Some(other) = scales.insert(name, one) {
                return Err(duplicate(files, other.file, &other.entry.name));
            }
        } else {
            weights.push(one);
        }
    }
    let mut tensors = Tensors::default();
    for weight in weights {
        let file = weight.file;
        let new = finish(files, weight, &mut scales, block)?;
        tensors.add(new).map_err(|name| duplicate(files, file, &name))?;
    }
    match scales.into_values().next() {
        None => Ok(tensors),
        Some(stray) => {
            let message = "the scales belong to no FP8 or FP4 tensor";
            Err(error(files, &stray, codes::SCALE_MISSING, message))
        }
    }
}

fn error(files: &Files, at: &Located, code: Code, message: &str) -> Diagnostic {
    let file = files.path[at.file.0 as usize].display().to_string();
    let item = format!("tensor {}", at.entry.name);
    Diagnostic::new(code, message).at(Place::item(file, item))
}

fn duplicate(files: &Files, file: FileId, name: &str) -> Diagnostic {
    let file = files.path[file.0 as usize].display().to_string();
    let message = "another file has a tensor of this name";
    Diagnostic::new(codes::TENSOR_DUPLICATE, message).at(Place::item(file, format!("tensor {name}")))
}

/// The name of the scale tensor of a weight.
fn scale_name(weight: &str) -> String {
    let stem = weight.strip_suffix(".weight").unwrap_or(weight);
    format!("{stem}.scale")
}

fn finish(
    files: &Files,
    weight: Located,
    scales: &mut BTreeMap<String, Located>,
    block: Option<[u32; 2]>,
) -> Result<NewTensor, Diagnostic> {
    let (format, shape, block) = match weight.entry.stored {
        Stored::Plain(format) => return Ok(new_tensor(weight, format, None, None)),
        Stored::Fp8 => (Format::Fp8, matrix(files, &weight)?, fp8_block(files, &weight, block)?),
        Stored::Fp4Pairs => {
            let [rows, pairs] = matrix(files, &weight)?;
            (Format::Fp4, [rows, pairs * 2], [1, FP4_GROUP as u32])
        }
        Stored::Scale => unreachable!("scale tensors are not among the weights"),
    };
    if format == Format::Fp4 && !shape[1].is_multiple_of(FP4_GROUP) {
        let message = "no whole number of fp4 groups makes a row";
        let error = error(files, &weight, codes::TENSOR_ROW, message);
        return Err(error.wanted("rows of a multiple of 32 elements", shape[1]));
    }
    let name = scale_name(&weight.entry.name);
    let Some(found) = scales.remove(&name) else {
        let message = format!("the {} tensor has no scales", format.name());
        let error = error(files, &weight, codes::SCALE_MISSING, &message);
        return Err(error.wanted(format!("a tensor {name} of F8_E8M0"), "no such tensor"));
    };
    let wanted = [shape[0].div_ceil(block[0].into()), shape[1].div_ceil(block[1].into())];
    if found.entry.shape != wanted {
        let message = "the scales have the wrong shape";
        let error = error(files, &found, codes::SCALE_SHAPE, message);
        return Err(error.wanted(format!("{wanted:?}"), format!("{:?}", found.entry.shape)));
    }
    let scale = Scale { file: found.file, offset: found.entry.offset, shape: wanted, block };
    Ok(new_tensor(weight, format, Some(shape.to_vec()), Some(scale)))
}

fn new_tensor(weight: Located, format: Format, shape: Option<Vec<u64>>, scale: Option<Scale>) -> NewTensor {
    NewTensor {
        name: weight.entry.name,
        format,
        shape: shape.unwrap_or(weight.entry.shape),
        file: weight.file,
        offset: weight.entry.offset,
        bytes: weight.entry.bytes,
        scale,
    }
}

fn matrix(files: &Files, weight: &Located) -> Result<[u64; 2], Diagnostic> {
    <[u64; 2]>::try_from(weight.entry.shape.as_slice()).map_err(|_| {
        let message = "an FP8 or FP4 tensor is no matrix";
        let error = error(files, weight, codes::TENSOR_SHAPE, message);
        error.wanted("two dimensions", format!("{:?}", weight.entry.shape))
    })
}

fn fp8_block(files: &Files, weight: &Located, block: Option<[u32; 2]>) -> Result<[u32; 2], Diagnostic> {
    block.ok_or_else(|| {
        let message = "config.json does not give the block size of FP8 weights";
        let error = error(files, weight, codes::KEY_MISSING, message);
        error.wanted("key quantization_config.weight_block_size", "no such key")
    })
}
