//! Loops that feed faulty files to the readers.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ds4_ir::diagnostic::Diagnostic;

use super::{Mutator, Spec, config_json, gguf_header, safetensors_header};
use crate::model::Model;
use crate::read::{self, tokenizer};

/// A fuzzer of one reader. Every file is read as far as a model and a tokenizer.
#[derive(Debug)]
pub struct Fuzzer {
    mutator: Mutator,
    directory: PathBuf,
    seed: Seed,
    /// Files that were read without a diagnostic.
    pub accepted: u64,
    /// Files that gave a diagnostic.
    pub refused: u64,
}

#[derive(Debug)]
enum Seed {
    Gguf { header: Vec<u8>, size: u64 },
    Released { header: Vec<u8>, size: u64, config: Vec<u8> },
}

impl Fuzzer {
    /// A fuzzer of GGUF headers that writes its files into `directory`.
    pub fn gguf(directory: &Path, seed: u64) -> Fuzzer {
        let mut spec = Spec::tiny();
        spec.architecture.vocab_size = 300;
        let (header, size) = gguf_header(&spec);
        Fuzzer::new(directory, seed, Seed::Gguf { header, size })
    }

    /// A fuzzer of safetensors headers and of `config.json`.
    pub fn safetensors(directory: &Path, seed: u64) -> Fuzzer {
        let spec = Spec::tiny();
        let (header, size) = safetensors_header(&spec);
        let config = config_json(&spec).to_string().into_bytes();
        let seed_files = Seed::Released { header, size, config };
        Fuzzer::new(directory, seed, seed_files)
    }

    fn new(directory: &Path, seed: u64, files: Seed) -> Fuzzer {
        Fuzzer { mutator: Mutator::new(seed), directory: directory.to_owned(), seed: files, accepted: 0, refused: 0 }
    }

    /// Writes and reads one faulty checkpoint. A panic in here is a bug of a reader; the files stay.
    pub fn step(&mut self) -> io::Result<()> {
        let path = self.write_files()?;
        match read_all(&path) {
            Ok(()) => self.accepted += 1,
            Err(_) => self.refused += 1,
        }
        Ok(())
    }

    fn write_files(&mut self) -> io::Result<PathBuf> {
        let mutator = &mut self.mutator;
        match &self.seed {
            Seed::Gguf { header, size } => {
                let path = self.directory.join("fuzz.gguf");
                write_sparse(&path, &mutator.mutate(header, header), *size)?;
                Ok(path)
            }
            Seed::Released { header, size, config } => {
                // Faults in one file at a time reach deeper.
                let (mut weights, mut keys) = (header.clone(), config.clone());
                if mutator.below(3) == 0 {
                    keys = mutator.mutate(config, header);
                } else {
                    weights = mutator.mutate(header, config);
                }
                fs::write(self.directory.join("config.json"), keys)?;
                write_sparse(&self.directory.join("model.safetensors"), &weights, *size)?;
                Ok(self.directory.clone())
            }
        }
    }
}

/// Keeps the size of the seed, so that faults of the header are what is found.
fn write_sparse(path: &Path, header: &[u8], size: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(header)?;
    // One in sixteen is cut off behind its header.
    if header.last().is_none_or(|byte| byte % 16 != 1) {
        file.set_len(size.max(header.len() as u64))?;
    }
    Ok(())
}

fn read_all(path: &Path) -> Result<(), Diagnostic> {
    let checkpoint = read::open(path)?;
    let model = Model::read(&checkpoint);
    if checkpoint.tokenizer != read::TokenizerSource::Absent {
        tokenizer::tokenizer_json(&checkpoint)?;
    }
    model.map(|model| drop(model.warnings(&checkpoint)))
}
