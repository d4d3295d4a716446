"""The examples of the README run, in order, as they stand. Those of other pages are in test_docs.py."""

import re
from pathlib import Path
from typing import Any

import pages
import pytest

README = (pages.ROOT / "README.md").read_text()


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    python = pages.blocks(README, "python")
    assert len(python) == 2
    for block in python:
        pages.run_python(block, names)
    store = names["store"]
    assert store.tables() == ["people", "prices/AAPL"]
    assert store.read("prices/AAPL", as_of="eod").to_pandas()["close"].to_list() == [187.5, 190.0]
    assert names["people"].get(3) == {"id": 3, "name": "Alan"}
    assert store.verify().ok
    store.close()
    install, commands = pages.blocks(README, "console")
    assert not install.runs
    assert commands.code.count("$ drumlin") > 5
    assert pages.run_console(commands) == []


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 20
    assert [link for link in links if not (pages.ROOT / link).exists()] == []
