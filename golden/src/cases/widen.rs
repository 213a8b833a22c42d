//! `widen`: every storage format, decoded; and rows of it by ids.

use ds4_ir::Format;

use super::Case;
use super::bytes::{ROWS, contents};
use super::draft::Draft;
use super::inputs::SPECIAL;
use super::stored::Contents;

/// The family's name.
pub const FAMILY: &str = "widen";

/// All cases.
pub fn cases() -> Vec<Case> {
    let formats = Format::ALL.into_iter().flat_map(|format| [whole(format), gathered(format)]);
    formats.chain([every_byte_of_fp8(), in_parts()]).collect()
}

/// All elements of a tensor: of 16-bit formats every bit pattern, of the others rows of every kind.
fn whole(format: Format) -> Case {
    let mut d = Draft::new(FAMILY, format.name());
    let (extents, contents) = match format {
        Format::F32 => {
            let words = [SPECIAL.to_vec(), d.random.patterns(SPECIAL.len())].concat();
            let data = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            ([2, SPECIAL.len() as u32], Contents { data, scales: Vec::new(), scale_block: [0, 0] })
        }
        Format::F16 | Format::BF16 => {
            let data = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
            ([256, 256], Contents { data, scales: Vec::new(), scale_block: [0, 0] })
        }
        _ => {
            let extents = [2 * ROWS.len() as u32, 3 * format.block_len().max(32) as u32];
            (extents, contents(format, [1, extents[0] as usize, extents[1] as usize], &mut d.random))
        }
    };
    let w = d.weight(format, &extents, &contents);
    let y = d.b.widen(w);
    d.output("y", y);
    d.once()
}

/// Rows by ids of each column, some masked. Formats of single elements have rows that end within a word.
fn gathered(format: Format) -> Case {
    let mut d = Draft::new(FAMILY, &format!("{}.gathered", format.name()));
    let cols = match format.block_len() {
        1 => 7,
        2 => 70,
        n => n as u32,
    };
    let rows = ROWS.len() as u32;
    let contents = contents(format, [1, rows as usize, cols as usize], &mut d.random);
    let w = d.weight(format, &[rows, cols], &contents);
    let ids: Vec<i32> = (0..16).map(|i| if i % 5 == 3 { -1 } else { i * 4 % 7 }).collect();
    let ids = d.ids(&[8, 2], &ids);
    let ids = d.per_column(ids);
    let chosen = d.b.gather(0, 0, w, ids);
    let y = d.b.widen(chosen);
    d.tap("y", y);
    d.steps(&[8, 1])
}

/// Every code of E4M3 with scales at both ends.
fn every_byte_of_fp8() -> Case {
    let mut d = Draft::new(FAMILY, "fp8.every_byte");
    let scales = [0, 1, 2, 127, 253, 254, 255];
    let data = scales.iter().flat_map(|_| 0..=255).collect();
    let w = d.weight(
        Format::Fp8,
        &[scales.len() as u32, 256],
        &Contents { data, scales: scales.to_vec(), scale_block: [1, 256] },
    );
    let y = d.b.widen(w);
    d.output("y", y);
    d.once()
}

/// Tensors that are stored in parts, one for each index of the first axis.
fn in_parts() -> Case {
    let mut d = Draft::new(FAMILY, "parts");
    for format in [Format::Q8_0, Format::Fp8, Format::Fp4, Format::F16] {
        let contents = contents(format, [3, 5, 96], &mut d.random);
        let w = d.weight(format, &[3, 5, 96], &contents);
        let y = d.b.widen(w);
        d.output(format.name(), y);
    }
    d.once()
}
