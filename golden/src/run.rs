//! Whole models through the compiler and the runtime, as a user runs them.

use std::path::{Path, PathBuf};

use ds4_compiler::assemble::compile;
use ds4_compiler::frame::Form;
use ds4_compiler::lower::Options;
use ds4_compiler::model::Model;
use ds4_compiler::read::Checkpoint;
use ds4_ir::Diagnostic;
use ds4_ir::plan::write_plan;
use ds4_runtime::session::{OpenOptions, Session};

use crate::data;

/// The small random checkpoints of the oracle: name, and path of the checkpoint below this crate.
pub const TINY: [(&str, &str); 7] = [
    ("tiny-a", "oracle/tiny-a"),
    ("tiny-a gguf", "oracle/tiny-a/model.f16.gguf"),
    ("tiny-b", "oracle/tiny-b"),
    ("tiny-k", "oracle/tiny-k/model.q2.gguf"),
    ("tiny-f", "oracle/tiny-f"),
    ("tiny-m", "oracle/tiny-m/model.mxfp4-00001-of-00002.gguf"),
    ("tiny-r", "oracle/tiny-r"),
];

/// The folder of a checkpoint's expected values.
pub fn expected(checkpoint: &str) -> PathBuf {
    let path = data(checkpoint);
    if path.is_dir() { path } else { path.parent().map(Path::to_path_buf).unwrap_or_default() }
}

/// A checkpoint with its model.
pub struct Source {
    /// The mapped files.
    pub checkpoint: Checkpoint,
    /// What they hold.
    pub model: Model,
    path: PathBuf,
}

impl Source {
    /// Opens a checkpoint below this crate.
    pub fn open(path: &str) -> Result<Source, Diagnostic> {
        let path = data(path);
        let checkpoint = ds4_compiler::read::open(&path)?;
        let model = Model::read(&checkpoint)?;
        Ok(Source { checkpoint, model, path })
    }

    /// The default options, changed by `change`.
    pub fn options(&self, change: impl FnOnce(&mut Options)) -> Options {
        let mut options = Options::for_model(&self.model.architecture);
        change(&mut options);
        options
    }

    /// Compiles to a plan in `folder`, for the CPU only and nothing fused, and gives its path.
    pub fn plan(&self, folder: &Path, options: &Options) -> Result<PathBuf, Diagnostic> {
        self.plan_for(folder, options, &Form::default())
    }

    /// The same in another form.
    pub fn plan_for(&self, folder: &Path, options: &Options, form: &Form<'_>) -> Result<PathBuf, Diagnostic> {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let compiled = compile(&self.checkpoint, &self.model, options, &path.to_string_lossy(), form)?;
        let plan = folder.join("model.ds4plan");
        write_plan(&plan, &compiled.graph, &compiled.plan, compiled.certificate.as_ref())?;
        Ok(plan)
    }
}

/// Opens a plan with a number of threads and the best instruction set.
pub fn session(plan: &Path, threads: usize) -> Result<Session, Diagnostic> {
    Session::open(plan, &OpenOptions { threads: Some(threads), ..OpenOptions::default() })
}

/// Logits of every token, row after row, with the tokens fed `chunk` at a time from an empty sequence.
pub fn logits(session: &mut Session, tokens: &[u32], chunk: usize) -> Result<Vec<f32>, Diagnostic> {
    session.reset();
    let mut all = Vec::new();
    for part in tokens.chunks(chunk) {
        session.step(part, part.len())?;
        all.extend_from_slice(session.logits());
    }
    Ok(all)
}

/// Greedy continuation: `count` tokens after `prompt`.
pub fn greedy(session: &mut Session, prompt: &[u32], count: usize) -> Result<Vec<u32>, Diagnostic> {
    session.reset();
    session.step(prompt, 1)?;
    let mut tokens = Vec::new();
    for _ in 0..count {
        let logits = session.logits();
        let token = crate::oracle::arg_max(logits.iter().map(|&x| f64::from(x))) as u32;
        tokens.push(token);
        if tokens.len() < count {
            session.step(&[token], 1)?;
        }
    }
    Ok(tokens)
}
