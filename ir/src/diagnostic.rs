//! Diagnostics: whatever a user can cause is one of these, with a stable code.
//!
//! `docs/errors.md` lists every code; a test compares the list with [`codes::ALL`].

use std::fmt;

/// A stable code, printed as `DS4-0107`. The table of all codes is [`codes::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DS4-{:04}", self.0)
    }
}

/// Declares the codes: constant, number, and the one-line title that `docs/errors.md` repeats.
macro_rules! codes {
    ($($name:ident = $number:literal: $title:literal;)*) => {
        /// Every code. 01xx checkpoint files, 02xx the model they describe, 03xx IR text and graph,
        /// 04xx plan files, 05xx options of compilation, 06xx running, 07xx text and tokens, 08xx output.
        pub mod codes {
            use super::Code;
            $(#[doc = $title] pub const $name: Code = Code($number);)*
            /// All codes with their titles, in the order of declaration.
            pub const ALL: &[(Code, &str)] = &[$(($name, $title)),*];
        }
    };
}

// Keep each hundred sorted by number.
codes! {
    FILE_OPEN = 101: "a file cannot be opened or mapped";
    CHECKPOINT_KIND = 102: "a path is neither a GGUF file nor a checkpoint directory";
    TRUNCATED = 103: "a file ends inside its header";
    LENGTH = 104: "a length or count is larger than its file";
    NOT_GGUF = 105: "a file does not begin as GGUF version 3, little endian";
    ARCHITECTURE = 106: "a checkpoint is of another architecture";
    METADATA = 107: "a metadata entry is malformed";
    TENSOR_TYPE = 108: "a tensor has a type that is not read";
    TENSOR_SHAPE = 109: "a tensor's dimensions are malformed";
    TENSOR_ROW = 110: "a tensor's rows are not a whole number of blocks";
    TENSOR_ALIGNMENT = 111: "a tensor's data is misaligned";
    TENSOR_OUTSIDE = 112: "a tensor's data reaches beyond its file";
    TENSOR_OVERLAP = 113: "two tensors share bytes";
    TENSOR_DUPLICATE = 114: "two tensors have one name";
    KEY_DUPLICATE = 115: "a key occurs twice";
    SPLIT_MISSING = 116: "a part of a split checkpoint is missing";
    SPLIT_MISMATCH = 117: "the parts of a split checkpoint do not belong together";
    JSON = 118: "JSON text is malformed";
    SAFETENSORS_HEADER = 119: "a safetensors header is malformed";
    NO_WEIGHTS = 120: "a checkpoint directory has no weights";
    INDEX_MISMATCH = 121: "a weight index and its files disagree";
    SCALE_MISSING = 122: "a quantised tensor has no scales, or scales have no tensor";
    SCALE_SHAPE = 123: "a scale tensor has the wrong shape";
    VOCABULARY = 124: "a vocabulary cannot be made into a tokenizer";
    NO_TOKENIZER = 125: "a checkpoint has no tokenizer";

    KEY_MISSING = 201: "a key of the model is missing";
    KEY_TYPE = 202: "a key of the model has a value of the wrong type";
    KEY_VALUE = 203: "a key of the model has a value out of range";
    RATIO_UNSUPPORTED = 204: "unsupported ratio";
    RATIO_SCHEDULE = 205: "the schedule of compression ratios is missing or too short";
    SCORING = 206: "unsupported scoring function";
    VARIANT = 207: "a variant of the model family that is not supported";
    WEIGHT_MISSING = 208: "a weight is missing";
    WEIGHT_SHAPE = 209: "a weight has the wrong shape";
    WEIGHT_FORMAT = 210: "a weight has the wrong kind of format";
    INDEXER_MISMATCH = 211: "a layer's tensors and its ratio disagree";

    TEXT_TOKEN = 301: "a character, name or number of IR text is malformed";
    TEXT_SYNTAX = 302: "IR text does not follow the grammar";
    TEXT_NUMBER = 303: "a number of IR text is out of range";
    TEXT_UNKNOWN = 304: "IR text uses a name that it does not define";
    TEXT_DUPLICATE = 305: "IR text defines a name twice";
    TEXT_LIMIT = 306: "IR text is nested too deeply or too large";
    TEXT_OPERATION = 307: "an operation of IR text does not take its operands or attributes";
    TEXT_TYPE = 308: "IR text states another type or shape than its operation gives";
    TEXT_SCALAR = 309: "a scalar expression of IR text is not well-typed";
    REWRITE_GRAPH = 310: "a graph that is to be rewritten is not well-formed";

    PLAN_MAGIC = 401: "a file is no plan";
    PLAN_VERSION = 402: "a plan was written by another version";
    PLAN_CONTRACT = 403: "a plan obeys another numeric contract";
    PLAN_DAMAGED = 404: "a plan is damaged";
    KERNEL_UNKNOWN = 405: "a plan has no such kernel";
    REGION_UNKNOWN = 406: "a plan has no such region or value";
    CERTIFICATE_REFUSED = 420: "a certificate does not prove its graph";

    MODEL_CHANGED = 601: "the plan was made for another model";
    STEP_SIZE = 603: "a step is larger than the plan allows";
    LOGITS_NAN = 604: "the logits are not numbers";
    ID_OUTSIDE = 605: "an id selects a row that does not exist";
    UNSUPPORTED_LAUNCH = 606: "there is no kernel for a launch of a plan";
    MEMORY = 607: "there is not enough memory for a plan";
    THREADS = 608: "the system refuses a thread";
    WORKER_FAILED = 609: "a thread of the executor failed";
    PLAN_FACT = 610: "a plan lacks a fact that running needs";
    NO_LOGITS = 611: "a plan gives no logits";
    DEVICE_ABSENT = 620: "there is no such device";
    DEVICE_DRIVER = 621: "the driver of a device is missing or refuses";
    DEVICE_FEATURE = 622: "a device lacks a feature that is needed";
    DEVICE_SMALL = 623: "a device is too small for what is asked of it";
    DEVICE_LOST = 624: "a device was lost while it worked";
    DEVICE_MEMORY = 625: "there is not enough memory on a device";
    DEVICE_REFUSES = 626: "a device refuses its work";
    DEVICE_INEXACT = 627: "a device does not keep the numeric contract";
    KERNEL_TEXT = 629: "the text of a kernel is malformed";
    DEVICE_TARGET = 630: "a plan has no kernels for a device";
    CONTEXT_EXCEEDED = 650: "prompt and generation do not fit in the context";
    LOGITS_INVALID = 651: "a token cannot be chosen from the logits";
    TAP_UNMATCHED = 652: "a tap matches no named value";
    ISA_ABSENT = 653: "an instruction set is not known or not on this machine";

    TOKEN_RANGE = 701: "a token is outside of the vocabulary";
    TOKENS_MALFORMED = 702: "a list of tokens is malformed";
    TOKENS_EMPTY = 703: "there are no tokens to feed";
    TOKENIZER_MISSING = 704: "a plan has no tokenizer";
    TOKENIZER_DAMAGED = 705: "the tokenizer of a plan cannot be used";
    TOKEN_MISSING = 706: "the vocabulary lacks a token that a prompt needs";

    OPTION_RANGE = 501: "an option is out of range";
    OPTION_NO_EFFECT = 502: "an option would have no effect";
    OPTION_Q8_ROW = 503: "a weight's rows cannot meet q8 activations";
    OPTION_SIMS = 504: "the simulated roundings do not apply to a shape";
    PROFILE = 505: "a device profile is missing or malformed";

    OUTPUT_WRITE = 801: "an output cannot be written";
    OUTPUT_KIND = 803: "an output is no ordinary file";
    OUTPUT_IS_INPUT = 804: "an output would replace an input";
    OUTPUT_LARGE = 802: "an output is larger than its format holds";
}

/// Where a diagnostic points: a file and, where it applies, a byte offset or a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// File path as the user gave it, or a name such as `the command line`.
    pub file: String,
    /// What inside the file: `byte 1234`, `tensor blk.0.attn_q_a.weight`, `key deepseek4.block_count`.
    pub item: String,
    /// For text: the source, with the byte range that is wrong, to be shown with context.
    pub source: Option<(String, std::ops::Range<usize>)>,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Place { file: file.into(), ..Place::default() }
    }

    /// An item of a file.
    pub fn item(file: impl Into<String>, item: impl Into<String>) -> Self {
        Place { file: file.into(), item: item.into(), source: None }
    }
}

/// A user's mistake or a machine's failure: what was wanted, what was found, what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// One line, without a full stop.
    pub message: String,
    /// Where; boxed so that results stay small.
    pub place: Box<Place>,
    /// What was wanted, empty if the message says it.
    pub wanted: String,
    /// What was found instead.
    pub found: String,
    /// What to do.
    pub help: String,
}

impl Diagnostic {
    /// A diagnostic with a code and a message; the rest is filled in with the builder methods.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            message: message.into(),
            place: Box::default(),
            wanted: String::new(),
            found: String::new(),
            help: String::new(),
        }
    }

    /// Sets the place.
    pub fn at(mut self, place: Place) -> Self {
        self.place = Box::new(place);
        self
    }

    /// Sets what was wanted and what was found.
    pub fn wanted(mut self, wanted: impl fmt::Display, found: impl fmt::Display) -> Self {
        self.wanted = wanted.to_string();
        self.found = found.to_string();
        self
    }

    /// Sets what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)?;
        let Place { file, item, source } = &*self.place;
        match (file.is_empty(), item.is_empty()) {
            (true, true) => {}
            (false, true) => write!(f, "\n  --> {file}")?,
            (true, false) => write!(f, "\n  --> {item}")?,
            (false, false) => write!(f, "\n  --> {file}: {item}")?,
        }
        if let Some((text, range)) = source {
            write_source(f, text, range.clone())?;
        }
        for (name, value) in [("wanted", &self.wanted), ("found", &self.found), ("help", &self.help)] {
            if !value.is_empty() {
                write!(f, "\n   = {name}: {value}")?;
            }
        }
        Ok(())
    }
}

/// The part of a line that is shown: some characters on both sides of the place where it is very long.
fn clipped(text: &str, line_start: usize, at: usize, line_end: usize) -> (usize, usize) {
    const SHOWN: usize = 80;
    if line_end - line_start <= 2 * SHOWN {
        return (line_start, line_end);
    }
    let boundary = |i: usize| (i..=line_end).find(|&i| text.is_char_boundary(i)).unwrap_or(line_end);
    (boundary(at.saturating_sub(SHOWN).max(line_start)), boundary((at + SHOWN).min(line_end)))
}

/// Shows the line that holds the start of `range`, with a caret below the range.
fn write_source(f: &mut fmt::Formatter<'_>, text: &str, range: std::ops::Range<usize>) -> fmt::Result {
    let mut start = range.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
    let number = text[..line_start].matches('\n').count() + 1;
    let (line_start, line_end) = clipped(text, line_start, start, line_end);
    let line = &text[line_start..line_end];
    let column = text[line_start..start].chars().count();
    let end = range.end.clamp(start, line_end);
    let end = (start..=end).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(start);
    let width = text[start..end].chars().count().max(1);
    let margin = number.to_string().len();
    write!(f, "\n{:margin$} |\n{number} | {line}\n{:margin$} | {:column$}{}", "", "", "", "^".repeat(width))
}

impl std::error::Error for Diagnostic {}
