mod conversions;
mod functions;
mod graph;
mod ordering;
mod rotation;

/// Values at which arithmetic tends to go wrong, each with both signs.
fn specials() -> Vec<f32> {
    let bits = [
        0,
        1,
        2,
        0x0040_0000,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x3300_0000,
        0x337f_ffff,
        0x3380_0000,
        0x3f00_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x4049_0fdb,
        0x4b00_0000,
        0x4b7f_ffff,
        0x7f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x7fff_ffff,
    ];
    bits.iter().flat_map(|&b| [b, b | 0x8000_0000]).map(f32::from_bits).collect()
}

/// Whether two values are the same to an observer: equal bits, or both NaN.
fn same(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}
