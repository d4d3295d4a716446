#!/bin/sh
# Builds and runs the comparison with RocksDB, with the arguments given; see README.md. RocksDB comes from its authors' release for
# Java, where Maven is there, and is compiled otherwise, which takes about 20 minutes.
set -eu
cd "$(dirname "$0")"
ROCKSDB=11.8.1
PYTHON=${PYTHON:-python3}
TARGET=$(cd ../.. && pwd)/target/rocksdb
CLANG=$TARGET/libclang
[ -d "$CLANG" ] || "$PYTHON" -m pip install --quiet --disable-pip-version-check --target "$CLANG" libclang==18.1.1
LIBCLANG_PATH=$CLANG/clang/native
BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)"
export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
if command -v mvn >/dev/null && [ "$(uname -sm)" = "Linux x86_64" ]; then
    lib=$TARGET/$ROCKSDB
    if [ ! -f "$lib/librocksdb.so" ]; then
        mkdir -p "$lib"
        mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
            "-Dartifact=org.rocksdb:rocksdbjni:$ROCKSDB" "-DoutputDirectory=$lib"
        "$PYTHON" -m zipfile -e "$lib/rocksdbjni-$ROCKSDB.jar" "$lib/jar"
        mv "$lib/jar/librocksdbjni-linux64.so" "$lib/librocksdb.so"
        rm -rf "$lib/jar" "$lib/rocksdbjni-$ROCKSDB.jar"
    fi
    export ROCKSDB_LIB_DIR="$lib" LD_LIBRARY_PATH="$lib"
fi
exec cargo run --release --target-dir "$TARGET" -- "$@"
