"""Alternates llama.cpp and ds4-run, one token at a time, and prints rates, ratio and what ran them."""
import json
import statistics
import subprocess
import sys

peers, model, tokens, threads, rounds = sys.argv[1:]


def theirs():
    lines = subprocess.run([f"{peers}/llama_decode", model, tokens, threads], check=True, capture_output=True, text=True)
    rate, system = lines.stdout.splitlines()[:2]
    return float(rate), system


def ours():
    command = ["target/release/ds4-run", f"{peers}/bench.ds4plan", "--bench", "--prefill", "1", "--decode", tokens]
    out = subprocess.run(command + ["--threads", threads, "--json"], check=True, capture_output=True, text=True)
    report = json.loads(out.stdout)
    return report["decode"]["tokens_per_second"], report["device"]


ratios = []
for i in range(int(rounds)):
    their_rate, their_system = theirs()
    our_rate, our_device = ours()
    ratios.append(our_rate / their_rate)
    print(f"round {i + 1}: llama.cpp {their_rate:8.1f} tokens/s   ds4-run {our_rate:8.1f} tokens/s   ratio {ratios[-1]:.2f}")
print(f"median ratio {statistics.median(ratios):.2f} on {threads} threads, {tokens} tokens of {model}")
print(f"llama.cpp: {their_system}")
print(f"ds4-run:   {our_device}")
