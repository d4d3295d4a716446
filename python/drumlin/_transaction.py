"""Transactions."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from drumlin import _drumlin
from drumlin._arguments import (
    AsOf,
    Progress,
    as_of_argument,
    column_names,
    names,
    note,
    paths_to_drop,
    rows_filter,
    selection,
    sort_columns,
    to_streams,
    version_lists,
)
from drumlin._errors import Abort
from drumlin._expr import Expr
from drumlin._input import Fit, FrameLike, Order, SchemaLike, order_of, schema_of, to_schema, to_stream
from drumlin._lookup import Lookup
from drumlin._result import Result
from drumlin._rows import KeysLike, RowsLike, to_keys, to_rows
from drumlin._walks import Walks
from drumlin.tree import PatternLike

__all__ = ["Transaction"]


class Transaction(_drumlin.Transaction, Walks):
    """Any number of operations on nodes and tables that happen together or not at all; made by
    :meth:`Store.transaction <drumlin.Store.transaction>`.

    It sees the store as it was when it began, and its own writes; nobody sees these before it is committed, at the end
    of its ``with`` block. An exception leaves the block without a commit. The commit fails with
    :class:`drumlin.Conflict` if others have touched meanwhile what it has read or written; :meth:`Store.transact
    <drumlin.Store.transact>` runs it again then. However large, a transaction is one write to the log.

    Its methods are the store's, but for one thing: versions of tables are numbered at the commit, so what writes tables
    gives none. Threads may share it, though while one writes a table or commits, the others are told that it is in use.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> with store.transaction() as tx:
    ...     _ = tx.put("prices/state", "loading")
    ...     tx.write("prices/us", {"close": [187.5, 190.0]})
    ...     store.exists("prices"), tx.get("prices/state")
    (False, 'loading')
    >>> store.get("prices/state"), store.tables()
    ('loading', ['prices/us'])
    """

    # By path, whether the last write of a table was of all its rows; and of tables that were made or written whole,
    # what orders their rows (None: what did before).
    __slots__ = ("_ordered", "_whole")

    def __init__(self, store: _drumlin.Store, read_only: bool) -> None:
        self._whole: dict[str, bool] = {}
        self._ordered: dict[str, Order] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._end()
        elif not self.ended:
            self.commit()

    def abort(self, value: Any = None) -> NoReturn:
        """Ends the transaction without a commit, and raises :class:`drumlin.Abort` with ``value``."""
        self._end()
        raise Abort(value)

    # Tables.

    def create(self, path: str, schema: SchemaLike, *, sort: Iterable[str] = (), key: Iterable[str] = ()) -> None:
        """See :meth:`Store.create <drumlin.Store.create>`."""
        order, by_key = names(sort, "sort"), names(key, "key")
        self._create(path, to_schema(schema), order, by_key)
        self._whole[path] = False
        self._ordered[path] = "key" if by_key else "sort" if order else None

    def write(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """See :meth:`Store.write <drumlin.Store.write>`."""
        order = sort_columns(sort)
        stream = to_stream(data, self._fit_to_write(path, order, coerce))
        self._write_many([(path, stream)], note(metadata), order, progress)
        self._wrote(path, order)

    def _wrote(self, path: str, order: list[str] | None) -> None:
        self._whole[path] = True
        self._ordered[path] = self._ordered.get(path) or ("sort" if order else None)

    def _order(self, path: str, order: list[str] | None) -> Order:
        return self._ordered.get(path) or order_of(self._store, path) or ("sort" if order else None)

    def _fit_to_write(self, path: str, order: list[str] | None, coerce: bool) -> Fit:
        return Fit(coerce, ordered=lambda: self._order(path, order))

    def _fit_to_add(self, path: str, coerce: bool) -> Fit:
        return Fit(coerce, onto=lambda: self._schema(path))

    def _schema(self, path: str) -> _drumlin.Schema | None:
        if path not in self._ordered:
            # Not by a read of the transaction, which would then conflict with whoever adds rows.
            return schema_of(self._store, path)
        reading: _drumlin.Reading = self._read(path, *selection(None, None, None, None, None, None, False))
        return reading.schema

    def append(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """See :meth:`Store.append <drumlin.Store.append>`."""
        self._append_many([(path, to_stream(data, self._fit_to_add(path, coerce)))], note(metadata), progress)
        self._whole[path] = False

    def update(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """See :meth:`Store.update <drumlin.Store.update>`."""
        self._update(path, to_stream(data, self._fit_to_add(path, coerce)), note(metadata), progress)
        self._whole[path] = False

    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """See :meth:`Store.write_many <drumlin.Store.write_many>`."""
        order = sort_columns(sort)
        streams = to_streams(frames, fit=lambda path: self._fit_to_write(path, order, coerce))
        self._write_many(streams, note(metadata), order, progress)
        for path in frames:
            self._wrote(path, order)

    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """See :meth:`Store.append_many <drumlin.Store.append_many>`."""
        self._append_many(to_streams(frames, fit=lambda path: self._fit_to_add(path, coerce)), note(metadata), progress)
        self._whole |= dict.fromkeys(frames, False)

    def delete_rows(
        self,
        path: str,
        where: str | Expr,
        *,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> int:
        """See :meth:`Store.delete_rows <drumlin.Store.delete_rows>`. Gives how many rows were deleted."""
        rows = self._delete_rows(path, rows_filter(where), note(metadata), progress)
        self._whole[path] = False
        return rows

    def upsert(
        self, path: str, rows: RowsLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> int:
        """See :meth:`Store.upsert <drumlin.Store.upsert>`. Gives how many rows were written."""
        self._whole[path] = False
        return self._upsert(path, to_rows(rows, self._fit_to_add(path, coerce)), note(metadata), progress)

    def insert(
        self, path: str, rows: RowsLike, *, metadata: Any = None, coerce: bool = False, progress: Progress | None = None
    ) -> int:
        """See :meth:`Store.insert <drumlin.Store.insert>`. Gives how many rows were written."""
        self._whole[path] = False
        return self._insert(path, to_rows(rows, self._fit_to_add(path, coerce)), note(metadata), progress)

    def delete_keys(self, path: str, keys: KeysLike, *, metadata: Any = None, progress: Progress | None = None) -> int:
        """See :meth:`Store.delete_keys <drumlin.Store.delete_keys>`. Gives how many keys were deleted."""
        self._whole[path] = False
        return self._delete_keys(path, to_keys(keys), note(metadata), progress)

    def get_row(
        self, path: str, key: Any, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> dict[str, Any] | None:
        """See :meth:`Store.get_row <drumlin.Store.get_row>`."""
        return self._get_row(path, key, as_of_argument(as_of), column_names(columns))

    def get_rows(
        self, path: str, keys: KeysLike, *, columns: Iterable[Any] | None = None, as_of: AsOf | None = None
    ) -> Lookup:
        """See :meth:`Store.get_rows <drumlin.Store.get_rows>`."""
        return Lookup(self._get_rows(path, to_keys(keys), as_of_argument(as_of), column_names(columns)), path)

    def read(
        self,
        path: str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        head: int | None = None,
        tail: int | None = None,
        native: bool = False,
    ) -> Result:
        """See :meth:`Store.read <drumlin.Store.read>`. The result holds the rows as the transaction sees them now; to
        be read a second time it must not have written to tables since."""
        selected = selection(as_of, columns, where, limit, head, tail, native)
        written = self._whole.get(path) if as_of is None else None
        return Result(self._read(path, *selected), path, selects=selected.selects, written_whole=written)

    def drop(self, paths: PatternLike | Iterable[PatternLike], *, missing_ok: bool = False) -> _drumlin.DropReport:
        """See :meth:`Store.drop <drumlin.Store.drop>`."""
        return self._drop(paths_to_drop(paths), missing_ok)

    def delete_versions(
        self, versions: Mapping[str, Iterable[int]], *, missing_ok: bool = False
    ) -> _drumlin.VersionsReport:
        """See :meth:`Store.delete_versions <drumlin.Store.delete_versions>`."""
        return self._delete_versions(version_lists(versions), missing_ok)
