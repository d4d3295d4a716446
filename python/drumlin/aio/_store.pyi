"""Stores, transactions and feeds, awaited.

Written by aio_stubs.py."""

import datetime as dt
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, NoReturn, Self, TypeVar, overload

import duckdb as _duckdb  # type: ignore[import-not-found, import-untyped, unused-ignore]

from drumlin import (
    CheckpointReport,
    Commit,
    CopyReport,
    CopyToReport,
    DropReport,
    Expr,
    Metrics,
    PurgePlan,
    PurgeReceipt,
    ReclaimReport,
    Retention,
    SalvageReport,
    Snapshot,
    StagedReport,
    StoreStat,
    Token,
    TrashItem,
    Ui,
    VacuumPlan,
    VerifyReport,
    Version,
    VersionsReport,
)
from drumlin._arguments.checks import AsOf, Compression, Progress, SchemaMode
from drumlin._arguments.frames import FrameLike, SchemaLike
from drumlin.aio._handles import Block, Handle
from drumlin.aio._rows import Dataset, Diff, Result, Results
from drumlin.aio._table import Table, Tree
from drumlin.tree import PatternLike

__all__ = ["ChangeFeed", "Store", "Tables", "Ticket", "Transaction", "open", "salvage"]

_V = TypeVar("_V")

_T = TypeVar("_T")

class Tables(Handle, Generic[_V]):
    """See :meth:`drumlin.Store.with_message`."""
    async def append(
        self,
        path: str,
        data: FrameLike | Result | Dataset | Diff,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...
    @overload
    async def append_many(
        self,
        frames: Mapping[str, FrameLike | Result | Dataset | Diff],
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V]: ...
    @overload
    async def append_many(
        self,
        frames: Mapping[str, FrameLike | Result | Dataset | Diff],
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V | Exception]: ...
    async def copy(self, src: str, dst: str, *, as_of: AsOf | None = None, replace: bool = False) -> CopyReport: ...
    async def delete_versions(
        self, versions: Mapping[str, Iterable[int]], *, missing_ok: bool = False
    ) -> VersionsReport: ...
    async def drop(self, paths: PatternLike | Iterable[PatternLike], *, missing_ok: bool = False) -> DropReport: ...
    async def history(self, pattern: PatternLike = "**", *, limit: int | None = None) -> list[tuple[str, Version]]: ...
    async def move(self, src: str, dst: str, *, replace: bool = False) -> CopyReport: ...
    def read(
        self,
        path: PatternLike,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
    ) -> Result | Dataset: ...
    @overload
    def read_many(
        self,
        paths: Iterable[str],
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> Results: ...
    @overload
    def read_many(
        self,
        paths: Iterable[str],
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
        return_exceptions: bool,
    ) -> Results: ...
    async def replace(
        self,
        path: str,
        data: FrameLike | Result | Dataset | Diff,
        *,
        where: str | Expr | None = None,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...
    async def restore(self, pattern: PatternLike, as_of: AsOf) -> list[str]: ...
    def scan(
        self,
        pattern: PatternLike,
        *,
        path_columns: Iterable[str] | None = None,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
    ) -> Dataset: ...
    async def sql(
        self, query: str, *, as_of: AsOf | None = None, parameters: Any = None
    ) -> _duckdb.DuckDBPyRelation: ...
    def table(self, path: str) -> Table[_V]: ...
    async def tables(self, pattern: PatternLike = "**") -> list[str]: ...
    @property
    def tree(self) -> Tree: ...
    async def write(
        self,
        path: str,
        data: FrameLike | Result | Dataset | Diff,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...
    @overload
    async def write_many(
        self,
        frames: Mapping[str, FrameLike | Result | Dataset | Diff],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V]: ...
    @overload
    async def write_many(
        self,
        frames: Mapping[str, FrameLike | Result | Dataset | Diff],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V | Exception]: ...

class Transaction(Tables[None], Block):
    """See :class:`drumlin.Transaction`: ``async with store.transaction() as tx``."""
    async def abort(self, value: Any = None) -> NoReturn: ...
    async def commit(self) -> int: ...
    @property
    def ended(self) -> Awaitable[bool]: ...
    @property
    def seq(self) -> Awaitable[int]: ...

class Ticket(Block):
    """See :class:`drumlin.Ticket`: ``async with store.ticket(...) as ticket``."""
    @property
    def job(self) -> Awaitable[str]: ...
    @property
    def paths(self) -> Awaitable[list[str]]: ...
    async def stage(
        self,
        path: str,
        data: FrameLike | Result | Dataset | Diff,
        *,
        part: tuple[int, int] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Token: ...

class ChangeFeed(Handle, AsyncIterator[Commit]):
    """See :class:`drumlin.ChangeFeed`: ``async for commit in await store.changes()``. It begins when it is awaited."""
    async def __anext__(self) -> Commit: ...
    def __aiter__(self) -> Self: ...
    async def next(self, timeout: float | dt.timedelta | None = None) -> Commit | None: ...
    @property
    def seq(self) -> Awaitable[int]: ...

class Store(Tables[Version], Block):
    """See :class:`drumlin.Store`: ``async with drumlin.aio.open(uri) as store``."""
    async def abort(self, staged: Ticket | Iterable[Token]) -> bool: ...
    def changes(self, since: int | None = None) -> ChangeFeed: ...
    async def checkpoint(
        self, *, dead_share_min: float | None = None, budget: float | None = None, progress: Progress | None = None
    ) -> CheckpointReport: ...
    async def close(self) -> None: ...
    async def commit(
        self,
        tokens: Iterable[Token],
        *,
        ticket: Ticket | None = None,
        job: str | None = None,
        expected_version: int | Mapping[str, int] | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> StagedReport: ...
    async def copy_to(
        self,
        other: Store,
        pattern: PatternLike = "**",
        *,
        versions: Literal["all", "newest"] = "all",
        replace: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> CopyToReport: ...
    async def drop_and_reclaim(
        self,
        paths: PatternLike | Iterable[PatternLike],
        *,
        missing_ok: bool = False,
        block_grace: dt.timedelta | None = None,
        progress: Progress | None = None,
    ) -> tuple[DropReport, ReclaimReport]: ...
    async def drop_snapshot(self, name: str) -> None: ...
    async def metrics(self) -> Metrics: ...
    @overload
    async def purge(
        self, pattern: str, where: str | Expr, *, explain: Literal[False] = False, progress: Progress | None = None
    ) -> PurgeReceipt: ...
    @overload
    async def purge(
        self, pattern: str, where: str | Expr, *, explain: Literal[True], progress: Progress | None = None
    ) -> PurgePlan: ...
    async def reclaim(
        self,
        *,
        grace: dt.timedelta = ...,
        block_grace: dt.timedelta | None = None,
        fence_idle: dt.timedelta | None = None,
        audit: bool = False,
        progress: Progress | None = None,
    ) -> ReclaimReport: ...
    async def refresh(self) -> int: ...
    async def retention(self, path: str) -> Retention: ...
    @property
    def seq(self) -> Awaitable[int]: ...
    async def set_retention(
        self,
        path: str,
        *,
        keep_last: int | None = None,
        keep_for: dt.timedelta | None = None,
        keep_all: bool = False,
        inherit: bool = False,
    ) -> None: ...
    async def snapshot(
        self,
        name: str,
        pattern: PatternLike = "**",
        *,
        versions: Mapping[str, int] | None = None,
        including: str | None = None,
    ) -> Snapshot: ...
    async def snapshots(self) -> list[Snapshot]: ...
    async def stage(
        self,
        path: str,
        data: FrameLike | Result | Dataset | Diff,
        *,
        mode: Literal["append", "overwrite", "upsert"] = "append",
        part: tuple[int, int] | None = None,
        progress: Progress | None = None,
    ) -> Token: ...
    async def stat(self) -> StoreStat: ...
    def ticket(
        self,
        tables: Mapping[str, SchemaLike | None] | Iterable[str],
        *,
        mode: Literal["append", "overwrite", "upsert"] = "append",
        job: str | None = None,
        sort: Iterable[str] = (),
        life: dt.timedelta | None = None,
        work: dt.timedelta | None = None,
    ) -> Ticket: ...
    async def transact(self, function: Callable[[Transaction], Awaitable[_T]], *, message: str | None = None) -> _T: ...
    def transaction(self, *, read_only: bool = False, message: str | None = None) -> Transaction: ...
    async def trash(self) -> list[TrashItem]: ...
    async def ui(self, *, port: int = 0, write: bool = False, open_browser: bool = True) -> Ui: ...
    async def undrop(self, path: str, *, to: str | None = None) -> None: ...
    @property
    def uri(self) -> Awaitable[str]: ...
    async def vacuum_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> VacuumPlan: ...
    async def verify(self, *, deep: bool = True, progress: Progress | None = None) -> VerifyReport: ...
    def with_message(self, message: str) -> Tables[Version]: ...

def open(
    uri: str | os.PathLike[str],
    *,
    mode: Literal["create", "write", "read"] = "create",
    memory_bytes: int | None = None,
    cache_bytes: int | None = None,
    cpu_threads: int | None = None,
    checkpoint_log_bytes: int | None = None,
    inline_bytes: int | None = None,
    memtable_bytes: int | None = None,
    row_write_bytes: int | None = None,
    sync: Literal["commit", "interval"] = "commit",
    sync_interval: dt.timedelta = ...,
    shared: bool = False,
    fresh: bool = False,
    storage_options: Mapping[str, str] | None = None,
    io_threads: int | None = None,
    block_grace: dt.timedelta | None = None,
    accept_loss: bool = False,
    verify_rewrites: bool = True,
    retry_for: dt.timedelta | None = None,
    compression: Compression | None = None,
    writer: str | None = None,
) -> Store: ...
async def salvage(
    store: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    shared: bool = False,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> SalvageReport: ...
