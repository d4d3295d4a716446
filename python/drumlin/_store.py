"""An open store."""

import datetime as dt
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from drumlin import _drumlin
from drumlin._arguments import Progress, count, micros, optional_micros, paths_to_drop
from drumlin._drumlin import (
    ChangeFeed,
    CheckpointReport,
    DropReport,
    ReclaimReport,
    RepackPlan,
    Snapshot,
    StoreStat,
    TrashItem,
    VacuumPlan,
    VerifyReport,
    Version,
)
from drumlin._errors import Conflict, InvalidArgument
from drumlin._named import names_arguments
from drumlin._tables import Tables
from drumlin._transaction import Transaction
from drumlin.tree import PatternLike, plain_text

__all__ = ["Retention", "Store"]

#: How often a function is run in a transaction before a conflict is raised.
_ATTEMPTS_MAX = 1000

_T = TypeVar("_T")


class Retention(NamedTuple):
    """How many versions a table keeps; all of them if both are None."""

    keep_last: int | None = None
    keep_for: dt.timedelta | None = None


@names_arguments()
class Store(Tables[Version]):
    """An open store; made by :func:`drumlin.open`. It closes at the end of a ``with`` block.

    :attr:`tree` has the nodes, :meth:`table` gives a handle on one table. Threads may share a store. A forked process
    must open it again.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).rows
    2
    >>> store.append("prices/us/AAPL", {"day": [3], "close": [189.0]}).version
    1
    >>> store.read("prices/us/AAPL", where="close > 188", columns=["day"]).to_arrow().to_pydict()
    {'day': [2, 3]}
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Store) -> None:
        super().__init__(core.tables())
        self._core = core

    @property
    def uri(self) -> str:
        """Where the store is."""
        return self._core.uri

    def __repr__(self) -> str:
        return f"Store({self._core.uri!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store: it answers no more. Results that are being read may be read to their end. Triggers are
        called no more; for what they have missed, those that last are called when the store is open again."""
        self._core.close()

    @property
    def seq(self) -> int:
        """The number of the last commit that is seen here."""
        return self._core.seq()

    def refresh(self) -> int:
        """In a store opened with ``mode="read"``: takes in what the writer has committed since. Returns the number of
        the last commit seen."""
        return self._core.refresh()

    def snapshot(self, name: str, pattern: PatternLike = "**") -> Snapshot:
        """Names the newest versions of all tables that match ``pattern``; they stay readable until the snapshot is
        dropped.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("prices/A", {"n": [1]})
        >>> store.snapshot("eod", "prices/**").versions
        {'prices/A': 0}
        >>> _ = store.write("prices/A", {"n": [2]})
        >>> store.read("prices/A", as_of="eod").to_arrow()["n"].to_pylist()
        [1]
        """
        return self._core.snapshot(name, plain_text(pattern))

    def drop_snapshot(self, name: str) -> None:
        """Drops a snapshot. What it alone held becomes reclaimable."""
        self._core.drop_snapshot(name)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, by name."""
        return self._core.snapshots()

    def set_retention(
        self,
        path: str,
        *,
        keep_last: int | None = None,
        keep_for: dt.timedelta | None = None,
        keep_all: bool = False,
        inherit: bool = False,
    ) -> None:
        """Sets how many versions the tables at ``path`` and below it keep: the last ``keep_last``, those that were the
        newest within ``keep_for``, all of them, or (``inherit``) as the node above says. Snapshots always hold.

        Takes hold of each table with its next version, and of all of them with the next checkpoint.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.set_retention("prices/**", keep_last=2)
        >>> for n in range(4):
        ...     _ = store.write("prices/A", {"n": [n]})
        >>> [v.version for v in store.table("prices/A").versions()]
        [2, 3]
        """
        if [keep_last is not None, keep_for is not None, keep_all, inherit].count(True) != 1:
            raise InvalidArgument("give one of keep_last, keep_for, keep_all and inherit")
        if keep_last is not None and count(keep_last, "keep_last") == 0:
            raise InvalidArgument("keep_last=0: a table keeps at least one version")
        self._core.set_retention(
            path,
            keep_last,
            optional_micros(keep_for, "keep_for"),
            keep_all,
        )

    def retention(self, path: str) -> Retention:
        """The retention that holds at ``path``."""
        keep_last, keep_micros = self._core.retention(path)
        return Retention(keep_last, None if keep_micros is None else dt.timedelta(microseconds=keep_micros))

    def drop_and_reclaim(
        self,
        paths: PatternLike | Iterable[PatternLike],
        *,
        missing_ok: bool = False,
        block_grace: dt.timedelta | None = None,
        progress: Progress | None = None,
    ) -> tuple[DropReport, ReclaimReport]:
        """Drops tables as :meth:`drop` does, gives them up for good in the same commit, and frees their space at once.
        In a store that others write too, blocks released less than ``block_grace`` ago stay (default: as the store was
        opened).

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}})
        >>> dropped, reclaimed = store.drop_and_reclaim("a/**")
        >>> dropped.paths, store.trash()
        (['a/x', 'a/y'], [])
        """
        rest = optional_micros(block_grace, "block_grace")
        return self._core.drop_and_reclaim(paths_to_drop(paths), missing_ok, rest, progress)

    def trash(self) -> list[TrashItem]:
        """Dropped tables that can be taken back, the oldest drop first."""
        return self._core.trash()

    def undrop(self, path: str, *, to: str | None = None) -> None:
        """Takes the table most recently dropped from ``path`` out of the trash, with all its versions, and puts it
        ``to`` a path that holds no table; by default where it was."""
        self._core.undrop(path, to)

    def transaction(self) -> Transaction:
        """Begins a transaction, to be committed at the end of a ``with`` block. It holds nobody up.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> with store.transaction() as tx:
        ...     _ = tx.tree.put("a", 1)
        ...     _ = tx.tree.put("b", tx.tree.get("a") + 1)
        >>> store.tree.get("b")
        2
        """
        return Transaction(self._core.transaction(False))

    def read_transaction(self) -> Transaction:
        """Begins a transaction that only reads, of the store as it is now: what is committed later does not change what
        it sees."""
        return Transaction(self._core.transaction(True))

    def transact(self, function: Callable[[Transaction], _T]) -> _T:
        """Calls ``function`` with a transaction and commits that; again from the beginning where others have changed
        what it has read or written. Gives what ``function`` gave; what it raises leaves nothing.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put("stock", 3)
        >>> store.transact(lambda tx: tx.tree.put("stock", tx.tree.get("stock") - 1)).after.payload
        2
        """
        if not callable(function):
            raise TypeError(f"function is a function of a transaction, not a {type(function).__name__}")
        attempt = 1
        while True:
            transaction = self.transaction()
            try:
                answer = function(transaction)
            except BaseException:
                transaction._core.abort()
                raise
            try:
                transaction.commit()
            except Conflict:
                if attempt == _ATTEMPTS_MAX:
                    raise
                attempt += 1
            else:
                return answer

    def changes(self, since: int | None = None) -> ChangeFeed:
        """The commits after the one with the number ``since``, those to come too: an iterator that waits for the next.
        0 is the beginning, None is now. :class:`drumlin.SnapshotExpired` if a checkpoint has cut the log after a later
        commit.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> feed = store.changes()
        >>> _ = store.tree.put("config/x", 1)
        >>> commit = next(feed)
        >>> [(event.action, event.path, event.payload) for event in commit.events]
        [('create', 'config/x', 1)]
        >>> feed.next(timeout=0) is None
        True
        """
        return self._core.changes(count(since, "since"))

    def vacuum_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> list[VacuumPlan]:
        """What a checkpoint now would rewrite, table by table, and why. See :meth:`checkpoint`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> for n in range(3):
        ...     _ = store.write("numbers", {"n": [n]}) if n == 0 else store.append("numbers", {"n": [n]})
        >>> [plan] = store.vacuum_plan()
        >>> plan.row_groups_before, plan.row_groups_after
        (3, 1)
        """
        return self._core.vacuum_plan(dead_share_min, budget)

    def repack_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> RepackPlan:
        """The blocks that a checkpoint now would empty into others beside that: those mostly dead, and small ones if
        there are many. See :meth:`checkpoint`."""
        return self._core.repack_plan(dead_share_min, budget)

    def checkpoint(
        self,
        *,
        dead_share_min: float | None = None,
        budget: float | None = None,
        progress: Progress | None = None,
    ) -> CheckpointReport:
        """Removes deleted rows from storage, merges small row groups, and shortens the log. Free space shows after
        :meth:`reclaim`.

        ``dead_share_min`` is the least share of deleted rows for which row groups are folded (default 0.1),
        ``budget`` the greatest share of the tables' bytes to rewrite, the most worthwhile first (default 1).
        """
        return self._core.checkpoint(dead_share_min, budget, progress)

    def reclaim(
        self,
        *,
        grace: dt.timedelta = dt.timedelta(0),
        block_grace: dt.timedelta | None = None,
        fence_idle: dt.timedelta | None = None,
        audit: bool = False,
        progress: Progress | None = None,
    ) -> ReclaimReport:
        """Frees the space of dropped tables, expired versions and rewritten row groups. Tables dropped less than
        ``grace`` ago stay in the trash.

        In a store that others write too, blocks released less than ``block_grace`` ago stay (default: as the store was
        opened). With ``fence_idle`` processes that have not committed for so long are taken for dead, and what they
        left is swept; one that lives goes on, though a write that was on its way fails. ``audit`` lists all objects and
        deletes those that nothing will ever refer to; it is always done where no other process writes.
        """
        rest = optional_micros(block_grace, "block_grace")
        idle = optional_micros(fence_idle, "fence_idle")
        return self._core.reclaim(micros(grace, "grace"), rest, idle, audit, progress)

    def verify(self, *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Reads every byte that the store refers to and checks it. What is wrong is reported, not raised.

        :param deep: Also decodes every row group and compares its statistics with its values; takes as long as reading
            all rows.

        >>> import drumlin
        >>> drumlin.open("memory://").verify(deep=True).ok
        True
        """
        return self._core.verify(deep, progress)

    def stat(self) -> StoreStat:
        """Figures about the store."""
        return self._core.stat()
