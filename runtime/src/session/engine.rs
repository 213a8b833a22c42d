//! What generation asks of a session.

use ds4_ir::{Diagnostic, Type};

use super::Session;
use crate::generate::{Engine, Facts, Tap, TapData};

impl Engine for Session {
    fn facts(&self) -> &Facts {
        self.facts()
    }

    fn step(&mut self, tokens: &[u32], outputs: usize) -> Result<(), Diagnostic> {
        self.step(tokens, outputs)
    }

    fn logits(&self) -> &[f32] {
        self.logits()
    }

    fn greedy(&self) -> &[u32] {
        self.greedy()
    }

    fn position(&self) -> usize {
        self.position()
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn named_values(&self) -> Vec<String> {
        self.named_values()
    }

    fn set_taps(&mut self, names: &[String]) -> Result<(), Diagnostic> {
        self.set_taps(names)
    }

    fn taps(&self) -> Vec<Tap<'_>> {
        let taps = self.taps().into_iter();
        taps.map(|tap| Tap {
            name: tap.name,
            appends: tap.appends,
            extents: tap.extents.to_vec(),
            data: match tap.ty {
                Type::F32 => TapData::F32(bytemuck::cast_slice(tap.words)),
                _ => TapData::I32(bytemuck::cast_slice(tap.words)),
            },
        })
        .collect()
    }
}
