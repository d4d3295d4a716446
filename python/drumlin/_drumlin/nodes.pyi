"""Nodes, what happened to them, and what is derived from them, as the core gives it."""

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
        """What it carries: a JSON value or bytes, or None for nothing."""
    @property
    def payload_version(self) -> int:
        """How often the payload has been changed since the node appeared."""
    @property
    def has_table(self) -> bool:
        """Whether it holds a table."""
    @property
    def children(self) -> int:
        """How many children it has."""
    @property
    def children_version(self) -> int:
        """How often the list of its children has changed since the node appeared."""
    @property
    def seq(self) -> int:
        """The last commit that changed the node itself."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ListEntry:
    """One line of a listing: a node, and figures of its table."""

    @property
    def path(self) -> str:
        """Its path."""
    @property
    def node(self) -> Node:
        """The node."""
    @property
    def payload(self) -> Any:
        """What it carries."""
    @property
    def payload_version(self) -> int:
        """How often the payload has been changed since the node appeared."""
    @property
    def is_table(self) -> bool:
        """Whether it holds a table."""
    @property
    def rows(self) -> int | None:
        """Rows of the newest version of its table."""
    @property
    def versions(self) -> int | None:
        """Versions of its table."""
    @property
    def row_groups(self) -> int | None:
        """Row groups of its table."""
    @property
    def children(self) -> int:
        """How many children it has."""
    @property
    def children_version(self) -> int:
        """How often the list of its children has changed since the node appeared."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Change:
    """What an operation did to one node."""

    @property
    def before(self) -> Node | None:
        """What the node was; None if it was not there."""
    @property
    def after(self) -> Node | None:
        """What it became; None if it is gone."""
    @property
    def indirect(self) -> Changes:
        """What was deleted with it: nodes below it, and those that lived on it."""

@final
class Changes:
    """What an operation did to many nodes, in the order in which it was done: a `NodeChange` for each."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[NodeChange]: ...

@final
class NodeChanges:
    """Goes over changes."""

    def __iter__(self) -> Iterator[NodeChange]: ...
    def __next__(self) -> NodeChange: ...

@final
class NodeChange:
    """What was done to one node of many."""

    @property
    def path(self) -> str:
        """The node."""
    @property
    def before(self) -> Node | None:
        """What it was before the operation; None if it was not there."""
    @property
    def after(self) -> Node | None:
        """What it is after it; None if it is gone."""
    @property
    def cause(self) -> Literal["asked", "above", "keep_while"]:
        """Why: `asked`, `above` (a node above it was deleted) or `keep_while` (what it lived on no longer holds)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Walk:
    """The nodes of a pattern, one by one: pairs of a path and a node."""

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
    """One thing that happened, to a node or to a table."""

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
        """In one word. Of a node: `create`, `update`, `delete`. Of a table: `version` (it got one), `rows` (written by
        key, without a version), `delete_versions`, `drop`, `undrop`, `copy` at the path of the copy, `move_away` at
        the old path of a table that was moved and `move` at the new one, `purge` (rows were erased from all versions),
        `metadata` (those of a version were changed). For a trigger also `resync`: what happened
        before cannot be told any more, so look at all of it."""
    @property
    def kind(self) -> str | None:
        """What made a table's new version: see :attr:`Version.kind`."""
    @property
    def before(self) -> Node | None:
        """What the node was right before; None if it was not there."""
    @property
    def after(self) -> Node | None:
        """What the node was right after; None if it was gone."""
    @property
    def payload(self) -> Any:
        """What the node carries since then."""
    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def time(self) -> dt.datetime:
        """The time of the commit, in UTC."""
    @property
    def cause(self) -> Literal["asked", "above", "keep_while"] | None:
        """Why it happened to the node: `asked`, `above` or `keep_while`."""
    @property
    def trigger(self) -> str | None:
        """The trigger that is called; None in a change feed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Commit:
    """One commit of a change feed."""

    @property
    def seq(self) -> int:
        """Its number."""
    @property
    def time(self) -> dt.datetime:
        """Its time, in UTC."""
    @property
    def messages(self) -> list[str]:
        """What those said who made it, in order: usually one message or none, but calls of several threads may become
        durable together."""
    @property
    def events(self) -> list[Event]:
        """What happened, in order."""

@final
class ChangeFeed:
    """The commits since one, in order, those to come too: an iterator that waits for the next one."""

    @property
    def seq(self) -> int:
        """The last commit given; the next one comes after it."""
    def next(self, timeout: float | dt.timedelta | None = None) -> Commit | None:
        """The next commit. None if none comes within `timeout`: seconds or a timedelta, None for as long as it
        takes."""
    def __iter__(self) -> Iterator[Commit]: ...
    def __next__(self) -> Commit: ...

@final
class ProjectionEntry:
    """One entry of a projection."""

    @property
    def key(self) -> Any:
        """The key: a value, or a tuple if it is of several fields."""
    @property
    def path(self) -> str:
        """The node that gives the entry."""
    @property
    def value(self) -> Any:
        """The value."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ProjectionView:
    """A projection as of one instant: a map of keys to values, ordered by key. A key of several fields is a tuple."""

    @property
    def seq(self) -> int:
        """The last commit that it shows."""
    def get(self, key: Any, default: Any = None) -> Any:
        """The value of `key`; of the first node in path order if several give it, `default` if none does."""
    def get_all(self, key: Any) -> list[Any]:
        """All values of `key`, in the order of their nodes' paths; at most one if the projection is no bag."""
    def keys(self) -> list[Any]:
        """The keys, in order."""
    def values(self) -> list[Any]:
        """The values, in the order of their keys."""
    def items(self) -> list[tuple[Any, Any]]:
        """Pairs of a key and its value, in the order of the keys."""
    def entries(self) -> list[ProjectionEntry]:
        """The entries, by key and path."""
    def prefix(self, text: str | None, *first: Any) -> list[ProjectionEntry]:
        """The entries whose keys begin with the fields `first` and then with a text that begins with `text`; with
        `text` None those that begin with `first`."""
    def range(self, low: Any = None, high: Any = None, include_high: bool = False) -> list[ProjectionEntry]:
        """The entries from the key `low` up to the key `high`, which is left out unless `include_high`. A key of fewer
        fields comes before those that go on from it."""
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...

@final
class TriggerFailure:
    """A call of a trigger that failed."""

    @property
    def trigger(self) -> str:
        """The trigger."""
    @property
    def seq(self) -> int:
        """The commit."""
    @property
    def path(self) -> str:
        """The node."""
    @property
    def error(self) -> str:
        """What the callback raised, with its traceback."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ImportReport:
    """What an import of nodes did."""

    @property
    def created(self) -> int:
        """Nodes that were made."""
    @property
    def updated(self) -> int:
        """Nodes that were there, and got their payload."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
