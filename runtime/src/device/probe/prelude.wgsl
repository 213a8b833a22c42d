// Zeros that no compiler sees.
@group(0) @binding(2) var<uniform> opaque: vec4<u32>;

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Signed order of values, with -0 equal to +0; of NaN without meaning.
fn order(x: f32) -> i32 {
    let u = bitcast<u32>(x);
    return select(bitcast<i32>(u), bitcast<i32>(0x80000000u - u), u >= 0x80000000u);
}

fn is_less(x: f32, y: f32) -> bool {
    return !is_nan(x) && !is_nan(y) && order(x) < order(y);
}

fn is_equal(x: f32, y: f32) -> bool {
    return !is_nan(x) && !is_nan(y) && order(x) == order(y);
}

fn negated(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}

fn magnitude(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}

// Square root, correctly rounded: the device's estimate, corrected on integers.
fn square_root(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) == 0u || bits == 0x7f800000u || is_nan(x) {
        return x;
    }
    if bits > 0x80000000u {
        return bitcast<f32>(0x7fc00000u ^ opaque.x);
    }
    // x = m * 2^e with m in [2^23, 2^24).
    let shift = select(0u, countLeadingZeros(bits) - 8u, bits < 0x00800000u);
    let subnormal = bits << shift;
    let m = select((bits & 0x007fffffu) | 0x00800000u, subnormal, bits < 0x00800000u);
    let e = select(i32(bits >> 23u) - 150, -149 - i32(shift), bits < 0x00800000u);
    // x = mm * 2^odd; s is the root of mm * 2^25, rounded down: 25 bits.
    let is_odd = (e & 1) != 0;
    let mm = select(m << 1u, m, is_odd);
    let odd = select(e - 1, e, is_odd);
    var s = u32(sqrt(f32(mm << 1u)) * 4096.0);
    // The rest is small, so it is exact modulo 2^32.
    var rest = bitcast<i32>((mm << 25u) - s * s);
    for (var step = 0u; step < 32u; step++) {
        if rest < 0 {
            s = s - 1u;
            rest = rest + bitcast<i32>(2u * s + 1u);
        } else if rest > bitcast<i32>(2u * s) {
            rest = rest - bitcast<i32>(2u * s + 1u);
            s = s + 1u;
        }
    }
    // No root lies between two neighbours with equal distance.
    let rounded = (s >> 1u) + (s & 1u);
    return bitcast<f32>((u32((odd - 23) / 2 + 149) << 23u) + rounded);
}
