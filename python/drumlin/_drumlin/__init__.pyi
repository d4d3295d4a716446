"""The core of Drumlin, as the package uses it."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Final, Literal, TypeAlias, final

from drumlin._drumlin.arrays import Batch, Batches, Mask, Schema, Stream
from drumlin._drumlin.jobs import (
    Dataset,
    Hold,
    Join,
    Lease,
    Split,
    SplitReader,
    Stage,
    Ticket,
    Token,
    abort_staged,
    commit_staged,
    stage_alone,
)
from drumlin._drumlin.nodes import (
    Change,
    ChangeFeed,
    Changes,
    Commit,
    Condition,
    Event,
    ImportReport,
    ListEntry,
    Node,
    NodeChange,
    NodeChanges,
    Pattern,
    ProjectionEntry,
    ProjectionView,
    TriggerFailure,
    Walk,
)
from drumlin._drumlin.plans import DatasetPlan, RepackPlan, TableVacuumPlan, VacuumPlan, VacuumWindow
from drumlin._drumlin.presence import Presence, PresenceInfo, begin_presence, presences
from drumlin._drumlin.purge import PurgedObject, PurgedTable, PurgePlan, PurgeProof, PurgeReceipt
from drumlin._drumlin.replica import (
    CloneReport,
    PromoteReport,
    ReplicateReport,
    clone,
    promote,
    replicate_at,
    replicate_open,
)
from drumlin._drumlin.reports import (
    CheckpointReport,
    CopyReport,
    CopyToReport,
    DropReport,
    Fault,
    Holding,
    Index,
    Layout,
    Loss,
    ReclaimReport,
    SalvageReport,
    Snapshot,
    StagedReport,
    StoreStat,
    TableStat,
    TrashItem,
    VerifyReport,
    Version,
    VersionsReport,
)
from drumlin._drumlin.rows import (
    DeleteReport,
    Follower,
    Lookup,
    MergeReport,
    RowChanges,
    RowFeed,
    RowsReport,
    UpdateReport,
    drop_follower,
    follow,
    followers,
    off_rows,
    on_rows,
)
from drumlin._drumlin.ui import Ui
from drumlin._drumlin.views import View, catch_up, create_view, view_of, views
from drumlin._drumlin.watch import make_bars, stoppable
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
    "CopyReport",
    "CopyToReport",
    "Dataset",
    "DatasetPlan",
    "DeleteReport",
    "DropReport",
    "Event",
    "Fault",
    "Follower",
    "Hold",
    "Holding",
    "ImportReport",
    "Index",
    "Join",
    "Layout",
    "Lease",
    "ListEntry",
    "Lookup",
    "Loss",
    "Mask",
    "MergeReport",
    "Node",
    "NodeChange",
    "NodeChanges",
    "Pattern",
    "Presence",
    "PresenceInfo",
    "ProjectionEntry",
    "ProjectionView",
    "PurgePlan",
    "PurgeProof",
    "PurgeReceipt",
    "PurgedObject",
    "PurgedTable",
    "Reading",
    "ReclaimReport",
    "RepackPlan",
    "RowChanges",
    "RowFeed",
    "RowsReport",
    "SalvageReport",
    "Schema",
    "Snapshot",
    "Split",
    "SplitReader",
    "Stage",
    "StagedReport",
    "Store",
    "StoreStat",
    "Stream",
    "Table",
    "TableStat",
    "TableVacuumPlan",
    "Tables",
    "Ticket",
    "Token",
    "Transaction",
    "TrashItem",
    "Tree",
    "TriggerFailure",
    "Ui",
    "UpdateReport",
    "VacuumPlan",
    "VacuumWindow",
    "VerifyReport",
    "Version",
    "VersionsReport",
    "View",
    "Walk",
    "__version__",
    "abort_staged",
    "begin_presence",
    "catch_up",
    "collect_many",
    "commit_staged",
    "create_view",
    "drop_follower",
    "expression_parts",
    "follow",
    "followers",
    "main",
    "make_bars",
    "off_rows",
    "on_rows",
    "open",
    "parse_statement",
    "presences",
    "print_rows",
    "salvage",
    "set_layout",
    "stage_alone",
    "stoppable",
    "move_log",
    "turn_shared",
    "view_of",
    "views",
    "CloneReport",
    "PromoteReport",
    "ReplicateReport",
    "clone",
    "promote",
    "replicate_at",
    "replicate_open",
]

__version__: Final[str]

def collect_many(
    readings: _List[tuple[Reading, _List[str] | None, bool]], make: Callable[[int, _List[Any]], Any]
) -> _List[Any]:
    """All rows of readings, each with its given columns, if any. A reading becomes [`Batches`] or, if arrays are wanted
    and can represent all values, the result of `make`. That is called while others are being decoded, with the
    reading's position and a list of triples: an array with one row for each column of a type, that type, and the
    positions of these columns."""

def expression_parts(serialised: bytes) -> _List[tuple[str, str]]:
    """The parts of a pyarrow expression in order, from its serialised form: an Arrow file with the parts in the
    metadata of its schema, of which pyarrow itself shows each key only once."""

def open(uri: str, mode: str, settings: dict[str, Any]) -> Store: ...
def salvage(uri: str, new: str, settings: dict[str, Any], progress: _Progress | None = None) -> SalvageReport: ...
def move_log(uri: str, to: str | None, settings: dict[str, Any]) -> None: ...
def turn_shared(uri: str, shared: bool, progress: _Progress | None = None) -> None: ...
def main(args: list[str]) -> int: ...
def print_rows(rows: Any, form: str, most: int, hint: str) -> int: ...
def set_layout(table: Table, sort_by: _List[str] | None, z_order: _List[str] | None) -> None: ...
def parse_statement(text: str) -> str:
    """What a statement of SQL is to do, as JSON."""

@final
class Reading:
    """Certain columns and rows of one version of a table, not yet read."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    @property
    def seq(self) -> int:
        """The number of the newest commit that the reading sees."""
    @property
    def version(self) -> tuple[int, str | None] | None:
        """The number of its version and the version's metadata as JSON text; None if its transaction made the
        version."""
    @property
    def known_rows(self) -> int | None:
        """The number of its rows if it is known without reading: without a filter, and if no rows are in memory."""
    def count_rows(self) -> int:
        """The number of its rows."""
    def head(self, rows: int, columns: list[str] | None = None) -> Batches | None:
        """At most `rows` of the first rows, in `columns` if given. None if more would have to be read: the last rows
        that a filter keeps are found from the end."""
    def narrowed(
        self,
        columns: list[str] | None = None,
        filter: str | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> Reading:
        """The same with fewer columns or rows: those that a filter keeps, and of these the first or the last."""
    @property
    def written_whole(self) -> bool:
        """Whether the version has exactly the rows of one write."""
    def stream(self, columns: list[str] | None = None) -> Stream: ...
    def collect(self, columns: list[str] | None = None) -> Batches: ...

_List: TypeAlias = list
_Pairs: TypeAlias = list[tuple[str, str]]
_Clauses: TypeAlias = list[tuple[str | None, str, _Pairs]]
_Progress: TypeAlias = Callable[[int, int, int, int, float | None], object]
_Metric: TypeAlias = tuple[str, tuple[str, str] | None, str, str, int | tuple[_List[tuple[float, int]], int, float]]
_When: TypeAlias = int | str | dt.datetime
_PutMode: TypeAlias = Literal["create", "update"]
_KeepWhile: TypeAlias = Mapping[str, _Condition] | Iterable[tuple[str, _Condition]]

@final
class Tree:
    """The nodes of the tree."""

    def store(self) -> Store: ...
    def put(
        self,
        path: str,
        value: Any,
        *,
        mode: _PutMode | None = None,
        when: _Condition | None = None,
        keep_while: _KeepWhile | None = None,
        presence: int | None = None,
        ttl_micros: int | None = None,
    ) -> Change: ...
    def create(self, path: str, value: Any) -> Change: ...
    def update(self, path: str, value: Any) -> Change: ...
    def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change: ...
    def put_many(self, payloads: Mapping[str, Any]) -> Changes: ...
    def update_many(self, pattern: _PatternLike, value: Any) -> Changes: ...
    def clear_payload(self, path: str, *, when: _Condition | None = None) -> Change: ...
    def clear_payloads(self, pattern: _PatternLike) -> Changes: ...
    def delete(self, path: str, *, when: _Condition | None = None) -> Change: ...
    def delete_many(self, pattern: _PatternLike) -> Changes: ...
    def get(self, path: str, default: Any = None) -> Any: ...
    def node(self, path: str) -> Node | None: ...
    def exists(self, path: str) -> bool: ...
    def has_payload(self, path: str) -> bool: ...
    def get_many(self, pattern: _PatternLike) -> dict[str, Any]: ...
    def nodes(self, pattern: _PatternLike) -> dict[str, Node]: ...
    def walk(self, pattern: _PatternLike) -> Walk: ...
    def count(self, pattern: _PatternLike) -> int: ...
    def list(self, pattern: _PatternLike) -> _List[ListEntry]: ...
    def put_projection(
        self, name: str, pattern: _PatternLike, key: _List[str], value: _List[str], bag: bool
    ) -> None: ...
    def put_projection_fn(
        self, name: str, pattern: _PatternLike, function: Callable[[str, Any], tuple[Any, Any] | None], bag: bool
    ) -> None: ...
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
    ) -> str: ...
    def off(self, name: str) -> None: ...
    def triggers(self) -> _List[str]: ...
    def wait_for_triggers(self, timeout: float | dt.timedelta | None = None) -> bool: ...
    def trigger_failures(self) -> _List[TriggerFailure]: ...
    def export(self, pattern: _PatternLike, file: BinaryIO, progress: _Progress | None = None) -> int: ...
    def import_(self, file: BinaryIO, under: str | None = None, progress: _Progress | None = None) -> ImportReport: ...

@final
class Table:
    """The table at a path."""

    def store(self) -> Store: ...
    @property
    def path(self) -> str: ...
    def exists(self) -> bool: ...
    def create(
        self, schema: Any, sort: _List[str], key: _List[str], compression: str | None = None
    ) -> Version | None: ...
    def write(
        self,
        frame: Any,
        metadata: str | None = None,
        sort: _List[str] | None = None,
        compression: str | None = None,
        progress: _Progress | None = None,
    ) -> Version | None: ...
    def append(
        self, frame: Any, metadata: str | None = None, evolve: bool = False, progress: _Progress | None = None
    ) -> Version | None: ...
    def replace(
        self,
        frame: Any,
        filter: str | None = None,
        metadata: str | None = None,
        evolve: bool = False,
        progress: _Progress | None = None,
    ) -> Version | None: ...
    def update(
        self, set: _Pairs, filter: str | None, metadata: str | None = None, progress: _Progress | None = None
    ) -> UpdateReport: ...
    def merge(
        self,
        source: Any,
        on: _List[str],
        matched: _Clauses,
        not_matched: _Clauses,
        by_source: _Clauses,
        nulls_equal: bool = False,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> MergeReport: ...
    def delete(self, filter: str, metadata: str | None = None, progress: _Progress | None = None) -> DeleteReport: ...
    def upsert(
        self,
        rows: Any,
        metadata: str | None = None,
        evolve: bool = False,
        progress: _Progress | None = None,
        returning: _List[str] | None = None,
    ) -> RowsReport: ...
    def insert(
        self,
        rows: Any,
        metadata: str | None = None,
        evolve: bool = False,
        progress: _Progress | None = None,
        returning: _List[str] | None = None,
    ) -> RowsReport: ...
    def write_parts(
        self,
        parts: list[Any],
        insert: bool = False,
        metadata: str | None = None,
        evolve: bool = False,
        progress: _Progress | None = None,
        returning: _List[str] | None = None,
    ) -> RowsReport: ...
    def increment(self, rows: Any, metadata: str | None = None, returning: _List[str] | None = None) -> RowsReport: ...
    def compare_and_set(
        self, expected: Any, rows: Any, metadata: str | None = None, returning: _List[str] | None = None
    ) -> RowsReport: ...
    def add_columns(
        self,
        columns: Any,
        defaults: dict[str, Any] | None = None,
        computed: _Pairs | None = None,
        metadata: str | None = None,
        progress: _Progress | None = None,
    ) -> Version | None: ...
    def join_columns(self, rows: Any, on: _List[str], metadata: str | None, progress: Any) -> Version | None: ...
    def map_columns(
        self, columns: Any, function: Any, read: _List[str] | None, metadata: str | None, progress: Any
    ) -> Version | None: ...
    def drop_columns(self, columns: _List[str], metadata: str | None = None) -> Version | None: ...
    def rename_columns(self, names: _Pairs, metadata: str | None = None) -> Version | None: ...
    def widen(self, types: Any, metadata: str | None = None) -> Version | None: ...
    def delete_keys(
        self,
        keys: Any,
        metadata: str | None = None,
        progress: _Progress | None = None,
        returning: _List[str] | None = None,
    ) -> RowsReport: ...
    def get(
        self, key: Any, as_of: _When | None = None, columns: _List[str] | None = None, on: _List[str] | None = None
    ) -> dict[str, Any] | None: ...
    def get_many(
        self, keys: Any, as_of: _When | None = None, columns: _List[str] | None = None, on: _List[str] | None = None
    ) -> Lookup: ...
    def read(
        self,
        as_of: _When | None,
        columns: _List[str] | None,
        filter: str | None,
        offset: int,
        limit: int | None,
        tail: int | None,
        native: bool,
    ) -> Reading: ...
    def schema(self, as_of: _When | None = None) -> Schema: ...
    def add_constraints(
        self, checks: _Pairs, not_null: _List[str], defaults: dict[str, Any] | None, made: _Pairs, metadata: str | None
    ) -> Version | None: ...
    def drop_constraints(
        self, checks: _List[str], not_null: _List[str], defaults: _List[str], metadata: str | None
    ) -> Version | None: ...
    def constraints(self, as_of: _When | None) -> tuple[_Pairs, _List[str], dict[str, Any], _Pairs]: ...
    def set_ttl(self, column: str, after: int, metadata: str | None = None) -> Version | None: ...
    def drop_ttl(self, metadata: str | None = None) -> Version | None: ...
    def ttl(self, as_of: _When | None) -> tuple[str, int] | None: ...
    def create_index(
        self,
        name: str,
        columns: _List[str],
        condition: str | None,
        flags: tuple[bool, bool],
        progress: _Progress | None,
    ) -> None: ...
    def drop_index(self, name: str) -> None: ...
    def rebuild_index(self, name: str, progress: _Progress | None) -> None: ...
    def indexes(self) -> _List[Index]: ...
    def order(self) -> tuple[_List[str], _List[str]]: ...
    def diff(self, since: _When, until: _When | None, columns: _List[str] | None, each_version: bool) -> Stream: ...
    def versions(self) -> _List[Version]: ...
    def set_metadata(self, metadata: str | None, as_of: _When | None = None) -> None: ...
    def stat(self) -> TableStat: ...
    def drop(self, missing_ok: bool) -> DropReport: ...

@final
class Tables:
    """The tables of a store, or of a transaction."""

    def tree(self) -> Tree: ...
    def table(self, path: str) -> Table: ...
    def tables(self, pattern: _PatternLike) -> _List[str]: ...
    def write_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None,
        kept: tuple[_List[str] | None, str | None],
        progress: _Progress | None = None,
        each: bool = False,
    ) -> _List[Any]: ...
    def append_many(
        self,
        frames: _List[tuple[str, Any]],
        metadata: str | None = None,
        evolve: bool = False,
        progress: _Progress | None = None,
        each: bool = False,
    ) -> _List[Any]: ...
    def read_many(
        self,
        paths: _List[str],
        as_of: _When | None,
        columns: _List[str] | None,
        filter: str | None,
        offset: int,
        limit: int | None,
        tail: int | None,
        native: bool,
        each: bool = False,
    ) -> _List[Any]: ...
    def scan(self, pattern: _PatternLike, as_of: _When | None, path_columns: _List[str]) -> Dataset: ...
    def history(self, pattern: _PatternLike, limit: int | None = None) -> _List[tuple[str, Version]]: ...
    def restore(self, pattern: _PatternLike, as_of: _When) -> _List[str]: ...
    def copy(self, from_: str, to: str, as_of: _When | None, replace: bool) -> CopyReport: ...
    def relocate(self, from_: str, to: str, replace: bool) -> CopyReport: ...
    def drop(self, paths: _List[str], missing_ok: bool) -> DropReport: ...
    def delete_versions(self, versions: dict[str, _List[int]], missing_ok: bool) -> VersionsReport: ...

@final
class Transaction:
    """A transaction: any number of operations that happen together or not at all."""

    def tables(self) -> Tables: ...
    @property
    def seq(self) -> int: ...
    @property
    def state(self) -> Literal["open", "committed", "aborted"]: ...
    @property
    def ended(self) -> bool: ...
    def commit(self) -> int: ...
    def commit_or_again(self) -> Transaction | None:
        """The transaction in which all is to be done again; ``None`` once it is committed."""

    def abort(self) -> None: ...

@final
class Store:
    """An open store."""

    def tables(self) -> Tables: ...
    def dataset(self, described: bytes) -> Dataset: ...
    def storage_options(self) -> dict[str, str]: ...
    def with_message(self, message: str) -> Tables: ...
    def transaction(self, read_only: bool, message: str | None = None) -> Transaction: ...
    @property
    def uri(self) -> str: ...
    def seq(self) -> int: ...
    def refresh(self) -> int: ...
    def close(self) -> None: ...
    def ui(self, port: int, write: bool, open_browser: bool) -> Ui: ...
    def snapshot(
        self, name: str, pattern: str, versions: _List[tuple[str, int]] | None = None, including: str | None = None
    ) -> Snapshot: ...
    def drop_snapshot(self, name: str) -> None: ...
    def snapshots(self) -> _List[Snapshot]: ...
    def set_retention(
        self, path: str, keep_last: int | None = None, keep_micros: int | None = None, keep_all: bool = False
    ) -> None: ...
    def retention(self, path: str) -> tuple[int | None, int | None]:
        """`(keep_last, keep_micros)`; both are `None` if all versions are kept."""
    def drop_and_reclaim(
        self, paths: _List[str], missing_ok: bool, block_grace_micros: int | None, progress: _Progress | None = None
    ) -> tuple[DropReport, ReclaimReport]: ...
    def trash(self) -> _List[TrashItem]: ...
    def undrop(self, path: str, to: str | None = None) -> None: ...
    def changes(self, since: int | None = None) -> ChangeFeed:
        """The commits after `since`; without it, those from now on."""
    def copy_to(
        self,
        other: Store,
        pattern: _PatternLike,
        newest_only: bool,
        replace: bool,
        message: str | None,
        progress: _Progress | None,
    ) -> CopyToReport: ...
    def vacuum_plan(self, dead_share_min: float | None = None, budget: float | None = None) -> VacuumPlan: ...
    def checkpoint(
        self,
        dead_share_min: float | None = None,
        budget: float | None = None,
        index_rows_min: int | None = None,
        progress: _Progress | None = None,
    ) -> CheckpointReport: ...
    def reclaim(
        self,
        grace_micros: int,
        block_grace_micros: int | None,
        fence_idle_micros: int | None,
        audit: bool,
        progress: _Progress | None = None,
    ) -> ReclaimReport: ...
    def purge_plan(self, pattern: str, filter: str, progress: _Progress | None = None) -> PurgePlan: ...
    def purge(self, pattern: str, filter: str, progress: _Progress | None = None) -> PurgeReceipt: ...
    def verify(self, deep: bool = True, progress: _Progress | None = None) -> VerifyReport: ...
    def stat(self) -> StoreStat: ...
    def metrics(self) -> tuple[_List[_Metric], str]: ...
