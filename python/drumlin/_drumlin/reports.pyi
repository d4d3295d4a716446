"""What calls that write and maintain a store return, as the core defines it."""

import datetime as dt
from typing import Any, ClassVar, final

from drumlin._drumlin.jobs import Hold

__all__ = [
    "CheckpointReport",
    "CopyReport",
    "CopyToReport",
    "DropReport",
    "Fault",
    "Holding",
    "Index",
    "Layout",
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
    """A name for versions of tables, one of each, which stay readable until it is dropped."""

    @property
    def name(self) -> str:
        """The snapshot's name."""
    @property
    def time(self) -> dt.datetime:
        """When it was taken, in UTC."""
    @property
    def tables(self) -> int:
        """How many tables it held when it was taken."""
    @property
    def versions(self) -> dict[str, int]:
        """The version of each table that it holds, by path. They are looked up when this is first read."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class DropReport:
    """The result of a drop."""

    @property
    def paths(self) -> list[str]:
        """The dropped paths, in order."""
    @property
    def versions(self) -> int:
        """The number of dropped versions."""
    @property
    def bytes(self) -> int:
        """Bytes that a reclaim can free, unless other tables share their blocks or a snapshot holds them."""
    @property
    def missing(self) -> list[str]:
        """Paths and patterns that named no table, with `missing_ok`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CopyReport:
    """The result of a copy or a move."""

    @property
    def tables(self) -> dict[str, str]:
        """The new path of each table, by its old path."""
    @property
    def payloads(self) -> int:
        """The number of payloads copied or moved."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CopyToReport:
    """The result of copying tables to another store."""

    @property
    def tables(self) -> list[str]:
        """The copied tables, in path order."""
    @property
    def present(self) -> list[str]:
        """The tables that were there already."""
    @property
    def row_groups(self) -> int:
        """The number of copied row groups."""
    @property
    def bytes(self) -> int:
        """The bytes of these row groups."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VersionsReport:
    """The result of deleting versions."""

    @property
    def versions(self) -> dict[str, list[int]]:
        """The deleted versions, by path."""
    @property
    def missing(self) -> dict[str, list[int]]:
        """Versions that did not exist, by path, with `missing_ok`."""
    @property
    def bytes(self) -> int:
        """Bytes that a reclaim can free, unless other tables share their blocks."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TrashItem:
    """A dropped table that can be restored."""

    @property
    def path(self) -> str:
        """The path that it was dropped from."""
    @property
    def time(self) -> dt.datetime:
        """When it was dropped, in UTC."""
    @property
    def rows(self) -> int:
        """The number of rows in its newest version."""
    @property
    def bytes(self) -> int:
        """The bytes of its row groups."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CheckpointReport:
    """The result of a checkpoint."""

    @property
    def tables(self) -> int:
        """The number of tables with rewritten row groups."""
    @property
    def row_groups_before(self) -> int:
        """Row groups of all tables before the checkpoint."""
    @property
    def row_groups_after(self) -> int:
        """Row groups of all tables after the checkpoint."""
    @property
    def rows_removed(self) -> int:
        """Rows removed because no version needed them."""
    @property
    def row_groups_moved(self) -> int:
        """Row groups copied out of blocks that were mostly dead, or out of many small ones."""
    @property
    def bytes_written(self) -> int:
        """Bytes written."""
    @property
    def rows_flushed(self) -> int:
        """Rows written by key that were moved from memory to row groups."""
    @property
    def rows_expired(self) -> int:
        """Rows deleted because they had expired."""
    @property
    def versions_expired(self) -> int:
        """Versions removed by retention."""
    @property
    def windows_void(self) -> int:
        """Windows of row groups that were not rewritten, because others changed their row groups during the
        checkpoint."""
    @property
    def index_runs(self) -> int:
        """Sorted runs of indexes that were made."""
    @property
    def failures(self) -> list[str]:
        """Windows that could not be rewritten, and indexes that could not be filled, which were left as they are: the
        table and why."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Index:
    """An index of a table."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def columns(self) -> list[str]:
        """The columns and expressions that it is over."""
    @property
    def where(self) -> str | None:
        """It has only the rows for which this is true; None if it has all."""
    @property
    def unique(self) -> bool:
        """Whether rows that have the same values as another are refused."""
    @property
    def proven(self) -> bool:
        """Of a unique one, whether all rows were compared with each other. If not, the call that made it was stopped:
        drop it, or let rebuild_index compare them."""
    @property
    def suspended(self) -> bool:
        """Whether the newest version lacks one of its columns, so that it gets no new rows."""
    @property
    def runs(self) -> int:
        """Sorted runs of entries."""
    @property
    def entries(self) -> int:
        """Entries of all runs."""
    @property
    def bytes(self) -> int:
        """Their encoded bytes."""
    @property
    def covered_row_groups(self) -> int:
        """Row groups of the newest version that it covers; the others are scanned."""
    @property
    def row_groups(self) -> int:
        """Row groups of the newest version."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Holding:
    """Space that a reclaim did not free, by reason."""

    @property
    def trash_bytes(self) -> int:
        """Bytes of tables in the trash, within their grace period."""
    @property
    def pinned_bytes(self) -> int:
        """Bytes of blocks that readers in this process still use."""
    @property
    def fragment_bytes(self) -> int:
        """Unused bytes in blocks that have other parts in use; a checkpoint may repack them."""
    @property
    def history_bytes(self) -> int:
        """Bytes of row groups that only versions before the newest, or snapshots, need."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class StagedReport:
    """The result of a commit of staged rows."""

    @property
    def seq(self) -> int:
        """The number of the commit."""
    @property
    def job(self) -> str:
        """The job's name."""
    @property
    def versions(self) -> dict[str, int]:
        """The version that each table got, by path."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class ReclaimReport:
    """The result of a reclaim."""

    @property
    def tables(self) -> int:
        """Tables removed from the trash for good."""
    @property
    def blocks(self) -> int:
        """The number of deleted blocks."""
    @property
    def bytes(self) -> int:
        """The bytes of these blocks."""
    @property
    def orphans(self) -> int:
        """Deleted objects that nothing had ever referred to: left by crashes and failures."""
    @property
    def orphan_bytes(self) -> int:
        """The bytes of these objects."""
    @property
    def failures(self) -> list[tuple[str, str]]:
        """Objects that could not be deleted, with the error; the next reclaim tries again."""
    @property
    def holding(self) -> Holding:
        """Space that was not freed, by reason."""
    @property
    def holds(self) -> list[Hold]:
        """The leases and jobs for which data is kept."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Fault:
    """A fault that verify found."""

    @property
    def table(self) -> str:
        """The table's path, or a description if it has none."""
    @property
    def row_group(self) -> int:
        """The number of the row group."""
    @property
    def error(self) -> str:
        """What is wrong, with the name and offset of the object."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VerifyReport:
    """The result of verify."""

    @property
    def tables(self) -> int:
        """Tables checked, including those in the trash and those held only by snapshots."""
    @property
    def row_groups(self) -> int:
        """Row groups read and checked."""
    @property
    def bytes(self) -> int:
        """Bytes read and checked."""
    @property
    def faults(self) -> list[Fault]:
        """The faults found. Empty if the store is intact."""
    @property
    def orphans(self) -> list[tuple[str, int]]:
        """Objects that nothing refers to, with their sizes in bytes. They are harmless; a reclaim deletes them."""
    @property
    def ok(self) -> bool:
        """Whether no faults were found."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Loss:
    """Something that could not be salvaged."""

    @property
    def kind(self) -> str:
        """What was lost: "log", "commits", "catalog", "nodes", "table", "rows", "rows in memory", "snapshot" or
        "change"."""
    @property
    def path(self) -> str | None:
        """The table's path; for nodes, where they begin; for a snapshot, its name. None if it is unknown, or if there
        is none."""
    @property
    def until(self) -> str | None:
        """For nodes: the path after the last."""
    @property
    def commits(self) -> tuple[int, int] | None:
        """The numbers of the first and the last lost commit."""
    @property
    def row_group(self) -> int | None:
        """The number of the row group."""
    @property
    def versions(self) -> list[tuple[int, int, int]]:
        """For each version that has lost rows: its number, the first lost row in storage order, and the number of lost
        rows."""
    @property
    def why(self) -> str:
        """The reason, with the name and offset of the object if there is one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class SalvageReport:
    """The result of a salvage."""

    @property
    def seq(self) -> int:
        """The newest commit of the damaged store that is in the new one."""
    @property
    def tables(self) -> int:
        """Tables kept, including those in the trash and those held by snapshots."""
    @property
    def row_groups(self) -> int:
        """Row groups kept."""
    @property
    def bytes(self) -> int:
        """The bytes of these row groups."""
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
    """Figures of a store."""

    @property
    def seq(self) -> int:
        """The number of the newest commit."""
    @property
    def nodes(self) -> int:
        """Nodes of the tree."""
    @property
    def tables(self) -> int:
        """Tables in the tree."""
    @property
    def trash(self) -> int:
        """Dropped tables that can be restored."""
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
        """The bytes of these blocks."""
    @property
    def live_bytes(self) -> int:
        """The bytes of the row groups in use within them."""
    @property
    def inline_blocks(self) -> int:
        """Blocks in use that came with commits, are stored in the log or the catalog, and wait for a checkpoint."""
    @property
    def condemned(self) -> int:
        """Blocks that wait for a reclaim."""
    @property
    def condemned_bytes(self) -> int:
        """The bytes of these blocks."""
    @property
    def holds(self) -> int:
        """Leases, and jobs with staged rows, that have not ended."""
    @property
    def log_bytes(self) -> int:
        """Bytes of the log and catalog snapshots."""
    @property
    def bytes(self) -> int:
        """All bytes on storage, without orphans."""
    @property
    def memtable_bytes(self) -> int:
        """Memory in bytes for rows written by key that wait for a checkpoint."""
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
        """The limit of the cache in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Layout:
    """How the row groups of a table are laid out."""

    @property
    def sort_by(self) -> list[str]:
        """The columns by which they are sorted, one after the other."""
    @property
    def z_order(self) -> list[str]:
        """The columns by which they are sorted together."""
    @property
    def laid_out(self) -> int:
        """Row groups of the newest version that are laid out like that; checkpoints do the others."""
    @property
    def overlap(self) -> float:
        """
        How many others a row group overlaps in the first column, in the mean: 0 if each value is in one row group. In
        a Z-order the mean of all columns, which is never 0.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TableStat:
    """Figures of a table."""

    @property
    def rows(self) -> int:
        """Rows of the newest version, and rows written by key since."""
    @property
    def stored_rows(self) -> int:
        """Rows in storage, including deleted ones."""
    @property
    def versions(self) -> int:
        """Listed versions."""
    @property
    def row_groups(self) -> int:
        """Row groups."""
    @property
    def bytes(self) -> int:
        """The encoded bytes of these row groups, of rows kept for times between versions, and of indexes."""
    @property
    def indexes(self) -> int:
        """Indexes."""
    @property
    def index_bytes(self) -> int:
        """The encoded bytes of the indexes."""
    @property
    def columns(self) -> int:
        """Columns of the newest version."""
    @property
    def sort(self) -> list[str]:
        """The columns by which rows are ordered."""
    @property
    def key(self) -> list[str]:
        """The columns of the key, which are also the sort columns; empty if the table has no key."""
    @property
    def memory_keys(self) -> int:
        """Keys written or deleted that wait in memory for a checkpoint."""
    @property
    def memory_bytes(self) -> int:
        """Memory in bytes for these keys and their rows."""
    @property
    def layout(self) -> Layout | None:
        """By which columns row groups of the newest version are sorted, if the table has a layout, and how far."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Version:
    """One version of a table."""

    @property
    def version(self) -> int:
        """The version's number: 0, 1, 2 ..."""
    @property
    def seq(self) -> int:
        """The number of the commit that made it."""
    @property
    def time(self) -> dt.datetime:
        """When it was made, in UTC."""
    @property
    def kind(self) -> str:
        """What made it: `create`, `write`, `append`, `replace`, `update`, `merge`, `delete`, `upsert`, `alter`,
        `restore` or `rows` (rows written by key since the previous version)."""
    @property
    def rows(self) -> int:
        """The number of its rows."""
    @property
    def metadata(self) -> Any:
        """The metadata of the version; None if it has none."""
    @property
    def rows_added(self) -> int | None:
        """The number of rows that it added; a changed row counts as added and as removed. None if it includes rows
        written by key that have not been counted yet."""
    @property
    def rows_removed(self) -> int | None:
        """The number of rows that it removed, counted in the same way."""
    @property
    def message(self) -> str | None:
        """The message of its commit: see :meth:`Store.with_message`."""
    @property
    def writer(self) -> str | None:
        """Who wrote it: the ``writer`` that the store was opened with."""
    @property
    def duration(self) -> dt.timedelta | None:
        """How long the call that made it took, until its turn to commit; None for quick calls."""
    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots that hold it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
