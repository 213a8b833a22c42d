//! What is kept of each step: rows of logits, named values.

use std::path::{Path, PathBuf};

use ds4_ir::Diagnostic;

use super::{Engine, TapArchive};
use crate::output::NpyRows;

/// The output files of a run.
#[derive(Default)]
pub struct Recorder {
    logits: Option<NpyRows>,
    taps: Option<(TapArchive, PathBuf)>,
}

impl Recorder {
    /// Begins the files that were asked for, so that a path that cannot be written is known before the first step.
    pub fn create(logits: Option<&Path>, taps: Option<&Path>, vocabulary: usize) -> Result<Self, Diagnostic> {
        let logits = logits.map(|path| NpyRows::create(path, vocabulary)).transpose()?;
        let taps = match taps {
            Some(path) => {
                // Made and dropped: the archive is written in one piece at the end.
                crate::output::Partial::create(path)?;
                Some((TapArchive::default(), path.to_path_buf()))
            }
            None => None,
        };
        Ok(Recorder { logits, taps })
    }

    /// Whether each fed token's logits are wanted.
    pub fn wants_logits(&self) -> bool {
        self.logits.is_some()
    }

    /// Keeps the results of a step that began at `position`.
    pub fn record(&mut self, engine: &dyn Engine, position: usize) -> Result<(), Diagnostic> {
        if let Some(rows) = &mut self.logits {
            rows.push(engine.logits())?;
        }
        if let Some((archive, path)) = &mut self.taps {
            for tap in engine.taps() {
                archive.push(&tap, position, path)?;
            }
        }
        Ok(())
    }

    /// Writes what is left and gives the files their names.
    pub fn finish(self) -> Result<(), Diagnostic> {
        if let Some((archive, path)) = self.taps {
            archive.write(&path)?;
        }
        match self.logits {
            Some(rows) => rows.finish(),
            None => Ok(()),
        }
    }
}
