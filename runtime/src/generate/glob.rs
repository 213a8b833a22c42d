//! Which named values a user's patterns mean.

use std::collections::BTreeSet;

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;
use globset::Glob;

/// Near names that are shown when a pattern matches nothing.
const SHOWN: usize = 6;

/// The names that any pattern matches, in their order. An error if a pattern matches none.
pub fn select(names: &[String], patterns: &[Glob]) -> Result<Vec<String>, Diagnostic> {
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        let matcher = pattern.compile_matcher();
        let mut matching = (0..names.len()).filter(|&i| matcher.is_match(&names[i])).peekable();
        if matching.peek().is_none() {
            return Err(unmatched(names, pattern.glob()));
        }
        chosen.extend(matching);
    }
    Ok(chosen.into_iter().map(|i| names[i].clone()).collect())
}

fn unmatched(names: &[String], pattern: &str) -> Diagnostic {
    let message = format!("the tap `{pattern}` matches no named value");
    let near = near_names(names, pattern);
    let found = match near.is_empty() {
        true => "the plan names no values".to_string(),
        false => format!("{} names; the nearest: {}", names.len(), near.join(", ")),
    };
    Diagnostic::new(codes::TAP_UNMATCHED, message).wanted("the name of a value; `*` stands for any characters", found)
}

/// The names that differ least from a pattern, one of those that differ by numbers only.
fn near_names<'a>(names: &'a [String], pattern: &str) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let families = names.iter().filter(|name| seen.insert(without_digits(name)));
    let mut ranked: Vec<(usize, &str)> = families.map(|name| (distance(pattern, name), name.as_str())).collect();
    ranked.sort();
    ranked.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Least number of characters to insert, delete or replace; `*` in the pattern stands for any characters for nothing.
fn distance(pattern: &str, name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for p in pattern.chars() {
        let above = row.clone();
        let star = p == '*';
        row[0] = above[0] + usize::from(!star);
        for (j, &c) in name.iter().enumerate() {
            row[j + 1] = match star {
                true => above[j + 1].min(row[j]),
                false => {
                    let replaced = above[j] + usize::from(p != c);
                    replaced.min(above[j + 1] + 1).min(row[j] + 1)
                }
            };
        }
    }
    row[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        let parts = ["route.ids", "route.weights", "attn.q", "attn.pool", "ffn.out"];
        (0..12)
            .flat_map(|layer| parts.map(|part| format!("layer.{layer}.{part}")))
            .chain(["embedding".into()])
            .collect()
    }

    fn selected(patterns: &[&str]) -> Result<Vec<String>, Diagnostic> {
        let globs: Vec<Glob> = patterns.iter().map(|p| Glob::new(p).unwrap()).collect();
        select(&names(), &globs)
    }

    #[test]
    fn a_star_matches_any_characters() {
        assert_eq!(selected(&["layer.*.route.ids"]).unwrap().len(), 12);
        assert_eq!(selected(&["*ids", "layer.3.*"]).unwrap().len(), 12 + 4);
        let exact = selected(&["embedding", "layer.1.attn.q"]).unwrap();
        assert_eq!(exact, ["layer.1.attn.q", "embedding"]);
        assert_eq!(selected(&["*"]).unwrap(), names());
    }

    #[test]
    fn near_names_are_listed() {
        insta::assert_snapshot!(selected(&["*ids", "layer.*.route.id"]).unwrap_err());
        let none = select(&[], &[Glob::new("*").unwrap()]).unwrap_err();
        insta::assert_snapshot!("no_names", none);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("*", "anything"), 0);
        assert_eq!(distance("layer.*.ids", "layer.3.route.ids"), 0);
        assert_eq!(distance("layer.*.id", "layer.3.route.ids"), 1);
    }
}
