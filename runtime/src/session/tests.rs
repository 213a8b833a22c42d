//! Sessions on a plan of a few values.

use std::path::{Path, PathBuf};

use ds4_ir::plan::write_plan;
use ds4_ir::{Builder, DimOp, Format, ScalarOp, ScalarType, Tree, Type};

use super::{OpenOptions, Session};
use crate::cpu::exec::tests::maps::{binary, unary};
use crate::cpu::exec::tests::{Checkpoint, plan};

const VOCABULARY: u32 = 9;

/// Logits from the token's row and, by a state, from the token before it. A token of `bad` divides zero by zero.
fn graph(bad: u32) -> Builder {
    let mut b = Builder::new();
    let (t, one, k) = (b.columns(), b.n(1), b.n(32));
    let tokens = b.tokens();
    let table = b.add_weight("table", Type::weight(Format::F32), &[VOCABULARY, 32]);
    let table = b.weight(table);
    let rows = b.gather(0, 0, table, tokens);
    let x = b.widen(rows);
    let state = b.add_state("last", Type::F32, &[16, 32]);
    let old = b.read(state);
    let (position, iota) = (b.dims.dim(DimOp::Position), b.iota(&[t], 0));
    let start = b.extent(position);
    let start = b.reshape(start, &[one]);
    let start = b.broadcast(start, &[t]);
    let (p, q) = (b.scalars.param(0, ScalarType::I32), b.scalars.param(1, ScalarType::I32));
    let sum = b.scalars.op(ScalarOp::AddI, &[p, q]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32; 2], sum).unwrap();
    let place = b.map(body, &[start, iota]);
    let one_i = b.scalars.i32(1);
    let zero_i = b.scalars.i32(0);
    let before = b.scalars.op(ScalarOp::SubI, &[p, one_i]).unwrap();
    let before = b.scalars.op(ScalarOp::MaxI, &[before, zero_i]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32], before).unwrap();
    let before = b.map(body, &[place]);
    let new = b.write(old, place, x);
    let seen = b.gather(0, 0, new, before);
    let y = b.within("layer.0", |b| {
        let y = binary(b, ScalarOp::Add, x, seen);
        let bad = b.scalars.i32(bad as i32);
        let is_bad = b.scalars.op(ScalarOp::EqI, &[p, bad]).unwrap();
        let (zero, unit) = (b.scalars.f32(0.0), b.scalars.f32(1.0));
        let divisor = b.scalars.op(ScalarOp::SelectF32, &[is_bad, zero, unit]).unwrap();
        let quotient = b.scalars.op(ScalarOp::Div, &[divisor, divisor]).unwrap();
        let body = b.scalars.body(&[ScalarType::I32], quotient).unwrap();
        let factor = b.map(body, &[tokens]);
        let factor = b.reshape(factor, &[t, one]);
        let factor = b.broadcast(factor, &[t, k]);
        binary(b, ScalarOp::Mul, y, factor)
    });
    b.tap("layer.0.out", y);
    b.tap("layer.0.places", place);
    let outputs = b.dims.dim(DimOp::Outputs);
    let back = b.dims.dim(DimOp::Sub(t, outputs));
    let y = unary(&mut b, ScalarOp::Neg, y);
    let y = b.slice(y, 0, back, outputs);
    let head = b.add_weight("head", Type::weight(Format::F32), &[VOCABULARY, 32]);
    let head = b.weight(head);
    let logits = b.product(Tree::Lanes(32), y, head, None);
    b.output("logits", logits);
    b
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(bad: u32) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let graph = graph(bad).finish();
        let checkpoint = Checkpoint::random(&graph.view(), 77);
        std::fs::write(folder.path().join("memory"), &checkpoint.bytes).unwrap();
        let mut tables = plan(&graph.view(), &checkpoint, 16, 5);
        tables.files[0].header_len = 16;
        tables.files[0].header_hash = *blake3::hash(&checkpoint.bytes[..16]).as_bytes();
        for (key, value) in [
            ("model.path", "memory"),
            ("model.name", "test"),
            ("model.vocab_size", "9"),
            ("head", "logits"),
            ("model.bos", "0"),
            ("model.eos", "1,2"),
        ] {
            tables.set_option(key, value);
        }
        write_plan(&folder.path().join("plan"), &graph, &tables, None).unwrap();
        Files { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self) -> Session {
        Session::open(&self.path("plan"), &OpenOptions::default()).unwrap()
    }
}

/// The rendered diagnostic without the temporary folder.
fn text(files: &Files, error: &ds4_ir::Diagnostic) -> String {
    let folder = files.folder.path().display().to_string();
    error.to_string().replace(&folder, "FOLDER")
}

fn feed(session: &mut Session, tokens: &[u32], chunk: usize) -> Vec<f32> {
    session.reset();
    let mut all = Vec::new();
    for part in tokens.chunks(chunk) {
        session.step(part, part.len()).unwrap();
        all.extend_from_slice(session.logits());
    }
    all
}

#[test]
fn chunks_change_no_bits() {
    let files = Files::new(99);
    let mut session = files.open();
    let tokens = [3, 1, 4, 1, 5, 8, 2, 6, 5, 3, 5];
    let whole = feed(&mut session, &tokens, 1);
    assert_eq!(whole.len(), tokens.len() * VOCABULARY as usize);
    for chunk in 2..=5 {
        assert_eq!(feed(&mut session, &tokens, chunk), whole);
        assert_eq!(session.position(), tokens.len());
    }
    session.reset();
    session.step(&tokens[..3], 0).unwrap();
    assert!(session.logits().is_empty());
    session.step(&tokens[3..7], 1).unwrap();
    assert_eq!(session.logits(), &whole[6 * 9..7 * 9]);
}

#[test]
fn taps_are_kept() {
    let files = Files::new(99);
    let mut session = files.open();
    let names = session.named_values();
    assert_eq!(names, ["layer.0.out", "layer.0.places"]);
    session.set_taps(&names).unwrap();
    session.step(&[1, 2], 1).unwrap();
    session.step(&[3, 4, 5], 1).unwrap();
    let taps = session.taps();
    assert_eq!(taps[0].extents, [3, 32]);
    assert_eq!(taps[0].words.len(), 96);
    assert_eq!((taps[1].extents, taps[1].words), (&[3][..], &[2, 3, 4][..]));
    assert!(taps[0].appends && taps[1].ty == Type::I32);
    assert!(session.set_taps(&["layer.9".into()]).is_err());
}

#[test]
fn faults_of_a_step_change_nothing() {
    let files = Files::new(7);
    let mut session = files.open();
    let whole = feed(&mut session, &[3, 1, 4, 5], 1);
    session.reset();
    session.step(&[3, 1], 1).unwrap();
    for (tokens, outputs, code) in [
        (&[9][..], 1, "DS4-0701"),
        (&[1; 15], 1, "DS4-0650"),
        (&[1; 6], 1, "DS4-0603"),
        (&[1], 2, "DS4-0603"),
        (&[], 0, "DS4-0603"),
        (&[4, 7], 1, "DS4-0604"),
    ] {
        let error = session.step(tokens, outputs).unwrap_err();
        assert!(text(&files, &error).contains(code), "{error}");
        assert_eq!(session.position(), 2);
    }
    session.step(&[4, 5], 2).unwrap();
    assert_eq!(session.logits(), &whole[18..]);
}

#[test]
fn a_nan_is_named() {
    let files = Files::new(7);
    let mut session = files.open();
    let error = session.step(&[1, 7], 1).unwrap_err();
    let text = text(&files, &error);
    assert!(text.contains("in `layer.0`, before `layer.0.out`"), "{text}");
}

#[test]
fn another_model_is_refused() {
    let files = Files::new(99);
    let plan = files.path("plan");
    let open = |model: &Path| {
        let options = OpenOptions { model: Some(model.to_path_buf()), ..OpenOptions::default() };
        text(&files, &Session::open(&plan, &options).unwrap_err())
    };
    let mut bytes = std::fs::read(files.path("memory")).unwrap();
    bytes[3] ^= 1;
    std::fs::write(files.path("other"), &bytes).unwrap();
    assert!(open(&files.path("other")).contains("a header with BLAKE3"));
    bytes.push(0);
    std::fs::write(files.path("longer"), &bytes).unwrap();
    assert!(open(&files.path("longer")).contains("DS4-0601"));
    assert!(open(&files.path("absent")).contains("--model PATH"));
}
