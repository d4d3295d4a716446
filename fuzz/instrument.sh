#!/bin/sh
# What RUSTC_WORKSPACE_WRAPPER names for the fuzzer: compiles the crates of this workspace with the coverage that libFuzzer
# reads, and with debug assertions and overflow checks. Cargo calls it for members of the workspace alone, so dependencies are
# taken as they were built for the tests. Works with the stable toolchain: the pass is LLVM's own.
rustc="$1"
shift
case " $* " in
*" --crate-name build_script_build "* | *" --crate-type proc-macro "* | *" --crate-type cdylib "*) exec "$rustc" "$@" ;;
esac
exec "$rustc" "$@" \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    --cfg fuzzing \
    -Cdebug-assertions=on \
    -Coverflow-checks=on
