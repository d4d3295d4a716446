"""What a store counts, and what it logs."""

import logging
import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin


def number(store: drumlin.Store, name: str) -> int:
    value = store.metrics()[name]
    assert isinstance(value, int)
    return value


def test_metrics_count_what_was_done(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s", inline_bytes=0) as store:
        before = number(store, 'drumlin_storage_requests_total{kind="put"}')
        store.write("t", pa.table({"n": list(range(1000))}))
        store.append("t", pa.table({"n": list(range(1000, 2000))}))
        assert number(store, "drumlin_commits_total") == store.seq
        assert number(store, 'drumlin_storage_requests_total{kind="put"}') - before == store.stat().blocks
        assert store.read("t", where="n >= 1500").to_arrow().num_rows == 500
        assert number(store, "drumlin_read_rows_total") == 500
        assert number(store, "drumlin_pruned_row_groups_total") == 1
        commits = store.metrics()["drumlin_commit_seconds"]
        assert isinstance(commits, drumlin.Durations)
        assert commits.count == store.seq
        assert 0 < commits.mean < 60
        assert commits.buckets[-1][1] <= commits.count
        assert drumlin.Durations([], 0, 0.0).mean == 0.0


def test_metrics_are_a_mapping_with_words(tmp_path: Path) -> None:
    with drumlin.open(tmp_path / "s") as store:
        store.tree.put("a", 1)
        metrics = store.metrics()
        assert len(metrics) == len(list(metrics)) > 20
        assert all(metrics.help(name).endswith(".") for name in metrics)
        with pytest.raises(KeyError):
            metrics["drumlin_nothing_total"]
        assert "drumlin_commits_total: 1" in repr(metrics).splitlines()
        text = metrics.to_prometheus()
        # Every number is in the text under its name.
        for name, value in metrics.items():
            if isinstance(value, int):
                assert f"\n{name} {value}\n" in f"\n{text}"
            else:
                assert f"\n{name}_count {value.count}\n" in text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+', line) for line in lines)
    with pytest.raises(drumlin.Closed):
        store.metrics()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failed_trigger_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: drumlin.Event) -> None:
        raise ValueError("no room")

    with caplog.at_level(logging.WARNING, "drumlin"), drumlin.open(tmp_path / "s") as store:
        store.tree.on("a/**", fails)
        store.tree.put("a/b", 1)
        store.tree.wait_for_triggers()
    [record] = [record for record in caplog.records if record.name == "drumlin"]
    assert record.levelno == logging.WARNING
    assert record.__dict__["drumlin_kind"] == "trigger_failed"
    assert "no room" in record.getMessage()


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("a handler that fails")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_handler_that_fails_harms_nothing(tmp_path: Path) -> None:
    logger, broken = logging.getLogger("drumlin"), Broken()
    logger.addHandler(broken)
    try:
        with drumlin.open(tmp_path / "s") as store:
            seen = threading.Event()

            def fails(event: drumlin.Event) -> None:
                seen.set()
                raise ValueError

            store.tree.on("**", fails)
            for at in range(3):
                store.tree.put(f"a/{at}", at)
            store.tree.wait_for_triggers()
            assert seen.is_set()
            assert number(store, "drumlin_trigger_failures_total") == 3
    finally:
        logger.removeHandler(broken)
