"""SQL over the tables of a store, with DuckDB."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from drumlin import _drumlin
from drumlin._arguments.checks import AsOf, as_of_argument
from drumlin._errors import InvalidArgument, NotFound, SchemaMismatch
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.scans import dataset
from drumlin._optional import need

__all__ = ["query"]

#: Comments, dollar-quoted strings and escape strings, and text in quotes, in which a quote is written twice.
_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|[eE]'(?:[^'\\]|\\.|'')*'"
    r"|'(?P<single>(?:[^']|'')*)'|\"(?P<double>(?:[^\"]|\"\")*)\"",
    re.DOTALL,
)
_NAMED = re.compile(r"\{([^{}/]+)\}")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")


def query(tables: _drumlin.Tables, store: _drumlin.Store | None, text: str, as_of: AsOf | None, params: Any) -> Any:
    """The relation of a query, whose tables in quotes are read as of one instant."""
    duckdb = need("duckdb", "sql()", "duckdb")
    need("pyarrow", "sql()", "duckdb")
    connection = duckdb.connect()
    # Variables of this program are not tables.
    connection.execute("set python_enable_replacements = false")
    # Text in quotes may be a table or a plain string: errors in it matter only if DuckDB looks for a table.
    wrong: dict[str, Exception] = {}
    known: dict[str, str] = {}
    for name in dict.fromkeys(_names(text)):
        try:
            found = _dataset(tables, store, name, as_of)
        except (InvalidArgument, NotFound, SchemaMismatch) as error:
            wrong[name] = error
            continue
        if found is None:
            continue
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise InvalidArgument(f"{other!r} and {name!r} differ only in case, so DuckDB takes them for one table")
        connection.register(name, found)
    try:
        return connection.sql(text) if params is None else connection.sql(text, params=params)
    except duckdb.Error as error:
        for name, reason in wrong.items():
            if name in str(error):
                raise reason from None
        raise


def _names(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        if (single := match["single"]) is not None:
            yield single.replace("''", "'")
        elif (double := match["double"]) is not None:
            yield double.replace('""', '"')


def _dataset(tables: _drumlin.Tables, store: _drumlin.Store | None, name: str, as_of: AsOf | None) -> Any:
    """The data set for a name in quotes, if it is a path or pattern; None if it is another string."""
    for path, when in _readings(name, as_of):
        pattern, columns = _pattern(path)
        try:
            return _scanned(tables, store, pattern, columns, when)
        except NotFound as error:
            # A version or snapshot that does not exist, of a table that does.
            if _matches(tables, pattern):
                raise NotFound(f"{name!r}: {error}") from None
        except InvalidArgument:
            if _matches(tables, pattern):
                raise
    return None


def _scanned(
    tables: _drumlin.Tables,
    store: _drumlin.Store | None,
    pattern: str,
    columns: Sequence[str] | None,
    as_of: AsOf | None,
) -> Dataset:
    """The tables that match a pattern. The columns that a query reads are known when it runs: a column that cannot be
    read fails then. But at least one must be readable."""
    core = tables.scan(pattern, as_of_argument(as_of), list(columns or ()))
    if not any(_is_readable(core, name) for name in core.schema.names):
        core.check_readable(None)
    return dataset(core, store, None, [], None, readable=False)


def _is_readable(core: _drumlin.Dataset, column: str) -> bool:
    try:
        core.check_readable([column])
    except SchemaMismatch:
        return False
    return True


def _readings(name: str, as_of: AsOf | None) -> Iterator[tuple[str, AsOf | None]]:
    yield name, as_of
    path, at, when = name.rpartition("@")
    if at and path and when:
        yield path, int(when) if _NUMBER.match(when) else when


def _pattern(path: str) -> tuple[str, Sequence[str] | None]:
    """A pattern, and the columns made of its names: ``{symbol}`` is ``*``, with the column name symbol."""
    names = _NAMED.findall(path)
    return _NAMED.sub("*", path), names or None


def _matches(tables: _drumlin.Tables, pattern: str) -> bool:
    """Whether any tables match."""
    try:
        return bool(tables.tables(pattern))
    except InvalidArgument:
        return False
