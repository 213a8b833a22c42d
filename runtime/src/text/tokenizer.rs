//! The tokenizer of a plan.

use std::collections::HashMap;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::stream::token_bytes;

/// A byte-level BPE tokenizer, as the plan carries it.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Added tokens: whether they are special, hence not printed.
    special: HashMap<u32, bool>,
    plan: String,
}

impl Tokenizer {
    /// The tokenizer of the JSON bytes in `plan`'s tokenizer section. Its own post-processing is not used.
    pub fn open(json: &[u8], plan: &str) -> Result<Self, Diagnostic> {
        if json.is_empty() {
            let message = "the plan has no tokenizer";
            return Err(Diagnostic::new(codes::TOKENIZER_MISSING, message).at(Place::file(plan)).help(
                "give --tokens and --ids, which need none, \
                     or compile a checkpoint that has a tokenizer.json",
            ));
        }
        let inner = tokenizers::Tokenizer::from_bytes(json).map_err(|error| damaged(plan, &*error))?;
        let added = inner.get_added_tokens_decoder();
        let special = added.into_iter().map(|(id, token)| (id, token.special)).collect();
        Ok(Tokenizer { inner, special, plan: plan.into() })
    }

    /// The tokens of a text. Nothing is put in front of it; names of added tokens in it become those tokens.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Diagnostic> {
        let encoding = self.inner.encode_fast(text, false);
        let encoding = encoding.map_err(|error| damaged(&self.plan, &*error))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The id of the token with this text, which a prompt needs.
    pub fn id_of(&self, token: &str) -> Result<u32, Diagnostic> {
        self.inner.token_to_id(token).ok_or_else(|| {
            let message = "the vocabulary lacks a token that the prompt needs";
            Diagnostic::new(codes::TOKEN_MISSING, message)
                .at(Place::file(&self.plan))
                .wanted(format!("a token `{token}`"), "none of this text")
                .help(
                    "the model is no chat model or its tokenizer is another's: \
                     give the whole prompt with --tokens",
                )
        })
    }

    /// The bytes that a token prints: none for special tokens and ids without a token.
    pub fn bytes_of(&self, id: u32) -> Vec<u8> {
        match self.inner.id_to_token(id) {
            Some(token) if !self.is_special(id) => token_bytes(&token),
            _ => Vec::new(),
        }
    }

    fn is_special(&self, id: u32) -> bool {
        self.special.get(&id).copied().unwrap_or(false)
    }

    #[cfg(test)]
    pub(super) fn inner(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }
}

fn damaged(plan: &str, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic::new(codes::TOKENIZER_DAMAGED, "the plan's tokenizer cannot be used")
        .at(Place::file(plan))
        .wanted("the JSON form of the `tokenizers` library", error)
        .help("give --tokens and --ids, which need none, or compile with another tokenizer.json")
}
