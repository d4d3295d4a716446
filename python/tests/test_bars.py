"""Bars: in terminals and notebooks, for calls that take long; nowhere else."""

import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drumlin
from drumlin._display import bars as _bars
from drumlin._optional import have

ROWS = pa.record_batch({"n": range(1000)})


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        return True


def slow(seconds: float) -> pa.RecordBatchReader:
    """Batches that take ``seconds`` to come."""

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(20):
            time.sleep(seconds / 20)
            yield ROWS

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    # Pytest sets that of Python itself for each phase of a test.
    seen = types.SimpleNamespace(stderr=made, modules=sys.modules, _getframe=sys._getframe)
    monkeypatch.setattr(_bars, "sys", seen)
    monkeypatch.setattr(_bars, "have", lambda _: False)
    monkeypatch.delenv("DRUMLIN_PROGRESS", raising=False)
    return made


def left(shown: str) -> str:
    """What is left on the last line of a terminal."""
    line = ""
    for part in shown.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_a_long_call_has_a_bar(store: drumlin.Store, terminal: Terminal) -> None:
    version = store.write("t", slow(3.0))
    assert version.rows == 20_000
    shown = terminal.getvalue()
    assert shown.startswith("\rdrumlin write: ")
    assert left(shown) == ""
    # It begins after two seconds, and is drawn ten times a second at most.
    assert 2 <= shown.count("drumlin write") <= 14


def test_a_quick_call_asks_for_none(store: drumlin.Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("t", slow(0.5))
    store.checkpoint()
    assert terminal.getvalue() == ""


def test_a_callback_of_the_caller_wins(store: drumlin.Store, terminal: Terminal) -> None:
    steps: list[Any] = []
    store.write("t", slow(2.5), progress=lambda *step: steps.append(step))
    assert steps
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("off", ["option", "environment", "pipe", "none", "closed"])
def test_bars_are_off(store: drumlin.Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    match off:
        case "option":
            monkeypatch.setattr(drumlin.options, "progress", False)
        case "environment":
            monkeypatch.setenv("DRUMLIN_PROGRESS", "0")
        case "pipe":
            terminal.isatty = lambda: False  # type: ignore[method-assign]
        case "none":
            monkeypatch.setattr(_bars.sys, "stderr", None)
        case "closed":
            closed = Terminal()
            closed.close()
            monkeypatch.setattr(_bars.sys, "stderr", closed)
    assert store.write("t", slow(2.4)).rows == 20_000
    assert terminal.getvalue() == ""


def test_a_bar_that_cannot_be_drawn_is_given_up(
    store: drumlin.Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(terminal, "write", refuse)
    assert store.write("t", slow(2.6)).rows == 20_000
    assert not _bars._drawn.locked()


def test_a_notebook_has_bars(store: drumlin.Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.isatty = lambda: False  # type: ignore[method-assign]
    shell = type("ZMQInteractiveShell", (), {})()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    store.write("t", slow(2.6))
    assert "drumlin write" in terminal.getvalue()


def test_there_is_one_bar_at_a_time(store: drumlin.Store, terminal: Terminal) -> None:
    writes = [threading.Thread(target=store.write, args=(name, slow(2.8))) for name in ("a", "b")]
    for write in writes:
        write.start()
    for write in writes:
        write.join()
    assert sorted(store.tables()) == ["a", "b"]
    assert "drumlin write" in terminal.getvalue()
    assert not _bars._drawn.locked()
    first = _bars.make()
    assert first is not None
    assert _bars.make() is None
    first.close()


def test_an_error_removes_the_bar(store: drumlin.Store, terminal: Terminal) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from slow(2.6)
        raise ValueError("no more")

    with pytest.raises(drumlin.Error, match="no more"):
        store.write("t", pa.RecordBatchReader.from_batches(ROWS.schema, broken()))
    assert left(terminal.getvalue()) == ""
    assert not _bars._drawn.locked()
    assert store.tables() == []


def test_what_a_bar_says(terminal: Terminal) -> None:
    bar = _bars.Bar(_bars.Line("drumlin checkpoint", terminal))
    bar.show(3, 12, 1_234_567, 89_000_000, 12.4)
    assert left(terminal.getvalue()) == "drumlin checkpoint: 25 %, 3 of 12, 1,234,567 rows, 89 MB, about 12 s left"
    bar._last = 0.0
    bar.show(4, 0, 0, 0, None)
    assert left(terminal.getvalue()) == "drumlin checkpoint: 4"


@pytest.mark.skipif(not have("tqdm"), reason="tqdm is not installed")
def test_tqdm_draws_if_it_is_there(store: drumlin.Store, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bars, "have", lambda name: name == "tqdm")
    threads = threading.active_count()
    store.write("t", slow(2.8))
    assert "drumlin write: " in terminal.getvalue()
    assert threading.active_count() == threads
    bar = _bars.Bar(_bars.Tqdm("drumlin verify", terminal, notebook=False))
    bar.show(3, 12, 1000, 0, None)
    assert "25%" in terminal.getvalue()
    assert "1,000 rows" in terminal.getvalue()


def test_ctrl_c_ends_a_call_with_a_bar(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[2]); import drumlin, test_bars\n"
        "store = drumlin.open(sys.argv[1])\n"
        "try:\n    store.write('t', test_bars.slow(30))\n"
        "except KeyboardInterrupt:\n    print('stopped', store.tables())"
    )
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-c", program, str(tmp_path / "s"), str(Path(__file__).parent)]
    environment = {name: value for name, value in os.environ.items() if name != "DRUMLIN_PROGRESS"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=child, env=environment, text=True) as running:
        os.close(child)
        shown = b""
        while b"drumlin write" not in shown:
            shown += os.read(main, 4096)
        running.send_signal(signal.SIGINT)
        assert running.stdout is not None
        assert running.stdout.read() == "stopped []\n"
    os.close(main)


def test_the_option_takes_nothing_but_bools() -> None:
    with pytest.raises(TypeError, match="progress must be True or False"):
        drumlin.options.progress = 1  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        drumlin.options.progres = False  # type: ignore[attr-defined]
    assert repr(drumlin.options) == f"Options(progress={drumlin.options.progress})"
