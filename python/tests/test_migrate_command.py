"""The command `drumlin migrate`."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_systems import need

import drumlin


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "drumlin._cli", "migrate", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(code: int, *arguments: Any) -> subprocess.CompletedProcess[str]:
    asked = command(*map(str, arguments))
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False, env=environment())
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    (folder / "us").mkdir(parents=True)
    for name in ("A", "B"):
        pq.write_table(pa.table({"n": [1, 2], "year": [2024, 2025]}), folder / "us" / f"{name}.parquet")
    return folder


def test_it_is_listed_and_explains_itself() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "drumlin._cli", "--help"], capture_output=True, text=True, check=True, env=environment()
    )
    assert "\n  migrate " in listed.stdout
    said = run(0, "--help").stdout
    for name in ("arcticdb", "delta", "lance", "parquet", "to-parquet", "to-delta", "to-iceberg"):
        assert f"\n    {name}" in said
        assert "usage: drumlin migrate" in run(0, name, "--help").stdout


def test_parquet_in_and_out(exports: Path, tmp_path: Path, folder: str) -> None:
    done = run(0, "parquet", exports, folder, "--prefix", "in")
    assert done.stdout.startswith("parquet: 2 versions of 2 tables, 4 rows")
    # No progress line where nobody sees it.
    assert done.stderr == ""
    assert "2 versions were there" in run(0, "parquet", exports, folder, "--prefix", "in").stdout
    out = tmp_path / "out"
    assert "2 files of 2 tables" in run(0, "to-parquet", folder, "in/**", out).stdout
    assert pq.read_table(out / "in" / "us" / "A").num_rows == 2
    refused = run(1, "to-parquet", folder, "in/**", out)
    assert "--force" in refused.stderr
    assert refused.stdout == ""
    run(0, "to-parquet", folder, "in/**", out, "--force", "--partition-by", "year", "--as-of", "0")
    assert sorted(entry.name for entry in (out / "in" / "us" / "A").iterdir()) == ["year=2024", "year=2025"]
    by_name = tmp_path / "by name"
    run(0, "to-parquet", folder, "in/us/*", by_name, "--path-column", "symbol", "--compression", "snappy")
    assert sorted(entry.name for entry in by_name.iterdir()) == ["symbol=A", "symbol=B"]


def test_what_failed_shows_in_the_exit_code(exports: Path, folder: str) -> None:
    (exports / "broken.parquet").write_bytes(b"no")
    done = run(1, "parquet", exports, folder)
    assert "  failed: broken: " in done.stdout
    assert "2 versions of 2 tables" in done.stdout


def test_misuse(exports: Path, tmp_path: Path, folder: str) -> None:
    none = tmp_path / "none"
    for arguments, word in (
        ((), "COMMAND"),
        (("no-such",), "no-such"),
        (("parquet",), "required"),
        (("parquet", exports, folder, "--thr", "1"), "--thr"),
        (("parquet", exports, folder, "--threads", "x"), "invalid int"),
        (("parquet", exports, folder, "--threads", "0"), "threads=0"),
        (("parquet", exports, folder, "--storage-option", "x"), "KEY=VALUE"),
        (("to-parquet", folder, "us/*", none, "--path-column", "a", "--path-column", "b"), "path_columns names 2"),
    ):
        said = run(2, *arguments).stderr
        assert said.startswith("drumlin: ")
        assert word in said
        if word == "KEY=VALUE":
            run(0, "parquet", exports, folder)
    for arguments, word in (
        (("parquet", none, tmp_path / "new"), "is not a directory"),
        (("to-parquet", tmp_path / "new", "*", none), "new"),
        (("to-parquet", folder, "none/*", none), "no table matches"),
    ):
        said = run(1, *arguments).stderr
        assert said.startswith("drumlin: ")
        assert word in said
    assert not none.exists()
    # A source that is not there makes no store.
    assert not (tmp_path / "new").exists()


def test_other_systems(tmp_path: Path, folder: str) -> None:
    arcticdb, deltalake, lance = need("arcticdb"), need("deltalake"), need("lance")
    need("pyiceberg")
    uri = f"lmdb://{tmp_path / 'arctic'}"
    library = arcticdb.Arctic(uri).create_library("lib")
    for n in range(3):
        library.write("x/a", pd.DataFrame({"n": [n]}), prune_previous_versions=False)
    library.write("b", pd.DataFrame({"n": [0]}))
    library.write_pickle("model", [1])
    library.snapshot("eod")
    del library
    said = run(1, "arcticdb", uri, "lib", folder, "--prefix", "in", "--snapshot-prefix", "of ").stdout
    assert "4 versions of 2 symbols" in said
    assert "failed: model version 0: it is pickled" in said
    said = run(0, "arcticdb", uri, "lib", folder, "--prefix", "few", "--pattern", "x/*", "--newest", "--no-snapshots")
    assert "1 versions of 1 symbols" in said.stdout
    assert "LibraryNotFound" in run(1, "arcticdb", uri, "none", tmp_path / "new").stderr
    deltalake.write_deltalake(str(tmp_path / "d"), pa.table({"n": [1]}))
    lance.write_dataset(pa.table({"n": [1]}), str(tmp_path / "l"))
    for kind in ("delta", "lance"):
        assert "1 versions of 1 tables" in run(0, kind, tmp_path / kind[0], folder, "--table", f"t/{kind}").stdout
        assert run(1, kind, tmp_path / "none", tmp_path / "new", "--table", "t").stderr.startswith("drumlin: ")
        assert "--table" in run(2, kind, tmp_path / kind[0], folder).stderr
        run(0, f"to-{'delta' if kind == 'delta' else 'iceberg'}", folder, "t/*", tmp_path / f"out {kind}")
    assert not (tmp_path / "new").exists()
    with drumlin.open(folder) as store:
        assert store.tables() == ["few/x/a", "in/b", "in/x/a", "t/delta", "t/lance"]
        assert [snapshot.name for snapshot in store.snapshots()] == ["of eod"]


def test_a_terminal_sees_how_far_it_is(exports: Path, folder: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("parquet", str(exports), folder), stderr=theirs, stdout=subprocess.PIPE, env=environment()
    ) as child:
        assert child.wait(60) == 0
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "1 of 2, 2 rows" in said
    # The line is gone at the end.
    assert said.endswith("\r\x1b[K")


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_an_interrupted_one_goes_on(tmp_path: Path, folder: str) -> None:
    exports = tmp_path / "many"
    exports.mkdir()
    for n in range(2000):
        pq.write_table(pa.table({"n": [n]}), exports / f"{n}.parquet")
    with subprocess.Popen(
        command("parquet", str(exports), folder),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as child:
        deadline = time.monotonic() + 60
        # Some tables are there once the log has grown.
        while size(Path(folder)) < 20_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, ""), error
    assert error == "drumlin: interrupted: what is committed stays; run it again to go on\n"
    with drumlin.open(folder) as store:
        done = len(store.tables())
    assert done < 2000
    assert f"{2000 - done:,} versions of" in run(0, "parquet", exports, folder).stdout
    with drumlin.open(folder) as store:
        assert len(store.history()) == 2000
