"""What a release is made of beside the wheel."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="NO CARGO: releases are not tested")


@pytest.fixture(scope="module")
def dist() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dist", ROOT / "python" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dist"] = module
    spec.loader.exec_module(module)
    return module


def test_the_bill_of_materials_names_all_that_is_linked(dist: ModuleType) -> None:
    crates = dist.linked(dist.metadata())
    assert dist.unknown(crates) == []
    bill = dist.bill_of_materials(crates, "1.2.3")
    assert json.loads(json.dumps(bill)) == bill
    components = {part["name"]: part for part in bill["components"]}
    # What is linked, and what is not: tests, fuzzers and what they need.
    assert {"drumlin", "drumlin-cli", "arrow-array", "object_store", "pyo3", "onpair"} <= set(components)
    assert not {"libfuzzer-sys", "drumlin-fuzz"} & set(components)
    for part in bill["components"]:
        assert part["purl"] == f"pkg:cargo/{part['name']}@{part['version']}"
        assert part["licenses"][0]["expression"]
        assert part["name"].startswith("drumlin") or len(part["hashes"][0]["content"]) == 64
    assert len({part["bom-ref"] for part in bill["components"]}) == len(bill["components"])


def test_an_unknown_licence_is_refused(dist: ModuleType) -> None:
    def crate(licence: str) -> object:
        return dist.Crate("x", "1.0.0", licence, ROOT, None, None)

    fit = ["MIT", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception OR GPL-2.0"]
    assert dist.unknown([crate(licence) for licence in fit]) == []
    unfit = ["", "GPL-3.0", "MIT AND GPL-3.0", "SSPL-1.0"]
    assert len(dist.unknown([crate(licence) for licence in unfit])) == len(unfit)


def test_licences_are_there_once_with_all_names(dist: ModuleType) -> None:
    crates = dist.linked(dist.metadata())
    text = dist.licences(crates)
    for crate in crates:
        own = crate.folder.is_relative_to(ROOT)
        assert own or f"{crate.name} {crate.version}" in text, crate.name
    assert text.count("Apache License\n") < 40


def test_the_source_distribution_is_whole(dist: ModuleType, tmp_path: Path) -> None:
    maturin = Path(sys.executable).parent / "maturin"
    made = [str(maturin), "sdist", "--out", str(tmp_path)]
    subprocess.run(made, cwd=ROOT / "python", check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    [folder] = [path for path in tmp_path.iterdir() if path.is_dir()]
    asked = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--no-deps"]
    told = json.loads(subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout)
    # Every crate of the project that is linked is there, with all of its sources.
    there = {package["name"]: Path(package["manifest_path"]).parent for package in told["packages"]}
    for crate in dist.linked(dist.metadata()):
        if crate.folder.is_relative_to(ROOT):
            sources = {path.relative_to(crate.folder) for path in (crate.folder / "src").rglob("*") if path.is_file()}
            packed_sources = {path.relative_to(there[crate.name]) for path in there[crate.name].rglob("src/**/*")}
            assert sources <= packed_sources, sources - packed_sources
    # The modules and their stubs, those that the build writes among them.
    modules = {path.name for end in ("py", "pyi") for path in (ROOT / "python" / "drumlin").rglob(f"*.{end}")}
    assert "_store.pyi" in modules
    assert modules <= {path.name for path in folder.rglob("drumlin/**/*") if path.is_file()}
