"""What calls that write and maintain a store answer, as the core gives it."""

import datetime as dt
from typing import Any, ClassVar, final

__all__ = [
    "CheckpointReport",
    "CopyReport",
    "CopyToReport",
    "DropReport",
    "Fault",
    "Hold",
    "Holding",
    "Loss",
    "ReclaimReport",
    "SalvageReport",
    "Snapshot",
    "StagedReport",
    "StoreStat",
    "TableStat",
    "TrashItem",
    "VerifyReport",
    "Version",
    "VersionsReport",
]

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
class CopyReport:
    """What a copy or a move did."""

    @property
    def tables(self) -> dict[str, str]:
        """The new path of each table, by the old one."""
    @property
    def payloads(self) -> int:
        """The number of payloads copied or moved."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CopyToReport:
    """What copying tables to another store did."""

    @property
    def tables(self) -> list[str]:
        """The tables that were copied, in path order."""
    @property
    def present(self) -> list[str]:
        """Those that were there already."""
    @property
    def row_groups(self) -> int:
        """Row groups copied."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
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
        """Windows that were void: others changed their row groups in between."""
    @property
    def failures(self) -> list[str]:
        """Windows that could not be rewritten and were left as they are: the table and why."""
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
class Hold:
    """What is kept for other processes: a lease, or what is staged for a job."""

    @property
    def number(self) -> int:
        """Its number, which names its folder of blocks."""
    @property
    def job(self) -> str | None:
        """The job that it is staged for; None for a lease."""
    @property
    def beat(self) -> dt.datetime:
        """When its owner was last heard of."""
    @property
    def life(self) -> dt.timedelta:
        """How long it lives without that."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class StagedReport:
    """What a commit of staged rows did."""

    @property
    def seq(self) -> int:
        """The commit."""
    @property
    def job(self) -> str:
        """The job's name."""
    @property
    def versions(self) -> dict[str, int]:
        """The version that each table got."""
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
    @property
    def holds(self) -> list[Hold]:
        """What is kept for other processes."""
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
        """Of nodes: the path after the last."""
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
    def holds(self) -> int:
        """Leases, and jobs with staged rows, that have not ended."""
    @property
    def log_bytes(self) -> int:
        """Bytes of the log and catalog snapshots."""
    @property
    def bytes(self) -> int:
        """Bytes on storage in all, except orphans."""
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
        """What made it: `create`, `write`, `append`, `replace`, `update`, `merge`, `delete`, `upsert`, `alter`,
        `restore` or `rows` (those written by key since the one before)."""
    @property
    def rows(self) -> int:
        """Its rows."""
    @property
    def metadata(self) -> Any:
        """What its writer noted."""
    @property
    def rows_added(self) -> int | None:
        """The rows that it added; one that it changed counts as added and as removed. None where rows written by key
        were in memory and nobody has counted them yet."""
    @property
    def rows_removed(self) -> int | None:
        """The rows that it removed, counted likewise."""
    @property
    def message(self) -> str | None:
        """What its writer said: see :meth:`Store.with_message`."""
    @property
    def writer(self) -> str | None:
        """Who wrote it, by the name that the store was opened with."""
    @property
    def duration(self) -> dt.timedelta | None:
        """How long the call took that made it, until it was its turn to commit; None of quick calls."""
    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots that hold it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
