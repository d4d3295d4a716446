"""Tables of a store whose commits carry a message."""

from collections.abc import Callable
from typing import Any

from drumlin import _drumlin
from drumlin._drumlin import Version
from drumlin._nouns.tables import Tables
from drumlin._nouns.transaction import Transaction

__all__ = ["Messaged"]


class Messaged(Tables[Version]):
    """The tables of a store, whose commits carry a message."""

    __slots__ = ("_begin", "_transact")

    def __init__(
        self,
        store: _drumlin.Store,
        message: str,
        begin: Callable[..., Transaction],
        transact: Callable[[Callable[[Transaction], Any]], Any],
    ) -> None:
        super().__init__(store.with_message(message), store, message)
        self._begin, self._transact = begin, transact

    def transaction(self) -> Transaction:
        """Begins a transaction whose commit carries the message."""
        return self._begin()

    def _at_one_instant(self) -> Tables[Any]:
        return self._begin(read_only=True)

    def _atomically(self, function: Callable[[Tables[Any]], Any]) -> Any:
        return self._transact(function)
