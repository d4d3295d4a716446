#!/usr/bin/env bash
# Runs targets of the fuzzer: run.sh FUZZER SECONDS [TARGET...], all targets if none is named, one per CPU at a time.
#
# SEED in the environment makes a run try the same inputs in the same order, and RUNS bounds how many.
# Each run starts from fuzz/seeds/TARGET (committed) and from what earlier runs have found (fuzz/corpus/TARGET, not committed).
# Quiet, but for one line per target if it runs for a minute or longer; a target that fails shows what libFuzzer said, where the
# input is, and the command that runs it again.
set -euo pipefail
fuzzer=$1 seconds=$2
shift 2
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- $("$fuzzer" -list)

run() {
    local fuzzer=$1 seconds=$2 target=$3 log status=0
    mkdir -p "fuzz/corpus/$target" fuzz/artifacts
    log=$(mktemp)
    DRUMLIN_FUZZ_TARGET=$target "$fuzzer" "fuzz/corpus/$target" "fuzz/seeds/$target" -max_total_time="$seconds" -seed="${SEED:-0}" -runs="${RUNS:--1}" -timeout=60 \
        -rss_limit_mb=1500 -max_len=16384 -artifact_prefix="fuzz/artifacts/$target-" -print_final_stats=1 >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        grep -v -E '^#[0-9]+\s' "$log" | tail -60
        echo "FUZZING FAILED: target $target, exit code $status"
        artifact=$(grep -o 'fuzz/artifacts/[^ ]*' "$log" | tail -1)
        if [ -n "$artifact" ]; then
            echo "The input is $artifact. To run it again:"
            echo "  DRUMLIN_FUZZ_TARGET=$target RUST_BACKTRACE=1 $fuzzer $artifact"
        fi
        rm -f "$log"
        return 1
    fi
    if [ "$seconds" -ge 60 ]; then
        echo "$target: $(grep -E 'number_of_executed_units' "$log" | grep -oE '[0-9]+$') inputs, $(grep -oE 'cov: [0-9]+' "$log" | tail -1)"
    fi
    rm -f "$log"
}
export -f run
# xargs stops at a run that ends with 255 only, so every target gets its turn; it fails if one failed.
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'run "$0" "$1" "$2"' "$fuzzer" "$seconds" {}
