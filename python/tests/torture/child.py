"""Child processes that work on stores, started cheaply and so that a hang does not go unnoticed.

The parent never opens a store, so it has one thread and can fork: a child begins with everything imported. One whose
clock is wrong must load libfaketime first and is started with exec; it gets its task as a file.

A task is a function of a module of this package, and its argument. What it prints goes to a file; it reports through
its exit status and through journals.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What the first frame would import is imported before the first fork.
import pandas  # noqa: F401
import pyarrow  # noqa: F401

from .places import fake_clock

#: A child that runs longer is considered hanging, and is ended with a traceback.
SECONDS_MAX = 180


class Child:
    """A running child."""

    def __init__(self, task: Callable[[Any], None], argument: Any, out: Path, clock: str | None = None) -> None:
        self.out = out
        self.stopped = False
        self.status: int | None = None
        #: Held: of one that nobody refers to, the next process that is started would take the exit status.
        self.process = _execute(task, argument, out, clock) if clock else None
        self.pid = self.process.pid if self.process else _fork(task, argument, out)

    def poll(self) -> int | None:
        """The exit status, negative if a signal ended it; None if it is running."""
        if self.status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._ended(status)
        return self.status

    def _ended(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)
        if self.process is not None:
            self.process.returncode = self.status
        # Files that libfaketime leaves behind for a process that does not end by itself.
        for left in (f"faketime_shm_{self.pid}", f"sem.faketime_sem_{self.pid}"):
            Path("/dev/shm", left).unlink(missing_ok=True)

    def wait(self, seconds: float = SECONDS_MAX + 30) -> int:
        """Waits for the end; kills a child that does not end."""
        deadline = time.monotonic() + seconds
        pause = 0.001
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"a child did not end within {seconds:.0f} s: {self.told()}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        assert self.status is not None
        return self.status

    def signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it, and waits until it is gone."""
        self.signal(signal.SIGKILL)
        if self.status is None:
            self._ended(os.waitpid(self.pid, 0)[1])

    def told(self) -> str:
        """The end of what it printed."""
        return self.out.read_text(errors="replace")[-1500:] if self.out.exists() else ""


def _fork(task: Callable[[Any], None], argument: Any, out: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        _run(task, argument)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _execute(task: Callable[[Any], None], argument: Any, out: Path, clock: str) -> subprocess.Popen[bytes]:
    parcel = out.with_suffix(".task")
    parcel.write_bytes(pickle.dumps((task.__module__, task.__name__, argument)))
    # The monotonic clock stays unchanged: it orders histories.
    environment = {
        **os.environ,
        "LD_PRELOAD": str(fake_clock()),
        "FAKETIME": clock,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    with open(out, "ab") as file:
        command = [sys.executable, "-m", "torture.child", str(parcel)]
        return subprocess.Popen(command, stdout=file, stderr=file, env=environment)


def _run(task: Callable[[Any], None], argument: Any) -> None:
    faulthandler.enable()
    faulthandler.dump_traceback_later(SECONDS_MAX, exit=True)
    task(argument)


def main() -> None:
    module, name, argument = pickle.loads(Path(sys.argv[1]).read_bytes())
    _run(getattr(importlib.import_module(module), name), argument)
    sys.stdout.flush()
    # Like a forked child: nothing is cleaned up at the end.
    os._exit(0)


if __name__ == "__main__":
    main()
