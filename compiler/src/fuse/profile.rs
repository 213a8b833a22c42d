//! What a launch costs on a device: limits and measured rates, read from a file.

use std::ops::RangeInclusive;
use std::path::Path;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::kernel::MOST_SHARED;
use ds4_kernels::region::Limits;
use ds4_kernels::schedule::MOST_ARGUMENTS;
use serde::Deserialize;

/// A device's limits and rates.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// A name for people.
    pub name: String,
    /// Microseconds from one launch to the next.
    pub launch: f64,
    /// Microseconds of a step between two barriers of a workgroup, whatever it does.
    pub step: f64,
    /// Workgroups that run at once.
    pub workgroups: u32,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Buffers that one launch binds.
    pub arguments: u32,
    /// Iterations of all loops of a lane, where the device ends longer ones.
    #[serde(default = "unbounded")]
    pub iterations: u32,
    /// Bytes a microsecond that one workgroup reads.
    pub workgroup_bandwidth: f64,
    /// Bytes a microsecond that all read together.
    pub bandwidth: f64,
    /// Rounded operations a microsecond of one workgroup.
    pub workgroup_rate: f64,
}

/// Times and rates that mean something; sums of what a step takes stay numbers.
const RATES: RangeInclusive<f64> = 1e-6..=1e12;

fn unbounded() -> u32 {
    u32::MAX
}

/// The profiles that come with the compiler.
const BUILT_IN: [(&str, &str); 3] = [
    ("generic", include_str!("../../profiles/generic.toml")),
    ("h200", include_str!("../../profiles/h200.toml")),
    ("lavapipe", include_str!("../../profiles/lavapipe.toml")),
];

/// A profile of a file. A plan remembers a profile by its name, so the name is the file's own.
fn own_name(profile: Profile, file: &str) -> Result<Profile, Diagnostic> {
    let taken = ["off"].into_iter().chain(Profile::names()).any(|known| known == profile.name);
    if !taken {
        return Ok(profile);
    }
    Err(Diagnostic::new(codes::PROFILE, "the name of the profile means something else")
        .at(Place::file(file))
        .wanted("a name of its own", format!("`name = \"{}\"`", profile.name))
        .help("a file that began as one of the built-in profiles needs another `name`"))
}

impl Profile {
    /// Names of the profiles that come with the compiler.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// What a workgroup may take.
    pub fn limits(&self) -> Limits {
        Limits { workgroup_bytes: self.workgroup_bytes, lanes: self.lanes, iterations: self.iterations }
    }

    /// The profile of a name, or of a file.
    ///
    /// # Errors
    /// There is no such profile, or the file is no profile.
    pub fn find(name: &str) -> Result<Profile, Diagnostic> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Profile::parse(text, name);
        }
        match std::fs::read_to_string(Path::new(name)) {
            Ok(text) => Profile::parse(&text, name).and_then(|profile| own_name(profile, name)),
            Err(error) => Err(Diagnostic::new(codes::PROFILE, "there is no such device profile")
                .at(Place::file(name))
                .wanted(format!("a file, or one of {}", Profile::names().collect::<Vec<_>>().join(", ")), error)
                .help("write a profile file: start from one in `compiler/profiles`")),
        }
    }

    /// The profile of a file's text.
    ///
    /// # Errors
    /// The text is no profile, or a number in it is not positive.
    pub fn parse(text: &str, name: &str) -> Result<Profile, Diagnostic> {
        let fault = |found: String| {
            Diagnostic::new(codes::PROFILE, "the file is no device profile")
                .at(Place::file(name))
                .wanted("positive numbers under the names of the profile `generic`", found)
                .help("start from a profile that comes with the compiler")
        };
        let profile: Profile = toml::from_str(text).map_err(|error| fault(error.message().to_string()))?;
        let named = !profile.name.is_empty() && profile.name.len() <= 40;
        if !named || !profile.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return Err(fault("a `name` that is not made of up to 40 letters, digits, `-`, `_` and `.`".into()));
        }
        let rates = [
            ("launch", profile.launch),
            ("step", profile.step),
            ("workgroup_bandwidth", profile.workgroup_bandwidth),
            ("bandwidth", profile.bandwidth),
            ("workgroup_rate", profile.workgroup_rate),
        ];
        if let Some((name, rate)) = rates.iter().find(|(_, rate)| !RATES.contains(rate)) {
            return Err(fault(format!("`{name} = {rate}`: {:e} to {:e} are possible", RATES.start(), RATES.end())));
        }
        let lanes = profile.lanes;
        if ![128, 256].contains(&lanes) {
            return Err(fault(format!("`lanes = {lanes}`: 128 and 256 are possible, the trees of long sums have 128")));
        }
        let most = MOST_ARGUMENTS as u32;
        let numbers = [
            ("workgroups", profile.workgroups, 1, u32::MAX),
            ("arguments", profile.arguments, 8, most),
            ("workgroup_bytes", profile.workgroup_bytes, 1, MOST_SHARED as u32),
        ];
        if let Some((name, number, least, most)) = numbers.iter().find(|(_, n, least, most)| n < least || n > most) {
            return Err(fault(format!("`{name} = {number}`: {least} to {most} are possible")));
        }
        Ok(profile)
    }
}
