//! What the reader refuses, and what a changed character does.

pub(crate) mod changes;
pub(crate) mod every;

use crate::emit::{StepBlock, ptx};

use super::read;

/// A kernel with every line that the printer has, as text.
fn text() -> String {
    let kernel = every::kernel();
    ptx::emit(&kernel, &StepBlock::of([&kernel])).unwrap()
}

#[test]
fn changed_texts_are_refused_where_they_change() {
    let text = text();
    let kernel = read(&text).unwrap().kernel;
    assert_eq!((kernel.name.as_str(), kernel.lanes), ("every_line", every::LANES));
    let mut answers = String::new();
    for (from, to) in [
        ("add.rn.f32", "add.f32"),
        ("sqrt.rn.f32", "sqrt.approx.f32"),
        ("mul.rn.f32", "mul.rn.ftz.f32"),
        ("mul.rn.f32", "fma.rn.f32"),
        ("mul.wide.u32 %a1, %at, 4;", "mul.wide.u32 %a1, %at, 2;"),
        ("add.u64 %a2, %floats, %a1;", "add.u64 %a2, %a1, %floats;"),
        ("[%words+8]", "[%words+6]"),
        ("[%words+8]", "[%words+010]"),
        ("ld.global.f32 %x, ", "ld.shared.f32 %x, "),
        ("ld.global.f32 %x, ", "ld.global.nc.f32 %x, "),
        ("ld.global.f32 %x, ", "ld.global.b32 %i, "),
        ("st.global.f32", "st.global.b32"),
        ("setp.lt.f32", "setp.ltu.f32"),
        ("cvt.rni.f32.f32 %f11, %z;", "cvt.rni.f32.f32 %z, %z;"),
        ("cvt.rni.f32.f32 %f11, %z;", "cvt.rni.f32.f32 %f10, %z;"),
        ("cvt.rni.f32.f32 %f11, %z;", "cvt.rni.f32.f32 %f11, %f10;"),
        ("cvt.rni.f32.f32 %f11, %z;", "cvt.rni.f32.f32 %f11, %now;"),
        ("sub.rn.f32 %sum, %sum, %x;", "@%c9 sub.rn.f32 %sum, %sum, %x;"),
        ("add.u32 %k, %k, 3;", "add.u32 %k, %at, 3;"),
        ("$if2_end:", "$if3_end:"),
        ("bra $for3_head;", "bra $for3_end;"),
        ("bar.sync 0;", "bar.sync 1;"),
        ("6175, 255;", "6175, 0xffffffff;"),
        ("6175, 255;", "31, 255;"),
        (".reqntid 8, 1, 1", ".maxntid 8, 1, 1"),
        (".version 6.3", ".version 6.4"),
        ("%ctaid.y", "%ctaid.z"),
        ("    ret;\n", "    ret;\n    ret;\n"),
        ("    ret;\n}\n", "    ret;\n"),
        ("\n    bar.sync 0;", "\n    membar.cta;\n    bar.sync 0;"),
    ] {
        assert!(text.contains(from), "{from}\n{text}");
        let changed = text.replacen(from, to, 1);
        let fault = read(&changed).expect_err(to);
        answers += &format!("{to:?}\n    {}\n", fault.what);
        let line = changed.lines().nth((fault.line as usize).saturating_sub(1));
        assert!(line.is_some(), "{fault}");
    }
    insta::assert_snapshot!(answers);
}

/// Any bytes are answered.
#[test]
fn no_text_is_a_panic() {
    let deep = |count: usize| {
        let head = text().split_once("    ret;").unwrap().0.to_string();
        let nested: String = (100..100 + count).map(|i| format!("@!%c1 bra $if{i}_end;\n")).collect();
        head + &nested
    };
    for text in
        [String::new(), "// ".into(), "//\n".into(), "\0".into(), "// é\n.version 6.3".into(), deep(1), deep(100_000)]
    {
        assert!(read(&text).is_err());
    }
    let text = text();
    for end in (0..text.len() - 2).step_by(7) {
        assert!(read(&text[..end]).is_err());
    }
}
