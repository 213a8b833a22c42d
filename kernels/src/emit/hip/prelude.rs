//! What stands in front of a kernel: the guard against flags that change bits, and the functions that the kernel calls.
//!
//! A function is here where C++ has no operator for what it does, or where the compilers differ. Each text carries those
//! that it calls and no others, so that it is whole without any header. The compilers are told apart by what they define:
//! `__AMDGCN__` for AMD's devices, `__CUDACC__` for NVIDIA's, neither for the CPU.

/// A function of the text.
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: &'static str,
    /// Functions that it calls.
    needs: &'static [&'static str],
    /// Its definition.
    definition: &'static str,
}

/// Refuses the flags that a compiler tells of. The list of [`super::HIPRTC_FLAGS`] and its like is for the others.
const GUARD: &str = "\
#if (defined(__FAST_MATH__) && __FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error \"this kernel needs IEEE arithmetic: compile it without fast math\"
#elif (defined(__USE_FAST_MATH__) && __USE_FAST_MATH__) || (defined(__CUDA_FTZ) && __CUDA_FTZ)
#error \"this kernel needs IEEE arithmetic: compile it without fast math, and keep subnormals\"
#elif defined(__CUDA_PREC_DIV) && !__CUDA_PREC_DIV
#error \"this kernel needs IEEE arithmetic: compile it with rounded division\"
#endif
";

/// What the functions call by one name: NVIDIA's compiler has these functions, the others have them as builtins, and
/// neither needs a header.
const BUILTIN: &str = "\
#if defined(__CUDACC__)
#define RT_BUILTIN(name) name
#else
#define RT_BUILTIN(name) __builtin_##name
#endif
";

/// The functions, in the order of their definition.
pub(crate) const FUNCTIONS: [Function; 12] = [
    Function { name: "as_uint", needs: &[], definition: AS_UINT },
    Function { name: "as_float", needs: &[], definition: AS_FLOAT },
    Function {
        name: "flipped",
        needs: &["as_uint", "as_float"],
        definition: "static __device__ inline float flipped(float x) { return as_float(as_uint(x) ^ 0x80000000u); }\n",
    },
    Function {
        name: "magnitude",
        needs: &["as_uint", "as_float"],
        definition: "static __device__ inline float magnitude(float x) { return as_float(as_uint(x) & 0x7fffffffu); }\n",
    },
    Function {
        name: "least",
        needs: &[],
        definition: "static __device__ inline unsigned least(unsigned x, unsigned y) { return x < y ? x : y; }\n",
    },
    Function {
        name: "floored",
        needs: &[],
        definition: "static __device__ inline float floored(float x) { return RT_BUILTIN(floorf)(x); }\n",
    },
    Function {
        name: "ceiled",
        needs: &[],
        definition: "static __device__ inline float ceiled(float x) { return RT_BUILTIN(ceilf)(x); }\n",
    },
    Function {
        name: "truncated",
        needs: &[],
        definition: "static __device__ inline float truncated(float x) { return RT_BUILTIN(truncf)(x); }\n",
    },
    Function {
        name: "rounded_even",
        needs: &[],
        definition: "static __device__ inline float rounded_even(float x) { return RT_BUILTIN(rintf)(x); }\n",
    },
    Function { name: "root", needs: &["as_uint", "as_float"], definition: ROOT },
    Function { name: "dot_bytes", needs: &[], definition: DOT_BYTES },
    Function { name: "exchanged", needs: &["as_uint", "as_float"], definition: EXCHANGED },
];

const AS_UINT: &str = "\
static __device__ inline unsigned as_uint(float x) {
    unsigned bits;
    RT_BUILTIN(memcpy)(&bits, &x, sizeof(bits));
    return bits;
}
";

const AS_FLOAT: &str = "\
static __device__ inline float as_float(unsigned bits) {
    float x;
    RT_BUILTIN(memcpy)(&x, &bits, sizeof(x));
    return x;
}
";

/// The correctly rounded square root: an estimate, then the integer root corrected until the remainder fits.
///
/// The square root of AMD's compilers is one ulp off up to HIP 5, by whatever name it is called, and later depends on a flag.
/// With significand `m` (24 bits) and `mm = m` or `2m` so that the exponent halves, `s = floor(sqrt(mm * 2^25))` has 25 bits,
/// and its last bit decides the rounding: `mm * 2^25` is even, so an odd `s` is never the exact root of a tie.
const ROOT: &str = "\
// The correctly rounded square root, however good that of the compiler is.
static __device__ inline float root(float x) {
    const unsigned bits = as_uint(x);
    if (bits > 0x7f800000u && bits != 0x80000000u) { return as_float(0x7fc00000u); }
    if (bits == 0x7f800000u || (bits << 1u) == 0u) { return x; }
    int exponent = int(bits >> 23u);
    unsigned m = bits & 0x7fffffu;
    if (exponent == 0) {
        exponent = 1;
        while (m < 0x800000u) { m <<= 1u; exponent -= 1; }
    } else {
        m |= 0x800000u;
    }
    if ((exponent & 1) == 0) { exponent -= 1; m <<= 1u; }
    unsigned s = unsigned(RT_BUILTIN(sqrtf)(float(m << 1u)) * 4096.0f);
    int rest = int((m << 25u) - s * s);
    while (rest < 0) { s -= 1u; rest += int(2u * s + 1u); }
    while (rest > int(2u * s)) { rest -= int(2u * s + 1u); s += 1u; }
    const unsigned rounded = (s >> 1u) + (s & 1u);
    return as_float(rounded + (unsigned((exponent - 175) / 2 + 150) << 23u));
}
";

/// One instruction where the device has it.
const DOT_BYTES: &str = "\
// The sum of the products of four pairs of signed bytes.
static __device__ inline unsigned dot_bytes(unsigned x, unsigned y) {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx1030__)
    return unsigned(__builtin_amdgcn_sdot4(int(x), int(y), 0, false));
#elif defined(__GFX11__) || defined(__GFX12__)
    return unsigned(__builtin_amdgcn_sudot4(true, int(x), true, int(y), 0, false));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
    unsigned sum;
    asm(\"dp4a.s32.s32 %0, %1, %2, 0;\" : \"=r\"(sum) : \"r\"(x), \"r\"(y));
    return sum;
#else
    unsigned sum = 0u;
    for (unsigned j = 0u; j < 32u; j += 8u) {
        sum += unsigned(int(x << j) >> 24u) * unsigned(int(y << j) >> 24u);
    }
    return sum;
#endif
}
";

/// AMD's swizzle by exclusive or works within 32 lanes of a wave of 32 or 64; NVIDIA's shuffle names the lanes that take part,
/// eight of which are there in the smallest workgroup.
const EXCHANGED: &str = "\
// The value of the lane whose number differs in the bits of `distance`, which is below 8.
template <unsigned distance> static __device__ inline unsigned exchanged(unsigned x) {
#if defined(__AMDGCN__)
    return unsigned(__builtin_amdgcn_ds_swizzle(int(x), 0x1f | distance << 10));
#elif defined(__CUDACC__)
    return __shfl_xor_sync(0xffu << (threadIdx.x & 24u), x, distance);
#else
    return __shfl_xor(x, distance);
#endif
}
template <unsigned distance> static __device__ inline float exchanged(float x) {
    return as_float(exchanged<distance>(as_uint(x)));
}
";

/// The prelude of a text that calls these functions.
pub(crate) fn prelude(calls: &dyn Fn(&str) -> bool) -> String {
    let called: Vec<&Function> = FUNCTIONS.iter().filter(|f| calls(f.name)).collect();
    let needed = |f: &Function| calls(f.name) || called.iter().any(|caller| caller.needs.contains(&f.name));
    let mut parts: Vec<&str> = FUNCTIONS.iter().filter(|f| needed(f)).map(|f| f.definition).collect();
    if parts.iter().any(|text| text.contains("RT_BUILTIN")) {
        parts.insert(0, BUILTIN);
    }
    parts.insert(0, GUARD);
    parts.join("\n")
}
