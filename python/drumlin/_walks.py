"""Going over the nodes of a pattern, in a store or in a transaction."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from drumlin._drumlin import Node
from drumlin.tree import PatternLike

_T = TypeVar("_T")


class Walks:
    """What goes over nodes, in path order and as of one instant: what a function changes is not seen by it."""

    __slots__ = ()

    @abstractmethod
    def _walk(self, pattern: PatternLike) -> Iterable[tuple[str, Node]]: ...

    def fold(self, pattern: PatternLike, function: Callable[[_T, str, Node], _T], initial: _T) -> _T:
        """Goes over the nodes that match ``pattern``: ``function(value, path, node)`` gives the next value, of which
        ``initial`` is the first and the answer the last.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"stock/a": 3, "stock/b": 4})
        >>> store.fold("stock/*", lambda total, path, node: total + node.payload, 0)
        7
        """
        value = initial
        for path, node in self._walk(pattern):
            value = function(value, path, node)
        return value

    def for_each(self, pattern: PatternLike, function: Callable[[str, Node], object]) -> None:
        """Calls ``function(path, node)`` for the nodes that match ``pattern``."""
        for path, node in self._walk(pattern):
            function(path, node)

    def map(self, pattern: PatternLike, function: Callable[[str, Node], _T]) -> list[_T]:
        """What ``function(path, node)`` gives for each node that matches ``pattern``.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"stock/a": 3, "stock/b": 4})
        >>> store.map("stock/*", lambda path, node: node.payload * 2)
        [6, 8]
        """
        return [function(path, node) for path, node in self._walk(pattern)]

    def filter(self, pattern: PatternLike, function: Callable[[str, Node], Any]) -> dict[str, Node]:
        """The nodes that match ``pattern`` and for which ``function(path, node)`` is true, by path.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.put_many({"stock/a": 3, "stock/b": 4})
        >>> list(store.filter("stock/*", lambda path, node: node.payload % 2))
        ['stock/a']
        """
        return {path: node for path, node in self._walk(pattern) if function(path, node)}
