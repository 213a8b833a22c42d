//! `write`: a state with rows replaced.

use std::sync::Arc;

use super::tensor::{Data, MASKED, Tensor, canonical_bits, count};
use crate::op::Type;

/// The state with row `ids[i]` replaced by `rows[i]`; masked ids are skipped. NaN is made canonical.
///
/// Two rows for one place would leave the result to chance: that is an error.
pub(super) fn write(state: Tensor, ids: &Tensor, rows: &Tensor) -> Result<Tensor, String> {
    ids.expect_present("the ids")?;
    let (places, row_len) = (state.extents[0], count(&state.extents[1..]));
    let Data::Words(mut words) = state.data else {
        return Err("a state holds words".into());
    };
    let mut written = vec![false; places];
    for (i, &id) in ids.bits().iter().enumerate() {
        if id == MASKED && ids.ty == Type::ID {
            continue;
        }
        let place = id as usize;
        match written.get(place) {
            None => {
                return Err(format!("id {} is outside the state's {places} rows", id as i32));
            }
            Some(true) => return Err(format!("row {place} of the state is written twice")),
            Some(false) => written[place] = true,
        }
        let range = i * row_len..(i + 1) * row_len;
        if range.clone().any(|cell| rows.is_absent(cell)) {
            return Err(format!("row {i}, written to {place}, has no value"));
        }
        let target = &mut Arc::make_mut(&mut words)[place * row_len..][..row_len];
        for (word, &new) in target.iter_mut().zip(&rows.bits()[range]) {
            *word = canonical_bits(new);
        }
    }
    Ok(Tensor { data: Data::Words(words), absent: None, ..state })
}
