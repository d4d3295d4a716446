"""Replicas of stores, what takes a store's place, and copies of whole stores."""

import datetime as dt
import os
from collections.abc import Callable, Mapping
from typing import Any

from drumlin import _drumlin
from drumlin._arguments.checks import Progress, as_of_argument, micros, optional_micros, place_of, storage_settings
from drumlin._arguments.named import explained, flag, function, names_arguments
from drumlin._drumlin import CloneReport, PromoteReport, ReplicateReport

__all__ = ["Replicated", "clone", "follow", "promote"]


@explained
def follow(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    once: bool = False,
    poll: dt.timedelta = dt.timedelta(milliseconds=500),
    lease: bool = True,
    keep_log: dt.timedelta | None = None,
    sweep: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    caught_up: Callable[[ReplicateReport], object] | None = None,
    progress: Progress | None = None,
) -> ReplicateReport:
    """Makes the store at ``target`` a replica of the one at ``source``: a second store that has every commit of the
    first one, in order, with the same tables, versions, snapshots, nodes and trash. Nothing may be at ``target``, or
    the replica that an earlier call made, which is continued. The call looks for news every ``poll`` until it is
    stopped, by Ctrl-C or an exception in a callback; with ``once`` it returns when the replica has caught up.

    The replica can be read at any time, with ``mode="read"``: it is always some commit of the source, whole. Every
    block is read again after it was copied. Nobody else writes the replica, until :func:`promote` makes it a store of
    its own.

    Where many processes write the source, a lease there keeps what the replica still needs, with a commit about once a
    minute. Without one (``lease=False``, or where this process may not write), the newest state is copied as a whole if
    the source has dropped what was in between. For a store that one process writes, see :meth:`Store.follow_to`.

    With ``keep_log``, the replica keeps what leaves it for that long, so that :func:`clone` restores each commit of
    that time from it; by default as in the call before, and at first not at all. A purge of the source ends what was
    kept.

    ``caught_up`` is called each time that the replica has caught up with news. What a killed call left in a replica in
    a bucket is deleted with ``sweep``; no other process may keep the same replica at that time. ``storage_options`` are
    for the bucket of the source, ``target_options`` for that of the replica, as in :func:`open`.

    Raises :class:`AlreadyExists` if something else is at ``target``, :class:`Conflict` if another process took the
    replica over, or it was promoted. What cannot be reached is tried again, except with ``once``.

    >>> import drumlin, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> here, there = os.path.join(folder, "here"), os.path.join(folder, "there")
    >>> with drumlin.open(here) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    >>> _ = drumlin.follow(here, there, once=True)
    >>> with drumlin.open(there, mode="read") as replica:
    ...     replica.read("a").to_arrow()["n"].to_pylist()
    [1, 2]
    """
    kept = _kept(once, poll, lease, keep_log, sweep)
    settings, target_settings = storage_settings(storage_options), storage_settings(target_options, "target_options")
    _callbacks(caught_up, progress)
    to = place_of(target, "target")
    return _drumlin.replicate_at(place_of(source, "source"), to, kept, settings, target_settings, caught_up, progress)


@explained
def promote(
    store: str | os.PathLike[str],
    *,
    lost: bool = False,
    source: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> PromoteReport:
    """Makes the replica at ``store`` a store of its own, which is opened and written like any other, and ends the store
    that it followed. First nobody can commit to the source any more, then what was committed there is brought over. If
    the call is interrupted, the same call continues.

    With ``lost``, the source is given up: it may have commits that the replica lacks, and, since nothing can be proven
    about it, may still be written. ``source`` is where it is, if that has changed. A store that was ended is promoted
    to be written again. ``storage_options`` are for the bucket of ``store``, ``source_options`` for that of the source.

    Raises :class:`Locked` if the source is open in the one process that writes it, and :class:`Unavailable` or
    :class:`NotFound` if it cannot be reached; then nothing has changed.

    >>> import drumlin, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> here, there = os.path.join(folder, "here"), os.path.join(folder, "there")
    >>> with drumlin.open(here) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    >>> _ = drumlin.follow(here, there, once=True)
    >>> drumlin.promote(there).ended == here
    True
    >>> with drumlin.open(there) as store:
    ...     store.append("a", {"n": [3]}).version
    1
    """
    settings, source_settings = storage_settings(storage_options), storage_settings(source_options, "source_options")
    _callbacks(None, progress)
    at, of = place_of(store, "store"), None if source is None else place_of(source, "source")
    return _drumlin.promote(at, flag(lost, "lost"), of, settings, source_settings, progress)


@explained
def clone(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    as_of: int | str | dt.datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> CloneReport:
    """Copies the whole store at ``source`` to ``target``, where nothing may be: tables with all their versions,
    snapshots, nodes and the trash, as of the newest commit, or of the commit or the time ``as_of``. That reaches back
    as far as the log of the source, which a checkpoint cuts; from a replica that keeps its log (see :func:`follow`),
    each commit of that time can be restored. The copy is a store of its own; the source is not changed, and may be
    written during the call. If the call is interrupted, the same call continues. To copy some tables, see
    :meth:`Store.copy_to`.

    Raises :class:`SnapshotExpired` if the source no longer leads to ``as_of``, and :class:`AlreadyExists` if something
    is at ``target``. ``storage_options`` are for the bucket of the source, ``target_options`` for that of the copy.

    >>> import drumlin, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> here, there = os.path.join(folder, "here"), os.path.join(folder, "there")
    >>> with drumlin.open(here) as store:
    ...     _ = store.write("a", {"n": [1, 2]})
    ...     first = store.seq
    ...     _ = store.write("b", {"n": [3]})
    >>> drumlin.clone(here, there, as_of=first).copied.seq == first
    True
    >>> with drumlin.open(there) as store:
    ...     store.tables("**")
    ['a']
    """
    settings, target_settings = storage_settings(storage_options), storage_settings(target_options, "target_options")
    _callbacks(None, progress)
    at, to = as_of_argument(as_of), place_of(target, "target")
    return _drumlin.clone(place_of(source, "source"), to, at, settings, target_settings, progress)


@names_arguments()
class Replicated:
    """What a store has for replicas."""

    __slots__ = ()

    _core: _drumlin.Store

    def follow_to(
        self,
        target: str | os.PathLike[str],
        *,
        once: bool = False,
        poll: dt.timedelta = dt.timedelta(milliseconds=500),
        lease: bool = True,
        keep_log: dt.timedelta | None = None,
        sweep: bool = False,
        target_options: Mapping[str, Any] | None = None,
        caught_up: Callable[[ReplicateReport], object] | None = None,
        progress: Progress | None = None,
    ) -> ReplicateReport:
        """Keeps a replica of this store at ``target``, until it is stopped or, with ``once``, has caught up: see
        :func:`drumlin.follow`. The lease is this store's, so that it is kept where one process writes, too.

        >>> import drumlin, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with drumlin.open(folder + "/here") as store:
        ...     _ = store.write("a", {"n": [1, 2]})
        ...     _ = store.follow_to(folder + "/there", once=True)
        ...     _ = store.append("a", {"n": [3]})
        ...     _ = store.follow_to(folder + "/there", once=True)
        >>> with drumlin.open(folder + "/there", mode="read") as replica:
        ...     replica.read("a").to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        kept, settings = _kept(once, poll, lease, keep_log, sweep), storage_settings(target_options, "target_options")
        _callbacks(caught_up, progress)
        return _drumlin.replicate_open(self._core, place_of(target, "target"), kept, settings, caught_up, progress)


def _kept(
    once: bool, poll: dt.timedelta, lease: bool, keep_log: dt.timedelta | None, sweep: bool
) -> tuple[bool, int, bool, int | None, bool]:
    kept = optional_micros(keep_log, "keep_log")
    return flag(once, "once"), micros(poll, "poll"), flag(lease, "lease"), kept, flag(sweep, "sweep")


def _callbacks(caught_up: Any, progress: Any) -> None:
    for name, callback in (("caught_up", caught_up), ("progress", progress)):
        if callback is not None:
            function(callback, name)
