"""The examples of the README run, in order. Those of other pages are in test_docs.py."""

import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import duckdb
import pages
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drumlin

README = (pages.ROOT / "README.md").read_text()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_of_the_readme_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = [dt.date(2026, 1, 5), dt.date(2026, 1, 6), dt.date(2026, 2, 2)]
    rows = {"day": days, "sym": ["A", "B", "C"], "close": [99.5, 101.0, 250.0], "volume": [10, 0, 30]}
    names: dict[str, Any] = {
        "df": pd.DataFrame(rows),
        "more": pd.DataFrame(rows),
        "pyarrow": pa,
        "duckdb": duckdb,
        "polars": pl,
    }
    opened = []
    for block in pages.blocks(README, "python"):
        # A folder that many processes write replaces a bucket.
        block.code = block.code.replace(
            'drumlin.open("s3://bucket/prefix")', f"drumlin.open({str(here / 'shared')!r}, shared=True)"
        )
        pages.run_python(block, names)
        opened.append(names["store"])
    assert len(opened) == 8
    assert names["frames"]["prices/7"].equals(names["df"])
    market = opened[0]
    assert isinstance(market, drumlin.Store)
    market.tree.wait_for_triggers()
    assert market.table("people").get(1) is None
    assert market.tree.projection("by_owner").get("me") == "config/feeds/a"
    assert market.verify().ok
    for store in {id(store): store for store in opened}.values():
        store.close()


def test_the_commands_of_the_readme_run(here: Path) -> None:
    pq.write_table(pa.table({"price": [0.0, 99.0, 101.0]}), here / "trades.parquet")
    (here / "trades.jsonl.gz").write_bytes(gzip.compress(b'{"price": 102.5}\n'))
    (here / "people.csv").write_text("id,name\n1,Ada\n2,Grace\n")
    with drumlin.open("market.drumlin") as store:
        store.table("people").create({"id": pa.int64(), "name": pa.string()}, key=["id"])
    [block] = pages.blocks(README, "console")
    # There is no bucket.
    lines = [line for line in block.code.splitlines(keepends=True) if "s3://" not in line]
    assert len(lines) > 5
    block.code = "".join(lines)
    assert pages.run_console(block) == []
