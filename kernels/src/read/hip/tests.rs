//! What the reader takes and what it refuses.

use ds4_ir::numerics::Arith;

use crate::emit::{StepBlock, hip};
use crate::kernel::{Access, Builder, ExtentRow, Kernel, Number, Source, Stmt, Type};

use super::read;

/// A kernel with an exchange, an array, a branch, a loop, and a sum.
fn kernel() -> Kernel {
    let b = Builder::new("sum", &[], 64);
    b.about("a sum");
    let row = b.group(ExtentRow { scalar: Some(ds4_ir::Dim(0)), most: 8, times: 1, per: 1 });
    let x = b.argument(Source::Tokens, Type::F32, Access::Read, "x");
    let out = b.argument(Source::Slot(ds4_ir::Value(0)), Type::F32, Access::Write, "out");
    let partial = b.shared(Type::F32, 64, "partial");
    let sum = b.var("sum", b.number(0.5));
    b.repeat("k", b.lane(), ExtentRow::constant(100), 64, |k| {
        let x: Number = b.load("leaf", x, b.add_int(b.mul_int(row, b.word(100)), k));
        b.update(sum, |sum| b.add(sum, b.neg(x)));
    });
    let mine = b.value("mine", sum);
    let other = b.shuffle("other", mine, 4, 8);
    b.store(partial, b.lane(), b.add(mine, other));
    b.barrier();
    let first = b.sar(b.bits(other), b.word(31));
    b.branch(
        b.less_int(b.lane(), first),
        || {
            let total: Number = b.load("total", partial, b.word(0));
            b.store(out, row, b.rounded_float_of(b.dot_bytes(b.bits(total), b.lane())));
        },
        || b.store(out, row, b.number(f32::INFINITY)),
    );
    b.finish()
}

fn text() -> String {
    hip::emit(&kernel(), &StepBlock::of([&kernel()])).unwrap()
}

/// The fault of a text with a part replaced, which must be there.
fn fault(old: &str, new: &str) -> String {
    let text = text();
    assert!(text.contains(old), "`{old}` in\n{text}");
    match read(&text.replacen(old, new, 1)) {
        Ok(_) => panic!("taken: `{new}` for `{old}`"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn a_text_is_read_back() {
    let text = text();
    let reading = read(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let kernel = &reading.kernel;
    assert_eq!((kernel.name.as_str(), kernel.about.as_str(), kernel.lanes), ("sum", "a sum", 64));
    assert_eq!(kernel.parts[0].grid.len(), 1);
    assert_eq!(kernel.extents[0], ExtentRow { scalar: Some(ds4_ir::Dim(2)), most: 8, times: 1, per: 1 });
    assert_eq!(kernel.memories.len(), 3);
    assert_eq!(kernel.memories[0].access, Access::Read);
    assert_eq!(kernel.stmts.len(), self::kernel().stmts.len());
    let barrier = kernel.stmts.iter().position(|stmt| matches!(stmt, Stmt::Barrier { .. })).unwrap();
    assert_eq!(text.lines().nth(reading.lines[barrier] as usize - 1).unwrap().trim(), "__syncthreads();");
    // A text that was read prints as it was.
    let block = StepBlock::of([&reading.kernel]);
    assert_eq!(block.place(ds4_ir::Dim(2)), Some(2));
    let again = hip::emit(&reading.kernel, &block).unwrap();
    assert_eq!(again.replace("const float *x", "const float *__restrict__ x"), text);
}

#[test]
fn the_guards_must_be_there() {
    let off = "#pragma clang fp contract(off)\n";
    assert!(fault(off, "").contains("#pragma clang fp contract(off)"));
    assert!(fault("contract(off)", "contract(on)").contains("contract(off)"));
    fault("#if defined(__clang__)\n", "");
    fault("#if defined(__clang__)", "#if defined(__GNUC__)");
    fault("__FAST_MATH__)", "__FAST_MAT__)");
    fault("#elif defined(__CUDA_PREC_DIV) && !__CUDA_PREC_DIV\n", "");
    // The pragma has to be the first thing in the body.
    let moved = "    const unsigned lane = threadIdx.x;\n";
    fault("#if defined(__clang__)", &format!("{moved}#if defined(__clang__)"));
}

#[test]
fn functions_are_those_of_the_prelude() {
    let text = text();
    let body = text.find("extern").unwrap();
    // Any one character of the prelude, but for the comments: their lines have no tokens.
    let mut changed = 0;
    let mut line_start = 0;
    for (at, c) in text[..body].char_indices() {
        let line = text[line_start..].lines().next().unwrap();
        if c == '\n' {
            line_start = at + 1;
        }
        if c == '\n' || c == ' ' || line.starts_with("//") {
            continue;
        }
        let other = if c == 'x' { 'y' } else { 'x' };
        let mut mutated = text.clone();
        mutated.replace_range(at..at + 1, &other.to_string());
        assert!(read(&mutated).is_err(), "{at}: {line}");
        changed += 1;
    }
    assert!(changed > 1000, "{changed}");
    // One function too many, one too few, two exchanged.
    let least = "static __device__ inline unsigned least(unsigned x, unsigned y) { return x < y ? x : y; }\n";
    fault(least, "");
    fault(least, &format!("{least}{least}"));
    fault("extern", "static __device__ inline float floored(float x) { return RT_BUILTIN(floorf)(x); }\nextern");
}

#[test]
fn types_do_not_mix() {
    let line = "sum = sum + flipped(leaf);";
    for wrong in [
        "sum = sum + k;",
        "sum = sum + 1u;",
        "sum = k;",
        "sum = sum + flipped(k);",
        "sum = as_uint(sum);",
        "sum = float(k);",
        "sum = float(int(sum) + 1u);",
        "sum = sum % leaf;",
        "sum = (sum < leaf);",
        "sum = (leaf ? sum : leaf);",
        "sum = ((sum < leaf) ? sum : k);",
        "sum = int(k);",
        "k = k + 1u;",
        "leaf = sum;",
        "x[k] = leaf;",
        "out[sum] = leaf;",
        "out[k] = k;",
        "const unsigned new_word = leaf;",
        "const float new_float = partial;",
        "const unsigned new_word = partial[k];",
        "const unsigned new_word = exchanged<4>(leaf);",
        "const float new_float = exchanged<8>(leaf);",
        "const float new_float = exchanged<1>(leaf < sum);",
        "if (k) { sum = leaf; }",
    ] {
        fault(line, wrong);
    }
}

#[test]
fn names_are_known_and_new() {
    let line = "sum = sum + flipped(leaf);";
    for wrong in [
        "sum = sum + other;",
        "sum = sum + total;",
        "const float leaf = sum;",
        "const float int = sum;",
        "const float flipped = sum;",
        "const float __x = sum;",
        "const float new_float = sum + new_float;",
        "if (k == 0u) { const float inner = sum; } sum = inner;",
        "for (unsigned k = 0u; k < 3u; k += 1u) { sum = leaf; }",
        "for (unsigned j = 0u; j < 3u; j += 1u) { sum = leaf; } sum = as_float(j);",
        "for (unsigned j = 0u; k < 3u; j += 1u) { sum = leaf; }",
    ] {
        fault(line, wrong);
    }
}

#[test]
fn other_forms_of_cpp_are_refused() {
    let line = "sum = sum + flipped(leaf);";
    for wrong in [
        "sum = sum + flipped(leaf)",
        "sum += leaf;",
        "sum = sum + leaf + leaf;",
        "sum = sum + leaf * leaf;",
        "sum = -leaf;",
        "sum = +leaf;",
        "sum = sum - -leaf;",
        "sum = sum -- 1.0f;",
        "sum = (float) leaf;",
        "sum = sum + 1.00f;",
        "sum = sum + 1.0;",
        "sum = sum + 01.0f;",
        "sum = sum + 1'0.0f;",
        "sum = sum / leaf; // \\",
        "sum = sum /* */ + leaf;",
        "sum = sum + x[k];",
        "sum = fmaf(sum, leaf, leaf);",
        "sum = ((sum > leaf) ? sum : leaf);",
        "sum = ((sum != leaf) ? sum : leaf);",
        "sum = ((sum >= leaf) ? sum : leaf);",
        "sum = as_float(step[2]);",
        "sum = as_float(step[0]);",
        "return;",
        "if (k == 0u) { return; }",
        "if (k == 0u) sum = leaf;",
        "while (k == 0u) { sum = leaf; }",
        "__syncthreads();",
        "asm(\"\");",
        ";",
        "{ sum = leaf; }",
        "#pragma clang fp contract(on)\n",
    ] {
        fault(line, wrong);
    }
    fault("extern \"C\"", "extern \"C");
    fault("extern \"C\"", "extern \"C++\"");
    fault("extern \"C\" ", "extern \"C\"");
    fault("float *out", "float *__restrict__ out");
    fault("// a sum\n", "");
    fault("a sum", "a sum \u{e9}");
    assert!(read(&(text() + "int x;")).unwrap_err().to_string().contains("goes on"));
}

#[test]
fn deep_texts_are_refused() {
    let line = "sum = sum + flipped(leaf);";
    let deep = |n: usize| format!("sum = {}leaf{};", "(".repeat(n), ")".repeat(n));
    read(&text().replacen(line, &format!("{line}\n{}", deep(20)), 1)).unwrap();
    assert!(fault(line, &deep(100_000)).contains("deep"));
    assert!(fault(line, &"if (k == 0u) { ".repeat(100_000)).contains("deep"));
    assert!(fault(line, &format!("if ({}true) {{ }}", "!".repeat(100_000))).contains("deep"));
}

/// Any cut of a text is refused, and none is the end of the reader.
#[test]
fn cut_texts_are_refused() {
    let text = text();
    for at in 0..text.trim_end().len() {
        assert!(read(&text[..at]).is_err(), "{at}");
    }
}
