"""The versions of a table: listed, compared, followed."""

import datetime as dt
import functools
from collections.abc import Callable, Iterable
from typing import Any

from drumlin import _drumlin
from drumlin._arguments.checks import (
    AsOf,
    FilterLike,
    Params,
    as_of_argument,
    column_names,
    note,
    optional_micros,
    optional_text,
    text,
)
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import Version
from drumlin._errors import InvalidArgument
from drumlin._processes.exit import watched
from drumlin._results.changes import RowChanges, RowFeed
from drumlin._results.diff import Diff
from drumlin._values.evidence import a_type

__all__ = ["History"]


def _called(callback: Callable[[RowChanges], object], path: str, core: _drumlin.RowChanges) -> object:
    return callback(RowChanges(core, path))


@names_arguments()
class History:
    """What a table has for its versions."""

    __slots__ = ()

    _core: _drumlin.Table

    @property
    def path(self) -> str:
        """The path of the table."""
        raise NotImplementedError

    def _filter(self, where: FilterLike | None, params: Params | None = None) -> str | None:
        raise NotImplementedError

    def _follower(self, name: str | None, keep: dt.timedelta | None) -> tuple[str | None, int | None]:
        if keep is not None and name is None:
            raise InvalidArgument("keep is for a follower; give it a name: name=..., keep=...")
        return optional_text(name, "name"), optional_micros(keep, "keep")

    def versions(self) -> list[Version]:
        """The table's listed versions, the oldest first.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]}, metadata="first")
        >>> _ = store.table("numbers").delete("n = 2")
        >>> [(v.version, v.kind, v.rows, v.metadata) for v in store.table("numbers").versions()]
        [(0, 'write', 3, 'first'), (1, 'delete', 2, None)]
        """
        return self._core.versions()

    def set_metadata(self, metadata: Any, *, as_of: AsOf | None = None) -> None:
        """Changes the metadata of a version, by default the newest, without making a version. None removes it.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.table("numbers").set_metadata({"checked": True})
        >>> [(v.version, v.metadata) for v in store.table("numbers").versions()]
        [(0, {'checked': True})]
        """
        self._core.set_metadata(note(metadata), as_of_argument(as_of))

    def diff(
        self,
        since: AsOf,
        until: AsOf | None = None,
        *,
        columns: Iterable[Any] | str | None = None,
        each_version: bool = False,
    ) -> Diff:
        """The rows in which two versions differ: deleted and inserted rows, with two more columns, ``_change``
        (``delete``, ``insert``; in a table with a key also ``update_before`` and ``update_after``) and ``_version``.
        ``each_version`` shows the changes of each listed version in between, instead of the net changes. Only
        ``columns`` are compared and returned; a column that a version lacks is null in it. Data that both versions
        share is not read. Rows written by key that are still in memory first become row groups, in a version of their
        own; a store opened with ``mode="read"`` raises ``InvalidArgument`` instead, a transaction ``Conflict``.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> _ = store.table("numbers").delete("n = 2")
        >>> _ = store.append("numbers", {"n": [4]})
        >>> store.table("numbers").diff(0).to_arrow().to_pylist()
        [{'n': 2, '_change': 'delete', '_version': 2}, {'n': 4, '_change': 'insert', '_version': 2}]
        """
        first, last = as_of_argument(since, "since"), as_of_argument(until, "until")
        if first is None:
            raise InvalidArgument("since must say with which version to begin: a number, a time or a snapshot's name")
        asked = first, last, column_names(columns), each_version
        return Diff(self._core, asked)

    def follow(
        self,
        since: AsOf | None = None,
        *,
        where: FilterLike | None = None,
        params: Params | None = None,
        name: str | None = None,
        keep: dt.timedelta | None = None,
    ) -> RowFeed:
        """The rows that commits change in this table, in order, including those of future commits: an iterator that
        waits for the next. It returns what each commit inserted, updated (the row before and after) and deleted.

        ``since`` is where to begin: now (the default), ``"beginning"`` for all rows of the oldest version that is
        listed and what changed from there, the :attr:`place <RowFeed.place>` of another feed of this table, or what
        ``as_of`` of :meth:`read` takes, for what changed after it. ``where`` leaves out rows for which it is true
        neither before nor after they changed.

        As long as the versions since its place are listed, a feed goes on where it was, also after checkpoints, when
        the store was closed, or in another process; after that it raises :class:`drumlin.SnapshotExpired`, and
        :exc:`drumlin.NotFound` once the table is dropped. Changes of columns alone are not told; rows that expire are
        told when a checkpoint deletes them, rows erased by a purge are not.

        With a ``name``, it is the feed of a follower, whose place the table keeps: it begins where
        :meth:`RowFeed.acknowledge` was last called, and at ``since`` only if there is no such follower yet. Versions
        after that are kept for ``keep`` (default: 7 days) after they were superseded, whatever the retention says. So
        each change comes at least once, over restarts and crashes. The feed that was made last under the
        name is its only consumer: ``acknowledge`` raises :class:`drumlin.ConditionFailed` for those before.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> people = store.table("people")
        >>> _ = people.create({"id": "int64", "name": "string"}, key=["id"])
        >>> feed = people.follow(name="billing")
        >>> _ = people.upsert({"id": [1], "name": ["Ada"]})
        >>> _ = people.update({"name": "'Ada L.'"}, where="id = 1")
        >>> [(row["_change"], row["name"]) for row in next(feed)]
        [('insert', 'Ada')]
        >>> feed.acknowledge()
        >>> [(row["_change"], row["name"]) for row in next(people.follow(name="billing"))]
        [('update_before', 'Ada'), ('update_after', 'Ada L.')]
        """
        asked = as_of_argument(since, "since"), self._filter(where, params)
        return RowFeed(_drumlin.follow(self._core, *asked, *self._follower(name, keep)), self.path)

    def on(
        self,
        callback: Callable[[RowChanges], object],
        *,
        where: FilterLike | None = None,
        params: Params | None = None,
        name: str | None = None,
        keep: dt.timedelta | None = None,
    ) -> str:
        """Calls ``callback`` with the :class:`drumlin.RowChanges` of each commit from now on, in order, as long as this
        store is open. Returns the trigger's name, by which :meth:`off` ends it. ``where`` is as in :meth:`follow`.

        With a ``name`` it is durable, a follower as in :meth:`follow`: it is called at least once for each change since
        it was first made, across restarts and crashes, in the process that made it last; elsewhere it ends. Versions
        are kept for it for ``keep`` (default: 7 days); if they are gone all the same, it is called with changes of the
        kind ``"resync"`` and no rows: look at the whole table again.

        Each trigger has a thread of its own: a slow one delays no commit and no other trigger, and may use the store.
        An exception in a callback goes to ``sys.unraisablehook`` and to :meth:`Tree.trigger_failures
        <drumlin.Tree.trigger_failures>`, and so does the end of a trigger whose table or column was dropped.
        :meth:`Tree.wait_for_triggers <drumlin.Tree.wait_for_triggers>` waits for these triggers, too.

        >>> import drumlin
        >>> store, seen = drumlin.open("memory://"), []
        >>> orders = store.table("orders")
        >>> _ = orders.create({"id": "int64", "state": "string"}, key=["id"])
        >>> name = orders.on(lambda changes: seen.extend(row["id"] for row in changes), where="state = 'paid'")
        >>> _ = orders.upsert({"id": [1, 2], "state": ["paid", "open"]})
        >>> store.tree.wait_for_triggers()
        True
        >>> seen
        [1]
        >>> orders.off(name)
        """
        if not callable(callback):
            raise TypeError(f"a callback must be a function of changes, not {a_type(callback)}")
        filter, known = self._filter(where, params), self._follower(name, keep)
        call = watched(functools.partial(_called, callback, self.path), self._core.store())
        return _drumlin.on_rows(self._core, call, filter, *known)

    def off(self, name: str) -> None:
        """Ends a trigger on rows of this table, made by :meth:`on`; a durable one for good."""
        _drumlin.off_rows(self._core, text(name, "name"))

    def followers(self) -> list[_drumlin.Follower]:
        """The followers of the table, by name: see :meth:`follow`."""
        return _drumlin.followers(self._core)

    def drop_follower(self, name: str) -> None:
        """Removes a follower: nothing is kept for it any more, and what its consumer acknowledges is refused."""
        _drumlin.drop_follower(self._core, text(name, "name"))
