"""Faults: what strace does to a process at a chosen system call, and how a process lets it attach at a chosen moment.

A *gate* precedes one operation of a process: there it reports that it waits, and continues when the parent has
attached strace. So system calls are counted from that operation on (strace counts each thread separately), and "the
third write of operation 7" stays the same place when other operations are removed.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .child import Child

#: System calls that change files, and the errors with which they fail. Names that a machine does not have are skipped.
CHANGES = {
    "pwrite64": ("EIO", "ENOSPC"),
    "fsync": ("EIO",),
    "fdatasync": ("EIO",),
    "renameat": ("EIO", "ENOSPC"),
    "renameat2": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "linkat": ("EIO", "ENOSPC"),
    "unlinkat": ("EIO",),
    "unlink": ("EIO",),
    "openat": ("EIO", "ENOSPC", "EMFILE"),
    "mkdirat": ("EIO", "ENOSPC"),
    "mkdir": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO",),
    "pread64": ("EIO",),
    "flock": ("EINTR",),
}
#: System calls that a store makes all the time.
OFTEN = ("pwrite64", "fsync", "fdatasync", "renameat2", "openat", "pread64")
#: System calls of a process that talks to a bucket.
TALK = {"sendto": ("ECONNRESET",), "recvfrom": ("ECONNRESET",), "writev": ("EPIPE",), "connect": ("ETIMEDOUT",)}
KILL = "KILL"


@dataclass(frozen=True)
class Strike:
    """What is done at the ``when``-th of some system calls; with ``on``, at all later ones too."""

    calls: str
    action: str
    when: int
    on: bool = False

    @property
    def injection(self) -> str:
        done = "signal=SIGKILL" if self.action == KILL else f"error={self.action}"
        return f"inject={self.calls}:{done}:when={self.when}{'+' if self.on else ''}"

    def __str__(self) -> str:
        which = {names(CHANGES): "files", names(TALK): "the network"}.get(self.calls, self.calls)
        return f"{self.action} at call {self.when}{' and on' if self.on else ''} of {which}"


def names(table: dict[str, tuple[str, ...]]) -> str:
    """System calls in strace's syntax; it skips the names that it does not know."""
    return ",".join("?" + name for name in table)


def draw(rng: random.Random, table: dict[str, tuple[str, ...]]) -> Strike:
    """A random strike: half of them kill."""
    when = rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 8, 11, 15, 20])
    if rng.random() < 0.5:
        return Strike(names(table), KILL, when)
    name = rng.choice(OFTEN if table is CHANGES and rng.random() < 0.8 else list(table))
    action, on = rng.choice(table[name]), rng.random() < 0.2
    # A call that was interrupted is made again: it is never interrupted for ever.
    return Strike("?" + name, action, min(when, 5), on and action != "EINTR")


class Tracer:
    """strace, attached to a process and all its threads."""

    def __init__(self, child: Child, strike: Strike, log: Path) -> None:
        calls = strike.calls
        command = ["strace", "-f", "-q", "-o", str(log), "-e", f"trace={calls}", "-e", strike.injection]
        self.log = log
        self.process = subprocess.Popen([*command, "-p", str(child.pid)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not _traced(child.pid) and child.poll() is None and self.process.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError("strace does not attach")
            time.sleep(0.002)

    def detach(self) -> None:
        """Lets the process continue by itself."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        self.process.wait()


def struck(log: Path) -> bool:
    """Whether strace did anything, according to its output."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "(INJECTED)" in text or "killed by SIGKILL" in text


def _traced(pid: int) -> bool:
    """Whether each thread of a process has a tracer."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return all("TracerPid:\t0\n" not in (thread / "status").read_text() for thread in threads)
    except OSError:
        return False


def pause(seconds: float) -> None:
    """Sleeps; in a process whose clock is wrong ``time.sleep`` does not work."""
    select.select([], [], [], seconds)


@dataclass(frozen=True)
class Gate:
    """The point where a process waits to be struck: two files in a folder."""

    folder: Path

    def wait(self) -> None:
        """In the process: waits until it may continue."""
        (self.folder / "waits").touch()
        while not (self.folder / "open").exists():
            pause(0.002)

    def strike(self, child: Child, strike: Strike, log: Path) -> Tracer | None:
        """In the parent: attaches strace once the process waits. None if it ended before getting there."""
        while not (self.folder / "waits").exists():
            if child.poll() is not None:
                return None
            time.sleep(0.002)
        tracer = Tracer(child, strike, log)
        (self.folder / "open").touch()
        return tracer


def fill(folder: Path, leave: int) -> None:
    """Fills the file system of a folder except for some bytes."""
    state = os.statvfs(folder)
    count = state.f_bavail * state.f_frsize - leave
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while count > 0:
            count -= file.write(b"x" * min(count, 1 << 16))


def free(folder: Path) -> None:
    (folder / "filler").unlink(missing_ok=True)
