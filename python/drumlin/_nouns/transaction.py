"""Transactions."""

from types import TracebackType
from typing import Any, NoReturn, Self

from drumlin import _drumlin
from drumlin._arguments.named import names_arguments
from drumlin._errors import Abort
from drumlin._nouns.tables import Tables

__all__ = ["Transaction"]


@names_arguments()
class Transaction(Tables[None]):
    """Any number of operations on nodes and tables that happen together or not at all; made by
    :meth:`Store.transaction <drumlin.Store.transaction>`.

    It sees the store as it was when it began, and its own writes; nobody sees these before it is committed, at the end
    of its ``with`` block. An exception leaves the block without a commit. The commit fails with
    :class:`drumlin.Conflict` if others have changed what it has read or written; :meth:`Store.transact
    <drumlin.Store.transact>` runs it again then. However large, a transaction is one write to the log.

    Its methods are the store's, except for one thing: versions of tables are numbered at the commit, so what writes
    tables gives none. Threads may share it, though while one writes a table or commits, the others are refused.

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
        super().__init__(core.tables())
        self._core = core

    @property
    def seq(self) -> int:
        """The number of the commit that it began with."""
        return self._core.seq

    @property
    def ended(self) -> bool:
        """Whether it was committed or aborted."""
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

    def commit(self) -> int:
        """Commits. Gives the commit's number; that of the newest one seen if there was nothing to commit.
        :class:`drumlin.Conflict` if others have changed what it has read or written; then nothing was done."""
        return self._core.commit()

    def abort(self, value: Any = None) -> NoReturn:
        """Ends the transaction without a commit, and raises :class:`drumlin.Abort` with ``value``."""
        self._core.abort()
        raise Abort(value)
