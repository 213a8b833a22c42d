//! Runs a file: the search for each number of columns, and what the file claims of its results.

use std::collections::BTreeMap;

use ds4_compiler::fuse::{Found, Profile, fuse};
use ds4_ir::graph::Value;
use ds4_ir::text::parse;
use ds4_ir::verify::verify;
use ds4_ir::{Bounds, GraphTables};

use crate::directives::{Claim, Header, Says};
use crate::lists::Lists;

/// Most tokens of a sequence.
const CONTEXT: u32 = 4096;

/// Values by the names that the file gives them.
type Names = BTreeMap<String, Value>;

/// All failures of a file's text, each with what was claimed.
pub fn failures(text: &str, file: &str) -> Vec<String> {
    match run(text, file) {
        Ok(failures) => failures.into_iter().map(|failure| format!("{file}: {failure}")).collect(),
        Err(fault) => vec![format!("{file}: {fault}")],
    }
}

fn run(text: &str, file: &str) -> Result<Vec<String>, String> {
    let header = Header::parse(text)?;
    let graph = parse(text, file).map_err(|fault| fault.to_string())?;
    if let [Claim { says: Says::Refused(words), text, .. }] = &header.claims[..] {
        return Ok(refusal(&graph, words).err().map(|found| format!("`{text}`: {found}")).into_iter().collect());
    }
    verify(&graph.view()).map_err(|fault| fault.to_string())?;
    let names = names(text, file, &header)?;
    let mut failures = Vec::new();
    let mut kept = vec![true; header.claims.len()];
    for &columns in &header.columns {
        let found = fuse(&graph.view(), bounds(columns), &profile(&header)?, &[]);
        let lists = Lists::of(graph.view(), &found);
        failures.extend(lists.faults().into_iter().map(|fault| format!("columns {columns}: {fault}")));
        for (claim, kept) in header.claims.iter().zip(&mut kept) {
            if !claim.columns.is_empty() && !claim.columns.contains(&columns) {
                continue;
            }
            let Err(why) = check(&claim.says, &names, &lists, &found) else { continue };
            *kept = false;
            if claim.expected_to_fail.is_none() {
                failures.push(format!("columns {columns}: `{}`: {why}", claim.text));
            }
        }
    }
    failures.extend(header.claims.iter().zip(&kept).filter_map(|(claim, &kept)| claim.stale(kept)));
    Ok(failures)
}

impl Claim {
    /// A claim that was expected to fail and does not.
    fn stale(&self, kept: bool) -> Option<String> {
        let reason = self.expected_to_fail.as_ref().filter(|_| kept)?;
        Some(format!("`{}` holds now, take away `expected-to-fail: {reason}`", self.text))
    }
}

/// Claims of a file that hold of any plan: of the one without fusion and of the one that is a single region.
pub fn toothless(text: &str, file: &str) -> Result<Vec<String>, String> {
    let header = Header::parse(text)?;
    let graph = parse(text, file).map_err(|fault| fault.to_string())?;
    let names = names(text, file, &header)?;
    let (apart, whole) = (Lists::apart(graph.view()), Lists::whole(graph.view()));
    let holds = |says: &Says, lists: &Lists<'_>| check(says, &names, lists, &Found::default()).is_ok();
    let about_launches = header.claims.iter().filter(|claim| claim.says.is_about_launches());
    let toothless = about_launches.filter(|claim| holds(&claim.says, &apart) && holds(&claim.says, &whole));
    Ok(toothless.map(|claim| format!("{file}: `{}` holds of any plan", claim.text)).collect())
}

/// The bounds of a step of so many columns.
pub fn bounds(columns: u32) -> Bounds {
    Bounds { context: CONTEXT, columns, outputs: columns }
}

/// The profile of a file.
pub fn profile(header: &Header) -> Result<Profile, String> {
    let mut profile = Profile::find(&header.profile).map_err(|fault| fault.to_string())?;
    for (key, number) in &header.numbers {
        match &**key {
            "launch" => profile.launch = *number,
            "step" => profile.step = *number,
            "workgroups" => profile.workgroups = *number as u32,
            "lanes" => profile.lanes = *number as u32,
            "workgroup_bytes" => profile.workgroup_bytes = *number as u32,
            "arguments" => profile.arguments = *number as u32,
            _ => return Err(format!("`{key}` is no number of a profile that a file sets")),
        }
    }
    Ok(profile)
}

/// The values of the names that the claims use: a tap of each tells.
fn names(text: &str, file: &str, header: &Header) -> Result<Names, String> {
    let mut all: Vec<&str> = header.claims.iter().flat_map(|claim| claim.says.names()).collect();
    all.sort_unstable();
    all.dedup();
    let taps: String = all.iter().map(|name| format!("tap \"name of {name}\" = {name}\n")).collect();
    let tapped = parse(&format!("{text}\n{taps}"), file).map_err(|fault| fault.to_string())?;
    let view = tapped.view();
    let of =
        |row: &ds4_ir::graph::NamedRow| Some((view.name(row.name).strip_prefix("name of ")?.to_string(), row.value));
    Ok(view.named.iter().filter_map(of).collect())
}

fn refusal(graph: &GraphTables, words: &str) -> Result<(), String> {
    match verify(&graph.view()) {
        Err(fault) if fault.to_string().contains(words) => Ok(()),
        Err(fault) => Err(format!("refused otherwise: {fault}")),
        Ok(_) => Err("the verifier accepts the graph".into()),
    }
}

/// Whether a claim holds; if not, what was found.
fn check(says: &Says, names: &Names, lists: &Lists<'_>, found: &Found) -> Result<(), String> {
    let of = |name: &String| lists.base(names[name]);
    let all = |names: &[String]| names.iter().map(of).collect::<Vec<_>>();
    let holds = |holds: bool, found: String| if holds { Ok(()) } else { Err(found) };
    let places = |values: &[Value]| {
        let place = |&v: &Value| format!("{v} in launches {:?}", lists.launches_of(v));
        values.iter().map(place).collect::<Vec<_>>().join(", ")
    };
    match says {
        Says::Together(names) => {
            let values = all(names);
            let one = lists.regions.iter().any(|(_, list)| values.iter().all(|v| list.contains(v)));
            holds(one, places(&values))
        }
        Says::Separate(names) => {
            let values = all(names);
            let none = lists.regions.iter().all(|(_, list)| values.iter().filter(|v| list.contains(v)).count() < 2);
            holds(none, format!("a region has two of them; {}", places(&values)))
        }
        Says::Beside(names) => {
            let values = all(names);
            let one = (0..lists.launches).any(|i| values.iter().all(|&v| lists.launches_of(v).contains(&i)));
            holds(one, places(&values))
        }
        Says::Apart(a, b) => {
            let (a, b) = (of(a), of(b));
            holds(lists.launches_of(a).is_disjoint(&lists.launches_of(b)), places(&[a, b]))
        }
        Says::Before(a, b) => {
            let (a, b) = (of(a), of(b));
            holds(lists.launches_of(a).last() < lists.launches_of(b).first(), places(&[a, b]))
        }
        Says::Launches(most) => holds(lists.launches <= *most, format!("{} launches", lists.launches)),
        Says::Once(names) => {
            let several: Vec<Value> = all(names).into_iter().filter(|&v| lists.computing(v).count() != 1).collect();
            holds(several.is_empty(), places(&several))
        }
        Says::Stored(names) => {
            let missing: Vec<Value> = all(names).into_iter().filter(|&v| !lists.is_stored(v)).collect();
            holds(missing.is_empty(), format!("{missing:?} has no memory"))
        }
        Says::Interior(names) => {
            let stored: Vec<Value> = all(names).into_iter().filter(|&v| lists.is_stored(v)).collect();
            holds(stored.is_empty(), format!("{stored:?} has memory; {}", places(&stored)))
        }
        Says::Declined(words) => {
            let reasons: Vec<String> = found.declined.iter().map(|declined| format!("{:?}", declined.why)).collect();
            let one = reasons.iter().any(|reason| words.iter().all(|word| reason.contains(word)));
            holds(one, format!("{} sets are declined: {}", reasons.len(), reasons.join("; ")))
        }
        Says::Refused(_) => Err("`refused` is the only claim of its file".into()),
    }
}
