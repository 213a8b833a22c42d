//! The prompt of one turn, in the V4 form without thinking.

use ds4_ir::Diagnostic;

use super::{BEGIN_OF_SENTENCE, Tokenizer};

const USER: &str = "<｜User｜>";
const ASSISTANT: &str = "<｜Assistant｜>";
const THINK_END: &str = "</think>";

/// `BOS <｜User｜> text <｜Assistant｜> </think>`, nothing between the parts. Markers are looked up by their text.
pub fn chat_prompt(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, Diagnostic> {
    let mut tokens = vec![tokenizer.id_of(BEGIN_OF_SENTENCE)?, tokenizer.id_of(USER)?];
    tokens.extend(tokenizer.encode(text)?);
    tokens.push(tokenizer.id_of(ASSISTANT)?);
    tokens.push(tokenizer.id_of(THINK_END)?);
    Ok(tokens)
}
