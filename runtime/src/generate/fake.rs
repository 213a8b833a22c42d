//! An engine for tests: logits and named values follow from the tokens by arithmetic on integers.

use ds4_ir::Diagnostic;

use super::{Engine, Facts, Tap, TapData, Width};
use crate::sample::arg_max;

/// Ids of a fake layer's experts per token.
const EXPERTS: usize = 2;
/// Tokens of a pooled row.
const POOL: usize = 4;

/// Remembers all tokens and steps. Named values: `layer.{0,1}.route.ids` per token, `layer.1.pooled` per 4 tokens,
/// `visible`, as many as there are tokens.
pub(crate) struct Fake {
    pub(crate) facts: Facts,
    /// Tokens of the sequence.
    pub(crate) tokens: Vec<u32>,
    /// Tokens and outputs of each step.
    pub(crate) steps: Vec<(usize, usize)>,
    /// The arg-max at each position; elsewhere it follows from the tokens.
    pub(crate) script: Vec<u32>,
    logits: Vec<f32>,
    greedy: Vec<u32>,
    taps: Vec<String>,
    values: Vec<(String, bool, Vec<usize>, Values)>,
}

enum Values {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Fake {
    pub(crate) fn new() -> Self {
        let decode = Width { columns: 8, outputs: 8 };
        let prefill = Width { columns: 16, outputs: 16 };
        Fake {
            facts: Facts {
                plan: "fake.ds4plan".into(),
                plan_hash: "00ff".into(),
                model: "fake".into(),
                files: Vec::new(),
                vocabulary: 288,
                greedy: false,
                context: 64,
                decode,
                prefill,
                begin: Some(0),
                end: vec![1],
                device: "cpu, 1 threads, baseline".into(),
                launches: 7,
                verified: Vec::new(),
            },
            tokens: Vec::new(),
            steps: Vec::new(),
            script: Vec::new(),
            logits: Vec::new(),
            greedy: Vec::new(),
            taps: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Logits behind the first `count` tokens of the sequence.
    pub(crate) fn row(&self, count: usize) -> Vec<f32> {
        let fold = |hash: u32, token: &u32| hash.wrapping_mul(31).wrapping_add(token + 1);
        let hash = self.tokens[..count].iter().fold(7, fold);
        let logit = |id: u32| hash.wrapping_add(id).wrapping_mul(0x9e37_79b1) >> 24;
        let mut row: Vec<f32> = (0..self.facts.vocabulary as u32).map(|id| logit(id) as f32 / 32.0).collect();
        if let Some(&token) = self.script.get(count - 1) {
            row[token as usize] = 20.0;
        }
        row
    }

    fn value(&self, name: &str, position: usize) -> (bool, Vec<usize>, Values) {
        let columns = self.tokens.len() - position;
        if name == "visible" {
            let rows: Vec<i32> = (0..self.tokens.len() as i32).collect();
            return (false, vec![rows.len()], Values::I32(rows));
        }
        if name == "layer.1.pooled" {
            let blocks = position / POOL..self.tokens.len() / POOL;
            return (true, vec![blocks.len(), 1], Values::F32(blocks.map(|block| block as f32).collect()));
        }
        let tokens = self.tokens[position..].iter();
        let ids = tokens.flat_map(|&token| [token as i32, -1]).collect();
        (true, vec![columns, EXPERTS], Values::I32(ids))
    }
}

impl Engine for Fake {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn step(&mut self, tokens: &[u32], outputs: usize) -> Result<(), Diagnostic> {
        let entry = match tokens.len() <= self.facts.decode.columns {
            true => self.facts.decode,
            false => self.facts.prefill,
        };
        assert!((1..=entry.columns).contains(&tokens.len()) && outputs <= tokens.len().min(entry.outputs));
        assert!(self.tokens.len() + tokens.len() <= self.facts.context);
        let position = self.tokens.len();
        self.tokens.extend(tokens);
        self.steps.push((tokens.len(), outputs));
        let end = self.tokens.len();
        let rows = (end - outputs..end).map(|at| self.row(at + 1));
        (self.logits, self.greedy) = match self.facts.greedy {
            true => (Vec::new(), rows.map(|row| arg_max(&row).unwrap()).collect()),
            false => (rows.flatten().collect(), Vec::new()),
        };
        let values = self.taps.iter().map(|name| {
            let (appends, extents, data) = self.value(name, position);
            (name.clone(), appends, extents, data)
        });
        self.values = values.collect();
        Ok(())
    }

    fn logits(&self) -> &[f32] {
        &self.logits
    }

    fn greedy(&self) -> &[u32] {
        &self.greedy
    }

    fn position(&self) -> usize {
        self.tokens.len()
    }

    fn reset(&mut self) {
        self.tokens.clear();
    }

    fn named_values(&self) -> Vec<String> {
        ["layer.0.route.ids", "layer.1.route.ids", "layer.1.pooled", "visible"].map(String::from).into()
    }

    fn set_taps(&mut self, names: &[String]) -> Result<(), Diagnostic> {
        self.taps = names.to_vec();
        Ok(())
    }

    fn taps(&self) -> Vec<Tap<'_>> {
        let taps = self.values.iter().map(|(name, appends, extents, data)| Tap {
            name,
            appends: *appends,
            extents: extents.clone(),
            data: match data {
                Values::F32(data) => TapData::F32(data),
                Values::I32(data) => TapData::I32(data),
            },
        });
        taps.collect()
    }
}
