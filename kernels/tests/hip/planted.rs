//! Quotients of integers as clang writes them, and faults planted beside and into them.

use crate::clang::uniform;
use crate::code::{listing, strange};

/// A wave of CDNA: everything in vector registers.
const CDNA: &str = "0000000000002b00 <k0>:
\ts_load_dword s6, s[0:1], 0x58                              // 000000002B00: C0020180 00000058
\tv_cvt_f32_ubyte0_e32 v1, s2                                // 000000002B08: 7E022202
\tv_rcp_iflag_f32_e32 v2, v1                                 // 000000002B0C: 7E044701
\ts_lshr_b32 s3, s28, 3                                      // 000000002B10: 8F03831C
\tv_cvt_f32_u32_sdwa v3, v7 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0// 000000002B14: 7E060CF9 00040607
\tv_mul_f32_e32 v2, v3, v2                                   // 000000002B1C: 0A040503
\tv_trunc_f32_e32 v2, v2                                     // 000000002B20: 7E043902
\tv_cvt_u32_f32_e32 v4, v2                                   // 000000002B24: 7E080F02
\tv_fma_f32 v2, -v2, v1, v3                                  // 000000002B28: D1CB0002 240E0302
\tv_cmp_ge_f32_e64 s[20:21], |v2|, v1                        // 000000002B30: D0460014 00020302
";

/// RDNA 3: two instructions are issued together.
const RDNA3: &str = "0000000000002d00 <k0>:
\tv_cvt_f32_u32_e32 v11, v5                                  // 000000002D00: 7E160D05
\tv_dual_add_f32 v0, v0, v2 :: v_dual_add_nc_u32 v5, 1, v5   // 000000002D04: C9200500 00040A81
\tv_cvt_f32_u32_e32 v7, v4                                   // 000000002D0C: 7E0E0D04
\tv_rcp_iflag_f32_e32 v9, v7                                 // 000000002D10: 7E125707
\ts_waitcnt_depctr 0xfff                                     // 000000002D14: BF880FFF
\tv_dual_mul_f32 v9, v11, v9 :: v_dual_add_nc_u32 v4, 3, v4  // 000000002D18: C8E0130B 09040883
\tv_trunc_f32_e32 v9, v9                                     // 000000002D20: 7E124309
\tv_fma_f32 v11, -v9, v7, v11                                // 000000002D24: D613000B 242E0F09
\tv_cvt_u32_f32_e32 v8, v9                                   // 000000002D2C: 7E100F09
\tv_cmp_ge_f32_e64 vcc_lo, |v11|, v7                         // 000000002D30: D416016A 00020F0B
";

/// RDNA 4: the reciprocal is a vector's, the rest is scalar.
const RDNA4: &str = "0000000000002900 <k0>:
\tv_cvt_f32_ubyte0_e32 v1, s2                                // 000000002900: 7E022202
\tv_cvt_f32_ubyte0_e32 v3, s20                               // 000000002904: 7E062214
\tv_rcp_iflag_f32_e32 v2, v1                                 // 000000002908: 7E045701
\tv_readfirstlane_b32 s23, v1                                // 00000000290C: 7E2E0501
\tv_readfirstlane_b32 s3, v3                                 // 000000002910: 7E060503
\tv_readfirstlane_b32 s4, v2                                 // 000000002914: 7E080502
\ts_mul_f32 s4, s3, s4                                       // 000000002918: A2040403
\ts_trunc_f32 s21, s4                                        // 00000000291C: BE956204
\ts_xor_b32 s4, s21, 0x80000000                              // 000000002920: 8D04FF15 80000000
\ts_fmac_f32 s3, s4, s23                                     // 000000002928: A3831704
\ts_bitset0_b32 s3, 31                                       // 00000000292C: BE83109F
\ts_cmp_ge_f32 s3, s23                                       // 000000002930: BF461703
";

/// RDNA 3.5: a vector's quotient of a scalar, with the sign changed apart.
const MIXED: &str = "0000000000003000 <k0>:
\ts_cvt_f32_u32 s15, s15                                     // 000000003000: BE8F650F
\tv_cvt_f32_ubyte0_e32 v0, s12                               // 000000003004: 7E00220C
\tv_rcp_iflag_f32_e32 v1, v0                                 // 000000003008: 7E025700
\tv_mul_f32_e32 v1, s15, v1                                  // 00000000300C: 1002020F
\tv_trunc_f32_e32 v1, v1                                     // 000000003010: 7E024301
\tv_xor_b32_e32 v2, 0x80000000, v1                           // 000000003014: 3A0402FF 80000000
\tv_cvt_u32_f32_e32 v1, v1                                   // 00000000301C: 7E020F01
\tv_fma_f32 v2, v2, v0, s15                                  // 000000003020: D6130002 003E0102
\tv_cmp_ge_f32_e32 vcc_lo, v2, v0                            // 000000003028: 7C2C0102
";

/// The quotients, each with the instruction that is fused.
const QUOTIENTS: [(&str, &str); 4] = [
    (CDNA, "v_fma_f32 v2, -v2, v1, v3"),
    (RDNA3, "v_fma_f32 v11, -v9, v7, v11"),
    (RDNA4, "s_fmac_f32 s3, s4, s23"),
    (MIXED, "v_fma_f32 v2, v2, v0, s15"),
];

/// What is strange in a disassembly of a kernel that neither divides floats nor takes roots.
fn found(disassembly: &str) -> Option<String> {
    strange(&uniform(), &listing(disassembly)["k0"]).map(str::to_string)
}

/// The disassembly with another line behind its line number `at`.
fn planted(disassembly: &str, at: usize, line: &str) -> String {
    let mut lines: Vec<&str> = disassembly.lines().collect();
    lines.insert(at + 1, line);
    lines.join("\n")
}

#[test]
fn quotients_are_accepted() {
    for (disassembly, fused) in QUOTIENTS {
        assert!(disassembly.contains(fused));
        assert_eq!(found(disassembly), None, "{fused}");
    }
}

/// Wherever it stands, a fused operation of other registers is found by its name.
#[test]
fn a_contraction_beside_a_quotient_is_found_by_name() {
    for (disassembly, fused) in QUOTIENTS {
        for at in 0..disassembly.lines().count() - 1 {
            for line in [
                "v_fma_f32 v40, v41, v42, v43",
                "v_fma_f32 v40, -v41, v42, v43",
                "v_fmac_f32_e32 v40, v41, v42",
                "v_dual_fmac_f32 v40, v41, v42 :: v_dual_mov_b32 v44, v45",
                "v_dual_mov_b32 v44, v45 :: v_dual_fmac_f32 v40, v41, v42",
                "v_pk_fma_f32 v[40:41], v[42:43], v[44:45], v[46:47]",
                "s_fmac_f32 s40, s41, s42",
                "v_s_sqrt_f32 s40, s41",
            ] {
                assert_eq!(found(&planted(disassembly, at, &format!("\t{line}"))).as_deref(), Some(line), "{fused}");
            }
        }
    }
}

/// One that takes some of the quotient's registers and others.
#[test]
fn a_contraction_with_registers_of_a_quotient_is_found_by_name() {
    // Behind the reciprocal v2, and behind the truncated v2 of the first quotient.
    for (at, lines) in [
        (3, ["v_fma_f32 v40, v2, v41, v42", "v_fma_f32 v40, -v2, v41, v42", "v_fma_f32 v40, -v2, v1, v3"]),
        (7, ["v_fma_f32 v40, -v2, v41, v42", "v_fma_f32 v40, -v2, v1, v42", "v_fma_f32 v40, -v2, v41, v3"]),
        (7, ["v_fma_f32 v40, v2, v1, v3", "v_fma_f32 v40, -v2, v1, -v3", "v_fma_f32 v40, -v2, v3, v1"]),
        (7, ["v_fma_f32 v40, -v2, -v1, v3", "v_fma_f32 v40, -v2, |v1|, v3", "v_fmac_f32_e32 v3, v2, v1"]),
        (7, ["v_fma_f32 v40, -v1, v1, v3", "v_fma_f32 v40, -v2, v2, v3", "v_fma_f32 v40, v41, v1, v3"]),
    ] {
        for line in lines {
            let text = planted(CDNA, at, &format!("\t{line}"));
            assert_eq!(found(&text).as_deref(), Some(line), "{text}");
        }
    }
}

/// Each instruction of the form is needed, and each of its registers as it was.
#[test]
fn a_broken_quotient_is_found() {
    let of_form = ["cvt_f32_u", "rcp_iflag", "_mul_f32", "trunc_f32", "xor_b32", "readfirstlane"];
    let mut broken = 0;
    for (disassembly, fused) in QUOTIENTS {
        let lines: Vec<&str> = disassembly.lines().collect();
        let end = lines.iter().position(|line| line.contains(fused)).unwrap();
        for at in 1..end {
            if !of_form.iter().any(|part| lines[at].contains(part)) {
                continue;
            }
            let without: Vec<&str> = [&lines[..at], &lines[at + 1..]].concat();
            assert_eq!(found(&without.join("\n")).as_deref(), Some(fused), "without {}", lines[at]);
            // What the instruction wrote is written again, alone or with neighbours.
            let result = lines[at].trim().split([' ', ',']).nth(1).unwrap();
            let (bank, number) = result.split_at(1);
            let number: u32 = number.parse().unwrap();
            for again in [
                format!("{bank}_mov_b32 {result}, {bank}60"),
                format!("global_load_b64 {bank}[{}:{number}], v60, off", number - number.min(1)),
                format!("v_div_scale_i32 v60, {result}, v61, v62, v63"),
            ] {
                let text = planted(disassembly, at, &format!("\t{again}"));
                assert_eq!(found(&text).as_deref(), Some(fused), "{again} behind {}", lines[at]);
            }
            broken += 1;
        }
    }
    assert!(broken > 20, "{broken}");
}

/// Where control comes from elsewhere, or other lanes take part, nothing is known of registers.
#[test]
fn a_quotient_ends_with_straight_code() {
    for (disassembly, fused) in QUOTIENTS {
        let lines: Vec<&str> = disassembly.lines().collect();
        let end = lines.iter().position(|line| line.contains(fused)).unwrap();
        let address = |at: usize| lines[at].split("// ").nth(1).unwrap()[..12].to_string();
        let start = u64::from_str_radix(&lines[0][..16], 16).unwrap();
        let far = |at: usize| u64::from_str_radix(&address(at), 16).unwrap() - start;
        let behind = lines.len() - 1;
        let arrives = |to: u64| {
            planted(disassembly, behind, &format!("\ts_cbranch_scc1 65000    // 000000004000: BFA2FDE8 <k0+{to:#x}>"))
        };
        assert_eq!(found(&arrives(far(end))).as_deref(), Some(fused));
        assert_eq!(found(&arrives(far(end + 1))), None);
        // A long branch, from address 0x4000.
        let long = |to: usize| {
            let constant = (start + far(to)).wrapping_sub(0x4004) as u32;
            let text = planted(disassembly, behind, "\ts_getpc_b64 s[60:61]    // 000000004000: BEBC1C00");
            planted(&text, behind + 1, &format!("\ts_add_u32 s60, s60, {constant:#x}    // 000000004004: 803CFF3C"))
        };
        assert_eq!(found(&long(end)).as_deref(), Some(fused));
        assert_eq!(found(&long(end + 1)), None);
        for line in ["s_mov_b64 exec, s[60:61]", "s_and_saveexec_b32 s60, vcc_lo", "v_cmpx_gt_u32_e64 v60, v61"] {
            assert_eq!(found(&planted(disassembly, end - 1, &format!("\t{line}"))).as_deref(), Some(fused), "{line}");
        }
    }
}
