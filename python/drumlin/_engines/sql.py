"""Queries in SQL over the tables of a store, with DuckDB."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, Protocol

from drumlin import _drumlin
from drumlin._arguments.checks import AsOf, as_of_argument
from drumlin._engines.interrupts import attended
from drumlin._engines.names import renamed
from drumlin._engines.relation import Relation
from drumlin._errors import InvalidArgument, NotFound, SchemaMismatch
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.scans import dataset
from drumlin._optional import loaded, need

__all__ = [
    "Place",
    "connect",
    "keep_uuids",
    "literal",
    "outside_quotes",
    "plain_quotes",
    "prepare",
    "quoted",
    "query",
    "relation",
    "types_of",
]

#: Comments, dollar-quoted strings and escape strings, and text in quotes, in which a quote is written twice.
_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|[eE]'(?:[^'\\]|\\.|'')*'"
    r"|'(?P<single>(?:[^']|'')*)'|\"(?P<double>(?:[^\"]|\"\")*)\"",
    re.DOTALL,
)
_NAMED = re.compile(r"\{([^{}/]+)\}")
_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)
#: Statements that begin with a table, of which DuckDB does not say where it stands.
_LEADING = re.compile(
    r'(\s*(?:describe|desc|show|summarize|pivot|unpivot)\s+)((?:\w+|"[^"]+")(?:\.(?:\w+|"[^"]+"))*)(?=\s+on\b|\s*;?\s*\Z)',
    re.IGNORECASE,
)
_SHOW = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*\Z", re.IGNORECASE)
_PART = re.compile(r'\w+|"[^"]+"')
#: A name that ends so is that of a file, which DuckDB reads.
_FILE = re.compile(r"\.(parquet|csv|tsv|json|jsonl|ndjson|arrow|gz|zst)\Z|://", re.IGNORECASE)


class Place(Protocol):
    """What SQL needs of a store, or of a transaction."""

    @property
    def _tables(self) -> _drumlin.Tables: ...

    @property
    def _of(self) -> _drumlin.Store | None: ...


class _Named(NamedTuple):
    """A table in a query: where it stands there, in bytes, the parts of its name, and the version that is asked for."""

    start: int
    length: int
    parts: tuple[str, ...]
    as_of: AsOf | None


def connect() -> Any:
    """A connection to a DuckDB of its own."""
    duckdb = need("duckdb", "sql()", "duckdb")
    need("pyarrow", "sql()", "duckdb")
    connection = duckdb.connect()
    # Variables of this program are not tables, unless a query names them.
    connection.execute("set python_enable_replacements = false")
    return connection


def query(place: Place, text: str, as_of: AsOf | None, params: Any) -> Any:
    """The relation of a query, whose tables are read as of one instant."""
    connection = connect()
    if _SHOW.match(text):
        paths = place._tables.tables("**")
        return Relation(connection.sql("select unnest($paths::varchar[]) as name", params={"paths": paths}), connection)
    if found := _LEADING.match(text):
        path = "/".join(name.strip('"') for name in _PART.findall(found[2]))
        text = f"{found[1]}{quoted(path)}{text[found.end() :]}"
    made = relation(connection, prepare(connection, place, text, as_of), params)
    return None if made is None else Relation(made, connection)


class Bound(NamedTuple):
    """A query whose tables are registered with a connection, and what is wrong with names that may be tables."""

    text: str
    wrong: dict[str, Exception]


def relation(connection: Any, bound: Bound, params: Any = None) -> Any:
    """The relation of a query. If DuckDB does not find a table, fails with what is wrong with its name."""
    duckdb = need("duckdb", "sql()", "duckdb")
    given = {} if params is None else {"params": params}
    try:
        return attended(connection, lambda: connection.sql(bound.text, **given))
    except duckdb.Error as error:
        for name, reason in bound.wrong.items():
            if name in str(error):
                raise reason from None
        raise


def types_of(connection: Any, place: Any, table: str) -> dict[str, str]:
    """What DuckDB calls the types of a table's columns."""
    made = relation(connection, prepare(connection, place, f"select * from {quoted(table)}", None))
    return dict(zip(made.columns, map(str, made.types), strict=True))


def keep_uuids(connection: Any, types: dict[str, str]) -> None:
    """Has UUIDs of a result come as 16 bytes, which a table of such types has, rather than as text."""
    if "UUID" in types.values():
        connection.execute("set arrow_lossless_conversion = true")


def literal(text: str) -> str:
    """A text as SQL has it as a value."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as SQL has it in quotes."""
    return '"' + name.replace('"', '""') + '"'


def prepare(connection: Any, place: Place, text: str, as_of: AsOf | None) -> Bound:
    """Registers the tables that a query names with the connection."""
    tables, store = place._tables, place._of
    # Text in quotes may be a table or a plain string: errors in it matter only if DuckDB looks for a table.
    wrong: dict[str, Exception] = {}
    known: dict[str, str] = {}

    def register(name: str, found: Any) -> None:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise InvalidArgument(f"{other!r} and {name!r} differ only in case, so DuckDB takes them for one table")
        if isinstance(found, Dataset) and (reason := renamed(found.schema.names, repr(name))):
            # DuckDB does not find it, and then this is what is wrong with it.
            wrong[name] = InvalidArgument(f"{name!r} has {reason}")
            return
        connection.register(name, found)

    for name in dict.fromkeys(_names(text)):
        try:
            found = _dataset(tables, store, name, as_of)
        except (InvalidArgument, NotFound, SchemaMismatch) as error:
            wrong[name] = error
            continue
        if found is not None:
            register(name, found)
    replaced: list[tuple[_Named, str]] = []
    for named in _tables_of(connection, text):
        if len(named.parts) == 1 and named.parts[0] in known and named.as_of is None:
            continue
        path = "/".join(named.parts)
        when = as_of if named.as_of is None else named.as_of
        name = path if named.as_of is None else f"{path}@{named.as_of}"
        if name not in known:
            found = _found(tables, store, path, when, wrong, asks=named.as_of is not None)
            if found is None and len(named.parts) == 1 and (found := _variable(path)) is None:
                continue
            if found is None:
                continue
            register(name, found)
        if len(named.parts) > 1 or named.as_of is not None:
            replaced.append((named, quoted(name)))
    encoded = text.encode()
    for named, name in sorted(replaced, reverse=True):
        encoded = encoded[: named.start] + name.encode() + encoded[named.start + named.length :]
    return Bound(encoded.decode(), wrong)


def _found(
    tables: _drumlin.Tables,
    store: _drumlin.Store | None,
    path: str,
    as_of: AsOf | None,
    wrong: dict[str, Exception],
    *,
    asks: bool,
) -> Any:
    """The table at a path that stands in a query without quotes, or in parts. If there is none, what is wrong is noted
    by the name that DuckDB will not find."""
    try:
        return _scanned(tables, store, path, None, as_of)
    except (InvalidArgument, NotFound, SchemaMismatch) as error:
        if asks:
            raise
        last = path.rpartition("/")[2]
        named: list[str] = [] if _FILE.search(path) else _tables_named(tables, last)
        hint = f"; did you mean {' or '.join(map(repr, named[:3]))}?" if named and path not in named else ""
        hint = "" if "did you mean" in str(error) else hint
        wrong.setdefault(path.replace("/", "."), NotFound(f"{error}{hint}") if hint else error)
        wrong.setdefault(last, wrong[path.replace("/", ".")])
        return None


def _tables_named(tables: _drumlin.Tables, name: str) -> list[str]:
    try:
        return tables.tables(f"**/{name}")
    except InvalidArgument:
        return []


def _tables_of(connection: Any, text: str) -> list[_Named]:
    """The tables that DuckDB's own parser sees in a query, without those that the query defines itself. None are known
    of a query that it does not take apart."""
    explains = _EXPLAIN.match(text)
    before = "" if explains is None else explains[0]
    asked = text[len(before) :]
    try:
        told = json.loads(connection.execute("select json_serialize_sql(?::varchar)", [asked]).fetchall()[0][0])
    except Exception:
        return []
    found: list[_Named] = []
    defined: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                walk(one)
        elif isinstance(node, dict):
            if isinstance(ctes := node.get("cte_map"), dict):
                defined.update(str(one.get("key", "")).casefold() for one in ctes.get("map", []))
            if node.get("type") == "BASE_TABLE" and (named := _named(node)) is not None:
                found.append(named)
            for one in node.values():
                walk(one)

    walk(told.get("statements", []))
    found = [named._replace(start=named.start + len(before.encode())) for named in found]
    return [named for named in found if len(named.parts) > 1 or named.parts[0].casefold() not in defined]


def _named(node: dict[str, Any]) -> _Named | None:
    path = (node.get("qualified_name") or {}).get("path")
    parts = path or [node.get(name) for name in ("catalog_name", "schema_name", "table_name")]
    start, length = node.get("query_location"), node.get("query_location_length")
    parts = tuple(part for part in parts if part)
    # Without a place in the text, as in DESCRIBE, a name in parts cannot be replaced.
    known = isinstance(start, int) and isinstance(length, int) and length > 0
    if not parts or (len(parts) > 1 and not known):
        return None
    when: AsOf | None = None
    if at := node.get("at_clause"):
        expr = at.get("expr") or {}
        literal = expr.get("literal") or {}
        told = literal.get("text", (expr.get("value") or {}).get("value"))
        while told is None and (expr := expr.get("child") or {}):
            # A cast, as of a timestamp.
            told = (expr.get("literal") or {}).get("text", (expr.get("value") or {}).get("value"))
        if told is None or not known:
            raise InvalidArgument("AT takes a literal: AT (VERSION => 3), AT (TIMESTAMP => '2026-01-31')")
        when = int(told) if _NUMBER.match(str(told)) else str(told)
    return _Named(start if known else 0, length if known else 0, parts, when)  # type: ignore[arg-type]


def _variable(name: str) -> Any:
    """A frame that the caller of this package has in a variable of that name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "drumlin":
        frame = frame.f_back
    if frame is None:
        return None
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    pandas = loaded("pandas")
    is_frame = hasattr(value, "__arrow_c_stream__") or (pandas is not None and isinstance(value, pandas.DataFrame))
    return value if is_frame and not isinstance(value, type) else None


def outside_quotes(text: str) -> str:
    """A text without its comments and what it has in quotes that are closed."""
    return _QUOTED.sub(" ", text)


def plain_quotes(text: str) -> str:
    """A text with quotes in place of dollars around its strings."""
    return _QUOTED.sub(lambda found: _plain(found[0]), text)


def _plain(text: str) -> str:
    if not text.startswith("$"):
        return text
    inner = text[text.index("$", 1) + 1 : text.rindex("$", 0, -1)]
    return literal(inner)


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
    # The first @ too, since names of snapshots may have some.
    for path, at, when in dict.fromkeys((name.rpartition("@"), name.partition("@"))):
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
