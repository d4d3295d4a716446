"""Nodes, their changes, and what is derived from them, as the core defines it."""

import datetime as dt
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, final

__all__ = [
    "Change",
    "ChangeFeed",
    "Changes",
    "Commit",
    "Condition",
    "Event",
    "ImportReport",
    "ListEntry",
    "Node",
    "NodeChange",
    "NodeChanges",
    "Pattern",
    "ProjectionEntry",
    "ProjectionView",
    "TriggerFailure",
    "Walk",
]

@final
class Node:
    """A node of the tree, as it was at one moment."""

    @property
    def payload(self) -> Any:
        """The node's payload: a JSON value or bytes; None if it has none."""
    @property
    def payload_version(self) -> int:
        """The number of times that the payload has been changed since the node was created."""
    @property
    def has_table(self) -> bool:
        """Whether it holds a table."""
    @property
    def children(self) -> int:
        """The number of its children."""
    @property
    def children_version(self) -> int:
        """The number of times that the list of its children has changed since the node was created."""
    @property
    def seq(self) -> int:
        """The number of the last commit that changed the node itself."""
    @property
    def presence(self) -> int | None:
        """The number of the presence that it ends with; None if it has none."""
    @property
    def expires(self) -> dt.datetime | None:
        """When it ends by itself, in UTC: it is deleted soon after; None if it does not."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ListEntry:
    """One entry of a listing: a node, and figures of its table."""

    @property
    def path(self) -> str:
        """The node's path."""
    @property
    def node(self) -> Node:
        """The node."""
    @property
    def payload(self) -> Any:
        """The node's payload."""
    @property
    def payload_version(self) -> int:
        """The number of times that the payload has been changed since the node was created."""
    @property
    def is_table(self) -> bool:
        """Whether it holds a table."""
    @property
    def rows(self) -> int | None:
        """Rows in the newest version of its table; None without a table."""
    @property
    def versions(self) -> int | None:
        """Versions of its table; None without a table."""
    @property
    def row_groups(self) -> int | None:
        """Row groups of its table; None without a table."""
    @property
    def children(self) -> int:
        """The number of its children."""
    @property
    def children_version(self) -> int:
        """The number of times that the list of its children has changed since the node was created."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Change:
    """The effect of an operation on one node."""

    @property
    def before(self) -> Node | None:
        """The node before the operation; None if it did not exist."""
    @property
    def after(self) -> Node | None:
        """The node after the operation; None if it was deleted."""
    @property
    def indirect(self) -> Changes:
        """What was deleted along with it: nodes below it, and nodes that lived on it."""

@final
class Changes:
    """The effects of an operation on many nodes, in the order in which it made them: a `NodeChange` for each."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[NodeChange]: ...

@final
class NodeChanges:
    """An iterator over changes."""

    def __iter__(self) -> Iterator[NodeChange]: ...
    def __next__(self) -> NodeChange: ...

@final
class NodeChange:
    """The effect of an operation on one of many nodes."""

    @property
    def path(self) -> str:
        """The node's path."""
    @property
    def before(self) -> Node | None:
        """The node before the operation; None if it did not exist."""
    @property
    def after(self) -> Node | None:
        """The node after the operation; None if it was deleted."""
    @property
    def cause(self) -> Literal["asked", "above", "keep_while", "ended"]:
        """Why it changed: `asked`, `above` (a node above it was deleted), `keep_while` (a condition that it lived on no
        longer holds) or `ended` (its presence has ended, or its time is over)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Walk:
    """The nodes that match a pattern, one by one: pairs of a path and a node."""

    def __iter__(self) -> Iterator[tuple[str, Node]]: ...
    def __next__(self) -> tuple[str, Node]: ...

@final
class Pattern:
    """A parsed pattern."""

    def __new__(cls, parts: str) -> Pattern: ...

@final
class Condition:
    """A parsed condition."""

    def __new__(cls, condition: str) -> Condition: ...

@final
class Event:
    """An event of a node or a table."""

    @property
    def path(self) -> str:
        """The path of the node or table; empty for `resync`."""
    @property
    def action(
        self,
    ) -> Literal[
        "create",
        "update",
        "delete",
        "version",
        "rows",
        "delete_versions",
        "drop",
        "undrop",
        "copy",
        "move",
        "move_away",
        "purge",
        "metadata",
        "resync",
    ]:
        """The kind of event. For a node: `create`, `update`, `delete`. For a table: `version` (it got a new version),
        `rows` (rows were written by key, without a version), `delete_versions`, `drop`, `undrop`, `copy` at the path of
        the copy, `move_away` at the old path of a moved table and `move` at the new one, `purge` (rows were erased from
        all versions), `metadata` (a version's metadata was changed). For a trigger also `resync`: earlier events are no
        longer known, so look at everything."""
    @property
    def kind(self) -> str | None:
        """What made a table's new version: see :attr:`Version.kind`."""
    @property
    def before(self) -> Node | None:
        """The node right before the event; None if it did not exist."""
    @property
    def after(self) -> Node | None:
        """The node right after the event; None if it was deleted."""
    @property
    def payload(self) -> Any:
        """The node's payload after the event."""
    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def time(self) -> dt.datetime:
        """The time of the commit, in UTC."""
    @property
    def cause(self) -> Literal["asked", "above", "keep_while", "ended"] | None:
        """Why the node changed: `asked`, `above`, `keep_while` or `ended`."""
    @property
    def trigger(self) -> str | None:
        """The name of the trigger that is called; None in a change feed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Commit:
    """One commit of a change feed."""

    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def time(self) -> dt.datetime:
        """The time of the commit, in UTC."""
    @property
    def messages(self) -> list[str]:
        """The messages given with it, in order: usually one or none, but calls of several threads may be committed
        together."""
    @property
    def events(self) -> list[Event]:
        """The events of the commit, in order."""

@final
class ChangeFeed:
    """The commits after a given one, in order, including future ones: an iterator that waits for the next.

    While one thread waits, another one gets an error that the feed is in use."""

    @property
    def seq(self) -> int:
        """The number of the last commit returned; the next one follows it."""
    def next(self, timeout: float | dt.timedelta | None = None) -> Commit | None:
        """The next commit, or None if none comes within `timeout`: seconds or a timedelta; None waits without limit."""
    def __iter__(self) -> Iterator[Commit]: ...
    def __next__(self) -> Commit: ...

@final
class ProjectionEntry:
    """One entry of a projection."""

    @property
    def key(self) -> Any:
        """The key: a value, or a tuple if it has several fields."""
    @property
    def path(self) -> str:
        """The path of the node that the entry is made from."""
    @property
    def value(self) -> Any:
        """The value of the entry."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ProjectionView:
    """A projection as of one instant: a map from keys to values, ordered by key. A key of several fields is a tuple."""

    @property
    def seq(self) -> int:
        """The number of the last commit that it shows."""
    def get(self, key: Any, default: Any = None) -> Any:
        """The value of `key`, from the first node in path order if several nodes have that key; `default` if none
        has."""
    def get_all(self, key: Any) -> list[Any]:
        """All values of `key`, in the order of their nodes' paths; at most one if the projection is not a bag."""
    def keys(self) -> list[Any]:
        """The keys, in order."""
    def values(self) -> list[Any]:
        """The values, in the order of their keys."""
    def items(self) -> list[tuple[Any, Any]]:
        """Pairs of a key and its value, in the order of the keys."""
    def entries(self) -> list[ProjectionEntry]:
        """The entries, in order of key and path."""
    def prefix(self, text: str | None, *first: Any) -> list[ProjectionEntry]:
        """The entries whose keys begin with the fields `first`, followed by a text that begins with `text`; if `text`
        is None, those that begin with `first`."""
    def range(self, low: Any = None, high: Any = None, include_high: bool = False) -> list[ProjectionEntry]:
        """The entries from the key `low` up to the key `high`, which is excluded unless `include_high`. A key that is a
        prefix of others comes before them."""
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...

@final
class TriggerFailure:
    """A failed call of a trigger."""

    @property
    def trigger(self) -> str:
        """The name of the trigger."""
    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def path(self) -> str:
        """The path of the node."""
    @property
    def error(self) -> str:
        """The exception that the callback raised, with its traceback."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ImportReport:
    """The result of an import of nodes."""

    @property
    def created(self) -> int:
        """The number of created nodes."""
    @property
    def updated(self) -> int:
        """The number of existing nodes whose payload was set."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
