"""Sinks: batches of a source, each committed once with the source's offset."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, TypeVar, final

from drumlin._arguments.checks import SchemaMode, one_of
from drumlin._errors import ConditionFailed, InvalidArgument
from drumlin._habits import Habits
from drumlin._nouns.transaction import Transaction
from drumlin._values.evidence import a_type, shown

__all__ = ["Sink"]

#: How rows come into the table.
SinkMode: TypeAlias = Literal["append", "upsert", "insert"]
_T = TypeVar("_T")
#: Where the offsets are in the tree.
_FOLDER = "sources"


@final
class Sink(Habits):
    """Brings what a source delivers into a table, made by :meth:`Store.sink <drumlin.Store.sink>`. Rows and the
    source's offset are one commit, so after a crash the source is read again from :attr:`offset` on, and no row is
    missing or there twice.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.table("ticks").create({"sym": str, "price": float})
    >>> sink = store.sink("ticks", source="topic-3")
    >>> for offset, rows in [(2, [{"sym": "A", "price": 1.5}]), (4, [{"sym": "B", "price": 2.0}])]:
    ...     sink.write(rows, offset)
    >>> store.sink("ticks", source="topic-3").offset
    4
    """

    __slots__ = ("_in_use", "_lock", "_node", "_offset", "_path", "_store")

    def __init__(self, store: Any, path: str, source: str) -> None:
        for name, given in (("path", path), ("source", source)):
            if not isinstance(given, str):
                raise TypeError(f"{name} must be a str, not {a_type(given)}")
        self._store, self._path, self._node = store, path, f"{_FOLDER}/{source}"
        self._offset = store.tree.get(self._node)
        self._lock = threading.Lock()
        self._in_use = True

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._path

    @property
    def source(self) -> str:
        """The name of the source; the node ``sources/<name>`` of the tree has its offset."""
        return self._node.removeprefix(f"{_FOLDER}/")

    @property
    def offset(self) -> Any:
        """The offset of the last batch that was committed through this sink, or before it was made; None if there is
        none. The source is read from here on."""
        return self._offset

    def write(
        self,
        rows: Any,
        offset: Any,
        *,
        how: SinkMode | None = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
    ) -> None:
        """Commits ``rows`` together with ``offset``, the source's position after them: a JSON value, such as a number,
        or a dict of numbers by partition. ``how`` is "append", or "upsert" or "insert" in a table with a key (default:
        "append", or "upsert" with a key). The other arguments are those of :meth:`Table.append <drumlin.Table.append>`.

        Raises :class:`drumlin.ConditionFailed` if the offset is no longer the one of this sink: another consumer of the
        source has taken its place. Then nothing is written, and this sink is no longer usable.
        """
        if how is not None:
            one_of(how, "how", ("append", "upsert", "insert"))
        rows = _again(rows)

        def bring(tx: Transaction) -> None:
            table = tx.table(self._path)
            verb = how or ("upsert" if table._key() else "append")
            getattr(table, verb)(rows, schema=schema, coerce=coerce)

        self.transact(bring, offset)

    def transact(self, function: Callable[[Transaction], _T], offset: Any) -> _T:
        """Calls ``function`` with a transaction, and commits what it does together with ``offset``: rows of several
        tables, or nodes. As :meth:`Store.transact <drumlin.Store.transact>`, it may be called again. See :meth:`write`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> sink = store.sink("ticks", source="feed")
        >>> def both(tx: drumlin.Transaction) -> None:
        ...     tx.write("ticks", {"n": [1, 2]})
        ...     tx.tree.put("status", "running")
        >>> sink.transact(both, {"0": 17, "1": 4})
        >>> sink.offset
        {'0': 17, '1': 4}
        """
        if offset is None:
            raise InvalidArgument("offset is None; give the source's position after these rows")
        with self._lock:
            if not self._in_use:
                raise InvalidArgument(
                    f"this sink of {self.source!r} is no longer usable, since its last commit failed; make another "
                    f"with store.sink({self._path!r}, source={self.source!r}), and read the source from its offset on"
                )
            if offset == self._offset or (_is_number(offset) and _is_number(self._offset) and offset < self._offset):
                raise InvalidArgument(
                    f"offset {shown(offset)} is not after {shown(self._offset)}, up to which {self.source!r} was "
                    "written; sink.rewind(offset) goes back"
                )
            return self._commit(function, offset)

    def rewind(self, offset: Any) -> None:
        """Sets the offset, without rows: the source is read again from there. Rows stay as they are."""
        with self._lock:
            self._in_use = True
            self._offset = self._store.tree.get(self._node)
            self._commit(lambda _: None, offset)

    def _commit(self, function: Callable[[Transaction], _T], offset: Any) -> _T:
        in_doubt = False

        def once(tx: Transaction) -> _T:
            nonlocal in_doubt
            # If another has come first, all further batches would, too.
            in_doubt = True
            there = tx.tree.get(self._node)
            if there != self._offset:
                raise ConditionFailed(
                    f"{self.source!r} was written up to {shown(there)} by another consumer; this one was at "
                    f"{shown(self._offset)}; nothing was written"
                )
            if offset is None:
                if there is not None:
                    tx.tree.delete(self._node)
            else:
                tx.tree.put(self._node, offset)
            in_doubt = False
            made = function(tx)
            # What a commit that fails has done is not always known.
            in_doubt = True
            return made

        try:
            done: _T = self._store.transact(once)
        except BaseException:
            self._in_use = not in_doubt
            raise
        self._offset = offset
        return done

    def __repr__(self) -> str:
        return f"Sink({self._path!r}, source={self.source!r}, offset={shown(self._offset)})"


def _again(rows: Any) -> Any:
    """Rows that can be taken twice: a transaction is run again where others came first."""
    if hasattr(rows, "read_all"):
        return rows.read_all()
    return list(rows) if isinstance(rows, Iterator) else rows


def _is_number(offset: Any) -> bool:
    return isinstance(offset, (int, float)) and not isinstance(offset, bool)


class Sinks:
    """What has sinks."""

    __slots__ = ()

    def sink(self, path: str, *, source: str) -> Sink:
        """Brings what ``source`` delivers into the table at ``path``, each batch once: see :class:`Sink
        <drumlin.Sink>`."""
        return Sink(self, path, source)
