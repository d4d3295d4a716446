"""The core of drumlin, as the package uses it."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, ClassVar, Final, Literal, Self, TypeAlias, final

from typing_extensions import CapsuleType, disjoint_base

from drumlin.tree import Condition as _Condition
from drumlin.tree import PatternLike as _PatternLike

__all__ = [
    "Batch",
    "Batches",
    "Change",
    "ChangeFeed",
    "Changes",
    "CheckpointReport",
    "Commit",
    "Condition",
    "DeleteReport",
    "DropReport",
    "Event",
    "Fault",
    "Holding",
    "ImportReport",
    "ListEntry",
    "Loss",
    "Lookup",
    "Mask",
    "Node",
    "NodeChange",
    "NodeChanges",
    "Pattern",
    "ProjectionEntry",
    "ProjectionView",
    "Reading",
    "ReclaimReport",
    "RepackPlan",
    "RowsReport",
    "SalvageReport",
    "Schema",
    "Snapshot",
    "Store",
    "StoreStat",
    "Stream",
    "TableStat",
    "Transaction",
    "TrashItem",
    "TriggerFailure",
    "VacuumPlan",
    "VacuumWindow",
    "VerifyReport",
    "Version",
    "VersionsReport",
    "Walk",
    "__version__",
    "main",
    "collect_many",
    "open",
    "salvage",
]

__version__: Final[str]

def collect_many(
    readings: _List[tuple[Reading, _List[str] | None, bool]], make: Callable[[int, _List[Any]], Any]
) -> _List[Any]:
    """All rows of readings, each with the columns given for it if any are: as [`Batches`], or, where arrays are wanted
    and can say all that its columns do, as what `make` makes, while others are being decoded, of its place and a list
    of arrays with a row for each column of a type, that type, and which columns they are."""

def open(uri: str, mode: str, settings: dict[str, Any]) -> Store: ...
def salvage(uri: str, new: str, settings: dict[str, Any], progress: _Progress | None = None) -> SalvageReport: ...
def main(args: list[str]) -> int: ...

@final
class Snapshot:
    """A name that pins versions of many tables."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def time(self) -> dt.datetime:
        """When it was taken, in UTC."""
    @property
    def versions(self) -> dict[str, int]:
        """The version that it holds of each table, by path."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RowsReport:
    """What a write by key did."""

    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def rows(self) -> int:
        """Rows written, or keys deleted, whether they were there or not."""
    @property
    def version(self) -> Version | None:
        """The version it made, if it was large or had metadata. Other rows belong to the version that the next
        checkpoint, snapshot or large write makes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class DeleteReport:
    """What a row delete did."""

    @property
    def rows(self) -> int:
        """Rows deleted."""
    @property
    def version(self) -> Version:
        """The version it made; the newest one as it was if no row matched."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class DropReport:
    """What a drop did."""

    @property
    def paths(self) -> list[str]:
        """The paths dropped, in order."""
    @property
    def versions(self) -> int:
        """Versions dropped with them."""
    @property
    def bytes(self) -> int:
        """Bytes that a reclaim can free, as far as no other table shares their blocks and no snapshot holds them."""
    @property
    def missing(self) -> list[str]:
        """Paths and patterns that named no table, with `missing_ok`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VersionsReport:
    """What deleting versions did."""

    @property
    def versions(self) -> dict[str, list[int]]:
        """The versions deleted, by path."""
    @property
    def missing(self) -> dict[str, list[int]]:
        """What was not there, with `missing_ok`: versions by path."""
    @property
    def bytes(self) -> int:
        """Bytes that a reclaim can free, as far as no other table shares their blocks."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TrashItem:
    """A dropped table that can be taken back."""

    @property
    def path(self) -> str:
        """Where it was."""
    @property
    def time(self) -> dt.datetime:
        """When it was dropped, in UTC."""
    @property
    def rows(self) -> int:
        """Rows of its newest version."""
    @property
    def bytes(self) -> int:
        """Bytes of its row groups."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CheckpointReport:
    """What a checkpoint did."""

    @property
    def tables(self) -> int:
        """Tables of which row groups were rewritten."""
    @property
    def row_groups_before(self) -> int:
        """Row groups of all tables before."""
    @property
    def row_groups_after(self) -> int:
        """Row groups of all tables after."""
    @property
    def rows_removed(self) -> int:
        """Rows that no version needed, gone now."""
    @property
    def row_groups_moved(self) -> int:
        """Row groups that were copied out of blocks mostly dead, or small and many."""
    @property
    def bytes_written(self) -> int:
        """Bytes written."""
    @property
    def rows_flushed(self) -> int:
        """Rows written by key that left memory for row groups."""
    @property
    def versions_expired(self) -> int:
        """Versions that retention took."""
    @property
    def windows_void(self) -> int:
        """Windows that were void: others changed their row groups meanwhile."""
    @property
    def failures(self) -> list[str]:
        """Windows that could not be rewritten and were left as they are: the table and why."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RepackPlan:
    """The blocks that a checkpoint would empty into others, byte for byte."""

    @property
    def blocks_before(self) -> int:
        """Blocks before."""
    @property
    def blocks(self) -> int:
        """Blocks to be emptied: mostly dead, or small and many."""
    @property
    def bytes_moved(self) -> int:
        """Bytes to be copied."""
    @property
    def bytes_gained(self) -> int:
        """Bytes to be gained."""
    @property
    def left_out(self) -> int:
        """Blocks that would be worth it, beyond the budget."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VacuumWindow:
    """Adjacent row groups to be rewritten together."""

    @property
    def reason(self) -> str:
        """Why: `fold` (deleted rows), `lone` (one row group that is mostly deleted) or `merge` (small row groups)."""
    @property
    def inputs(self) -> int:
        """Row groups before."""
    @property
    def outputs(self) -> int:
        """Row groups after."""
    @property
    def rows(self) -> int:
        """Rows that stay."""
    @property
    def dead_rows(self) -> int:
        """Rows that go."""
    @property
    def bytes_rewritten(self) -> int:
        """Bytes expected to be written."""
    @property
    def bytes_gained(self) -> int:
        """Bytes expected to be gained."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VacuumPlan:
    """What a checkpoint would rewrite in one table, and why. `print` it."""

    @property
    def path(self) -> str:
        """The table's path."""
    @property
    def windows(self) -> list[VacuumWindow]:
        """What would be rewritten, in table order."""
    @property
    def row_groups_before(self) -> int:
        """Row groups before."""
    @property
    def row_groups_after(self) -> int:
        """Row groups after."""
    @property
    def bytes_before(self) -> int:
        """Encoded bytes before."""
    @property
    def dead_rows(self) -> int:
        """Rows that no retained version sees, before."""
    @property
    def left_out(self) -> int:
        """Windows that the budget left out."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Holding:
    """Space that a reclaim did not free, and why."""

    @property
    def trash_bytes(self) -> int:
        """Bytes of tables in the trash, within their grace."""
    @property
    def pinned_bytes(self) -> int:
        """Bytes of blocks that readers of this process still use."""
    @property
    def fragment_bytes(self) -> int:
        """Bytes in blocks of which other parts are in use; a checkpoint may repack them."""
    @property
    def history_bytes(self) -> int:
        """Bytes of row groups that only versions before the newest, or snapshots, need."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ReclaimReport:
    """What a reclaim did."""

    @property
    def tables(self) -> int:
        """Tables in the trash given up."""
    @property
    def blocks(self) -> int:
        """Blocks deleted."""
    @property
    def bytes(self) -> int:
        """Bytes of those blocks."""
    @property
    def orphans(self) -> int:
        """Objects deleted that nothing had ever referred to: left by crashes and failures."""
    @property
    def orphan_bytes(self) -> int:
        """Bytes of those objects."""
    @property
    def failures(self) -> list[tuple[str, str]]:
        """Objects that could not be deleted, with the error; they stay listed for the next reclaim."""
    @property
    def holding(self) -> Holding:
        """What still holds space."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Fault:
    """Something that verify found wrong."""

    @property
    def table(self) -> str:
        """The table's path, or what it is if it has none."""
    @property
    def row_group(self) -> int:
        """The row group."""
    @property
    def error(self) -> str:
        """What is wrong; names object and offset."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VerifyReport:
    """What verify found."""

    @property
    def tables(self) -> int:
        """Tables looked at, those in the trash and those held by snapshots alone too."""
    @property
    def row_groups(self) -> int:
        """Row groups read and checked."""
    @property
    def bytes(self) -> int:
        """Bytes read and checked."""
    @property
    def faults(self) -> list[Fault]:
        """What is wrong. Empty if the store is sound."""
    @property
    def orphans(self) -> list[tuple[str, int]]:
        """Objects that nothing refers to, with their bytes; harmless, and removed by a reclaim."""
    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Loss:
    """Something that could not be salvaged."""

    @property
    def kind(self) -> str:
        """What kind of thing: "log", "commits", "catalog", "nodes", "table", "rows", "rows in memory", "snapshot" or
        "change"."""
    @property
    def path(self) -> str | None:
        """The table's path; of nodes, where they begin; of a snapshot, its name. `None` if it is not known, or is
        none."""
    @property
    def until(self) -> str | None:
        """Of nodes: the path behind the last."""
    @property
    def commits(self) -> tuple[int, int] | None:
        """The first and last of the commits."""
    @property
    def row_group(self) -> int | None:
        """The row group."""
    @property
    def versions(self) -> list[tuple[int, int, int]]:
        """Of each version that has lost rows: its number, the first lost row as stored, and how many."""
    @property
    def why(self) -> str:
        """Why; names object and offset where there is one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SalvageReport:
    """What a salvage did."""

    @property
    def seq(self) -> int:
        """The last commit of the damaged store that is in the new one."""
    @property
    def tables(self) -> int:
        """Tables kept, those in the trash and those that snapshots hold too."""
    @property
    def row_groups(self) -> int:
        """Row groups kept."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
    @property
    def nodes(self) -> int:
        """Nodes kept."""
    @property
    def losses(self) -> list[Loss]:
        """What could not be kept. Empty if nothing was damaged."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class StoreStat:
    """Figures about a store."""

    @property
    def seq(self) -> int:
        """The last commit."""
    @property
    def nodes(self) -> int:
        """Nodes of the tree."""
    @property
    def tables(self) -> int:
        """Tables in the tree."""
    @property
    def trash(self) -> int:
        """Dropped tables that can be taken back."""
    @property
    def snapshots(self) -> int:
        """Snapshots."""
    @property
    def versions(self) -> int:
        """Listed versions of all tables in the tree."""
    @property
    def row_groups(self) -> int:
        """Row groups of all tables."""
    @property
    def blocks(self) -> int:
        """Blocks in use that are on storage."""
    @property
    def block_bytes(self) -> int:
        """Bytes of those blocks."""
    @property
    def live_bytes(self) -> int:
        """Bytes of row groups in use within them."""
    @property
    def inline_blocks(self) -> int:
        """Blocks in use that came with commits, lie in the log or the catalog, and wait for a checkpoint."""
    @property
    def condemned(self) -> int:
        """Blocks that wait for a reclaim."""
    @property
    def condemned_bytes(self) -> int:
        """Bytes of those blocks."""
    @property
    def log_bytes(self) -> int:
        """Bytes of the log and catalog snapshots."""
    @property
    def bytes(self) -> int:
        """Bytes on storage in all, but for orphans."""
    @property
    def memtable_bytes(self) -> int:
        """Memory of rows written by key that wait for a checkpoint, in bytes."""
    @property
    def cache_hits(self) -> int:
        """Look-ups that the cache of encoded data answered."""
    @property
    def cache_misses(self) -> int:
        """Look-ups that went to storage."""
    @property
    def cache_bytes(self) -> int:
        """Bytes in the cache."""
    @property
    def cache_bytes_max(self) -> int:
        """The bound on them."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TableStat:
    """Figures about a table."""

    @property
    def rows(self) -> int:
        """Rows of the newest version, and those written by key since."""
    @property
    def stored_rows(self) -> int:
        """Rows stored, deleted ones too."""
    @property
    def versions(self) -> int:
        """Listed versions."""
    @property
    def row_groups(self) -> int:
        """Row groups."""
    @property
    def bytes(self) -> int:
        """Their encoded bytes."""
    @property
    def columns(self) -> int:
        """Columns of the newest version."""
    @property
    def sort(self) -> list[str]:
        """The columns by which rows are ordered."""
    @property
    def key(self) -> list[str]:
        """The columns of the key, which are those too; none if the table has no key."""
    @property
    def memory_keys(self) -> int:
        """Keys written or deleted that wait in memory for a checkpoint."""
    @property
    def memory_bytes(self) -> int:
        """The memory that they take with their rows, in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Version:
    """One version of a table."""

    @property
    def version(self) -> int:
        """Its number: 0, 1, 2 ..."""
    @property
    def seq(self) -> int:
        """The number of the commit that made it."""
    @property
    def time(self) -> dt.datetime:
        """When it was made, in UTC."""
    @property
    def kind(self) -> str:
        """What made it: `create`, `write`, `append`, `update`, `delete`, `upsert` or `rows` (those written by key since
        the one before)."""
    @property
    def rows(self) -> int:
        """Its rows."""
    @property
    def metadata(self) -> Any:
        """What its writer noted."""
    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots that hold it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

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
    ) -> Literal["create", "update", "delete", "version", "rows", "delete_versions", "drop", "undrop", "resync"]:
        """In one word. Of a node: `create`, `update`, `delete`. Of a table: `version` (it got one), `rows` (written by
        key, without a version), `delete_versions`, `drop`, `undrop`. For a trigger also `resync`: what happened before
        cannot be told any more, so look at all of it."""
    @property
    def kind(self) -> str | None:
        """What made a table's new version: `create`, `write`, `append`, `update`, `delete`, `upsert` or `rows`."""
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
        """The trigger that is told; None in a change feed."""
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
    def events(self) -> list[Event]:
        """What happened, in order."""

@final
class ChangeFeed:
    """The commits since one, in order, those to come too: an iterator that waits for the next one."""

    @property
    def seq(self) -> int:
        """The last commit given; the next one is behind it."""
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

@final
class Schema:
    """The columns of a table or result: names and Arrow types."""

    def __new__(cls, schema: Any, /) -> Schema: ...
    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
    @property
    def types(self) -> list[str]:
        """The Arrow types of the columns, as text, in order."""
    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The schema's metadata."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Batch:
    """One batch of a result."""

    @property
    def num_rows(self) -> int:
        """Its rows."""
    @property
    def schema(self) -> Schema:
        """Its schema."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Batches:
    """All batches of a reading, in memory. It is a reading of itself too."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    def collect(self, columns: list[str] | None = None) -> Batches:
        """Those of `columns` that are there, if they are given."""
    def stream(self) -> Batches:
        """Itself."""
    def __iter__(self) -> Iterator[Batch]: ...
    @property
    def num_rows(self) -> int:
        """The rows of all batches."""
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Lookup:
    """What a look-up by key found."""

    @property
    def keys(self) -> Batches: ...
    @property
    def rows(self) -> Batches: ...
    @property
    def found(self) -> Mask: ...
    def __len__(self) -> int: ...

@final
class Mask:
    """A list of bools."""

    def to_pylist(self) -> list[bool]:
        """The bools as a list."""
    def count(self) -> int:
        """How many of them are true."""
    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> bool: ...
    def __iter__(self) -> Iterator[bool]: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Stream:
    """A scan under way: its batches come one by one, here or to whoever takes its Arrow stream."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Reading:
    """Certain columns and rows of one version of a table, not yet read."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    @property
    def seq(self) -> int:
        """The last commit that the reading sees."""
    @property
    def written_whole(self) -> bool:
        """Whether the version has just the rows that one write wrote."""
    def stream(self, columns: list[str] | None = None) -> Stream: ...
    def collect(self, columns: list[str] | None = None) -> Batches: ...

_List: TypeAlias = list
_Progress: TypeAlias = Callable[[int, int, int, int, float | None], object]
_When: TypeAlias = int | str | dt.datetime
_Only: TypeAlias = Literal["new", "there"]
_KeepWhile: TypeAlias = Mapping[str, _Condition] | Iterable[tuple[str, _Condition]]

@disjoint_base
class Transaction:
    """A transaction: any number of operations that happen together or not at all."""

    def __new__(cls, store: Store, read_only: bool) -> Self: ...
    @property
    def seq(self) -> int:
        """The number of the commit that it began with."""
    @property
    def ended(self) -> bool:
        """Whether it was committed or aborted."""
    @property
    def _store(self) -> Store: ...
    def commit(self) -> int:
        """Commits. Gives the commit's number; that of the newest one seen if there was nothing to commit. `Conflict` if
        others have touched meanwhile what it has read or written; then nothing was done."""
    def _end(self) -> None:
        """Ends it without a commit, if it has not ended."""
    def put(
        self,
        path: str,
        value: Any,
        *,
        only: _Only | None = None,
        when: _Condition | None = None,
        keep_while: _KeepWhile | None = None,
    ) -> Change:
        """As `Store.put`."""
    def create_node(self, path: str, value: Any) -> Change:
        """As `Store.create_node`."""
    def update_node(self, path: str, value: Any) -> Change:
        """As `Store.update_node`."""
    def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change:
        """As `Store.compare_and_swap`."""
    def put_many(self, payloads: Mapping[str, Any]) -> Changes:
        """As `Store.put_many`."""
    def update_many(self, pattern: _PatternLike, value: Any) -> Changes:
        """As `Store.update_many`."""
    def clear_payload(self, path: str, *, when: _Condition | None = None) -> Change:
        """As `Store.clear_payload`."""
    def clear_payloads(self, pattern: _PatternLike) -> Changes:
        """As `Store.clear_payloads`."""
    def delete(self, path: str, *, when: _Condition | None = None) -> Change:
        """As `Store.delete`."""
    def delete_many(self, pattern: _PatternLike) -> Changes:
        """As `Store.delete_many`."""
    def get(self, path: str, default: Any = None) -> Any:
        """As `Store.get`."""
    def node(self, path: str) -> Node | None:
        """As `Store.node`."""
    def exists(self, path: str) -> bool:
        """As `Store.exists`."""
    def has_payload(self, path: str) -> bool:
        """As `Store.has_payload`."""
    def get_many(self, pattern: _PatternLike) -> dict[str, Any]:
        """As `Store.get_many`."""
    def nodes(self, pattern: _PatternLike) -> dict[str, Node]:
        """As `Store.nodes`."""
    def count(self, pattern: _PatternLike) -> int:
        """As `Store.count`."""
    def _walk(self, pattern: _PatternLike) -> Walk: ...
    def projection(self, name: str) -> ProjectionView:
        """A projection, with the transaction's own writes in it."""
    def _create(self, path: str, schema: Any, sort: _List[str], key: _List[str]) -> None: ...
    def _write_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None,
        sort: _List[str] | None,
        progress: _Progress | None,
    ) -> None: ...
    def _append_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None,
        progress: _Progress | None,
    ) -> None: ...
    def _update(self, path: str, frame: Any, metadata: str | None, progress: _Progress | None) -> None: ...
    def _delete_rows(self, path: str, filter: str, metadata: str | None, progress: _Progress | None) -> int: ...
    def _upsert(self, path: str, rows: Any, metadata: str | None, progress: _Progress | None) -> int: ...
    def _insert(self, path: str, rows: Any, metadata: str | None, progress: _Progress | None) -> int: ...
    def _delete_keys(self, path: str, keys: Any, metadata: str | None, progress: _Progress | None) -> int: ...
    def _get_row(
        self,
        path: str,
        key: Any,
        as_of: _When | None,
        columns: _List[str] | None,
    ) -> dict[str, Any] | None: ...
    def _get_rows(self, path: str, keys: Any, as_of: _When | None, columns: _List[str] | None) -> Lookup: ...
    def _drop(self, paths: _List[str], missing_ok: bool) -> DropReport: ...
    def _delete_versions(self, versions: dict[str, _List[int]], missing_ok: bool) -> VersionsReport: ...
    def _read(
        self,
        path: str,
        as_of: _When | None,
        columns: _List[str] | None,
        filter: str | None,
        limit: int | None,
        tail: int | None,
        native: bool,
    ) -> Reading: ...

@final
class Store:
    """An open store."""

    @property
    def uri(self) -> str: ...
    def seq(self) -> int: ...
    def refresh(self) -> int: ...
    def close(self) -> None: ...
    def create(self, path: str, schema: Any, sort: _List[str], key: _List[str]) -> Version: ...
    def write_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None = None,
        sort: _List[str] | None = None,
        progress: _Progress | None = None,
        each: bool = False,
    ) -> _List[Any]: ...
    def append_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None = None,
        progress: _Progress | None = None,
        each: bool = False,
    ) -> _List[Any]: ...
    def update(
        self,
        path: str,
        frame: Any,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> Version: ...
    def delete_rows(
        self,
        path: str,
        filter: str,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> DeleteReport: ...
    def upsert(
        self,
        path: str,
        rows: Any,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> RowsReport: ...
    def insert(
        self,
        path: str,
        rows: Any,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> RowsReport: ...
    def delete_keys(
        self,
        path: str,
        keys: Any,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> RowsReport: ...
    def get_row(
        self,
        path: str,
        key: Any,
        as_of: _When | None = None,
        columns: _List[str] | None = None,
    ) -> dict[str, Any] | None: ...
    def get_rows(
        self,
        path: str,
        keys: Any,
        as_of: _When | None = None,
        columns: _List[str] | None = None,
    ) -> Lookup: ...
    def read_many(
        self,
        paths: _List[str],
        as_of: _When | None,
        columns: _List[str] | None,
        filter: str | None,
        limit: int | None,
        tail: int | None,
        native: bool,
        each: bool = False,
    ) -> _List[Any]: ...
    def schema(self, path: str, as_of: _When | None = None) -> Schema: ...
    def versions(self, path: str) -> _List[Version]: ...
    def delete_versions(self, versions: dict[str, _List[int]], missing_ok: bool) -> VersionsReport: ...
    def snapshot(self, name: str, pattern: str) -> Snapshot: ...
    def drop_snapshot(self, name: str) -> None: ...
    def snapshots(self) -> _List[Snapshot]: ...
    def set_retention(
        self,
        path: str,
        keep_last: int | None = None,
        keep_micros: int | None = None,
        keep_all: bool = False,
    ) -> None: ...
    def retention(self, path: str) -> tuple[int | None, int | None]:
        """`(keep_last, keep_micros)`; both are `None` if all versions are kept."""
    def drop(self, paths: _List[str], missing_ok: bool) -> DropReport: ...
    def drop_and_reclaim(
        self, paths: _List[str], missing_ok: bool, rest_micros: int | None, progress: _Progress | None = None
    ) -> tuple[DropReport, ReclaimReport]: ...
    def trash(self) -> _List[TrashItem]: ...
    def undrop(self, path: str, to: str | None = None) -> None: ...
    def put(
        self,
        path: str,
        value: Any,
        only: _Only | None,
        when: _Condition | None,
        keep_while: _KeepWhile | None,
    ) -> Change: ...
    def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change: ...
    def put_many(self, payloads: Mapping[str, Any]) -> Changes: ...
    def update_many(self, pattern: _PatternLike, value: Any) -> Changes: ...
    def clear_payload(self, path: str, when: _Condition | None) -> Change: ...
    def clear_payloads(self, pattern: _PatternLike) -> Changes: ...
    def delete(self, path: str, when: _Condition | None) -> Change: ...
    def delete_many(self, pattern: _PatternLike) -> Changes: ...
    def get(self, path: str, default: Any) -> Any: ...
    def node(self, path: str) -> Node | None: ...
    def exists(self, path: str) -> bool: ...
    def has_payload(self, path: str) -> bool: ...
    def get_many(self, pattern: _PatternLike) -> dict[str, Any]: ...
    def nodes(self, pattern: _PatternLike) -> dict[str, Node]: ...
    def walk(self, pattern: _PatternLike) -> Walk: ...
    def count(self, pattern: _PatternLike) -> int: ...
    def list(self, pattern: _PatternLike) -> _List[ListEntry]: ...
    def tables(self, pattern: _PatternLike) -> _List[str]: ...
    def put_projection(
        self,
        name: str,
        pattern: _PatternLike,
        key: _List[str],
        value: _List[str],
        bag: bool,
    ) -> None: ...
    def put_projection_fn(
        self,
        name: str,
        pattern: _PatternLike,
        function: Callable[[str, Any], tuple[Any, Any] | None],
        bag: bool,
    ) -> None:
        """`function` is called with a path and a payload and gives a key and a value, or `None`."""
    def drop_projection(self, name: str) -> None: ...
    def projection(self, name: str) -> ProjectionView: ...
    def projections(self) -> _List[str]: ...
    def on(
        self,
        pattern: _PatternLike,
        callback: Callable[[Event], object],
        actions: _List[str],
        priority: int,
        name: str | None = None,
    ) -> str:
        """With `name` a durable one; gives the name."""
    def off(self, name: str) -> None: ...
    def triggers(self) -> _List[str]: ...
    def wait_for_triggers(self, timeout: float | dt.timedelta | None = None) -> bool:
        """Whether they have been called within `timeout`."""
    def trigger_failures(self) -> _List[TriggerFailure]: ...
    def changes(self, since: int | None = None) -> ChangeFeed:
        """Without `since` from now on."""
    def export_nodes(self, pattern: _PatternLike, file: BinaryIO, progress: _Progress | None = None) -> int:
        """Gives how many nodes were written."""
    def import_nodes(
        self,
        file: BinaryIO,
        under: str | None = None,
        progress: _Progress | None = None,
    ) -> ImportReport: ...
    def vacuum_plan(self, dead_share_min: float | None = None, budget: float | None = None) -> _List[VacuumPlan]: ...
    def repack_plan(self, dead_share_min: float | None = None, budget: float | None = None) -> RepackPlan: ...
    def checkpoint(
        self,
        dead_share_min: float | None = None,
        budget: float | None = None,
        progress: _Progress | None = None,
    ) -> CheckpointReport: ...
    def reclaim(
        self,
        grace_micros: int,
        rest_micros: int | None,
        fence_idle_micros: int | None,
        audit: bool,
        progress: _Progress | None = None,
    ) -> ReclaimReport: ...
    def verify(self, deep: bool = False, progress: _Progress | None = None) -> VerifyReport: ...
    def stat(self) -> StoreStat: ...
    def table_stat(self, path: str) -> TableStat: ...
