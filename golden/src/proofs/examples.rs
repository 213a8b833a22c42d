//! For each law of values texts in which it says something, and texts in which it must say nothing.
//!
//! `in a: [2, 3]` is a weight of that shape that is widened; its bits are random.

/// Texts for a rule.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Number of the rule.
    pub rule: u32,
    /// Texts with an instance.
    pub fires: &'static [&'static str],
    /// Texts without.
    pub quiet: &'static [&'static str],
}

/// An example for every rule, ascending.
pub const EXAMPLES: &[Example] = &[
    Example {
        rule: 301,
        fires: &[
            "in a: [2, 6]\nb: f32[3, 4] = reshape a\nc: f32[12] = reshape b",
            "in a: [6, 4]\ni: i32[columns, 2] = iota axis=1\ng = gather axis=0 a, i\nb: f32[columns, 8] = reshape g\nc: f32[columns, 2, 2, 2] = reshape b",
        ],
        quiet: &["in a: [2, 6]\nb: f32[6, 2] = permute axes=[1, 0] a\nc: f32[12] = reshape b"],
    },
    Example {
        rule: 302,
        fires: &["in a: [2, 6]\nb: f32[2, 6] = reshape a"],
        quiet: &["in a: [2, 6]\nb: f32[6, 2] = reshape a"],
    },
    Example {
        rule: 303,
        fires: &["in a: [9, 4]\nb: f32[6, 4] = slice axis=0 start=2 a\nc: f32[2, 4] = slice axis=0 start=3 b"],
        quiet: &["in a: [9, 4]\nb: f32[6, 4] = slice axis=0 start=2 a\nc: f32[6, 2] = slice axis=1 start=1 b"],
    },
    Example {
        rule: 304,
        fires: &["in a: [3, 4]\nb: f32[3, 4] = slice axis=0 start=0 a"],
        quiet: &["in a: [3, 4]\nb: f32[2, 4] = slice axis=0 start=0 a"],
    },
    Example {
        rule: 305,
        fires: &[
            "in a: [2, 3, 4]\nb = permute axes=[1, 2, 0] a\nc = permute axes=[2, 0, 1] b\nd = permute axes=[1, 2, 0] b",
        ],
        quiet: &["in a: [2, 3, 4]\nb: f32[3, 2, 4] = reshape a\nc = permute axes=[2, 0, 1] b"],
    },
    Example {
        rule: 306,
        fires: &["in a: [3, 3]\nb = permute axes=[0, 1] a"],
        quiet: &["in a: [3, 3]\nb = permute axes=[1, 0] a"],
    },
    Example {
        rule: 307,
        fires: &["in a: [4, 3, 5]\nb = permute axes=[2, 0, 1] a\nc: f32[5, 2, 3] = slice axis=1 start=1 b"],
        quiet: &["in a: [4, 3, 5]\nb: f32[5, 4, 3] = reshape a\nc: f32[5, 2, 3] = slice axis=1 start=1 b"],
    },
    Example {
        rule: 308,
        fires: &["in a: [4, 1, 5]\nb = permute axes=[1, 0, 2] a"],
        quiet: &["in a: [4, 1, 5]\nb = permute axes=[2, 1, 0] a"],
    },
    Example {
        rule: 321,
        fires: &["in a: [1, 1, 4]\nb: f32[3, 1, 4] = broadcast a\nc: f32[3, 2, 4] = broadcast b"],
        quiet: &[
            "in a: [1, 4]\nb: f32[3, 4] = broadcast a\nc: f32[3, 1, 4] = reshape b\nd: f32[3, 2, 4] = broadcast c",
        ],
    },
    Example {
        rule: 322,
        fires: &["in a: [3, 4]\nb: f32[3, 4] = broadcast a"],
        quiet: &["in a: [1, 4]\nb: f32[3, 4] = broadcast a"],
    },
    Example {
        rule: 323,
        fires: &["in a: [3, 1]\nb: f32[3, 8] = broadcast a\nc: f32[3, 2] = slice axis=1 start=5 b"],
        quiet: &["in a: [1, 8]\nb: f32[3, 8] = broadcast a\nc: f32[3, 2] = slice axis=1 start=5 b"],
    },
    Example {
        rule: 324,
        fires: &["in a: [1, 8]\nb: f32[3, 8] = broadcast a\nc: f32[3, 2] = slice axis=1 start=5 b"],
        quiet: &["in a: [3, 1]\nb: f32[3, 8] = broadcast a\nc: f32[3, 2] = slice axis=1 start=5 b"],
    },
    Example {
        rule: 325,
        fires: &["in a: [1, 3, 1]\nb: f32[4, 3, 2] = broadcast a\nc = permute axes=[2, 0, 1] b"],
        quiet: &["in a: [4, 3, 2]\nb = permute axes=[2, 0, 1] a\nc = permute axes=[2, 0, 1] b"],
    },
    Example {
        rule: 326,
        fires: &[
            "in a: [3, 1]\nb: f32[3, 8] = broadcast a\nc: f32[3, 4, 2] = reshape b",
            "in a: [1, 6]\nb: f32[4, 6] = broadcast a\nc: f32[2, 2, 1, 3, 2] = reshape b",
            "in a: [6, 4]\ni: i32[columns, 1] = iota axis=0\ng = gather axis=0 a, i\nh: f32[columns, 3, 4] = broadcast g\nc: f32[columns, 3, 2, 2] = reshape h",
        ],
        quiet: &["in a: [3, 1]\nb: f32[3, 8] = broadcast a\nc: f32[24] = reshape b"],
    },
    Example {
        rule: 341,
        fires: &[
            "in a: [2, 3]\nin b: [2, 4]\nin c: [2, 5]\nd = concat axis=1 a, b, c\ne: f32[2, 2] = slice axis=1 start=4 d",
        ],
        quiet: &[
            "in a: [2, 3]\nin b: [2, 4]\nd = concat axis=1 a, b\ne: f32[2, 2] = slice axis=1 start=2 d",
            "in a: [2, 3]\nin b: [2, 3]\nd = concat axis=1 a, b\ne: f32[1, 6] = slice axis=0 start=1 d",
        ],
    },
    Example {
        rule: 342,
        fires: &["in a: [3, 3]\nin b: [3, 4]\nd = concat axis=1 a, b\ne: f32[2, 7] = slice axis=0 start=1 d"],
        quiet: &["in a: [3, 3]\nin b: [3, 4]\nd = concat axis=1 a, b\ne: f32[3, 2] = slice axis=1 start=1 d"],
    },
    Example {
        rule: 343,
        fires: &[
            "in a: [2, 3]\nin b: [2, 4]\nin c: [2, 5]\nd = concat axis=1 a, b\ne = concat axis=1 c, d\nf = concat axis=1 d, e",
        ],
        quiet: &["in a: [2, 3]\nin b: [2, 3]\nin c: [4, 3]\nd = concat axis=0 a, b\ne = concat axis=1 c, d"],
    },
    Example {
        rule: 344,
        fires: &["in a: [2, 3]\nb = concat axis=1 a"],
        quiet: &["in a: [2, 3]\nb = concat axis=1 a, a"],
    },
    Example {
        rule: 361,
        fires: &["in a: [2, 3]\nb = map { x0 } a", "in a: [2, 3]\nin b: [2, 3]\nbody f(f32, f32) = x1\nc = map f a, b"],
        quiet: &["in a: [2, 3]\nb = map { neg(x0) } a"],
    },
    Example {
        rule: 362,
        fires: &[
            "in a: [2, 1]\nin b: [2, 1]\nc: f32[2, 5] = broadcast a\nd: f32[2, 5] = broadcast b\ne = map { div(x0, x1) } c, d",
            "in a: [2, 3]\nb = permute axes=[1, 0] a\nc = map { exp(x0) } b",
        ],
        quiet: &[
            "in a: [2, 1]\nin b: [1, 5]\nc: f32[2, 5] = broadcast a\nd: f32[2, 5] = broadcast b\ne = map { div(x0, x1) } c, d",
            "in a: [2, 3]\nin b: [3, 2]\nc: f32[6] = reshape a\nd: f32[6] = reshape b\ne = map { div(x0, x1) } c, d",
            "in a: [6]\nc: f32[2] = slice axis=0 start=1 a\ne = map { neg(x0) } c",
            "in a: [3, 3]\nin b: [3, 3]\nc = permute axes=[1, 0] a\nd = permute axes=[0, 1] b\ne = map { div(x0, x1) } c, d\nm = map { div(x0, x1) } a, b\nforged = permute axes=[1, 0] m",
        ],
    },
    Example {
        rule: 363,
        fires: &["in a: [4, 3]\nin b: [4, 3]\nc = map { sub(x0, x1) } a, b\nd: f32[2, 3] = slice axis=0 start=1 c"],
        quiet: &["in a: [4, 3]\nc = map { neg(x0) } a\nd: f32[3, 4] = reshape c"],
    },
    Example {
        rule: 364,
        fires: &[
            "in a: [4]\nin b: [4]\nin c: [4]\nd = map { sub(x0, x1) } a, b\ne = map { div(x0, mul(x1, x0)) } c, d",
            "in a: [4]\nd = map { neg(x0) } a\ne = map { exp(x0) } d",
        ],
        quiet: &["in a: [4]\nd = map { neg(x0) } a\ne: f32[2, 2] = reshape d\nf = map { exp(x0) } e"],
    },
    Example {
        rule: 365,
        fires: &[
            "in a: [4]\nin b: [4]\nd = map { sub(mul(x0, x1), x2) } a, b, a",
            "in a: [4]\nin b: [4]\nin c: [4]\nbody f(f32, f32, f32) = sub(x2, x0)\nd = map f a, b, c",
        ],
        quiet: &["in a: [4]\nin b: [4]\nd = map { sub(x0, x1) } a, b"],
    },
    Example {
        rule: 381,
        fires: &[
            "in a: [2, 3, 64]\nb: f32[6, 64] = reshape a\nc = quantise b",
            "in a: [2, 3, 64]\nb = permute axes=[1, 0, 2] a\nc = quantise b",
            "in a: [2, 1, 64]\nb: f32[2, 3, 64] = broadcast a\nc = quantise b",
            "in a: [4, 64]\nb: f32[2, 64] = slice axis=0 start=1 a\nc = quantise b",
        ],
        quiet: &[
            "in a: [2, 64]\nb: f32[4, 32] = reshape a\nc = quantise b",
            "in a: [2, 64]\nb: f32[2, 32] = slice axis=1 start=32 a\nc = quantise b",
        ],
    },
    Example {
        rule: 382,
        fires: &["weight a: w.q8_0[2, 3, 64]\nw = weight a\nb: w.q8_0[6, 64] = reshape w\nc = widen b"],
        quiet: &["weight a: w.q8_0[2, 3, 64]\nw = weight a\nc = widen w\nb: f32[6, 64] = reshape c"],
    },
    Example {
        rule: 401,
        fires: &[
            "in x: [3, 8]\nin w: [6, 8]\np = product seq x, w\ny: f32[3, 2] = slice axis=1 start=3 p",
            "in x: [2, 3, 8]\nin w: [2, 6, 8]\np = product lanes(4) x, w\ny: f32[2, 3, 2] = slice axis=2 start=3 p",
            "in x: [3, 64]\nweight m: w.q8_0[6, 64]\nw = weight m\nq = quantise x\np = product lanes(32) q, w\ny: f32[3, 2] = slice axis=1 start=3 p",
        ],
        quiet: &["in x: [3, 8]\nin w: [6, 8]\np = product seq x, w\ny: f32[2, 6] = slice axis=0 start=1 p"],
    },
    Example {
        rule: 402,
        fires: &[
            "in x: [3, 8]\nin w: [6, 8]\np = product seq x, w\ny: f32[2, 6] = slice axis=0 start=1 p",
            "in x: [2, 3, 8]\nin w: [2, 6, 8]\np = product lanes(4) x, w\ny: f32[2, 1, 6] = slice axis=1 start=1 p",
        ],
        quiet: &[
            "in x: [2, 3, 8]\nin w: [2, 6, 8]\np = product lanes(4) x, w\ny: f32[1, 3, 6] = slice axis=0 start=1 p",
        ],
    },
    Example {
        rule: 403,
        fires: &["in x: [6, 8]\nin w: [5, 8]\nr: f32[2, 3, 8] = reshape x\np = product lanes(2) r, w"],
        quiet: &[
            "in x: [6, 8]\nin w: [2, 5, 8]\nr: f32[2, 3, 8] = reshape x\np = product lanes(2) r, w",
            "in x: [3, 16]\nin w: [5, 8]\nr: f32[6, 8] = reshape x\np = product lanes(2) r, w",
        ],
    },
    Example {
        rule: 404,
        fires: &["in x: [2, 1, 8]\nin w: [5, 8]\nr: f32[2, 3, 8] = broadcast x\np = product lanes(2) r, w"],
        quiet: &[
            "in x: [2, 1]\nin w: [5, 8]\nr: f32[2, 8] = broadcast x\np = product lanes(2) r, w",
            "in x: [1, 3, 8]\nin w: [2, 5, 8]\nr: f32[2, 3, 8] = broadcast x\np = product lanes(2) r, w",
        ],
    },
    Example {
        rule: 421,
        fires: &["in a: [2, 3]\nin b: [2, 4]\nc = concat axis=1 a, b\nm = reduce max free axis=1 c"],
        quiet: &[
            "in a: [2, 3]\nin b: [2, 4]\nc = concat axis=1 a, b\nm = reduce sum seq axis=1 c",
            "in a: [2, 3]\nin b: [2, 4]\nc = concat axis=1 a, b\nm = reduce max free axis=0 c",
        ],
    },
    Example {
        rule: 422,
        fires: &[
            "in a: [2, 3, 4]\nb = reduce max free axis=2 a\nc = reduce max free axis=1 b",
            "in a: [2, 3, 4]\nb = reduce max free axis=1 a\nc = reduce max free axis=1 b",
        ],
        quiet: &[
            "in a: [2, 3, 4]\nb = reduce max free axis=2 a\nc = reduce max free axis=0 b",
            "in a: [2, 3, 4]\nb = reduce sum seq axis=2 a\nc = reduce max free axis=1 b",
            "in a: [2, 3, 4]\nb = reduce max free axis=2 a\nc = reduce sum seq axis=1 b",
        ],
    },
    Example {
        rule: 441,
        fires: &["in a: [12, 3]\nin b: [12, 2]\nc = concat axis=1 a, b\nm = arg_max c"],
        quiet: &[
            "in a: [2, 3]\nin b: [4, 3]\nc = concat axis=0 a, b\nm = arg_max c",
            "in a: [12, 3]\nin b: [12, 2]\nnone: f32[12, 0] = slice axis=1 start=0 b\nc = concat axis=1 a, none\nm = arg_max c",
        ],
    },
    Example {
        rule: 442,
        fires: &[
            "in a: [6, 4]\ni: i32[3, 2] = iota axis=0\ng = gather axis=0 a, i\ns: f32[2, 2, 4] = slice axis=0 start=1 g\nt: f32[3, 1, 4] = slice axis=1 start=1 g",
        ],
        quiet: &[
            "in a: [6, 4]\ni: i32[3] = iota axis=0\ng = gather axis=0 a, i\ns: f32[3, 2] = slice axis=1 start=1 g",
        ],
    },
];
