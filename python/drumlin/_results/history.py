"""The versions of a table: listed, compared, followed."""

import datetime as dt
from collections.abc import Iterable
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
from drumlin._results.changes import RowFeed
from drumlin._results.diff import Diff

__all__ = ["History"]


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
        if keep is not None and name is None:
            raise InvalidArgument("keep is for a follower; give it a name: follow(name=..., keep=...)")
        asked = as_of_argument(since, "since"), self._filter(where, params), optional_text(name, "name")
        return RowFeed(_drumlin.follow(self._core, *asked, optional_micros(keep, "keep")), self.path)

    def followers(self) -> list[_drumlin.Follower]:
        """The followers of the table, by name: see :meth:`follow`."""
        return _drumlin.followers(self._core)

    def drop_follower(self, name: str) -> None:
        """Removes a follower: nothing is kept for it any more, and what its consumer acknowledges is refused."""
        _drumlin.drop_follower(self._core, text(name, "name"))
