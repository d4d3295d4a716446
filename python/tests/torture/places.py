"""Where trials create their stores: a folder, a shared folder, a bucket or a log on a server, both behind a failing
network; and what the machine lacks for some of them, which is reported loudly."""

from __future__ import annotations

import contextlib
import ctypes.util
import datetime as dt
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from servers import cells, s3
from servers.faulty import Proxy, Wire, proxy

import drumlin

FOLDER, SHARED, BUCKET = "folder", "shared", "bucket"
#: Shared folders whose log is on a server.
POSTGRES, ETCD = "postgresql", "etcd"
LOGS = {POSTGRES: ("postgresql", cells.postgres), ETCD: ("etcd-server", cells.etcd)}
#: Those that are reached over a network, which fails.
REMOTE = (BUCKET, *LOGS)
NOW = dt.timedelta(0)


@dataclass
class Place:
    """A store's place. ``files`` is the folder with its objects, also for a bucket."""

    kind: str
    uri: str
    files: Path
    storage: dict[str, str] = field(default_factory=dict)
    log: str | None = None

    def open(self, mode: Literal["create", "read"] = "create", **settings: Any) -> drumlin.Store:
        if self.kind in (SHARED, *LOGS) and mode == "create":
            settings["shared"] = True
        if self.log is not None:
            settings["log"] = self.log
        settings.setdefault("cpu_threads", 1)
        return drumlin.open(self.uri, mode=mode, storage_options=self.storage, **settings)

    def objects(self) -> list[str]:
        """All files of the store, relative to its folder."""
        found = (path for path in self.files.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.files)) for path in found)


def in_folder(work: Path, kind: str) -> Place:
    return Place(kind, str(work / "store"), work / "store")


class Remote:
    """A server and the proxy in front of it, for all trials of a run."""

    proxy: Proxy
    #: How probable it is that a piece of the conversation fares badly, where trials are hard.
    chances: ClassVar[dict[str, float]]

    def place(self, work: Path) -> Place:
        """A store of its own, without network faults."""
        raise NotImplementedError

    def directly(self, place: Place) -> Place:
        """The same store without a network that fails, once what the processes that ended asked of it is done."""
        raise NotImplementedError


@dataclass
class Bucket(Remote):
    """Of S3."""

    work: Path
    port: int
    proxy: Proxy
    count: int = 0
    chances: ClassVar = {
        "refuse": 0.03,
        "cut": 0.02,
        "lose": 0.02,
        "error": 0.02,
        "late": 0.02,
        "truncate": 0.01,
        "partial": 0.1,
    }

    def place(self, work: Path) -> Place:
        """A separate prefix."""
        self.count += 1
        self.proxy.heal()
        name = f"trial{self.count}"
        options = s3.options(self.proxy.port)
        return Place(BUCKET, f"s3://test/{name}", self.work / "data" / "test" / name, options)

    def directly(self, place: Place) -> Place:
        self.proxy.settle()
        return Place(BUCKET, place.uri, place.files, s3.options(self.port))


@dataclass
class LogServer(Remote):
    """PostgreSQL or etcd, which keeps the logs of shared folders."""

    kind: str
    server: cells.Server
    proxy: Proxy
    # A commit is several pieces.
    chances: ClassVar = {"refuse": 0.02, "cut": 0.004, "lose": 0.004, "late": 0.004, "truncate": 0.004}

    def place(self, work: Path) -> Place:
        self.proxy.heal()
        log = self.server.address_at(self.proxy.port)
        return Place(self.kind, str(work / "store"), work / "store", log=log)

    def directly(self, place: Place) -> Place:
        self.proxy.heal()
        self.proxy.settle()
        return place


@contextlib.contextmanager
def buckets(work: Path) -> Iterator[Bucket]:
    with s3.serve("versitygw", work / "data") as port, proxy(port) as faulty:
        yield Bucket(work, port, faulty)


@contextlib.contextmanager
def log_server(kind: str) -> Iterator[LogServer]:
    with LOGS[kind][1]() as server, proxy(server.port, of=Wire) as faulty:
        yield LogServer(kind, server, faulty)


@contextlib.contextmanager
def small_file_system(work: Path, size: str) -> Iterator[Path]:
    """A file system of a few MiB in memory; see ``resize``."""
    mount = work / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def resize(mount: Path, size: str) -> None:
    """Adds or removes space; if more is already in use, the size is unchanged."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(mount)], capture_output=True, check=False)


@cache
def fake_clock() -> str | None:
    """libfaketime, to be preloaded."""
    places = [
        Path(f"/usr/lib/{os.uname().machine}-linux-gnu/faketime"),
        Path("/usr/lib/faketime"),
        Path("/usr/lib64/faketime"),
    ]
    for place in places:
        if (place / "libfaketime.so.1").exists():
            return str(place / "libfaketime.so.1")
    return ctypes.util.find_library("faketime")


@cache
def have_strace() -> bool:
    """Whether strace exists and may attach to a process of ours."""
    if shutil.which("strace") is None:
        return False
    with subprocess.Popen(["sleep", "60"]) as victim:
        try:
            command = ["strace", "-f", "-o", "/dev/null", "-p", str(victim.pid)]
            with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
                assert tracer.stderr is not None
                attached = b"attached" in tracer.stderr.readline()
                tracer.terminate()
                return attached
        finally:
            victim.kill()


@cache
def have_mount() -> bool:
    """Whether small file systems can be mounted."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    return (
        subprocess.run(["mount", "--fake", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode
        == 0
    )


@cache
def have_bucket() -> bool:
    return s3.build("versitygw") is not None


@cache
def have(kind: str) -> bool:
    """Whether there can be stores of a kind."""
    return have_bucket() if kind == BUCKET else kind not in LOGS or cells.find(LOGS[kind][0]) is not None


def tell_what_is_skipped() -> list[str]:
    """Reports loudly what cannot be done on this machine."""
    missing = []
    if not have_strace():
        missing.append("NO STRACE (or it may not attach): nobody is killed at system calls, no I/O errors")
    if fake_clock() is None:
        missing.append("NO LIBFAKETIME: all clocks agree")
    if not have_mount():
        missing.append("NOT ROOT: no disk gets full")
    if not have_bucket():
        missing.append("NO GO: no stores in buckets")
    missing += [f"NO SERVER: no logs in {kind}" for kind in LOGS if not have(kind)]
    for message in missing:
        print(f"*** {message}; `make torture-tools` installs what is missing ***", file=sys.stderr, flush=True)
    return missing
