"""Tables, the nodes of the tree, and merges, awaited.

Written by aio_stubs.py."""

import datetime as dt
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, BinaryIO, Generic, Literal, Self, TypeAlias, TypeVar

from drumlin import (
    Change,
    Changes,
    Constraints,
    DeleteReport,
    DropReport,
    Event,
    Expr,
    ImportReport,
    ListEntry,
    MergeReport,
    Node,
    ProjectionEntry,
    RowsReport,
    Schema,
    TableStat,
    TriggerFailure,
    UpdateReport,
    Version,
)
from drumlin._arguments.applied import ColumnFunction
from drumlin._arguments.checks import AsOf, Compression, Progress, SchemaMode
from drumlin._arguments.frames import FrameLike, SchemaLike
from drumlin._arguments.rows import KeysLike, RowsLike
from drumlin._nouns.merge import Values
from drumlin._nouns.tree import KeepWhile
from drumlin.aio._handles import Handle
from drumlin.aio._rows import Dataset, Diff, Groups, Lookup, Result
from drumlin.tree import Condition, PatternLike

__all__ = ["Merge", "ProjectionView", "Table", "Tree"]

_V = TypeVar("_V")

_T = TypeVar("_T")

_List: TypeAlias = list

class Merge(Handle):
    """See :class:`drumlin.Merge`. Its clauses are only recorded; :meth:`execute` is awaited."""
    async def execute(self) -> MergeReport: ...
    def when_matched(
        self, *, update: Values = None, delete: bool = False, condition: str | Expr | None = None
    ) -> Self: ...
    def when_not_matched(self, *, insert: Values, condition: str | Expr | None = None) -> Self: ...
    def when_not_matched_by_source(
        self, *, update: Mapping[str, Any] | None = None, delete: bool = False, condition: str | Expr | None = None
    ) -> Self: ...

class Table(Handle, Generic[_V]):
    """See :class:`drumlin.Table`."""
    async def add_columns(
        self,
        columns: SchemaLike | (FrameLike | Result | Dataset | Diff),
        *,
        on: str | Iterable[str] | None = None,
        using: ColumnFunction | None = None,
        read: Iterable[str] | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> _V: ...
    async def add_constraints(
        self,
        *,
        checks: Mapping[str, str | Expr] | None = None,
        not_null: Iterable[str] = (),
        defaults: Mapping[str, Any] | None = None,
        metadata: Any = None,
    ) -> _V: ...
    async def append(
        self,
        data: FrameLike | Result | Dataset | Diff,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...
    async def constraints(self, *, as_of: AsOf | None = None) -> Constraints: ...
    async def create(
        self,
        schema: SchemaLike,
        *,
        sort: Iterable[str] = (),
        key: Iterable[str] = (),
        compression: Compression | None = None,
    ) -> _V: ...
    async def delete(
        self, where: str | Expr, *, metadata: Any = None, progress: Progress | None = None
    ) -> DeleteReport: ...
    async def delete_keys(
        self, keys: KeysLike, *, metadata: Any = None, progress: Progress | None = None
    ) -> RowsReport: ...
    def diff(
        self,
        since: AsOf,
        until: AsOf | None = None,
        *,
        columns: Iterable[Any] | None = None,
        each_version: bool = False,
    ) -> Diff: ...
    async def drop(self, *, missing_ok: bool = False) -> DropReport: ...
    async def drop_columns(self, columns: Iterable[str], *, metadata: Any = None) -> _V: ...
    async def drop_constraints(
        self,
        *,
        checks: Iterable[str] = (),
        not_null: Iterable[str] = (),
        defaults: Iterable[str] = (),
        metadata: Any = None,
    ) -> _V: ...
    async def exists(self) -> bool: ...
    async def get(
        self, key: Any, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> dict[str, Any] | None: ...
    def get_many(
        self, keys: KeysLike, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> Lookup: ...
    def group_by(self, *keys: str, every: tuple[str, str] | None = None, where: str | Expr | None = None) -> Groups: ...
    async def insert(
        self,
        rows: RowsLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> RowsReport: ...
    def merge(
        self,
        source: FrameLike | Result | Dataset | Diff,
        on: Iterable[str] | None = None,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Merge: ...
    @property
    def path(self) -> Awaitable[str]: ...
    def read(
        self,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
    ) -> Result: ...
    async def rename_columns(self, names: Mapping[str, str], *, metadata: Any = None) -> _V: ...
    async def replace(
        self,
        data: FrameLike | Result | Dataset | Diff,
        *,
        where: str | Expr | None = None,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...
    def resample(
        self,
        every: str,
        *,
        on: str,
        by: Iterable[str] = (),
        origin: dt.date | None = None,
        closed: str = "left",
        label: str = "left",
        where: str | Expr | None = None,
    ) -> Groups: ...
    async def schema(self, *, as_of: AsOf | None = None) -> Schema: ...
    async def set_metadata(self, metadata: Any, *, as_of: AsOf | None = None) -> None: ...
    async def stat(self) -> TableStat: ...
    async def update(
        self,
        set: Mapping[str, Any],
        *,
        where: str | Expr | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> UpdateReport: ...
    async def upsert(
        self,
        rows: RowsLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> RowsReport: ...
    async def versions(self) -> list[Version]: ...
    async def widen(self, types: SchemaLike, *, metadata: Any = None) -> _V: ...
    async def write(
        self,
        data: FrameLike | Result | Dataset | Diff,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V: ...

class ProjectionView(Handle):
    """See :class:`drumlin.ProjectionView`."""
    async def entries(self) -> list[ProjectionEntry]: ...
    async def get(self, key: Any, default: Any = None) -> Any: ...
    async def get_all(self, key: Any) -> list[Any]: ...
    async def items(self) -> list[tuple[Any, Any]]: ...
    async def keys(self) -> list[Any]: ...
    async def prefix(self, text: str | None, *first: Any) -> list[ProjectionEntry]: ...
    async def range(self, low: Any = None, high: Any = None, include_high: bool = False) -> list[ProjectionEntry]: ...
    @property
    def seq(self) -> Awaitable[int]: ...
    async def values(self) -> list[Any]: ...

class Tree(Handle):
    """See :class:`drumlin.Tree`. Functions that it calls for nodes run on a thread. The callback of :meth:`on` may be a
    coroutine function, which runs on the event loop."""
    async def clear_payload(self, path: str, *, when: Condition | None = None) -> Change: ...
    async def clear_payloads(self, pattern: PatternLike) -> Changes: ...
    async def compare_and_swap(self, path: str, expected: Any, value: Any) -> Change: ...
    async def count(self, pattern: PatternLike) -> int: ...
    async def create(self, path: str, value: Any) -> Change: ...
    async def delete(self, path: str, *, when: Condition | None = None) -> Change: ...
    async def delete_many(self, pattern: PatternLike) -> Changes: ...
    async def drop_projection(self, name: str) -> None: ...
    async def exists(self, path: str) -> bool: ...
    async def export(
        self, pattern: PatternLike, file: str | os.PathLike[str] | BinaryIO, *, progress: Progress | None = None
    ) -> int: ...
    async def filter(self, pattern: PatternLike, function: Callable[[str, Node], Any]) -> dict[str, Node]: ...
    async def fold(self, pattern: PatternLike, function: Callable[[_T, str, Node], _T], initial: _T) -> _T: ...
    async def for_each(self, pattern: PatternLike, function: Callable[[str, Node], object]) -> None: ...
    async def get(self, path: str, default: Any = None) -> Any: ...
    async def get_many(self, pattern: PatternLike) -> dict[str, Any]: ...
    async def has_payload(self, path: str) -> bool: ...
    async def import_(
        self, file: str | os.PathLike[str] | BinaryIO, *, under: str | None = None, progress: Progress | None = None
    ) -> ImportReport: ...
    async def list(self, pattern: PatternLike = "**") -> _List[ListEntry]: ...
    async def map(self, pattern: PatternLike, function: Callable[[str, Node], _T]) -> _List[_T]: ...
    async def node(self, path: str) -> Node | None: ...
    async def nodes(self, pattern: PatternLike) -> dict[str, Node]: ...
    async def off(self, name: str) -> None: ...
    async def on(
        self,
        pattern: PatternLike,
        callback: Callable[[Event], object],
        *,
        actions: Iterable[Literal["create", "update", "delete"]] | None = None,
        priority: int = 0,
        name: str | None = None,
    ) -> str: ...
    def projection(
        self,
        name: str,
        pattern: PatternLike | None = None,
        *,
        key: str | Iterable[str] | Callable[[str, Any], Any] | None = None,
        value: str | Iterable[str] | Callable[[str, Any], Any] = "payload",
        bag: bool = False,
    ) -> ProjectionView: ...
    async def projections(self) -> _List[str]: ...
    async def put(
        self,
        path: str,
        value: Any,
        *,
        mode: Literal["create", "update"] | None = None,
        when: Condition | None = None,
        keep_while: KeepWhile | None = None,
    ) -> Change: ...
    async def put_many(self, payloads: Mapping[str, Any]) -> Changes: ...
    async def trigger_failures(self) -> _List[TriggerFailure]: ...
    async def triggers(self) -> _List[str]: ...
    async def update(self, path: str, value: Any) -> Change: ...
    async def update_many(self, pattern: PatternLike, value: Any) -> Changes: ...
    async def wait_for_triggers(self, timeout: float | dt.timedelta | None = None) -> bool: ...
