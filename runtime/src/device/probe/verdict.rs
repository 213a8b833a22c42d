//! What the probe found, kept between runs, and the refusal of a device that failed.

use ds4_ir::diagnostic::codes;
use ds4_ir::plan::CONTRACT;
use ds4_ir::{Diagnostic, Place};
use serde::{Deserialize, Serialize};

use super::items::ITEMS;
use crate::device::cache::Cache;

/// Kind of the cached files that hold verdicts.
const KIND: &str = "verdict";

/// A wrong result of an item: the first one, and how many there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Bits of `a`, `b` and `c`.
    pub inputs: [u32; 3],
    /// Bits that the contract gives.
    pub wanted: u32,
    /// Bits that the device gives.
    pub got: u32,
    /// Results that are wrong.
    pub wrong: usize,
    /// Results that were compared.
    pub of: usize,
}

/// What became of one item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the item.
    pub item: String,
    /// What went wrong, if anything.
    pub failure: Option<Failure>,
}

/// What the probe found on a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcomes, in the order of the items.
    pub outcomes: Vec<Outcome>,
    /// Iterations of all loops of a lane that the device does; `u32::MAX` if the probe found no end.
    pub iterations: u32,
}

impl Verdict {
    /// The items that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Failure)> {
        self.outcomes.iter().filter_map(|outcome| Some((outcome.item.as_str(), outcome.failure.as_ref()?)))
    }

    /// An error if the device, named so, does not keep the contract: the first item that failed, with bits.
    pub fn check(&self, device: &str) -> Result<(), Diagnostic> {
        let Some((item, failure)) = self.failures().next() else { return Ok(()) };
        let what = ITEMS.iter().find(|i| i.name == item).map_or("", |i| i.what);
        let [a, b, c] = failure.inputs;
        let wanted = format!("{:#010x} for a = {a:#010x}, b = {b:#010x}, c = {c:#010x}: {what}", failure.wanted);
        let others = match self.failures().count() {
            1 => String::new(),
            n => format!("; {} of {} items fail", n, self.outcomes.len()),
        };
        let found = format!("{:#010x}; {} of {} results are wrong{others}", failure.got, failure.wrong, failure.of);
        Err(Diagnostic::new(codes::DEVICE_INEXACT, format!("the device does not keep the numeric contract {CONTRACT}"))
            .at(Place::item(format!("device {device}"), format!("probe item {item}")))
            .wanted(wanted, found)
            .help("update the driver, or take another device: --device cpu always keeps it"))
    }

    /// The verdict that an earlier run kept for an adapter with this identity.
    pub fn kept(cache: &Cache, identity: &str) -> Option<Verdict> {
        let verdict: Verdict = serde_json::from_slice(&cache.get(KIND, &key(identity))?).ok()?;
        let names = verdict.outcomes.iter().map(|outcome| outcome.item.as_str());
        names.eq(ITEMS.iter().map(|item| item.name)).then_some(verdict)
    }

    /// Keeps the verdict for later runs.
    pub fn keep(&self, cache: &Cache, identity: &str) {
        // Strings and numbers always have a JSON form.
        if let Ok(json) = serde_json::to_vec(self) {
            cache.put(KIND, &key(identity), &json);
        }
    }
}

/// Adapter, driver, contract, and the texts of the probe: when one of them changes, the probe runs again.
fn key(identity: &str) -> String {
    let mut texts = blake3::Hasher::new();
    for item in ITEMS {
        texts.update(item.wgsl().as_bytes());
    }
    texts.update(super::iterations::wgsl().as_bytes());
    format!("{identity}, {CONTRACT}, {}, probe {}", env!("CARGO_PKG_VERSION"), texts.finalize().to_hex())
}
