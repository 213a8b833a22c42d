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
    let Facts { model, plan, plan_hash, threads, isa, .. } = facts;
    let hash: String = plan_hash.chars().take(16).collect();
    [
        format!("model    {model}"),
        format!("plan     {plan}, hash {hash}"),
        format!("machine  {threads} threads, {isa}"),
        line("prefill", &measured.prefill),
        line("decode", &measured.decode),
    ]
    .map(|line| line + "\n")
    .concat()
}

fn line(name: &str, phase: &Phase) -> String {
    let (tokens, seconds, rate) = (phase.tokens, phase.time.as_secs_f64(), phase.rate());
    format!("{name:8} {tokens:6} tokens {seconds:10.3} s {rate:10.2} tokens/s")
}

/// One object: the plan, the machine, and for each phase tokens, seconds and tokens per second.
pub(super) fn json(facts: &Facts, measured: &Measured) -> String {
    let phase = |phase: &Phase| {
        json!({
            "tokens": phase.tokens,
            "seconds": phase.time.as_secs_f64(),
            "tokens_per_second": phase.rate(),
        })
    };
    let object = json!({
        "model": facts.model,
        "plan": facts.plan,
        "plan_hash": facts.plan_hash,
        "threads": facts.threads,
        "isa": facts.isa,
        "prefill": phase(&measured.prefill),
        "decode": phase(&measured.decode),
    });
    format!("{object:#}\n")
}
