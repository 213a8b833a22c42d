//! Rates, for people and as JSON.

use serde_json::json;

use crate::generate::{Facts, Measured, Outcome, Phase};

/// The rates of a run: a line for each phase that fed tokens.
pub(super) fn rates(outcome: &Outcome) -> String {
    [("prefill", &outcome.prefill), ("decode", &outcome.decode)]
        .into_iter()
        .filter(|(_, phase)| phase.tokens > 0)
        .map(|(name, phase)| format!("{}\n", line(name, phase)))
        .collect()
}

/// A small table.
pub(super) fn table(facts: &Facts, measured: &Measured) -> String {
    let Facts { model, plan, plan_hash, device, launches, .. } = facts;
    let hash: String = plan_hash.chars().take(16).collect();
    [
        format!("model    {model}"),
        format!("plan     {plan}, hash {hash}"),
        format!("device   {device}"),
        line("prefill", &measured.prefill),
        line("decode", &measured.decode),
        format!("step     {launches:6} launches {:8.3} ms", measured.decode.milliseconds()),
    ]
    .map(|line| line + "\n")
    .concat()
}

fn line(name: &str, phase: &Phase) -> String {
    let (tokens, seconds, rate) = (phase.tokens, phase.time.as_secs_f64(), phase.rate());
    format!("{name:8} {tokens:6} tokens {seconds:10.3} s {rate:10.2} tokens/s")
}

/// One object: the plan, the device, and for each phase tokens, steps, and their rates.
pub(super) fn json(facts: &Facts, measured: &Measured) -> String {
    let phase = |phase: &Phase| {
        json!({
            "tokens": phase.tokens,
            "seconds": phase.time.as_secs_f64(),
            "tokens_per_second": phase.rate(),
            "steps": phase.steps,
            "milliseconds_per_step": phase.milliseconds(),
        })
    };
    let object = json!({
        "model": facts.model,
        "plan": facts.plan,
        "plan_hash": facts.plan_hash,
        "device": facts.device,
        "launches_per_decode_step": facts.launches,
        "prefill": phase(&measured.prefill),
        "decode": phase(&measured.decode),
    });
    format!("{object:#}\n")
}
