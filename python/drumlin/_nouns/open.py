"""Opening and salvaging stores, sharing folders, and moving logs."""

import datetime as dt
import os
from collections.abc import Mapping
from typing import Any, Literal

from drumlin import _drumlin
from drumlin._arguments.checks import (
    Compression,
    Progress,
    bucket_options,
    count,
    micros,
    one_of,
    optional_micros,
    optional_text,
    place_of,
    storage_settings,
)
from drumlin._arguments.named import explained, flag, function
from drumlin._drumlin import SalvageReport
from drumlin._errors import InvalidArgument
from drumlin._nouns.store import Store
from drumlin._processes.places import remember

__all__ = ["move_log", "open", "salvage", "share", "unshare"]

_MODES = ("create", "write", "read")
_SYNCS = ("commit", "interval")


@explained
def open(
    uri: str | os.PathLike[str],
    *,
    mode: Literal["create", "write", "read"] = "create",
    memory_bytes: int | None = None,
    cache_bytes: int | None = None,
    cpu_threads: int | None = None,
    checkpoint_log_bytes: int | None = None,
    inline_bytes: int | None = None,
    memtable_bytes: int | None = None,
    row_write_bytes: int | None = None,
    sync: Literal["commit", "interval"] = "commit",
    sync_interval: dt.timedelta = dt.timedelta(milliseconds=100),
    shared: bool = False,
    fresh: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    io_threads: int | None = None,
    block_grace: dt.timedelta | None = None,
    accept_loss: bool = False,
    verify_rewrites: bool = True,
    retry_for: dt.timedelta | None = None,
    compression: Compression | None = None,
    writer: str | None = None,
    log: str | None = None,
) -> Store:
    """Opens the store at ``uri``: the path of a folder (``~`` is the home folder; missing parents are created) or
    ``file://`` and a path, ``s3://bucket/prefix`` (or ``gs://``, ``az://``) for a store in a bucket, or ``memory://``
    for one in memory.

    ``mode`` is ``"create"`` (read and write; the store is created if it does not exist), ``"write"`` (it must exist) or
    ``"read"`` (next to the process that writes; see :meth:`Store.refresh`). A store in a folder has one writing process
    at a time, unless it was created with ``shared=True``; a store in a bucket can have any number.

    In a store that other processes write too, a call that writes sees everything that was committed before it. A call
    that reads sees what :meth:`Store.refresh` and earlier writes have brought; with ``fresh=True``, it also sees
    everything, at the cost of one request to the bucket for each read. Blocks that are no longer needed stay for
    ``block_grace`` (default 10 minutes), for readers of other processes. If the bucket refuses a commit because of too
    many requests, it is repeated for ``retry_for`` (default 1 minute), after random, growing pauses; then the call
    raises :class:`Unavailable`, and nothing was done. :class:`InDoubt` means that there was no answer, so that the
    commit may or may not have been made.

    A bucket's credentials come from the environment or from ``storage_options``, with the names of the ``object_store``
    crate: ``{"endpoint": "http://localhost:9000", "region": "us-east-1", "aws_access_key_id": ..., ...}``.
    ``"aws_profile"`` names a profile in the files of Amazon's tools. ``io_threads`` (default 2) threads wait for its
    answers. A bucket must support conditional writes; this is tested before a store is created in it.

    ``memory_bytes`` limits the memory for writes and rewrites (default 1 GiB), ``cache_bytes`` that for data kept after
    reading (default 256 MiB), ``cpu_threads`` the number of threads (default: one per core; at most 1024). Once the log
    has grown past ``checkpoint_log_bytes`` (default 64 MiB; 0: never), a checkpoint runs in the background. If it
    fails, that is logged; once the log is four times that large, calls that write raise the checkpoint's error. Data of
    at most ``inline_bytes`` (default 64 KiB; 0: never) in a call is stored in its commit, without a block of its own.

    ``log`` is the address of a server that keeps the log of a store that many processes write, so that a commit needs
    no request to the bucket: ``postgresql://host/database`` or ``etcd://host:2379``. A new store gets its log there;
    one whose log is there is found without it (see :func:`move_log`).

    A log that lacks commits that were synced is ``Corrupt``. ``accept_loss`` opens the store anyway; what cannot be
    read then is lost for good, and no other process may have the store open.

    Rows that replace others, in checkpoints, updates and purges, are decoded again and compared with the originals
    before they are committed, unless ``verify_rewrites`` is ``False``. This takes about 5% more CPU time where rows are
    encoded again, and up to two thirds more where a vacuum moves encoded rows.

    Rows written by key are kept in memory, and in the log, until a checkpoint, which runs in the background once they
    take ``memtable_bytes`` (default 64 MiB; 0: never). A call with more than ``row_write_bytes`` of rows (default 1
    MiB) writes row groups and makes a version instead.

    With ``sync="commit"``, what a call has written is durable when it returns. With ``sync="interval"``, it is durable
    within about ``sync_interval``: if the machine fails, the last commits may be lost, but never one without all
    later ones; if only the process fails, none are.

    ``compression`` is for tables created here, unless they have their own: ``"balanced"`` (the default) weighs size
    against the cost of reading, and leaves floats that hardly compress as they are; ``"small"`` searches for the
    smallest form; ``"fast"`` does not search.

    ``writer`` is the name of a program or a person, which the versions made here show (:attr:`Version.writer`).

    >>> import drumlin
    >>> with drumlin.open("memory://") as store:
    ...     store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).version
    0
    """
    one_of(mode, "mode", _MODES)
    settings = {
        "memory_bytes": memory_bytes,
        "cache_bytes": cache_bytes,
        "cpu_threads": cpu_threads,
        "checkpoint_log_bytes": checkpoint_log_bytes,
        "inline_bytes": inline_bytes,
        "memtable_bytes": memtable_bytes,
        "row_write_bytes": row_write_bytes,
        "io_threads": io_threads,
    }
    checked: dict[str, Any] = {name: count(value, name) for name, value in settings.items()}
    checked["block_grace_micros"] = optional_micros(block_grace, "block_grace")
    checked["retry_micros"] = optional_micros(retry_for, "retry_for")
    for name, value in (
        ("shared", shared),
        ("fresh", fresh),
        ("accept_loss", accept_loss),
        ("verify_rewrites", verify_rewrites),
    ):
        checked[name] = flag(value, name)
    checked["compression"] = optional_text(compression, "compression")
    checked["writer"] = optional_text(writer, "writer")
    checked["storage_options"] = bucket_options(storage_options)
    checked["log"] = optional_text(log, "log")
    checked["sync_micros"] = _sync_micros(sync, sync_interval)
    core = _drumlin.open(place_of(uri, "uri"), mode, checked)
    remember(core, mode, checked)
    return Store(core)


@explained
def salvage(
    store: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    shared: bool = False,
    log: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> SalvageReport:
    """Copies everything readable in the damaged store at ``store`` to a new store at ``new``, which must not exist, or
    must be empty. Reports what could not be read: commits, nodes, tables, and rows by version. ``store`` is not
    changed; no process should write to it during the call. With ``shared``, many processes can write to the new folder.
    ``storage_options`` are for buckets, as in :func:`open`. A log that is on a server is read there, at ``log`` if that
    is given; if the server does not answer, the report says which commits may be lost.

    >>> import drumlin, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with drumlin.open(os.path.join(folder, "old")) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    >>> drumlin.salvage(os.path.join(folder, "old"), os.path.join(folder, "new")).losses
    []
    """
    settings = storage_settings(storage_options) | {"shared": flag(shared, "shared"), "log": optional_text(log, "log")}
    if progress is not None:
        function(progress, "progress")
    return _drumlin.salvage(place_of(store, "store"), place_of(new, "new"), settings, progress)


@explained
def share(store: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Lets many processes write the store in the folder ``store``, which one process wrote at a time, as if it had been
    created with ``shared=True``. No table is copied: the call takes a checkpoint and then replaces the few files that
    lead to the tables. It does nothing if the store is shared already.

    Raises :class:`Locked` if a process has the store open. A process that reads it must open it again.

    >>> import drumlin, os, tempfile
    >>> folder = os.path.join(tempfile.mkdtemp(), "store")
    >>> with drumlin.open(folder) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    >>> drumlin.share(folder)
    >>> with drumlin.open(folder) as one, drumlin.open(folder) as other:
    ...     _ = one.append("a", {"n": [3]})
    ...     _ = other.append("a", {"n": [4]})
    """
    _turn_shared(store, True, progress)


@explained
def unshare(store: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Lets a single process at a time write the store in the folder ``store``, which many could write: the opposite of
    :func:`share`. It does nothing if the store is not shared.

    All processes must have closed the store. Raises :class:`Locked` if one that has written to it has not; end the
    sessions of processes that died with ``store.reclaim(fence_idle=dt.timedelta(0))``. A process that has the store
    open without having written to it cannot be seen; its next write raises :class:`Corrupt`, and changes nothing.

    >>> import drumlin, os, tempfile
    >>> folder = os.path.join(tempfile.mkdtemp(), "store")
    >>> drumlin.open(folder, shared=True).close()
    >>> drumlin.unshare(folder)
    """
    _turn_shared(store, False, progress)


@explained
def move_log(
    store: str | os.PathLike[str],
    to: str | None,
    *,
    log: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Moves the log of ``store``, which many processes write, to the server at ``to``
    (``postgresql://user@host/database`` or ``etcd://host:2379``), so that a commit needs no request to the bucket; with
    ``None``, back to the store. Tables stay where they are. A call that was cut off is finished by the next one, or by
    a process that opens the store for writing.

    A process that has the store open must open it again: its next call raises :class:`Closed`, and changes nothing.

    Users and passwords are not noted in the store. They come from the environment, as the server's own tools find them
    (``PGUSER``, ``PGPASSWORD``, ``PGPASSFILE``; ``ETCDCTL_USER``), or from ``log`` or ``to``. ``log`` is where the
    server is now, if it was moved to another address.

    >>> import drumlin, os, tempfile
    >>> folder = os.path.join(tempfile.mkdtemp(), "store")
    >>> drumlin.open(folder, shared=True).close()
    >>> drumlin.move_log(folder, None)
    """
    settings = storage_settings(storage_options) | {"log": optional_text(log, "log")}
    _drumlin.move_log(place_of(store, "store"), optional_text(to, "to"), settings)


def _turn_shared(store: str | os.PathLike[str], shared: bool, progress: Progress | None) -> None:
    if progress is not None:
        function(progress, "progress")
    _drumlin.turn_shared(place_of(store, "store"), shared, progress)


def _sync_micros(sync: str, interval: dt.timedelta) -> int | None:
    """The time between syncs; None if each commit is synced."""
    one_of(sync, "sync", _SYNCS)
    span = micros(interval, "sync_interval")
    if span == 0:
        raise InvalidArgument("sync_interval is 0; to sync each commit, give sync='commit'")
    return span if sync == "interval" else None
