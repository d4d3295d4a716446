"""One table, in a store or in a transaction: all operations on it."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast, final

from drumlin import _drumlin
from drumlin._arguments.checks import (
    AsOf,
    Compression,
    FilterLike,
    Params,
    Progress,
    SchemaMode,
    as_of_argument,
    assignments,
    evolves,
    names,
    note,
    optional_names,
    optional_text,
    returned_columns,
    selection,
    some_columns,
    sort_columns,
)
from drumlin._arguments.fit import Fit, order_of, schema_of
from drumlin._arguments.frames import FrameLike, SchemaLike, to_schema, to_stream
from drumlin._arguments.named import explained, names_arguments, told
from drumlin._arguments.parameters import Parameters
from drumlin._arguments.rows import KeysLike, RowsLike, beside_key, in_parts, keys_as_dicts, to_keys, to_rows
from drumlin._drumlin import DeleteReport, DropReport, RowsReport, Schema, TableStat, UpdateReport
from drumlin._engines.predicates import predicate
from drumlin._errors import AlreadyExists, InvalidArgument, SchemaMismatch
from drumlin._habits import Habits
from drumlin._nouns.columns import Columns
from drumlin._nouns.containers import RowsByKey
from drumlin._nouns.kept.indexes import Indexes
from drumlin._nouns.kept.layouts import LaidOut
from drumlin._nouns.kept.views import Viewed
from drumlin._nouns.merge import Merge
from drumlin._nouns.scans import Place
from drumlin._processes.places import Addressed
from drumlin._results.history import History
from drumlin._results.lookup import Lookup
from drumlin._results.result import Groupable, Result
from drumlin._values.evidence import a_type, shown

__all__ = ["Table"]

#: The version that a call made: a Version in a store, None in a transaction.
_V = TypeVar("_V")


@final
@names_arguments("get")
class Table(Columns[_V], Indexes, LaidOut, History, RowsByKey, Viewed, Groupable, Addressed, Habits):
    """A handle on one table in a store or a transaction, made by :meth:`Store.table <drumlin.Store.table>` and
    :meth:`Transaction.table <drumlin.Transaction.table>`. The table need not exist before the handle is used.

    In a transaction, versions are numbered at the commit: methods return None in place of a version, also in reports.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> table = store.table("numbers")
    >>> _ = table.write({"n": [1, 2, 3]})
    >>> table.delete("n = 2").rows
    1
    >>> table.stat().rows, table.exists()
    (2, True)

    With a key:

    >>> import pyarrow
    >>> people = store.table("people")
    >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
    >>> _ = people.create(schema, key=["id"])
    >>> _ = people.upsert([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}])
    >>> people.get(2)
    {'id': 2, 'name': 'Grace'}
    >>> people.get_many([2, 5]).found.to_pylist()
    [True, False]
    """

    __slots__ = ("_core", "_place")

    def __init__(self, core: _drumlin.Table, place: Place) -> None:
        self._core = core
        self._place = place

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._core.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self.path, self._place) == (other.path, other._place)

    def __hash__(self) -> int:
        return hash((self.path, self._place))

    def __repr__(self) -> str:
        return f"Table({self.path!r} in {self._place!r})"

    def _reduced(self) -> Any:
        return (operator.methodcaller("table", self.path), (self._place,))

    def exists(self) -> bool:
        """Whether a table exists at the path."""
        return self._core.exists()

    def create(
        self,
        schema: SchemaLike,
        *,
        sort: Iterable[str] | str = (),
        key: Iterable[str] | str = (),
        compression: Compression | None = None,
        exist_ok: bool = False,
    ) -> _V:
        """Creates an empty table. Rows are ordered by the columns ``sort`` when read. A table with a ``key`` is ordered
        by the key's columns, no two rows have the same key, and rows can be written and looked up by key
        (:meth:`upsert`, :meth:`insert`, :meth:`delete_keys`, :meth:`get_many`).

        ``schema`` maps names to types: those of pyarrow, of Python (``int``, ``str``, ``datetime.date``), or as text in
        the names of Arrow or SQL (``"int64"``, ``"numeric(10, 2)"``, ``"timestamptz"``). With ``exist_ok``, a table
        with the same key and order that is there already is left as it is, and its newest version returned.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> store.table("ticks").create(pyarrow.schema([("time", pyarrow.int64())]), sort=["time"]).rows
        0
        >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
        >>> _ = store.table("people").create(schema, key=["id"])
        >>> store.table("people").stat().key
        ['id']
        """
        asked, order, key = optional_text(compression, "compression"), names(sort, "sort"), names(key, "key")
        try:
            return cast(_V, self._core.create(to_schema(schema), order, key, asked))
        except AlreadyExists:
            if not exist_ok:
                raise
        stat = self._core.stat()
        if (stat.key, stat.sort) != (key, key or order):
            has = f"the key {stat.key}" if stat.key else f"the order {stat.sort}"
            raise SchemaMismatch(f"{self.path!r} exists with {has}; expected key={key}, sort={order}")
        return cast(_V, next(reversed(self._core.versions()), None))

    def write(
        self,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | str | None = None,
        compression: Compression | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version that holds exactly the rows of ``data``, and creates the table if needed. See
        :meth:`Store.write <drumlin.Store.write>`."""
        order = sort_columns(sort)
        asked = note(metadata), order, optional_text(compression, "compression")
        return cast(_V, self._core.write(to_stream(data, self._fit_to_write(order, coerce)), *asked, progress))

    def append(
        self,
        data: FrameLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version with the rows of ``data`` after the existing ones. See :meth:`Store.append
        <drumlin.Store.append>`."""
        new, stream = evolves(schema), to_stream(data, self._fit_to_add(coerce))
        return cast(_V, self._core.append(stream, note(metadata), new, progress))

    def replace(
        self,
        data: FrameLike,
        *,
        where: FilterLike | None = None,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version in which the rows of ``data`` replace all rows in the range that they cover, or all that
        match ``where``. See :meth:`Store.replace <drumlin.Store.replace>`."""
        new, stream = evolves(schema), to_stream(data, self._fit_to_add(coerce))
        return cast(_V, self._core.replace(stream, self._filter(where), note(metadata), new, progress))

    def update(
        self,
        set: Mapping[str, Any],
        *,
        where: FilterLike | None = None,
        params: Params | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> UpdateReport:
        """Makes a version in which columns of the rows for which ``where`` is true (by default all rows) have new
        values. Rows keep their order. If no row matches, no version is made.

        ``set`` maps columns to values: text in the filter language, computed from the row as it was (a text value needs
        its own quotes, ``"'Ada'"``), an expression made with :func:`drumlin.col`, or any other value. Numbers are
        rounded to the scale of their column; one that the column's type cannot hold is an error. Columns of the key or
        the sort order cannot be set. ``params`` are values for the parameters ``?`` of ``set`` and then of ``where``,
        or a dict for those with a name: see :meth:`Store.read <drumlin.Store.read>`.

        >>> import drumlin
        >>> from drumlin import col
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("items", {"name": ["a", "b"], "price": [1.5, 2.0], "note": ["x", "y"]})
        >>> store.table("items").update({"price": col("price") * 2, "note": None}, where="name = 'b'").rows
        1
        >>> store.read("items").to_arrow().to_pylist()[1]
        {'name': 'b', 'price': 4.0, 'note': None}
        """
        values, text = assignments(set), where
        if params is not None:
            given = Parameters(params)
            values = [(name, given.fill(value)) for name, value in values]
            text = given.fill(where) if isinstance(where, str) else where
            given.check_used()
        return self._core.update(values, self._filter(text), note(metadata), progress)

    def merge(
        self,
        source: FrameLike,
        on: Iterable[str] | str | None = None,
        *,
        nulls_equal: bool = False,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Merge:
        """Merges the rows of ``source`` into the table. A row matches a row of the table with equal values in the
        columns ``on`` (default: the key); nulls match nothing, or nulls if ``nulls_equal``. Call methods of the
        returned :class:`drumlin.Merge` to say what happens to each kind of row. Two rows of ``source`` with equal
        values in ``on`` are refused. ``source`` is held in memory. In a table without an order, updated rows may move
        after the others.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"id": [1, 2], "n": [10, 20]})
        >>> merge = store.table("numbers").merge({"id": [2, 3], "n": [21, 30]}, on=["id"])
        >>> merge.when_matched(update=True).when_not_matched(insert=True).execute().version.kind
        'merge'
        >>> store.read("numbers").to_arrow()["n"].to_pylist()
        [10, 21, 30]
        """
        stream = to_stream(source, self._fit_to_add(coerce), "source")
        columns = [] if on is None else names(on, "on")
        if isinstance(on, str) and "=" in on:
            raise InvalidArgument(f"on={shown(on)}: expected columns that are equal in both, such as on=['id']")
        last = nulls_equal, note(metadata), progress
        return Merge(lambda one, two, three: self._core.merge(stream, columns, one, two, three, *last))

    def delete(
        self,
        where: FilterLike,
        *,
        params: Params | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> DeleteReport:
        """Makes a version without the rows for which ``where`` is true. If no row matches, no version is made. For
        ``params``, see :meth:`Store.read <drumlin.Store.read>`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.table("numbers").delete("n <= 2").rows
        2
        """
        if where is None:
            raise InvalidArgument("where is None; to delete all rows, give where='true'")
        if isinstance(where, (int, bytes, list, tuple, dict)):
            raise TypeError(
                f"where says which rows to delete, such as 'n > 1', not {a_type(where)}; rows by key are deleted with "
                "table.delete_keys([...])"
            )
        return self._core.delete(self._filter(where, params) or "", note(metadata), progress)

    def upsert(
        self,
        rows: RowsLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        returning: bool | Iterable[Any] | str = False,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Writes rows to a table with a key; a row replaces the existing row with the same key. If a call contains
        equal keys, the last one wins. A row that is there keeps what it has in columns that ``rows`` lack; in a new row
        these have their default, or are null.

        ``rows`` are a frame, a list of dicts, or a dict of one row; untyped values take the type of their column. The
        dicts of a list may have different columns. A call with few rows is one write to the log and makes no version:
        its rows belong to the version that the next checkpoint, snapshot or large write makes. A call with many rows,
        ``metadata`` or new columns makes a version. For ``schema``, see :meth:`Store.append <drumlin.Store.append>`.

        With ``returning``, True or the names of columns, ``returned`` of the report has the rows as they were written,
        one for each key, in the order in which the keys were given: with what they had in other columns, and with
        defaults.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> schema = pyarrow.schema([("id", pyarrow.int32()), ("name", pyarrow.string())])
        >>> _ = store.table("people").create(schema, key=["id"])
        >>> store.table("people").upsert({"id": [1, 2], "name": ["Ada", "Grace"]}).rows
        2
        >>> _ = store.table("people").upsert({"id": 2, "name": "Grace H."})
        >>> store.read("people").to_arrow()["name"].to_pylist()
        ['Ada', 'Grace H.']
        """
        new, text, wanted = evolves(schema), note(metadata), returned_columns(returning)
        if parts := in_parts(rows, self._key):
            return self._core.write_parts(parts, False, text, new, progress, wanted)
        return self._core.upsert(to_rows(rows, self._fit_to_add(coerce)), text, new, progress, wanted)

    def insert(
        self,
        rows: RowsLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        returning: bool | Iterable[Any] | str = False,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Writes rows with new keys to a table with a key. If a key exists, or two rows have the same key, raises
        :class:`drumlin.AlreadyExists`, which names keys, and writes nothing. Columns that ``rows`` lack have their
        default, or are null. See :meth:`upsert`.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> _ = store.table("names").create(pyarrow.schema([("id", pyarrow.int64())]), key=["id"])
        >>> _ = store.table("names").insert({"id": 1})
        >>> try:
        ...     store.table("names").insert({"id": [2, 1]})
        ... except drumlin.AlreadyExists as error:
        ...     print(error)
        'names' already has rows with the key 1; nothing was written; here: table.upsert(rows), which replaces such rows
        """
        new, text, wanted = evolves(schema), note(metadata), returned_columns(returning)
        if parts := in_parts(rows, self._key):
            return self._core.write_parts(parts, True, text, new, progress, wanted)
        return self._core.insert(to_rows(rows, self._fit_to_add(coerce)), text, new, progress, wanted)

    def _key(self) -> list[str]:
        return self._core.order()[1]

    def delete_keys(
        self,
        keys: KeysLike,
        *,
        metadata: Any = None,
        returning: bool | Iterable[Any] | str = False,
        progress: Progress | None = None,
    ) -> RowsReport:
        """Deletes the rows with the given ``keys`` from a table with a key; keys that do not exist are ignored. For the
        form of keys, see :meth:`get_many`; for the rest, :meth:`upsert`. With ``returning``, the rows that were deleted
        are returned.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> _ = store.table("names").create(pyarrow.schema([("id", pyarrow.int64())]), key=["id"])
        >>> _ = store.table("names").insert({"id": [1, 2, 3]})
        >>> _ = store.table("names").delete_keys([1, 3, 5])
        >>> store.read("names").to_arrow()["id"].to_pylist()
        [2]
        """
        return self._core.delete_keys(to_keys(keys), note(metadata), progress, returned_columns(returning))

    def increment(
        self,
        amounts: Mapping[str, Any],
        key: Any,
        *,
        metadata: Any = None,
        returning: bool | Iterable[Any] | str = True,
    ) -> RowsReport:
        """Adds ``amounts``, numbers by column, to the row with the key ``key``, in a form of :meth:`get`, or to the
        rows of a list of keys. ``returned`` of the report has the rows after that. A null counts as 0. If there is no
        such row, it is made, and columns have their default, or 0 where something is added.

        Any number of threads and processes may count in the same row: none waits for another to try again, and each
        gets a sum of its own.

        >>> import drumlin
        >>> hits = drumlin.open("memory://").table("hits")
        >>> _ = hits.create({"page": str, "n": int}, key="page")
        >>> _ = hits.increment({"n": 1}, "home")
        >>> hits.increment({"n": 2}, "home").returned.to_dicts()
        [{'page': 'home', 'n': 3}]
        """
        if not isinstance(amounts, Mapping):
            raise TypeError(f"amounts must be a dict of columns and numbers, not {a_type(amounts)}")
        asked = note(metadata), returned_columns(returning)
        rows = [beside_key(amounts, one, "amounts") for one in keys_as_dicts(key, self._key)]
        return self._core.increment(to_rows(rows), *asked)

    def compare_and_set(
        self,
        key: Any,
        expected: Mapping[str, Any],
        new: Mapping[str, Any],
        *,
        metadata: Any = None,
        returning: bool | Iterable[Any] | str = False,
    ) -> RowsReport:
        """Gives the row with the key ``key``, in a form of :meth:`get`, the values ``new``, if it has the values
        ``expected``, both by column; None is equal to None. Otherwise, or if there is no such row, raises
        :class:`drumlin.ConditionFailed`, which names what the row has, and writes nothing. For several rows, use a
        transaction.

        >>> import drumlin
        >>> jobs = drumlin.open("memory://").table("jobs")
        >>> _ = jobs.create({"id": int, "state": str}, key="id")
        >>> _ = jobs.insert({"id": 1, "state": "new"})
        >>> _ = jobs.compare_and_set(1, {"state": "new"}, {"state": "running"})
        >>> try:
        ...     jobs.compare_and_set(1, {"state": "new"}, {"state": "running"})
        ... except drumlin.ConditionFailed as error:
        ...     print(error)
        'jobs': column 'state' of the row with the key 1 is running, expected new; nothing was written
        """
        for name, given in (("expected", expected), ("new", new)):
            if not isinstance(given, Mapping):
                raise TypeError(f"{name} must be a dict of columns and values, not {a_type(given)}")
        asked = note(metadata), returned_columns(returning)
        (own,) = keys_as_dicts([key], self._key)
        wanted, row = beside_key(expected, own, "expected"), beside_key(new, own, "new")
        return self._core.compare_and_set(to_rows([wanted]), to_rows([row]), *asked)

    @explained
    def get(
        self,
        key: Any,
        *,
        on: Iterable[str] | str | None = None,
        columns: Iterable[Any] | str | None = None,
        as_of: AsOf | None = None,
    ) -> dict[str, Any] | None:
        """The row with the key ``key``, or None. The key is a value if the table's key is one column, otherwise a tuple
        of values or a dict by column name. For ``columns`` and ``as_of``, see :meth:`read`.

        With ``on``, ``key`` is the value of that column, or a tuple of values of columns, of any table: a read with a
        filter, which an index (:meth:`create_index`) answers. ``InvalidArgument`` if more than one row has it.

        >>> import datetime, drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> columns = {"sym": pyarrow.string(), "day": pyarrow.date32(), "close": pyarrow.float64()}
        >>> _ = store.table("prices").create(columns, key=["sym", "day"])
        >>> day = datetime.date(2026, 1, 2)
        >>> _ = store.table("prices").upsert({"sym": "AAPL", "day": day, "close": 187.5})
        >>> store.table("prices").get(("AAPL", day), columns=["close"])
        {'close': 187.5}
        >>> store.table("prices").get({"sym": "MSFT", "day": day}) is None
        True
        >>> store.table("prices").get("AAPL", on="sym", columns="close")
        {'close': 187.5}
        """
        try:
            return self._core.get(key, as_of_argument(as_of), some_columns(columns), optional_names(on, "on"))
        except TypeError as error:
            raise told(error) or error from None

    def get_many(
        self,
        keys: KeysLike,
        *,
        on: Iterable[str] | str | None = None,
        columns: Iterable[Any] | str | None = None,
        as_of: AsOf | None = None,
    ) -> Lookup:
        """The rows with the given ``keys`` in a table with a key, in the order of ``keys``.

        ``keys`` are a list of keys as for :meth:`get`, an array or series of values, or a frame with the key columns,
        and possibly others. Only ``columns`` are read. With ``on``, they are values of these columns, of any table: see
        :meth:`get`.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
        >>> _ = store.table("people").create(schema, key=["id"])
        >>> _ = store.table("people").upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
        >>> answer = store.table("people").get_many([2, 5], columns=["name"])
        >>> answer.rows.to_arrow()["name"].to_pylist(), answer.found.to_pylist()
        (['Grace', None], [True, False])
        """
        asked = as_of_argument(as_of), some_columns(columns), optional_names(on, "on")
        return Lookup(self._core.get_many(to_keys(keys), *asked), self.path)

    def read(
        self,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | str | None = None,
        where: FilterLike | None = None,
        params: Params | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
    ) -> Result:
        """Reads a version, by default the newest. No data is read until rows are requested. See
        :meth:`Store.read <drumlin.Store.read>`."""
        selected = selection(as_of, columns, self._filter(where, params, as_of), limit, tail, native, rows)
        return Result(self._core.read(*selected), self.path, selects=selected.selects)

    def schema(self, *, as_of: AsOf | None = None) -> Schema:
        """The columns of a version, by default the newest: names and Arrow types.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> store.table("numbers").schema()
        Schema(n: int64)
        """
        return self._core.schema(as_of_argument(as_of))

    def stat(self) -> TableStat:
        """The table's figures: rows, versions, bytes, sort order and key."""
        return self._core.stat()

    def drop(self, *, missing_ok: bool = False) -> DropReport:
        """Drops the table. See :meth:`Store.drop <drumlin.Store.drop>`."""
        return self._core.drop(missing_ok)

    def _filter(self, where: FilterLike | None, params: Params | None = None, as_of: AsOf | None = None) -> str | None:
        return predicate(where, lambda: self._place.scan(self.path, as_of=as_of), params)

    def _to_group(self, what: str, where: FilterLike | None) -> Any:
        return self._place.scan(self.path, where=where)

    def _fit_to_write(self, order: list[str] | None, coerce: bool) -> Fit:
        # If the table has an order already, that one applies; it may come from a key.
        ordered = lambda: order_of(self._core) or ("sort" if order else None)  # noqa: E731
        return Fit(coerce, ordered=ordered, sort=tuple(order or ()))

    def _fit_to_add(self, coerce: bool) -> Fit:
        return Fit(coerce, onto=lambda: schema_of(self._core))
