"""What is done to tables by path, in a store or in a transaction."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from drumlin import _drumlin
from drumlin._arguments.checks import (
    AsOf,
    Compression,
    Progress,
    SchemaMode,
    as_of_argument,
    column_names,
    count,
    evolves,
    filter_text,
    names,
    note,
    optional_text,
    path_argument,
    paths_to_drop,
    selection,
    sort_columns,
    to_streams,
    version_lists,
)
from drumlin._arguments.expr import Expr
from drumlin._arguments.frames import FrameLike
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import CopyReport, DropReport, Version, VersionsReport
from drumlin._errors import InvalidArgument
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.scans import dataset
from drumlin._nouns.table import Table
from drumlin._nouns.tree import Tree
from drumlin._processes.places import Address, Addressed, address_of, find
from drumlin._results.result import Result, Results
from drumlin._values.evidence import a_type
from drumlin.tree import P, PatternLike

if TYPE_CHECKING:
    import duckdb as _duckdb  # type: ignore[import-not-found, unused-ignore]

__all__ = ["Tables"]

#: What tells of a version that was made: a Version in a store; None in a transaction, at whose commit versions are
#: numbered.
_V = TypeVar("_V")


@names_arguments()
class Tables(Addressed, Generic[_V]):
    """What a :class:`drumlin.Store` and a :class:`drumlin.Transaction` have in common: the tree, handles on tables, the
    everyday verbs, and what touches many tables at once."""

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
        """The nodes of the tree, and what they carry."""
        return self._tree

    def table(self, path: str) -> Table[_V]:
        """A handle on the table at ``path``; whether it is there shows when it is used."""
        return Table(self._tables.table(path_argument(path)), self)

    def tables(self, pattern: PatternLike = "**") -> list[str]:
        """The paths that match ``pattern`` and hold tables, in order."""
        return self._tables.tables(pattern)

    def write(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version of the table at ``path`` that holds exactly the rows of ``data``; makes the table if needed,
        ordered by the columns ``sort`` when read (by default rows keep their order).

        ``compression`` is how these rows and later ones of the table are compressed, ``"balanced"``, ``"small"`` or
        ``"fast"`` (see :func:`drumlin.open`; by default as before, or as the store's tables are).

        ``metadata`` is a JSON value noted with the version. Numbers of NumPy become Python's, pandas Timestamps become
        ISO 8601 text; anything else is refused.

        A pandas frame that would not come back equal is refused with :class:`drumlin.InvalidArgument`, which names
        column, row and type; with ``coerce`` such values are stored as pyarrow converts them.

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
        """Makes a version of the table at ``path`` with the rows of ``data`` after those there are. The columns must
        be the table's, in any order, and every value one of its column's type. A column that has held nothing but nulls
        of no type takes any type.

        With ``schema="evolve"`` the table gets columns that it lacks, and wider types; columns that ``data`` lacks have
        their default (:meth:`Table.add_columns <drumlin.Table.add_columns>`), or are null.

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
        where: str | Expr | None = None,
        metadata: Any = None,
        schema: SchemaMode = "strict",
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version in which the rows of ``data`` stand in the place of all rows between its least and its
        greatest sort key, both included. The table needs a sort order.

        With ``where`` they stand in the place of the rows for which that is true, wherever those are, as if these were
        deleted and the new ones appended; for the new ones it need not be true. In a table with a key, a key of a row
        that stays is :class:`drumlin.AlreadyExists`.

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
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        rows: slice | None = None,
        native: bool = False,
    ) -> Result | Dataset:
        """A version of the table at ``path``, by default the newest. Nothing is read before the result is asked for
        rows, and what is committed later does not change it.

        ``columns`` are the columns, in the order wanted. ``where`` keeps the rows for which it is true: text in the
        filter language, or an expression made with :func:`drumlin.col`. ``limit`` keeps the first rows,
        ``tail`` the last, as many as it says; ``rows=slice(10, 20)`` those from the eleventh to the twentieth, without
        reading what lies before if nothing is filtered. ``native`` hands out the Arrow types that are cheapest to
        decode instead of the table's own: string views, dictionaries, narrower decimals.

        A pattern reads all tables that it matches as one: see :meth:`scan`.

        >>> import drumlin
        >>> from drumlin import col
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2, 3]})
        >>> _ = store.append("numbers", {"n": [4]})
        >>> store.read("numbers", where=col("n") >= 2, tail=2).to_arrow()["n"].to_pylist()
        [3, 4]
        >>> store.read("numbers", as_of=0).to_arrow()["n"].to_pylist()
        [1, 2, 3]
        """
        if isinstance(path, P) or (isinstance(path, str) and ("*" in path or "?" in path)):
            if tail is not None or rows is not None or native:
                raise InvalidArgument("tail, rows and native are for one table; a pattern reads many")
            return self.scan(path, as_of=as_of, columns=columns, where=where, limit=limit)
        return self.table(path).read(
            as_of=as_of, columns=columns, where=where, limit=limit, tail=tail, rows=rows, native=native
        )

    def scan(
        self,
        pattern: PatternLike,
        *,
        path_columns: Iterable[str] | None = None,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
    ) -> Dataset:
        """A table, or all tables that ``pattern`` matches, as of one instant, as a data set: lazy, and to be read any
        number of times, here, by DuckDB, Polars, DataFusion and pyarrow, and by other processes.

        It has the columns of all its tables; where their types differ, in one that holds the values of all. A column
        that a
        table lacks is null there. ``path_columns`` names columns that hold the names in a table's path, one for each
        part of the pattern that is no plain name: a filter on them decides which tables are opened.

        ``as_of`` is a version's number, a snapshot's name or a time; tables that were made after that time are left
        out. See :meth:`read` for the others.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"close": [1.5]}, "prices/MSFT": {"close": [2.5, 3.5]}})
        >>> ds = store.scan("prices/*", path_columns=["symbol"])
        >>> ds.where("symbol = 'MSFT' and close > 3").to_arrow().to_pylist()
        [{'close': 3.5, 'symbol': 'MSFT'}]
        """
        made_of = [] if path_columns is None else names(path_columns, "path_columns")
        core = self._tables.scan(pattern, as_of_argument(as_of), made_of)
        filters = [] if where is None else [filter_text(where) or ""]
        return dataset(core, self._of, column_names(columns), filters, count(limit, "limit"))

    def sql(self, query: str, *, as_of: AsOf | None = None, parameters: Any = None) -> "_duckdb.DuckDBPyRelation":
        """The result of an SQL query, by DuckDB: a relation, which is run when rows are asked of it (``fetchall``,
        ``df``, ``pl``, ``arrow`` ...).

        Tables are paths and patterns in quotes. A name in braces stands for ``*``, and is the column that holds what
        stands there. ``@`` and a version's number or a snapshot's name reads that; else all tables are read
        ``as_of`` the same. What DuckDB reads itself, files say, can stand beside them.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"prices/AAPL": {"close": [1.5]}, "prices/MSFT": {"close": [2.5, 3.5]}})
        >>> store.sql("select symbol, avg(close) from 'prices/{symbol}' group by symbol order by 1").fetchall()
        [('AAPL', 1.5), ('MSFT', 3.0)]
        >>> store.sql("select count(*) from 'prices/MSFT@0' where close > $least", parameters={"least": 3}).fetchall()
        [(1,)]
        """
        from drumlin._engines.sql import query as run

        if not isinstance(query, str):
            raise TypeError(f"query must be a str, not {a_type(query)}")
        if parameters is not None and not isinstance(parameters, (list, tuple, Mapping)):
            raise TypeError(f"parameters must be a list or a dict of values, not {a_type(parameters)}")
        at = self._at_one_instant()
        return run(at._tables, at._of, query, as_of, parameters)

    def _at_one_instant(self) -> "Tables[Any]":
        """What it shows now, which no commit changes: a transaction shows it anyway."""
        return self

    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
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
        sort: Iterable[str] | None = None,
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
        sort: Iterable[str] | None = None,
        compression: Compression | None = None,
        return_exceptions: bool = False,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> Any:
        """Writes many tables in one commit: all of them or none. See :meth:`write`.

        With ``return_exceptions`` a table that cannot be written does not keep the others from it: what is wrong with
        it stands in the place of its version. What fails the call as a whole (storage, Ctrl-C) is raised all the same,
        and then nothing was written. A transaction is done as a whole: it takes no ``return_exceptions``.

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
        """Appends to many tables in one commit: all of them or none, or with ``return_exceptions`` those that can be
        appended to. See :meth:`append` and :meth:`write_many`.

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
        return_exceptions: bool = False,
    ) -> Any:
        """Many tables as of the same instant. See :meth:`read`.

        With ``return_exceptions`` what is wrong with a table, say that it is not there, stands in the place of its
        result; else it is raised.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [1, 2]}})
        >>> {path: result.to_arrow().num_rows for path, result in store.read_many(["a", "b"]).items()}
        {'a': 1, 'b': 2}
        """
        selected = selection(as_of, columns, where, limit, tail, native, rows)
        asked = names(paths, "paths")

        def result(path: str, reading: Any) -> Any:
            if isinstance(reading, Exception):
                return reading
            return Result(reading, path, selects=selected.selects)

        readings = self._tables.read_many(asked, *selected, return_exceptions)
        return Results(zip(asked, map(result, asked, readings), strict=True))

    def history(self, pattern: PatternLike = "**", *, limit: int | None = None) -> list[tuple[str, Version]]:
        """The versions of the tables that match ``pattern``, the newest first, at most ``limit``, each with its path:
        what made it, how many rows it added and removed, who wrote it and what that one said.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a": {"n": [1]}, "b": {"n": [2, 3]}})
        >>> _ = store.append("a", {"n": [4]})
        >>> [(path, v.version, v.kind, v.rows_added) for path, v in store.history()]
        [('a', 1, 'append', 1), ('a', 0, 'write', 1), ('b', 0, 'write', 2)]
        """
        return self._tables.history(pattern, count(limit, "limit"))

    def restore(self, pattern: PatternLike, as_of: AsOf) -> list[str]:
        """Makes old versions the newest again: each table that ``pattern`` matches gets a version with the rows, the
        schema and the metadata that it had ``as_of`` then (a version's number, a time, a snapshot's name), in one
        commit for all, without any data being written. The versions in between stay. Of a snapshot, tables that were
        dropped since come back; tables made after a time are left alone. Returns the paths that were restored.

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
        """Copies in one commit, without any data being written: the copies share the stored rows, and each is changed
        by itself from then on. If ``src`` is a path, the node there with all below it: what nodes carry, and tables
        with all their versions; so a subtree that is copied is a branch. If it is a pattern, the tables that match;
        then ``dst`` has as many wildcards, and what those of ``src`` match takes their places, in order. With
        ``as_of`` only tables are copied, and of each that one version. Where something is in the place of what is
        copied, the call is refused; with ``replace`` a table there gets a version with the rows of the other, and keeps
        its own versions, so that a branch can come back; and a payload is replaced.

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
        """Moves as :meth:`copy` copies, in one commit: tables stay the same, with their versions and snapshots, and are
        found at other paths; a snapshot shows them there, and where they were. The retention in force for them is made
        explicit where the new place has another. With ``replace`` a table that is in the place gets a version with the
        rows of the other, which goes to the trash.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("draft/prices", {"n": [1]})
        >>> store.move("draft", "final").tables
        {'draft/prices': 'final/prices'}
        """
        return self._tables.relocate(path_argument(src, "src"), path_argument(dst, "dst"), replace)

    def drop(self, paths: PatternLike | Iterable[PatternLike], *, missing_ok: bool = False) -> DropReport:
        """Drops the tables that ``paths`` (paths or patterns) name: one commit for all of them, all or none. They go to
        the trash, from which :meth:`undrop` takes them back until :meth:`reclaim` frees their space. With
        ``missing_ok`` those that name none are passed over, and reported.

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
        """Deletes versions of tables, all of them in one commit or none; a table keeps at least one. What snapshots
        hold stays readable by them. With ``missing_ok`` paths and versions that are not there are passed over, and
        reported.

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
    """Answers to a call, in its order."""
    found = {path: answer for (path, _), answer in zip(streams, answers, strict=True)} | (wrong or {})
    return {path: found[path] for path in frames}


def tables_at(address: Address, message: str) -> Tables[Any]:
    """The tables of a store that was pickled, whose commits say ``message``."""
    core = find(Address(*address))
    return Tables(core.with_message(message), core, message)
