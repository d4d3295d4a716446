"""Transactions."""

from types import TracebackType
from typing import Any, NoReturn, Self

from drumlin import _drumlin
from drumlin._arguments.named import names_arguments
from drumlin._errors import Abort
from drumlin._nouns.tables import Tables
from drumlin._processes.presence import Presence, presence_argument

__all__ = ["Transaction"]


@names_arguments()
class Transaction(Tables[None]):
    """Any number of operations on nodes and tables, committed together or not at all; made by :meth:`Store.transaction
    <drumlin.Store.transaction>`.

    A transaction sees the store as it was when it began, and its own writes. No one else sees these until it is
    committed, at the end of its ``with`` block. If an exception leaves the block, nothing is committed. The commit
    raises :class:`drumlin.Conflict` if others have changed what the transaction read or wrote; :meth:`Store.transact
    <drumlin.Store.transact>` then runs it again. A transaction of any size is one write to the log.

    It has the methods of a store, except that versions of tables are numbered at the commit, so calls that write tables
    return None. Threads may share a transaction, but while one writes a table or commits, calls of the others are
    refused.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> with store.transaction() as tx:
    ...     _ = tx.tree.put("prices/state", "loading")
    ...     tx.write("prices/us", {"close": [187.5, 190.0]})
    ...     store.tree.exists("prices"), tx.tree.get("prices/state")
    (False, 'loading')
    >>> store.tree.get("prices/state"), store.tables()
    ('loading', ['prices/us'])
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Transaction) -> None:
        if not isinstance(core, _drumlin.Transaction):
            raise TypeError("a transaction begins with store.transaction()")
        super().__init__(core.tables())
        self._core = core

    @property
    def seq(self) -> int:
        """The number of the commit on which the transaction is based."""
        return self._core.seq

    @property
    def ended(self) -> bool:
        """Whether the transaction was committed or aborted."""
        return self._core.ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._core.abort()
        elif not self.ended:
            self.commit()

    def __repr__(self) -> str:
        return f"Transaction({self._core.state}, seq={self.seq})"

    def require(self, presence: Presence) -> None:
        """Has the transaction commit only while ``presence`` has not ended: what is done as the leader is done while it
        is. Raises :class:`drumlin.ConditionFailed` if it has ended; the commit raises :class:`drumlin.Conflict` if it
        ends before that.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> presence = store.tree.presence("leader")
        >>> _ = store.tree.put("leader", "me", mode="create", presence=presence)
        >>> with store.transaction() as tx:
        ...     tx.require(presence)
        ...     _ = tx.tree.put("shards", 12)
        """
        presence_argument(presence)._core.require(self._core)

    def commit(self) -> int:
        """Commits the transaction. Returns the number of the commit, or of the newest one seen if there was nothing to
        commit. Raises :class:`drumlin.Conflict`, and commits nothing, if others have changed what the transaction read
        or wrote."""
        return self._core.commit()

    def abort(self, value: Any = None) -> NoReturn:
        """Ends the transaction without a commit, and raises :class:`drumlin.Abort` with ``value``."""
        self._core.abort()
        raise Abort(value)
