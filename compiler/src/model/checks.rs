//! Ranges of dimensions and what must hold between them.

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

use super::architecture::Architecture;

/// Largest dimension: products of any two stay far below 2^64, and byte counts of a matrix below 2^53.
const MAX_DIMENSION: u32 = 1 << 24;

/// Checks every dimension and constant. Afterwards no product of dimensions overflows u64, no stated
/// division leaves a rest, and every constant can be divided by where formulas divide by it.
pub(super) fn check(architecture: &Architecture, file: &str) -> Result<(), Diagnostic> {
    let checks = Checks { file };
    checks.dimensions(architecture)?;
    checks.relations(architecture)?;
    checks.constants(architecture)?;
    checks.special(architecture)
}

struct Checks<'a> {
    file: &'a str,
}

impl Checks<'_> {
    fn fail(&self, name: &str, wanted: impl std::fmt::Display, found: impl std::fmt::Display) -> Diagnostic {
        Diagnostic::new(codes::KEY_VALUE, format!("{name} is out of range"))
            .at(Place::file(self.file))
            .wanted(wanted, found)
    }

    fn dimensions(&self, a: &Architecture) -> Result<(), Diagnostic> {
        let rows = [
            ("the vocabulary size", a.vocab_size, MAX_DIMENSION),
            ("the hidden width", a.hidden, 1 << 20),
            ("the number of heads", a.heads, 1 << 12),
            ("the head width", a.head_dim, 1 << 14),
            ("the query rank", a.query_rank, 1 << 20),
            ("the output rank", a.output_rank, 1 << 20),
            ("the number of output groups", a.output_groups, 1 << 12),
            ("the window", a.window, 1 << 20),
            ("the number of streams", a.streams, 64),
            ("the number of Sinkhorn iterations", a.sinkhorn_iterations, 1000),
            ("the context length", a.context_length, 1 << 30),
            ("the number of indexer heads", a.indexer.heads, 1 << 12),
            ("the indexer's head width", a.indexer.head_dim, 1 << 14),
            ("the indexer's top-k", a.indexer.top_k, 1 << 20),
            ("the number of experts", a.experts.count, 1 << 16),
            ("the experts per token", a.experts.used, 1 << 10),
            ("the expert width", a.experts.width, 1 << 20),
        ];
        for (name, value, most) in rows {
            if !(1..=most).contains(&value) {
                return Err(self.fail(name, format!("1 to {most}"), value));
            }
        }
        Ok(())
    }

    fn relations(&self, a: &Architecture) -> Result<(), Diagnostic> {
        let layers = a.layers.len() as u32;
        if !a.heads.is_multiple_of(a.output_groups) {
            let wanted = format!("a multiple of the {} output groups", a.output_groups);
            return Err(self.fail("the number of heads", wanted, a.heads));
        }
        for (name, width) in [
            ("the number of rope dimensions", a.head_dim),
            ("the number of rope dimensions, for the indexer,", a.indexer.head_dim),
        ] {
            if a.rope_dims == 0 || !a.rope_dims.is_multiple_of(2) || a.rope_dims > width {
                let wanted = format!("an even number from 2 to the head width {width}");
                return Err(self.fail(name, wanted, a.rope_dims));
            }
        }
        for (name, value, bound, of) in [
            ("the experts per token", a.experts.used, a.experts.count, "experts"),
            ("the number of hash-routed layers", a.experts.hash_layers, layers, "layers"),
        ] {
            if value > bound {
                return Err(self.fail(name, format!("at most the {bound} {of}"), value));
            }
        }
        Ok(())
    }

    fn constants(&self, a: &Architecture) -> Result<(), Diagnostic> {
        let mut rows = vec![
            ("the epsilon of norms", a.norm_epsilon),
            ("the epsilon of stream mixing", a.stream_epsilon),
            ("the route scale", a.experts.route_scale),
            ("the rope base", a.rope.base),
            ("the rope base of compressed layers", a.rope.compressed_base),
        ];
        rows.extend(a.layers.clamp.iter().map(|c| ("the clamp of experts", *c)));
        let shared = a.layers.shared_clamp.iter();
        rows.extend(shared.map(|c| ("the clamp of shared experts", *c)));
        if let Some(yarn) = a.rope.yarn {
            rows.push(("the YaRN factor", yarn.factor));
            rows.push(("YaRN's slow beta", yarn.beta_slow));
            let context = yarn.original_context;
            if context == 0 {
                return Err(self.fail("the YaRN context length", "at least 1", context));
            }
            if yarn.beta_fast <= yarn.beta_slow {
                let wanted = format!("more than the slow beta {:?}", yarn.beta_slow);
                return Err(self.fail("YaRN's fast beta", wanted, format!("{:?}", yarn.beta_fast)));
            }
        }
        match rows.into_iter().find(|(_, value)| *value <= 0.0) {
            None => self.bases(a),
            Some((name, value)) => Err(self.fail(name, "more than 0", format!("{value:?}"))),
        }
    }

    /// Inverse frequencies are powers of the base, and YaRN divides by its logarithm.
    fn bases(&self, a: &Architecture) -> Result<(), Diagnostic> {
        for (name, base) in
            [("the rope base", a.rope.base), ("the rope base of compressed layers", a.rope.compressed_base)]
        {
            if base <= 1.0 {
                return Err(self.fail(name, "more than 1", format!("{base:?}")));
            }
        }
        Ok(())
    }

    fn special(&self, a: &Architecture) -> Result<(), Diagnostic> {
        let ids = a.special.bos.iter().chain(&a.special.eos).chain(&a.special.pad);
        for id in ids {
            if *id >= a.vocab_size {
                let wanted = format!("below the vocabulary size {}", a.vocab_size);
                return Err(self.fail("the id of a special token", wanted, id));
            }
        }
        Ok(())
    }
}
