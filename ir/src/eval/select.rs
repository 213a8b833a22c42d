//! Ordering: `top_k`, `arg_max` and `sort_ids`, along the last axis.

use std::cmp::Reverse;

use super::tensor::{MASKED, Tensor, count};
use crate::numerics::rank;
use crate::op::Type;

/// Extent of the last axis.
fn last(x: &Tensor) -> usize {
    x.extents.last().copied().unwrap_or(0)
}

/// The row `row` of the last axis, as floats.
fn row(x: &Tensor, row: usize) -> &[f32] {
    &x.floats()[row * last(x)..][..last(x)]
}

/// `top_k`: the indices of the k largest keys, ascending, then masked ones if there are fewer.
///
/// NaN ranks below everything, -0 equals +0, the lower index wins ties. A candidate is its own index or masked;
/// masked ones are never chosen.
pub(super) fn top_k(keys: &Tensor, candidates: Option<&Tensor>, extents: Vec<usize>) -> Result<Tensor, String> {
    if let Some(candidates) = candidates {
        candidates.expect_present("the candidates")?;
    }
    let k = extents.last().copied().unwrap_or(0);
    let mut words = Vec::with_capacity(count(&extents));
    if count(&extents) > 0 {
        for r in 0..count(&extents[..extents.len() - 1]) {
            let mut indices = eligible(keys, candidates, r)?;
            let keys = row(keys, r);
            indices.sort_by_key(|&i| (Reverse(rank(keys[i as usize])), i));
            indices.truncate(k);
            indices.sort();
            indices.resize(k, MASKED);
            words.extend(indices);
        }
    }
    Ok(Tensor::words(Type::ID, extents, words))
}

/// The indices of row `r` that may be chosen.
fn eligible(keys: &Tensor, candidates: Option<&Tensor>, r: usize) -> Result<Vec<u32>, String> {
    let n = last(keys);
    let mut indices = Vec::with_capacity(n);
    for i in 0..n {
        if let Some(candidates) = candidates {
            match candidates.bits()[r * n + i] {
                MASKED => continue,
                id if id as usize == i => {}
                id => {
                    return Err(format!("candidate {i} has the id {id}: it is its own index or masked"));
                }
            }
        }
        if keys.is_absent(r * n + i) {
            return Err(format!("key {i} of row {r} has no value"));
        }
        indices.push(i as u32);
    }
    Ok(indices)
}

/// `arg_max`: the index of the largest, the lower one if several are.
pub(super) fn arg_max(x: &Tensor, extents: Vec<usize>) -> Result<Tensor, String> {
    x.expect_present("operand 0")?;
    let rows = count(&extents);
    if rows > 0 && last(x) == 0 {
        return Err("`arg_max` of no elements".into());
    }
    let largest = |r: usize| {
        let row = row(x, r);
        (0..row.len() as u32).max_by_key(|&i| (rank(row[i as usize]), Reverse(i))).unwrap_or(0)
    };
    Ok(Tensor::words(Type::I32, extents, (0..rows).map(largest).collect()))
}

/// `sort_ids`: ascending, masked last.
pub(super) fn sort_ids(ids: &Tensor) -> Result<Tensor, String> {
    ids.expect_present("the ids")?;
    if let Some(&id) = ids.bits().iter().find(|&&id| ids.ty == Type::I32 && (id as i32) < 0) {
        return Err(format!("{} is no id", id as i32));
    }
    let mut words = ids.bits().to_vec();
    if !words.is_empty() {
        // The masked id is the largest word.
        words.chunks_exact_mut(last(ids)).for_each(<[u32]>::sort);
    }
    Ok(Tensor::words(Type::ID, ids.extents.clone(), words))
}
