//! Text to tokens and back: the plan's tokenizer, prompts, lists of tokens, streamed text, stop strings.

mod chat;
mod list;
mod stop;
mod stream;
mod tokenizer;

pub use chat::chat_prompt;
pub use list::{check_range, parse_tokens, read_tokens};
pub use stop::{Release, StopWatch};
pub use stream::ByteStream;
pub use tokenizer::Tokenizer;

/// The token that begins a text, in the V4 series.
pub const BEGIN_OF_SENTENCE: &str = "<｜begin▁of▁sentence｜>";

#[cfg(test)]
mod tests;
