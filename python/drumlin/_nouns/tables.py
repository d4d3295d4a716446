"""Operations on tables by path, in a store or in a transaction."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from drumlin import _drumlin
from drumlin._arguments.checks import (
    AsOf,
    Compression,
    FilterLike,
    Params,
    Progress,
    SchemaMode,
    as_of_argument,
    column_names,
    count,
    evolves,
    names,
    note,
    one_path,
    optional_text,
    path_argument,
    paths_to_drop,
    selection,
    sort_columns,
    to_streams,
    version_lists,
)
from drumlin._arguments.frames import FrameLike
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import CopyReport, DropReport, Version, VersionsReport
from drumlin._engines.predicates import predicate
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits
from drumlin._nouns.containers import Paths
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.scans import dataset
from drumlin._nouns.table import Table
from drumlin._nouns.tree import Tree
from drumlin._processes.places import Address, Addressed, address_of, find
from drumlin._results.result import Result, Results
from drumlin._results.scanned import ScannedReading
from drumlin._values.evidence import a_type
from drumlin.tree import P, PatternLike

if TYPE_CHECKING:
    import duckdb as _duckdb  # type: ignore[import-not-found, unused-ignore]

__all__ = ["Tables"]

#: The version that a call made: a Version in a store; None in a transaction, which numbers versions at its commit.
_V = TypeVar("_V")


@names_arguments()
class Tables(Paths, Addressed, Habits, Generic[_V]):
    """What a :class:`drumlin.Store` and a :class:`drumlin.Transaction` have in common: the tree, handles on tables, the
    everyday operations, and those on many tables at once."""

    __slots__ = ("_message", "_of", "_tables", "_tree")

    def __init__(
        self, tables: _drumlin.Tables, store: _drumlin.Store | None = None, message: str | None = None
    ) -> None:
        self._tables = tables
        self._message = message
        self._tree = Tree(tables.tree())
        self._of = store

    def __repr__(self) -> str:
        return f"Tables({self._of.uri!r})" if self._of is not None else "Tables()"

    def _reduced(self) -> Any:
        if self._of is None or self._message is None:
            raise TypeError("a transaction is not pickled, nor are its tables: it belongs to this process")
        return (tables_at, (address_of(self._of), self._message))

    @property
    def tree(self) -> Tree:
        """The nodes of the tree and their payloads."""
        return self._tree

    def table(self, path: str) -> Table[_V]:
        """A handle on the table at ``path``. The table need not exist before the handle is used."""
        return Table(self._tables.table(path_argument(path)), self)

    def __getitem__(self, path: str) -> Table[_V]:
        """The table at ``path``, which must exist: ``store["prices/AAPL"]``. :meth:`table` gives a handle on one that
        need not."""
        table = self.table(path)
        table.stat()
        return table

    def tables(self, pattern: PatternLike = "**") -> list[str]:
        """The paths of the tables that match ``pattern``, in order."""
        return self._tables.tables(pattern)

    def write(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | str | None = None,
        compression: Compression | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version of the table at ``path`` that holds exactly the rows of ``data``. Creates the table if
        needed, ordered by the columns ``sort`` when read (by default, rows keep their order).

        ``compression`` is for these rows and later ones of the table: ``"balanced"``, ``"small"`` or ``"fast"`` (see
        :func:`drumlin.open`; by default as before, or the store's setting).

        ``metadata`` is a JSON value kept with the version. NumPy numbers become Python numbers, pandas Timestamps
        become ISO 8601 text; anything else is refused.

        A pandas frame that would not come back equal raises :class:`drumlin.InvalidArgument`, which names the column,
        row and type. With ``coerce``, such values are stored as pyarrow converts them.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.write("numbers", {"n": [3, 1, 2]}, sort=["n"], metadata={"by": "me"}).metadata
        {'by': 'me'}
        >>> store.read("numbers").to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        return self.table(path).write(
            data, metadata=metadata, sort=sort, compression=compression, coerce=coerce, progress=progress
        )

    def append(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version of the table at ``path`` with the rows of ``data`` after the existing ones. The columns must
        be the table's, in any order, and every value must fit the type of its column. A column that has held only
        untyped nulls takes any type.

        With ``schema="evolve"``, columns that the table lacks are added and types widen; columns that ``data`` lacks
        get their default (:meth:`Table.add_columns <drumlin.Table.add_columns>`) or null.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1]})
        >>> _ = store.append("numbers", {"n": [2], "note": ["two"]}, schema="evolve")
        >>> store.read("numbers").to_arrow().to_pylist()
        [{'n': 1, 'note': None}, {'n': 2, 'note': 'two'}]
        """
        table = self.table(path)
        return table.append(data, metadata=metadata, schema=schema, coerce=coerce, progress=progress)

    def replace(
        self,
        path: str,
        data: FrameLike,
        *,
        where: FilterLike | None = None,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version in which the rows of ``data`` replace all rows between its smallest and its largest sort key,
        both included. The table needs a sort order.

        With ``where``, they replace the rows for which it is true, wherever these are, as if these were deleted and the
        new ones appended; the new rows need not satisfy it. In a table with a key, a new row with the key of a row that
        stays raises :class:`drumlin.AlreadyExists`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("ticks", {"time": [1, 2, 3, 4], "n": [0, 0, 0, 0]}, sort=["time"])
        >>> _ = store.replace("ticks", {"time": [2, 3], "n": [7, 7]})
        >>> store.read("ticks").to_arrow()["n"].to_pylist()
        [0, 7, 7, 0]
        >>> _ = store.replace("ticks", {"time": [9], "n": [9]}, where="n = 7")
        >>> store.read("ticks").to_arrow().to_pydict()
        {'time': [1, 4, 9], 'n': [0, 0, 9]}
        """
        table = self.table(path)
        return table.replace(data, where=where, metadata=metadata, schema=schema, coerce=coerce, progress=progress)

    def read(
        self,
        path: PatternLike,
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
        """Reads a version of the table at ``path``, by default the newest. No data is read until rows are
        requested, and later commits do not change the result.

        ``as_of`` is a version number (-1 is the newest version, -2 the one before it), a snapshot's name, or a time: a
        datetime, a date, or text such as ``"2026-01-31"``. ``columns`` are the columns to return, in that order.
        ``where`` keeps the rows for which it is true: text in the filter language, an expression made with
        :func:`drumlin.col`, or one of Polars or pyarrow that has an exact form in that language. ``params`` are values
        for its parameters: a list for ``?`` and ``$1``, a dict for ``:name`` and ``$name``. ``limit`` keeps that number
        of rows from the start, ``tail`` from the end; ``rows=slice(10, 20)`` keeps the eleventh to the twentieth and,
        without a filter, reads nothing before them. ``native`` returns the Arrow types that are cheapest to decode
        instead of the table's own: string views, dictionaries, narrower decimals.

        A pattern reads all matching tables as one; :meth:`scan` gives them as a data set for engines.

        >>> import drumlin
        >>> from drumlin import col
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> _ = store.append("numbers", {"n": [4]})
        >>> store.read("numbers", where=col("n") >= 2, tail=2).to_arrow()["n"].to_pylist()
        [3, 4]
        >>> store.read("numbers", as_of=0).to_arrow()["n"].to_pylist()
        [1, 2, 3]
        >>> store.read("numbers", where="n between ? and ?", params=[2, 3]).to_dicts()
        [{'n': 2}, {'n': 3}]
        """
        one_path(path, "store.read_many(paths), or a pattern such as store.read('prices/*') for one result")
        if isinstance(path, P) or (isinstance(path, str) and ("*" in path or "?" in path)):
            if tail is not None or rows is not None or native:
                raise InvalidArgument("tail, rows and native are for one table; a pattern reads many")
            found = self.scan(path, as_of=as_of, columns=columns, where=where, params=params, limit=limit)
            reading = ScannedReading(found._exact, found._columns, found._filters, found._limit)
            return Result(reading, found.pattern, selects=True)
        return self.table(path).read(
            as_of=as_of, columns=columns, where=where, params=params, limit=limit, tail=tail, rows=rows, native=native
        )

    def scan(
        self,
        pattern: PatternLike,
        *,
        path_columns: Iterable[str] | str | None = None,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | str | None = None,
        where: FilterLike | None = None,
        params: Params | None = None,
        limit: int | None = None,
    ) -> Dataset:
        """A table, or all tables that match ``pattern``, as of one instant, as a data set. It is lazy, and can be read
        any number of times: directly, by DuckDB, Polars, DataFusion and pyarrow, and by other processes.

        It has the columns of all its tables. If the types of a column differ, it has a type that holds all of its
        values; a column that a table lacks is null there. ``path_columns`` names columns that hold names from the
        tables' paths, one for each part of the pattern that is not a plain name; a filter on them decides which
        tables are opened.

        ``as_of`` is a version number, a snapshot's name or a time; tables that were made after that time are left out.
        For the other arguments, see :meth:`read`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"close": [1.5]}, "prices/MSFT": {"close": [2.5, 3.5]}})
        >>> ds = store.scan("prices/*", path_columns=["symbol"])
        >>> ds.where("symbol = 'MSFT' and close > 3").to_arrow().to_pylist()
        [{'close': 3.5, 'symbol': 'MSFT'}]
        """
        one_path(pattern, "store.read_many(paths), or a pattern such as store.scan('prices/*')", "pattern")
        made_of = [] if path_columns is None else names(path_columns, "path_columns")
        core = self._tables.scan(pattern, as_of_argument(as_of), made_of)
        asked = column_names(columns)
        whole = lambda: dataset(core, self._of, None, [], None, readable=False)  # noqa: E731
        text = predicate(where, whole, params)
        filters = [] if text is None else [text]
        return dataset(core, self._of, asked, filters, count(limit, "limit"))

    def sql(self, query: str, *, as_of: AsOf | None = None, params: Params | None = None) -> "_duckdb.DuckDBPyRelation":
        """Runs an SQL query with DuckDB. Returns a relation, which runs when rows are requested (``fetchall``,
        ``df``, ``pl``, ``arrow`` ...).

        Tables are paths and patterns in quotes. A name in braces is a wildcard like ``*``, and a column with the names
        that it matches. ``@`` and a version number or a snapshot's name reads that version; all other tables are read
        ``as_of`` the same instant. The query can also use anything that DuckDB reads itself, such as files.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"close": [1.5]}, "prices/MSFT": {"close": [2.5, 3.5]}})
        >>> store.sql("select symbol, avg(close) from 'prices/{symbol}' group by symbol order by 1").fetchall()
        [('AAPL', 1.5), ('MSFT', 3.0)]
        >>> store.sql("select count(*) from 'prices/MSFT@0' where close > $least", params={"least": 3}).fetchall()
        [(1,)]
        """
        from drumlin._engines.statements import script

        if not isinstance(query, str):
            raise TypeError(f"query must be a str, not {a_type(query)}")
        if params is not None and not isinstance(params, (list, tuple, Mapping)):
            raise TypeError(f"params must be a list or a dict of values, not {a_type(params)}")
        return script(self, query, as_of, params)

    def _atomically(self, function: "Callable[[Tables[Any]], Any]") -> Any:
        """Calls a function of tables, all of whose changes are one commit. In a transaction, they are already."""
        if self._message is not None:
            raise InvalidArgument(
                "these tables come from a pickle; SQL that changes some is for store.with_message(...)"
            )
        return function(self)

    def _at_one_instant(self) -> "Tables[Any]":
        """The same tables as of now, unaffected by later commits. A transaction is that already."""
        return self

    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | str | None = None,
        compression: Compression | None = None,
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V]: ...
    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | str | None = None,
        compression: Compression | None = None,
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V | Exception]: ...
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | str | None = None,
        compression: Compression | None = None,
        return_exceptions: bool = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Writes many tables in one commit, all or none. See :meth:`write`.

        With ``return_exceptions``, the tables that can be written are written; for each of the others, the result
        has an exception in place of a version. An error of the whole call (storage, Ctrl-C) is still raised, and then
        nothing is written. In a transaction, ``return_exceptions`` is refused, since it is committed as a whole.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> versions = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> versions["b"].rows
        2
        >>> answers = store.write_many({"a": {"n": [2]}, "b": {"n": [2]}}, sort=["n"], return_exceptions=True)
        >>> [type(answer).__name__ for answer in answers.values()]
        ['InvalidArgument', 'InvalidArgument']
        """
        wrong: dict[str, Any] | None = {} if return_exceptions else None
        order = sort_columns(sort)
        streams = to_streams(frames, wrong, lambda path: self.table(path)._fit_to_write(order, coerce))
        asked = optional_text(compression, "compression")
        answers = self._tables.write_many(streams, note(metadata), (order, asked), progress, return_exceptions)
        return _by_path(frames, streams, answers, wrong)

    @overload
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        return_exceptions: Literal[False] = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V]: ...
    @overload
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V | Exception]: ...
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        return_exceptions: bool = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Appends to many tables in one commit, all or none; with ``return_exceptions``, to those that can be appended
        to. See :meth:`append` and :meth:`write_many`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("a", {"n": [1]})
        >>> answers = store.append_many({"a": {"n": [2]}, "b": {"n": [1]}}, return_exceptions=True)
        >>> answers["a"].rows, answers["b"]
        (2, NotFound("no table at 'b'"))
        """
        new = evolves(schema)
        wrong: dict[str, Any] | None = {} if return_exceptions else None
        streams = to_streams(frames, wrong, lambda path: self.table(path)._fit_to_add(coerce))
        answers = self._tables.append_many(streams, note(metadata), new, progress, return_exceptions)
        return _by_path(frames, streams, answers, wrong)

    @overload
    def read_many(
        self,
        paths: Iterable[str] | str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | str | None = None,
        where: FilterLike | None = None,
        params: Params | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> Results: ...
    @overload
    def read_many(
        self,
        paths: Iterable[str] | str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | str | None = None,
        where: FilterLike | None = None,
        params: Params | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
        return_exceptions: bool,
    ) -> Results: ...
    def read_many(
        self,
        paths: Iterable[str] | str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | str | None = None,
        where: FilterLike | None = None,
        params: Params | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
        return_exceptions: bool = False,
    ) -> Any:
        """Reads many tables as of the same instant. See :meth:`read`.

        With ``return_exceptions``, an exception for a table, for example because it does not exist, is returned in
        place of its result; otherwise it is raised.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> {path: result.to_arrow().num_rows for path, result in store.read_many(["a", "b"]).items()}
        {'a': 1, 'b': 2}
        """
        asked = names(paths, "paths")
        text = predicate(where, lambda: self.scan(asked[0], as_of=as_of), params)
        selected = selection(as_of, columns, text, limit, tail, native, rows)

        def result(path: str, reading: Any) -> Any:
            if isinstance(reading, Exception):
                return reading
            return Result(reading, path, selects=selected.selects)

        readings = self._tables.read_many(asked, *selected, return_exceptions)
        return Results(zip(asked, map(result, asked, readings), strict=True))

    def history(self, pattern: PatternLike = "**", *, limit: int | None = None) -> list[tuple[str, Version]]:
        """The versions of the tables that match ``pattern``, the newest first, at most ``limit``, each with its path:
        what made it, how many rows it added and removed, its writer and message.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [2, 3]}})
        >>> _ = store.append("a", {"n": [4]})
        >>> [(path, v.version, v.kind, v.rows_added) for path, v in store.history()]
        [('a', 1, 'append', 1), ('a', 0, 'write', 1), ('b', 0, 'write', 2)]
        """
        return self._tables.history(pattern, count(limit, "limit"))

    def restore(self, pattern: PatternLike, as_of: AsOf) -> list[str]:
        """Makes old versions the newest again. Each table that matches ``pattern`` gets a version with the rows, schema
        and metadata that it had at ``as_of`` (a version number, a time, a snapshot's name), in one commit for all; no
        data is written. The versions in between stay. With a snapshot, tables that were dropped since come back; with a
        time, tables made later are left alone. Returns the paths of the restored tables.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [2]}})
        >>> _ = store.snapshot("good")
        >>> _ = store.write("a", {"n": [666]})
        >>> _ = store.drop("b")
        >>> store.restore("**", "good")
        ['a', 'b']
        >>> store.read("a").to_arrow()["n"].to_pylist()
        [1]
        """
        when = as_of_argument(as_of)
        if when is None:
            raise InvalidArgument("as_of must say which versions to restore: a number, a time or a snapshot's name")
        return self._tables.restore(pattern, when)

    def copy(self, src: str, dst: str, *, as_of: AsOf | None = None, replace: bool = False) -> CopyReport:
        """Copies within the store, in one commit and without writing data: copies share the stored rows, and each
        changes on its own from then on. If ``src`` is a path, its node is copied with everything below it: payloads,
        and tables with all their versions. So a copied subtree is a branch. If ``src`` is a pattern, the matching
        tables are copied; ``dst`` then has the same number of wildcards, which are replaced, in order, by what those of
        ``src`` match. With ``as_of``, only tables are copied, and only that version of each. If the destination holds
        something, the call is refused; with ``replace``, a table there gets a version with the rows of the source and
        keeps its own versions, so that a branch can be brought back; a payload is replaced.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/us/A": {"n": [1]}, "prices/us/B": {"n": [2]}})
        >>> store.copy("prices", "branches/try").tables
        {'prices/us/A': 'branches/try/us/A', 'prices/us/B': 'branches/try/us/B'}
        >>> store.copy("prices/*/A", "only/*").tables
        {'prices/us/A': 'only/us'}
        """
        when = as_of_argument(as_of)
        return self._tables.copy(path_argument(src, "src"), path_argument(dst, "dst"), when, replace)

    def move(self, src: str, dst: str, *, replace: bool = False) -> CopyReport:
        """Moves nodes or tables, chosen as in :meth:`copy`, in one commit. Tables keep their versions and snapshots,
        and are found at their new paths; a snapshot shows them there and at the old ones. If the new place has another
        retention, the tables keep the one that was in force, as a setting of their own. With ``replace``, a table at
        the destination gets a version with the rows of the source, and the source goes to the trash.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("draft/prices", {"n": [1]})
        >>> store.move("draft", "final").tables
        {'draft/prices': 'final/prices'}
        """
        return self._tables.relocate(path_argument(src, "src"), path_argument(dst, "dst"), replace)

    def drop(self, paths: PatternLike | Iterable[PatternLike], *, missing_ok: bool = False) -> DropReport:
        """Drops the tables that ``paths`` (paths or patterns) name, in one commit, all or none. They go to the trash:
        :meth:`undrop` restores them until :meth:`reclaim` frees their space. With ``missing_ok``, paths and patterns
        that name no table are ignored, and reported.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}, "b": {"n": [1]}})
        >>> store.drop("a/**").paths
        ['a/x', 'a/y']
        >>> store.undrop("a/x")
        >>> store.tables()
        ['a/x', 'b']
        """
        return self._tables.drop(paths_to_drop(paths), missing_ok)

    def delete_versions(self, versions: Mapping[str, Iterable[int]], *, missing_ok: bool = False) -> VersionsReport:
        """Deletes versions of tables in one commit, all or none. A table keeps at least one version. Versions that a
        snapshot holds stay readable through it. With ``missing_ok``, paths and versions that do not exist are ignored,
        and reported.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1]})
        >>> _ = store.write("numbers", {"n": [2]})
        >>> store.delete_versions({"numbers": [0]}).versions
        {'numbers': [0]}
        >>> [v.version for v in store.table("numbers").versions()]
        [1]
        """
        return self._tables.delete_versions(version_lists(versions), missing_ok)


def _by_path(
    frames: Mapping[str, Any], streams: list[tuple[str, Any]], answers: list[Any], wrong: dict[str, Any] | None
) -> dict[str, Any]:
    """The answers of a call by path, in the order of its arguments."""
    found = {path: answer for (path, _), answer in zip(streams, answers, strict=True)} | (wrong or {})
    return {path: found[path] for path in frames}


def tables_at(address: Address, message: str) -> Tables[Any]:
    """The tables of a store from a pickle, whose commits carry ``message``."""
    core = find(Address(*address))
    return Tables(core.with_message(message), core, message)
