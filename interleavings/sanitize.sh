#!/bin/sh
# What RUSTC_WORKSPACE_WRAPPER names for AddressSanitizer: instruments the crate with the memtable's sources, and nothing else.
# The runtime is part of the stable toolchain; the flag that asks for it is not yet stable, so it is allowed for this crate.
rustc="$1"
shift
RUSTC_BOOTSTRAP=1 exec "$rustc" "$@" -Zsanitizer=address
