"""The page on migrations: its examples run, in order, and so do those of the package."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from other_systems import need

import drumlin.migrate

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text()
MODULES = [module.name for module in pkgutil.walk_packages(drumlin.migrate.__path__, "drumlin.migrate.")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("arcticdb", "deltalake", "pyiceberg"):
        need(module)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "migrating.md", "exec"), names)
    assert len(blocks("python")) == 4
    store = names["store"]
    assert isinstance(store, drumlin.Store)
    assert store.tables() == ["prices/us/AAPL", "trades"]
    store.close()


def test_the_commands_of_the_page_are_taken() -> None:
    lines = [line[2:] for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        program, _, *arguments = shlex.split(line)
        assert program == "drumlin"
        # Read, then refused before anything is done.
        asked = [sys.executable, "-m", "drumlin._cli", "migrate", *arguments, "--no-such-option"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "unrecognized arguments: --no-such-option" in done.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_package_run(name: str) -> None:
    for module in ("arcticdb", "deltalake", "lance", "pyiceberg"):
        need(module)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
