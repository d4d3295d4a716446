"""The examples of the README run, in order."""

import datetime as dt
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drumlin

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_of_the_readme_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = [dt.date(2026, 1, 5), dt.date(2026, 1, 6), dt.date(2026, 2, 2)]
    rows = {"day": days, "sym": ["A", "B", "C"], "close": [99.5, 101.0, 250.0], "volume": [10, 0, 30]}
    names = {"df": pd.DataFrame(rows), "more": pd.DataFrame(rows), "pyarrow": pa, "duckdb": duckdb, "polars": pl}
    opened = []
    for block in blocks("python"):
        # A folder that many processes write replaces a bucket.
        local = block.replace(
            'drumlin.open("s3://bucket/prefix")', f"drumlin.open({str(here / 'shared')!r}, shared=True)"
        )
        exec(compile(local, "README.md", "exec"), names)
        opened.append(names["store"])
    assert len(opened) == 7
    assert names["frames"]["prices/7"].equals(names["df"])
    market = opened[0]
    assert isinstance(market, drumlin.Store)
    market.tree.wait_for_triggers()
    assert market.table("people").get(1) is None
    assert market.tree.projection("by_owner").get("me") == "config/feeds/a"
    assert market.verify().ok
    for store in {id(store): store for store in opened}.values():
        store.close()


def test_the_python_of_the_page_of_engines_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    shown = blocks("python", (ROOT / "docs" / "engines.md").read_text())
    for block in shown:
        exec(compile(block, "engines.md", "exec"), names)
    assert len(shown) == 6


def test_the_python_of_the_page_of_notebooks_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    shown = blocks("python", (ROOT / "docs" / "notebooks.md").read_text())
    for block in shown:
        exec(compile(block, "notebooks.md", "exec"), names)
    assert len(shown) == 6
    assert isinstance(names["store"], drumlin.Store)
    names["store"].close()


def test_the_commands_of_the_readme_run(here: Path) -> None:
    pq.write_table(pa.table({"price": [0.0, 99.0, 101.0]}), here / "trades.parquet")
    (here / "trades.jsonl.gz").write_bytes(gzip.compress(b'{"price": 102.5}\n'))
    (here / "people.csv").write_text("id,name\n1,Ada\n2,Grace\n")
    with drumlin.open("market.drumlin") as store:
        store.table("people").create({"id": pa.int64(), "name": pa.string()}, key=["id"])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = [line[2:].split("#")[0].strip() for block in blocks("console") for line in block.splitlines()]
    # There is no bucket.
    commands = [command for command in commands if "s3://" not in command]
    assert len(commands) > 5
    for command in commands:
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
