"""Presences: nodes that end with a program."""

import datetime as dt
from types import TracebackType
from typing import Any, Self, final

from drumlin import _drumlin
from drumlin._habits import Habits
from drumlin._values.evidence import a_type

__all__ = ["Presence", "presence_argument"]


@final
class Presence(Habits):
    """Says that this program is there, made by :meth:`Tree.presence <drumlin.Tree.presence>`. It lasts until
    :meth:`end`, the end of its ``with`` block, or the close of the store; or until the program has been silent for its
    :attr:`life`, however it ended. Nodes put with it are deleted, with all below them and what depends on them, by the
    commit that ends it.

    A thread renews it by a commit, each third of its life, as long as this object lives: keep it. Every process that
    writes the store watches the others, by its own steady clock, so that no clocks are compared.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> with store.tree.presence("worker 7") as presence:
    ...     _ = store.tree.put("workers/7", "10.0.0.7:4000", presence=presence)
    ...     store.tree.exists("workers/7")
    True
    >>> store.tree.exists("workers/7")
    False
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Presence) -> None:
        if not isinstance(core, _drumlin.Presence):
            raise TypeError("a presence begins with store.tree.presence()")
        self._core = core

    @property
    def number(self) -> int:
        """Its number. Later presences of the store have higher ones, and none is given out again: another system can
        refuse by it those who come late."""
        return self._core.number

    @property
    def life(self) -> dt.timedelta:
        """How long it lasts once the program has fallen silent."""
        return dt.timedelta(microseconds=self._core.life_micros)

    def is_open(self) -> bool:
        """Whether it has not ended, as far as this process knows. What only counts while it lasts is done in a
        transaction that :meth:`requires <drumlin.Transaction.require>` it."""
        return self._core.is_open()

    def beat(self) -> None:
        """Renews it now, by one commit. Raises :class:`drumlin.ConditionFailed` if it has ended."""
        self._core.beat()

    def end(self) -> None:
        """Ends it, and deletes the nodes that end with it, by one commit. Ending it twice does nothing."""
        self._core.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"Presence({self.number}, life={self.life})"


def presence_argument(presence: Any) -> Presence:
    """A presence that is an argument."""
    if not isinstance(presence, Presence):
        raise TypeError(f"presence must be one of store.tree.presence(), not {a_type(presence)}")
    return presence
