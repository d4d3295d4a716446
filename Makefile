# Everything a fresh machine needs: Rust, Python 3.11 with pip, gcc. The rest is installed here, pinned.
#
# All steps share one target directory and one profile, so that nothing heavy is compiled twice. Set CARGO_TARGET_DIR
# to share it between clones.

PYTHON ?= python3
BIN := .venv/bin
SCALE ?= 1
# Tests are built with the switches that break one rule each; see crates/drumlin/src/base/planted.rs.
PLANTED := --features drumlin/planted-bugs

# pandas 2, which tests of frames run on, too: a folder that goes before the packages of .venv.
PANDAS2 := $(CURDIR)/.venv/pandas2
PANDAS_TESTS := $(addprefix python/tests/,test_pandas.py test_pandas_exact.py test_frames.py test_any_frame.py)

.PHONY: build demo test check bench torture torture-tools fuzz clean

build: $(BIN)/.installed
	cd python && VIRTUAL_ENV=$(CURDIR)/.venv ../$(BIN)/maturin develop --release --quiet

$(BIN)/.installed: python/requirements-dev.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r python/requirements-dev.txt
	touch $@

$(PANDAS2)/.installed: python/requirements-pandas2.txt $(BIN)/.installed
	rm -rf $(PANDAS2)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PANDAS2) -r $<
	touch $@

demo: build
	$(BIN)/python examples/demo.py --scale $(SCALE)

test: build $(PANDAS2)/.installed
	cargo test --release --workspace $(PLANTED)
	cd interleavings && CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/interleavings cargo test --release
	$(BIN)/python -m pytest -q python/tests
	PYTHONPATH=$(PANDAS2) $(BIN)/python -m pytest -q $(PANDAS_TESTS)
	cd python && ../$(BIN)/python -m mypy --strict drumlin && ../$(BIN)/python -m mypy.stubtest drumlin
	$(BIN)/python examples/demo.py --scale 0.05 --folder demo-data/small

check: build
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets $(PLANTED) -- -D warnings
	cd python && ../$(BIN)/ruff check --config pyproject.toml . ../bench ../examples && ../$(BIN)/ruff format --check --config pyproject.toml . ../bench ../examples
	$(MAKE) test

bench: build
	cargo bench --workspace $(PLANTED) --bench tree
	$(BIN)/python bench/tree.py
	$(BIN)/python bench/duckdb_compare.py --scale $(SCALE)
	$(BIN)/python bench/vacuum.py --scale $(SCALE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	$(BIN)/python bench/keyed.py
	$(BIN)/python bench/arctic.py

# Real processes, killed, stopped, failed by storage and network: a few minutes, or `make torture HOURS=2`. `SEED=...` runs one
# trial again, `REPLAY=torture-failures/.../shrunk.json` a shrunk one. `make test` has a minute of it.
torture: build
	cd python/tests && ../../$(BIN)/python -m torture --failures ../../torture-failures \
		$(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) $(if $(REPLAY),--replay $(abspath $(REPLAY)))

# What the torture needs beside the build: strace and libfaketime (Debian's packages), and an S3 server built by Go.
torture-tools:
	apt-get install --yes --no-install-recommends strace libfaketime
	cd python/tests && $(PYTHON) -c "from servers import s3; print(s3.build('versitygw') or 'NO GO: no stores in buckets')"

# Needs a nightly toolchain and cargo-fuzz; the same decoders are fed random bytes by `make test`.
fuzz:
	cd fuzz && cargo +nightly fuzz run $(TARGET) -- -max_total_time=60

clean:
	rm -rf .venv demo-data
	cargo clean
