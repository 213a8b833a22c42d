//! Arg-max, under the contract's ranking.

use ds4_ir::numerics::rank;

use super::Invalid;

/// The id of the largest logit; -0 equals +0 and the lower id wins ties. A NaN anywhere is an error.
pub fn arg_max(logits: &[f32]) -> Result<u32, Invalid> {
    if let Some(id) = logits.iter().position(|logit| logit.is_nan()) {
        return Err(Invalid(id as u32));
    }
    let mut best: Option<(i32, u32)> = None;
    for (id, &logit) in (0u32..).zip(logits) {
        let key = rank(logit);
        if best.is_none_or(|(largest, _)| key > largest) {
            best = Some((key, id));
        }
    }
    best.map(|(_, id)| id).ok_or(Invalid(0))
}
