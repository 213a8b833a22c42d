//! Where tensor data lies in a file.

use ds4_ir::diagnostic::{Diagnostic, codes};

use super::cursor::Input;

/// Checks that the byte ranges (name, offset, length) lie inside the file and share no byte.
pub(super) fn check_places<'a>(
    input: &Input,
    places: impl Iterator<Item = (&'a str, u64, u64)>,
) -> Result<(), Diagnostic> {
    let mut places: Vec<_> = places.collect();
    for &(name, offset, bytes) in &places {
        if offset.checked_add(bytes).is_none_or(|end| end > input.size) {
            return Err(outside(input, name, offset, bytes));
        }
    }
    places.sort_by_key(|&(name, offset, _)| (offset, name));
    for pair in places.windows(2) {
        let ((first, at, bytes), (second, next, _)) = (pair[0], pair[1]);
        if at + bytes > next {
            return Err(overlap(input, (first, at + bytes), (second, next)));
        }
    }
    Ok(())
}

fn outside(input: &Input, name: &str, offset: u64, bytes: u64) -> Diagnostic {
    let message = "the tensor's data reaches beyond the file";
    input
        .error(codes::TENSOR_OUTSIDE, message, format!("tensor {name}"))
        .wanted(format!("data within {} bytes", input.size), format!("{bytes} bytes at {offset}"))
        .help("the file may be an incomplete download")
}

fn overlap(input: &Input, first: (&str, u64), second: (&str, u64)) -> Diagnostic {
    let message = format!("the tensor shares bytes with tensor {}", first.0);
    input
        .error(codes::TENSOR_OVERLAP, message, format!("tensor {}", second.0))
        .wanted(format!("data from byte {} on", first.1), format!("byte {}", second.1))
}
