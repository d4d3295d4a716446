"""Builds the wheel into `dist`, says what its size is made of, and fails if it is larger than it may be.

Called by `make wheel`: the profile `wheel` of Cargo.toml, linked by zig (python/requirements-wheel.txt) against the C
library of manylinux 2.28, for every Python from 3.11; `--python` takes another interpreter, such as one without the
interpreter lock, for which the wheel is made alone. With `--quick`, as `make test` calls it, it is built from what
`make build` has compiled, against the C library of this machine, into `target/wheels`.
"""

import argparse
import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from dist import ROOT, output

MATURIN = Path(sys.executable).parent / "maturin"
#: Where `make wheel` puts zig.
ZIG = ROOT / ".venv" / "wheel"
#: The largest wheels that are made, in bytes: one for a release, and a quick one.
LIMIT, QUICK_LIMIT = 18_000_000, 22_000_000
#: How many crates and sections are listed.
SHOWN = 24

#: A symbol of a crate: what is called in it, or by which of its types.
_CRATE = re.compile(r"^[<&*\[( ]*(?:(?:dyn|mut|const|for<[^>]*>) )*([A-Za-z_]\w*)(?:\[[0-9a-f]+\])?::")
#: Crates in C, by what their names begin with.
_C = re.compile(r"^_*(ZSTD|HUF|FSE|HIST|XXH|COVER|ZDICT|POOL|mi|ring_core|ring|LZ4|Py)[_A-Z]")


def build(quick: bool, python: str | None) -> Path:
    """Calls maturin; returns the wheel, with its symbols still in it."""
    into = Path(tempfile.mkdtemp(prefix="drumlin-wheel-"))
    options = ["--out", str(into)]
    if python is not None:
        options += ["--interpreter", python]
    environment = dict(os.environ)
    if quick:
        options += ["--release"]
    else:
        options += ["--profile", "wheel", "--compatibility", "manylinux_2_28", "--zig"]
        # Zig's launcher is a module of Python, which is started by that name.
        environment["PYTHONPATH"] = str(ZIG)
        environment["CARGO_ZIGBUILD_PYTHON_PATH"] = sys.executable
    subprocess.run([str(MATURIN), "build", *options], cwd=ROOT / "python", env=environment, check=True)
    [made] = into.glob("*.whl")
    return made


def strip(wheel: Path, into: Path) -> tuple[Path, dict[str, int], dict[str, int]]:
    """Puts the wheel into a folder, its library without symbols; returns the sizes of that by section and by crate."""
    sections: dict[str, int] = {}
    crates: dict[str, int] = {}
    target = into / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        [record] = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        lines = []
        for info in old.infolist():
            if info.filename == record:
                continue
            content = old.read(info)
            if info.filename.endswith(".so"):
                content, sections, crates = _without_symbols(content)
            new.writestr(info, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append((info.filename, f"sha256={digest}", len(content)))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*lines, (record, "", "")])
        new.writestr(old.getinfo(record), text.getvalue())
    return target, sections, crates


def _without_symbols(library: bytes) -> tuple[bytes, dict[str, int], dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "library.so"
        file.write_bytes(library)
        crates = sizes_of_crates(output("nm", "--demangle", "--print-size", "--defined-only", str(file)))
        subprocess.run(["strip", "--strip-all", str(file)], check=True)
        sections = sizes_of_sections(output("size", "--format=sysv", "--radix=10", str(file)))
        return file.read_bytes(), sections, crates


def sizes_of_sections(told: str) -> dict[str, int]:
    """Bytes by section, as `size --format=sysv` tells them."""
    found = (line.split() for line in told.splitlines())
    return {words[0]: int(words[1]) for words in found if len(words) == 3 and words[0].startswith(".")}


def sizes_of_crates(told: str) -> dict[str, int]:
    """Bytes by crate, as `nm` tells those of symbols. A generic function counts for the crate that names it first: the
    one of its own, or of the type that it is a method of."""
    sizes: Counter[str] = Counter()
    for line in told.splitlines():
        words = line.split(maxsplit=3)
        if len(words) == 4 and words[2] not in "bB":
            crate, c = _CRATE.match(words[3]), _C.match(words[3])
            sizes[crate[1] if crate else f"{c[1].lower()} (C)" if c else "other"] += int(words[1], 16)
    return dict(sizes)


def tell(what: str, sizes: dict[str, int]) -> None:
    print(f"\n{what:<24}{'bytes':>12}")
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    for name, size in ordered[:SHOWN]:
        print(f"{name:<24}{size:>12,}")
    if rest := sum(size for _, size in ordered[SHOWN:]):
        print(f"{'the others':<24}{rest:>12,}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the wheel.")
    parser.add_argument("--quick", action="store_true", help="from what `make build` has compiled, into target/wheels")
    parser.add_argument("--python", help="an interpreter to build for, instead of all from 3.11")
    given = parser.parse_args()
    into = ROOT / "target" / "wheels" if given.quick else ROOT / "dist"
    if given.python is None:
        shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True, exist_ok=True)
    made = build(given.quick, given.python)
    wheel, sections, crates = strip(made, into)
    shutil.rmtree(made.parent)
    tell("section", sections)
    tell("crate", crates)
    size, limit = wheel.stat().st_size, QUICK_LIMIT if given.quick else LIMIT
    print(f"\n{wheel.relative_to(ROOT)}: {size:,} bytes, {sum(sections.values()):,} as it is loaded")
    if size > limit:
        print(f"the wheel is larger than the {limit:,} bytes that it may have", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
