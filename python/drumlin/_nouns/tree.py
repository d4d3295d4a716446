"""Nodes of the tree and their payloads, in a store or in a transaction."""

import datetime as dt
import io
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, Literal, NoReturn, TypeAlias, TypeVar, final

from drumlin import _drumlin
from drumlin._arguments.checks import Progress, listed, names, one_path, optional_micros, text
from drumlin._arguments.named import explained, names_arguments, told
from drumlin._arguments.named import function as check_function
from drumlin._drumlin import (
    Change,
    Changes,
    Event,
    ImportReport,
    ListEntry,
    Node,
    PresenceInfo,
    ProjectionView,
    TriggerFailure,
)
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits
from drumlin._processes.exit import watched
from drumlin._processes.presence import Presence, presence_argument
from drumlin._values.evidence import a_type, shown
from drumlin.tree import Condition, PatternLike

__all__ = ["Tree"]

# `list` is a method of the class below.
_List: TypeAlias = list
_T = TypeVar("_T")

#: Conditions on the nodes at paths, on which a node lives.
KeepWhile: TypeAlias = Mapping[str, Condition] | Iterable[tuple[str, Condition]]
#: Calls that take less time than a check of their arguments would.
_QUICK = ("exists", "get", "has_payload", "node", "put")


@final
@names_arguments(*_QUICK)
class Tree(Habits):
    """The nodes of the tree: names with payloads, each a JSON value or bytes. With :attr:`Store.tree
    <drumlin.Store.tree>`, each call is one commit; with :attr:`Transaction.tree <drumlin.Transaction.tree>`, it is part
    of the transaction.

    For patterns and conditions, see :mod:`drumlin.tree`.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.tree.put("config/retries", 3)
    >>> store.tree.get("config/retries")
    3
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Tree) -> None:
        if not isinstance(core, _drumlin.Tree):
            raise TypeError("the tree of a store is store.tree; patterns and conditions are in drumlin.tree")
        self._core = core

    @explained
    def put(
        self,
        path: str,
        value: Any,
        *,
        mode: Literal["create", "update"] | None = None,
        when: Condition | None = None,
        keep_while: KeepWhile | None = None,
        ttl: dt.timedelta | None = None,
        presence: Presence | None = None,
    ) -> Change:
        """Sets the payload of the node at ``path``: a JSON value or bytes. Missing parents are created, as is the node.
        Returns the node before and after.

        ``mode="create"`` requires that the node does not exist (otherwise :class:`drumlin.AlreadyExists`),
        ``mode="update"`` that it does (otherwise :class:`drumlin.NotFound`). ``when`` must hold for the existing node
        (otherwise :class:`drumlin.ConditionFailed`). ``keep_while`` maps paths to conditions: the node lives only as
        long as all of them hold. The commit that makes one false also deletes the node, for good.

        With ``ttl`` the node ends by itself after that time, unless it is put again with another; it is deleted soon
        after, by whichever process writes the store. With ``presence`` it ends with a program, see
        :meth:`presence`. If any of ``keep_while``, ``ttl`` and ``presence`` are given,
        the node lives on these from then on, otherwise on what it did. A node that holds a table, or has one below it,
        loses its payload instead.

        >>> import drumlin
        >>> from drumlin.tree import exists, payload
        >>> store = drumlin.open("memory://")
        >>> change = store.tree.put("config/feeds/a", {"url": "https://example.org", "retries": 3})
        >>> change.before is None, change.after.payload_version
        (True, 1)
        >>> store.tree.get("config/feeds/a")["retries"]
        3
        >>> _ = store.tree.put("config/feeds/a", {"retries": 4}, when=payload("retries") == 3)
        >>> _ = store.tree.put("locks/a", "mine", mode="create", keep_while={"config/feeds/a": exists()})
        >>> [change.path for change in store.tree.delete("config/feeds/a").indirect]
        ['locks/a']
        """
        try:
            if ttl is None and presence is None:
                return self._core.put(path, value, mode=mode, when=when, keep_while=keep_while)
            ends = {
                "presence": None if presence is None else presence_argument(presence).number,
                "ttl_micros": optional_micros(ttl, "ttl"),
            }
            return self._core.put(path, value, mode=mode, when=when, keep_while=keep_while, **ends)
        except TypeError as error:
            if keep_while is not None and not isinstance(keep_while, Mapping):
                raise TypeError(
                    "keep_while maps paths to conditions, such as {'users/1': drumlin.tree.exists()}, and is not "
                    f"{a_type(keep_while)}"
                ) from None
            raise told(error) or error from None

    def presence(self, name: str = "", *, life: dt.timedelta | None = None) -> Presence:
        """Says that this program is there, by one commit: see :class:`Presence <drumlin.Presence>`. ``name`` is for
        people who look at :meth:`presences`. ``life`` is how long it lasts once the program has fallen silent: 30
        seconds by default and one at least; on a bucket 3 minutes, since each beat is an object there; 30 days at
        most."""
        return Presence(_drumlin.begin_presence(self._core, text(name, "name"), optional_micros(life, "life")))

    def presences(self) -> _List[PresenceInfo]:
        """The presences that have not ended, in the order in which they began.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> presence = store.tree.presence("worker 7")
        >>> [(one.number, one.name, one.life.seconds) for one in store.tree.presences()]
        [(1, 'worker 7', 30)]
        """
        return _drumlin.presences(self._core)

    def create(self, path: str, value: Any) -> Change:
        """Creates a node that does not exist yet: :meth:`put` with ``mode="create"``."""
        return self._core.create(path, value)

    def update(self, path: str, value: Any) -> Change:
        """Sets the payload of an existing node: :meth:`put` with ``mode="update"``."""
        return self._core.update(path, value)

    def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change:
        """Sets the payload of the node at ``path`` if it is ``expected``; otherwise raises
        :class:`drumlin.ConditionFailed`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put("leader", "a")
        >>> store.tree.compare_and_swap("leader", "a", "b").after.payload
        'b'
        """
        return self._core.compare_and_swap(path, expected, value)

    def put_many(self, payloads: Mapping[str, Any]) -> Changes:
        """Sets the payloads of many nodes, by path, in one commit.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.tree.put_many({"a": 1, "b/c": 2})
        Changes(2: 'a', 'b/c')
        """
        return self._core.put_many(payloads)

    def update_many(self, pattern: PatternLike, value: Any) -> Changes:
        """Sets the payload of all nodes that match ``pattern`` to ``value``, in one commit."""
        return self._core.update_many(pattern, value)

    def clear_payload(self, path: str, *, when: Condition | None = None) -> Change:
        """Removes the payload of the node at ``path``. If the node then has no payload, children or table, it is
        deleted, and so are parents that this leaves empty."""
        return self._core.clear_payload(path, when=when)

    def clear_payloads(self, pattern: PatternLike) -> Changes:
        """Removes the payloads of all nodes that match ``pattern``, in one commit."""
        return self._core.clear_payloads(pattern)

    def delete(self, path: str, *, when: Condition | None = None) -> Change:
        """Deletes the node at ``path`` and everything below it; none of these nodes may hold a table (see
        :meth:`Store.drop <drumlin.Store.drop>`). Raises :class:`drumlin.NotFound` if the node does not exist,
        :class:`drumlin.ConditionFailed` if ``when`` does not hold for it.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"a": 1, "a/b": 2})
        >>> change = store.tree.delete("a")
        >>> change.before.payload, [below.path for below in change.indirect]
        (1, ['a/b'])
        """
        return self._core.delete(path, when=when)

    def delete_many(self, pattern: PatternLike) -> Changes:
        """Deletes the nodes that match ``pattern`` and everything below them, in one commit. None may hold a table.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"a/x": 1, "a/y": 2, "b/x": 3})
        >>> [(change.path, change.cause) for change in store.tree.delete_many("*/x")]
        [('a/x', 'asked'), ('b/x', 'asked')]
        """
        return self._core.delete_many(pattern)

    def __iter__(self) -> NoReturn:
        raise TypeError("nodes are listed with for entry in tree.list(pattern): ...")

    def __getitem__(self, path: str) -> Any:
        raise TypeError(f"the payload of a node is tree.get({shown(path)}), the node itself tree.node({shown(path)})")

    def __setitem__(self, path: str, value: Any) -> None:
        raise TypeError(f"a payload is set with tree.put({shown(path)}, value)")

    def __delitem__(self, path: str) -> None:
        raise TypeError(f"a node is deleted with tree.delete({shown(path)})")

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.exists(path)

    def get(self, path: str, default: Any = None) -> Any:
        """The payload of the node at ``path``, or ``default`` if the node has none or does not exist."""
        try:
            return self._core.get(path, default)
        except TypeError as error:
            raise told(error) or error from None

    def node(self, path: str) -> Node | None:
        """The node at ``path``, or None if it does not exist."""
        try:
            return self._core.node(path)
        except TypeError as error:
            raise told(error) or error from None

    def exists(self, path: str) -> bool:
        """Whether a node exists at ``path``. Parents of tables are nodes too."""
        try:
            return self._core.exists(path)
        except TypeError as error:
            raise told(error) or error from None

    def has_payload(self, path: str) -> bool:
        """Whether the node at ``path`` exists and has a payload."""
        try:
            return self._core.has_payload(path)
        except TypeError as error:
            raise told(error) or error from None

    def get_many(self, pattern: PatternLike) -> dict[str, Any]:
        """The payloads of the nodes that match ``pattern``, by path. Nodes without a payload are left out.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"a/x": 1, "a/y": 2, "b/x": 3})
        >>> store.tree.get_many("a/**")
        {'a/x': 1, 'a/y': 2}
        """
        one_path(pattern, "{path: tree.get(path) for path in paths}", "pattern")
        return self._core.get_many(pattern)

    def nodes(self, pattern: PatternLike) -> dict[str, Node]:
        """The nodes that match ``pattern``, by path."""
        return self._core.nodes(pattern)

    def count(self, pattern: PatternLike) -> int:
        """The number of nodes that match ``pattern``."""
        return self._core.count(pattern)

    def list(self, pattern: PatternLike = "**") -> _List[ListEntry]:
        """The nodes that match ``pattern``, in path order, with figures of their tables. In a name, ``*`` stands for
        any characters and ``?`` for one character; a name ``**`` stands for any number of names.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put("config/feeds/a", 1)
        >>> [entry.path for entry in store.tree.list()]
        ['config', 'config/feeds', 'config/feeds/a']
        """
        return self._core.list(pattern)

    def fold(self, pattern: PatternLike, function: Callable[[_T, str, Node], _T], initial: _T) -> _T:
        """Reduces the nodes that match ``pattern``, in path order: ``function(value, path, node)`` returns the next
        value, starting with ``initial``. Returns the last value.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"stock/a": 3, "stock/b": 4})
        >>> store.tree.fold("stock/*", lambda total, path, node: total + node.payload, 0)
        7
        """
        value = initial
        check_function(function, "function")
        for path, node in self._core.walk(pattern):
            value = function(value, path, node)
        return value

    def for_each(self, pattern: PatternLike, function: Callable[[str, Node], object]) -> None:
        """Calls ``function(path, node)`` for each node that matches ``pattern``."""
        check_function(function, "function")
        for path, node in self._core.walk(pattern):
            function(path, node)

    def map(self, pattern: PatternLike, function: Callable[[str, Node], _T]) -> _List[_T]:
        """The results of ``function(path, node)`` for the nodes that match ``pattern``.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"stock/a": 3, "stock/b": 4})
        >>> store.tree.map("stock/*", lambda path, node: node.payload * 2)
        [6, 8]
        """
        check_function(function, "function")
        return [function(path, node) for path, node in self._core.walk(pattern)]

    def filter(self, pattern: PatternLike, function: Callable[[str, Node], Any]) -> dict[str, Node]:
        """The nodes that match ``pattern`` and for which ``function(path, node)`` is true, by path.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"stock/a": 3, "stock/b": 4})
        >>> list(store.tree.filter("stock/*", lambda path, node: node.payload % 2))
        ['stock/a']
        """
        check_function(function, "function")
        return {path: node for path, node in self._core.walk(pattern) if function(path, node)}

    def export(
        self,
        pattern: PatternLike,
        file: str | os.PathLike[str] | BinaryIO,
        *,
        progress: Progress | None = None,
    ) -> int:
        """Writes the nodes that match ``pattern`` and have a payload to a file (a path or an open binary file): one
        line of JSON for each, in path order and as of one instant. Nodes that end with a presence are left out. Returns
        the number of nodes.

        >>> import drumlin, io
        >>> store, file = drumlin.open("memory://"), io.BytesIO()
        >>> _ = store.tree.put("a", {"n": 1})
        >>> store.tree.export("**", file)
        1
        >>> file.getvalue()
        b'{"path":"a","payload":{"n":1}}\\n'
        """
        with _file(file, "wb") as opened:
            return self._core.export(pattern, opened, progress)

    def import_(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        *,
        under: str | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Creates or updates the nodes that :meth:`export` wrote, in one commit; with ``under``, below that path."""
        with _file(file, "rb") as opened:
            return self._core.import_(opened, under, progress)

    def projection(
        self,
        name: str,
        pattern: PatternLike | None = None,
        *,
        key: str | Iterable[str] | Callable[[str, Any], Any] | None = None,
        value: str | Iterable[str] | Callable[[str, Any], Any] = "payload",
        bag: bool = False,
    ) -> ProjectionView:
        """A map that is built from the nodes that match a pattern and changes with them. With a ``pattern``, the
        projection ``name`` is created or replaced first; with only a name, the existing one is returned.

        Each matching node with a payload has an entry, of ``key`` and ``value``. These are fields of the node:
        ``"path"``, ``"name"``, ``"path.0"`` (a name in the path; ``"path.-1"`` is the last), ``"payload"`` or
        ``"payload.a.b"``; or lists of fields. A node that lacks a field has no entry. If several nodes have the same
        key, the first in path order wins; with ``bag``, each has an entry. Such a projection is part of the store.

        ``key`` and ``value`` may also be functions of path and payload; then the projection lives as long as the store
        is open. The key function returns a value, a tuple for several fields, or None for no entry. The functions are
        called within commits, so they should be quick; they must be deterministic and must not use the store. An
        exception in one goes to ``sys.unraisablehook``, and the node has no entry.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put_many({"users/a": {"team": "x"}, "users/b": {"team": "y"}, "users/c": {"team": "x"}})
        >>> store.tree.projection("teams", "users/*", key="payload.team", value="name", bag=True).items()
        [('x', 'a'), ('x', 'c'), ('y', 'b')]
        >>> _ = store.tree.delete("users/a")
        >>> store.tree.projection("teams").get_all("x")
        ['c']
        >>> lengths = store.tree.projection("lengths", "users/*", key=lambda path, payload: len(path))
        >>> lengths.get(7)
        {'team': 'y'}
        """
        if pattern is None:
            if key is not None or value != "payload" or bag:
                raise InvalidArgument(f"projection {name!r}: pattern is missing; it says which nodes to read")
        elif callable(key):
            self._core.put_projection_fn(name, pattern, _entry_function(key, value), bag)
        elif key is None:
            raise InvalidArgument(
                f"projection {name!r}: key is missing; expected a field, a list of them, or a function"
            )
        elif callable(value):
            raise InvalidArgument(f"projection {name!r}: value is a function, so key must be one too")
        else:
            self._core.put_projection(name, pattern, _fields(key, "key"), _fields(value, "value"), bag)
        return self._core.projection(name)

    def drop_projection(self, name: str) -> None:
        """Deletes a projection."""
        self._core.drop_projection(name)

    def projections(self) -> _List[str]:
        """The names of all projections."""
        return self._core.projections()

    def on(
        self,
        pattern: PatternLike,
        callback: Callable[[Event], object],
        *,
        actions: Iterable[Literal["create", "update", "delete"]] | None = None,
        priority: int = 0,
        name: str | None = None,
    ) -> str:
        """Calls ``callback`` with an :class:`drumlin.Event` for each event of a node that matches ``pattern`` from now
        on, after its commit and in order. Returns the trigger's name, by which :meth:`off` removes it.

        ``actions`` limits the events to these actions (default: all). For each event, triggers with a higher
        ``priority`` are called first. A trigger with a ``name`` is durable: it is called at least once for each event
        since it was first created, across restarts and crashes, whenever a process has registered it again. If those
        events are no longer known, it is called with the action ``"resync"``.

        All triggers are called on one separate thread: a slow trigger delays the others, but no commit, and a callback
        may use the store. An exception in a callback goes to ``sys.unraisablehook`` and to :meth:`trigger_failures`.

        >>> import drumlin
        >>> store, seen = drumlin.open("memory://"), []
        >>> name = store.tree.on("config/**", lambda event: seen.append((event.action, event.path)))
        >>> _ = store.tree.put("config/a", 1)
        >>> store.tree.wait_for_triggers()
        True
        >>> seen
        [('create', 'config/a')]
        >>> store.tree.off(name)
        """
        if not callable(callback):
            raise TypeError(f"a callback must be a function of an event, not {a_type(callback)}")
        chosen = [] if actions is None else listed(actions, "actions")
        return self._core.on(pattern, watched(callback, self._core.store()), chosen, priority, name)

    def off(self, name: str) -> None:
        """Removes a trigger, even if it is durable."""
        self._core.off(name)

    def triggers(self) -> _List[str]:
        """The names of the triggers registered in this process, and of the durable ones."""
        return self._core.triggers()

    def wait_for_triggers(self, timeout: float | dt.timedelta | None = None) -> bool:
        """Waits until the triggers have been called for all commits up to now. ``timeout`` is in seconds or a
        timedelta; None waits without limit. Returns False if the time ran out."""
        if timeout is not None and not isinstance(timeout, (int, float, dt.timedelta)):
            raise TypeError(f"timeout must be seconds or a timedelta, not {a_type(timeout)}")
        return self._core.wait_for_triggers(timeout)

    def trigger_failures(self) -> _List[TriggerFailure]:
        """Returns and removes the failed calls of triggers, the oldest first. Only the last 1,000 are kept."""
        return self._core.trigger_failures()


def _file(file: str | os.PathLike[str] | BinaryIO, mode: Literal["rb", "wb"]) -> AbstractContextManager[BinaryIO]:
    """The file; if it is opened here, it is closed after use."""
    if isinstance(file, (str, os.PathLike)):
        return io.open(file, mode)  # noqa: UP020
    if not hasattr(file, "read" if mode == "rb" else "write"):
        raise TypeError(f"file must be a path or an open file, not {a_type(file)}")
    return nullcontext(file)


def _fields(fields: str | Iterable[str], name: str) -> list[str]:
    return [fields] if isinstance(fields, str) else names(fields, name)


def _entry_function(
    key: Callable[[str, Any], Any],
    value: str | Iterable[str] | Callable[[str, Any], Any],
) -> Callable[[str, Any], tuple[Any, Any] | None]:
    """A function that returns the key and value of a node's entry, or None."""
    if not callable(value) and value != "payload":
        raise InvalidArgument(f"key is a function, so value must be one too, not {value!r}")

    def entry(path: str, payload: Any) -> tuple[Any, Any] | None:
        found = key(path, payload)
        if found is None:
            return None
        return found, value(path, payload) if callable(value) else payload

    return entry
