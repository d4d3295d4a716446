"""What is done to tables by path, in a store or in a transaction."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar, overload

from drumlin import _drumlin
from drumlin._arguments import (
    AsOf,
    Progress,
    names,
    note,
    path_argument,
    paths_to_drop,
    selection,
    sort_columns,
    to_streams,
    version_lists,
)
from drumlin._drumlin import DropReport, VersionsReport
from drumlin._expr import Expr
from drumlin._input import FrameLike
from drumlin._named import names_arguments
from drumlin._result import Result, Results
from drumlin._table import Table
from drumlin._tree import Tree
from drumlin.tree import PatternLike

__all__ = ["Tables"]

#: What tells of a version that was made: a Version in a store; None in a transaction, at whose commit versions are
#: numbered.
_V = TypeVar("_V")


@names_arguments()
class Tables(Generic[_V]):
    """What a :class:`drumlin.Store` and a :class:`drumlin.Transaction` have in common: the tree, handles on tables, the
    everyday verbs, and what touches many tables at once."""

    __slots__ = ("_tables", "_tree")

    def __init__(self, tables: _drumlin.Tables) -> None:
        self._tables = tables
        self._tree = Tree(tables.tree())

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
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version of the table at ``path`` that holds exactly the rows of ``data``; makes the table if needed,
        ordered by the columns ``sort`` when read (by default rows keep their order).

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
        return self.table(path).write(data, metadata=metadata, sort=sort, coerce=coerce, progress=progress)

    def append(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version of the table at ``path`` with the rows of ``data`` after those there are. The columns must
        be the table's, in any order."""
        return self.table(path).append(data, metadata=metadata, coerce=coerce, progress=progress)

    def replace(
        self,
        path: str,
        data: FrameLike,
        *,
        metadata: Any = None,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version in which the rows of ``data`` stand in the place of all rows between its least and its
        greatest sort key, both included. The table needs a sort order.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("ticks", {"time": [1, 2, 3, 4], "n": [0, 0, 0, 0]}, sort=["time"])
        >>> _ = store.replace("ticks", {"time": [2, 3], "n": [7, 7]})
        >>> store.read("ticks").to_arrow()["n"].to_pylist()
        [0, 7, 7, 0]
        """
        return self.table(path).replace(data, metadata=metadata, coerce=coerce, progress=progress)

    def read(
        self,
        path: str,
        *,
        as_of: AsOf | None = None,
        columns: Iterable[Any] | None = None,
        where: str | Expr | None = None,
        limit: int | None = None,
        tail: int | None = None,
        native: bool = False,
    ) -> Result:
        """A version of the table at ``path``, by default the newest. Nothing is read before the result is asked for
        rows, and what is committed later does not change it.

        ``columns`` are the columns, in the order wanted. ``where`` keeps the rows for which it is true: text in the
        filter language, or an expression made with :func:`drumlin.col`. ``limit`` keeps the first rows,
        ``tail`` the last, as many as it says. ``native`` hands out the Arrow types that are cheapest to decode
        instead of the table's own: string views, dictionaries, narrower decimals.

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
        return self.table(path).read(as_of=as_of, columns=columns, where=where, limit=limit, tail=tail, native=native)

    @overload
    def write_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
        sort: Iterable[str] | None = None,
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
        answers = self._tables.write_many(streams, note(metadata), order, progress, return_exceptions)
        return _by_path(frames, streams, answers, wrong)

    @overload
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
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
        return_exceptions: bool,
        coerce: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, _V | Exception]: ...
    def append_many(
        self,
        frames: Mapping[str, FrameLike],
        *,
        metadata: Any = None,
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
        wrong: dict[str, Any] | None = {} if return_exceptions else None
        streams = to_streams(frames, wrong, lambda path: self.table(path)._fit_to_add(coerce))
        answers = self._tables.append_many(streams, note(metadata), progress, return_exceptions)
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
        selected = selection(as_of, columns, where, limit, tail, native)
        asked = names(paths, "paths")

        def result(path: str, reading: Any) -> Any:
            if isinstance(reading, Exception):
                return reading
            return Result(reading, path, selects=selected.selects)

        readings = self._tables.read_many(asked, *selected, return_exceptions)
        return Results(zip(asked, map(result, asked, readings), strict=True))

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
