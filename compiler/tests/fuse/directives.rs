//! The directives of a file: comment lines that begin with `;!`.
//!
//! | directive | says |
//! |---|---|
//! | `profile NAME` | the device profile, `generic` without it |
//! | `set KEY NUMBER` | a number of that profile |
//! | `columns N ...` | the most columns of a step; each is tried; 1 2 3 5 8 without it |
//! | `together A B ...` | one region computes all of them |
//! | `separate A B ...` | no region computes two of them |
//! | `beside A B ...` | one launch computes all of them |
//! | `apart A B` | no launch computes both |
//! | `before A B` | every launch that computes A precedes every one that computes B |
//! | `launches <= N` | how many launches there are at most |
//! | `once A ...` | exactly one region computes it |
//! | `stored A ...` | it has memory: a region reads it that does not compute it, or it is an output or named |
//! | `interior A ...` | it has none |
//! | `declined WORD ...` | some set of values was declined, and the reason has all these words |
//! | `refused WORDS` | the verifier refuses the graph with a message that has these words; nothing else is tried |
//!
//! `when N ...: DIRECTIVE` holds for these numbers of columns only. `expected-to-fail: REASON` is about the line behind it:
//! a directive that the search does not keep yet. The run fails as soon as it does.

/// A file's directives.
#[derive(Debug)]
pub struct Header {
    /// Name of the profile.
    pub profile: String,
    /// Numbers of the profile that are other ones.
    pub numbers: Vec<(String, f64)>,
    /// Columns to try.
    pub columns: Vec<u32>,
    /// What is said of the result.
    pub claims: Vec<Claim>,
}

/// One statement about the result.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The line as it stands in the file.
    pub text: String,
    /// Columns for which it holds, all if empty.
    pub columns: Vec<u32>,
    /// Why the search does not keep it yet.
    pub expected_to_fail: Option<String>,
    /// What it says.
    pub says: Says,
}

/// What a claim says. Values are names of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    Together(Vec<String>),
    Separate(Vec<String>),
    Beside(Vec<String>),
    Apart(String, String),
    Before(String, String),
    Launches(usize),
    Once(Vec<String>),
    Stored(Vec<String>),
    Interior(Vec<String>),
    Declined(Vec<String>),
    Refused(String),
}

impl Says {
    /// Values that the claim names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Says::Together(names) | Says::Separate(names) | Says::Beside(names) => names.iter().map(|n| &**n).collect(),
            Says::Once(names) | Says::Stored(names) | Says::Interior(names) => names.iter().map(|n| &**n).collect(),
            Says::Apart(a, b) | Says::Before(a, b) => vec![a, b],
            Says::Launches(_) | Says::Declined(_) | Says::Refused(_) => Vec::new(),
        }
    }
}

impl Says {
    /// Whether the claim depends on what is computed together. What is stored or computed once may follow from the graph.
    pub fn is_about_launches(&self) -> bool {
        !matches!(self, Says::Once(_) | Says::Stored(_) | Says::Declined(_) | Says::Refused(_))
    }
}

impl Header {
    /// Reads the directives of a file's text.
    pub fn parse(text: &str) -> Result<Header, String> {
        let mut header =
            Header { profile: "generic".into(), numbers: vec![], columns: vec![1, 2, 3, 5, 8], claims: vec![] };
        let mut excuse = None;
        for line in text.lines().filter_map(|line| line.strip_prefix(";!")) {
            header.line(line.trim(), &mut excuse).ok_or_else(|| format!("`{}` is no directive", line.trim()))?;
        }
        match excuse {
            Some(reason) => Err(format!("no directive is behind `expected-to-fail: {reason}`")),
            None if header.claims.is_empty() => Err("the file claims nothing".into()),
            None => Ok(header),
        }
    }

    fn line(&mut self, line: &str, excuse: &mut Option<String>) -> Option<()> {
        if let Some(reason) = line.strip_prefix("expected-to-fail:") {
            return excuse.replace(reason.trim().into()).is_none().then_some(());
        }
        let (word, rest) = line.split_once(' ')?;
        match word {
            "profile" => self.profile = rest.trim().into(),
            "columns" => self.columns = numbers(rest)?,
            "set" => {
                let (key, number) = rest.trim().split_once(' ')?;
                self.numbers.push((key.into(), number.trim().parse().ok()?));
            }
            _ => self.claims.push(claim(line, excuse.take())?),
        }
        Some(())
    }
}

fn claim(line: &str, expected_to_fail: Option<String>) -> Option<Claim> {
    let (columns, said) = match line.strip_prefix("when ") {
        Some(rest) => rest.split_once(':').and_then(|(list, said)| Some((numbers(list)?, said.trim())))?,
        None => (Vec::new(), line),
    };
    let (word, rest) = said.split_once(' ')?;
    Some(Claim { text: line.into(), columns, expected_to_fail, says: says(word, rest.trim())? })
}

fn says(word: &str, rest: &str) -> Option<Says> {
    let names: Vec<String> = rest.split_whitespace().map(String::from).collect();
    let enough = |least: usize| (names.len() >= least).then(|| names.clone());
    let two = || <[String; 2]>::try_from(names.clone()).ok();
    Some(match word {
        "together" => Says::Together(enough(2)?),
        "separate" => Says::Separate(enough(2)?),
        "beside" => Says::Beside(enough(2)?),
        "apart" => two().map(|[a, b]| Says::Apart(a, b))?,
        "before" => two().map(|[a, b]| Says::Before(a, b))?,
        "launches" => Says::Launches(rest.strip_prefix("<=")?.trim().parse().ok()?),
        "once" => Says::Once(enough(1)?),
        "stored" => Says::Stored(enough(1)?),
        "interior" => Says::Interior(enough(1)?),
        "declined" => Says::Declined(enough(1)?),
        "refused" => Says::Refused(rest.into()),
        _ => return None,
    })
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    let numbers: Vec<u32> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    (!numbers.is_empty() && numbers.iter().all(|&n| n > 0)).then_some(numbers)
}
