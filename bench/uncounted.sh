#!/bin/sh
# What RUSTC_WORKSPACE_WRAPPER names for bench/metrics.py: compiles the crates of this workspace so that they count nothing.
rustc="$1"
shift
exec "$rustc" "$@" --cfg uncounted
