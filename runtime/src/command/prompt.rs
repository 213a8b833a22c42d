//! The tokens that a run feeds.

use std::cell::OnceCell;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::arguments::Arguments;
use crate::generate::Facts;
use crate::text::{BEGIN_OF_SENTENCE, Tokenizer, chat_prompt, check_range, parse_tokens, read_tokens};

/// The plan's tokenizer, made when it is needed first: a run by ids needs none.
pub(super) struct LateTokenizer<'a> {
    json: &'a [u8],
    plan: &'a str,
    made: OnceCell<Tokenizer>,
}

impl<'a> LateTokenizer<'a> {
    pub(super) fn new(json: &'a [u8], plan: &'a str) -> Self {
        LateTokenizer { json, plan, made: OnceCell::new() }
    }

    /// An error if the plan has none or it cannot be used.
    pub(super) fn get(&self) -> Result<&Tokenizer, Diagnostic> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let tokenizer = Tokenizer::open(self.json, self.plan)?;
        Ok(self.made.get_or_init(|| tokenizer))
    }
}

/// The prompt's tokens: at least one, all of the vocabulary.
pub(super) fn prompt(
    arguments: &Arguments,
    facts: &Facts,
    tokenizer: &LateTokenizer<'_>,
) -> Result<Vec<u32>, Diagnostic> {
    let (tokens, origin) = match (&arguments.prompt, &arguments.tokens_file) {
        (Some(text), _) => (text_prompt(text, arguments.chat, facts, tokenizer.get()?)?, "the prompt".to_string()),
        (None, Some(path)) => (read_tokens(path)?, path.display().to_string()),
        (None, None) => {
            let origin = "--tokens".to_string();
            (parse_tokens(arguments.tokens.as_deref().unwrap_or(""), &origin)?, origin)
        }
    };
    if tokens.is_empty() {
        let message = "there are no tokens to feed";
        return Err(Diagnostic::new(codes::TOKENS_EMPTY, message)
            .at(Place::file(origin))
            .wanted("at least one token id", "none"));
    }
    check_range(&tokens, facts.vocabulary, &origin)?;
    Ok(tokens)
}

fn text_prompt(text: &str, chat: bool, facts: &Facts, tokenizer: &Tokenizer) -> Result<Vec<u32>, Diagnostic> {
    if chat {
        return chat_prompt(tokenizer, text);
    }
    let begin = match facts.begin {
        Some(begin) => begin,
        None => tokenizer.id_of(BEGIN_OF_SENTENCE)?,
    };
    let mut tokens = vec![begin];
    tokens.extend(tokenizer.encode(text)?);
    Ok(tokens)
}
