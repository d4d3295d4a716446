"""SQL that changes tables: each statement is read by the core's parser, its query run by DuckDB, and its effect is
the operation of the store that Python has. A statement is one commit, and so are all from ``begin`` to ``commit``."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from drumlin import _drumlin
from drumlin._arguments.checks import AsOf
from drumlin._arguments.generated import from_sql
from drumlin._arguments.parameters import with_params
from drumlin._engines.interrupts import attended, rows
from drumlin._engines.merges import merged, of_sides
from drumlin._engines.refusals import check, check_dialect, with_way
from drumlin._engines.sql import (
    connect,
    keep_uuids,
    literal,
    outside_quotes,
    plain_quotes,
    prepare,
    query,
    quoted,
    relation,
    types_of,
)
from drumlin._errors import AlreadyExists, Conflict, InvalidArgument
from drumlin._optional import need

__all__ = ["answers", "changes", "script"]

#: What DuckDB calls statements that only read. Of many kinds are those that it makes of one, such as PIVOT.
_READS = {"SELECT", "EXPLAIN", "MULTI"}
#: What it calls those that change tables, and transactions.
_CHANGES = {"INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY", "TRANSACTION", "MERGE_INTO"}
#: How often a transaction is run again whose tables others have changed.
_ATTEMPTS = 20


class _Rollback(Exception):
    """Ends a transaction without a commit."""


@dataclass(frozen=True)
class InsertReport:
    """The result of an INSERT into a table without a key."""

    #: The number of added rows.
    rows: int
    #: The version that it made; None in a transaction.
    version: Any


def script(place: Any, text: str, as_of: AsOf | None, params: Any) -> Any:
    """Runs statements one after the other; returns what the last one gives: the relation of a query, or the report of a
    change."""
    last = None
    for answer in answers(place, text, as_of, params):
        last = answer
    return last


def answers(place: Any, text: str, as_of: AsOf | None, params: Any) -> Iterator[Any]:
    """Runs statements one after the other, and gives what each gives; of a transaction, when it has ended."""
    parts = _parts(text)
    if len(parts) > 1 and params is not None:
        raise InvalidArgument("params are for one statement; give each its own call")
    if as_of is not None and any(kind in _CHANGES for kind, _ in parts):
        raise InvalidArgument("as_of reads only; store.restore(table, version) makes an old version the newest")
    done, changed = 0, False
    for block in _blocks(place, parts, params):
        try:
            if isinstance(block, list):
                yield from _together(place, block, as_of)
                changed, done = True, done + len(block) + 1
            else:
                statement, told = block
                yield _one(place, statement, told, as_of, params)
                changed, done = changed or told is not None, done + 1
        except Exception as error:
            if changed:
                kept = "committed" if hasattr(place, "transaction") else "in the transaction"
                which = "the transaction from " if isinstance(block, list) else ""
                told_of = f"{which}statement {done + 1} of {len(parts)} failed; what those before it did is {kept}"
                error.args = (f"{told_of}: {error}", *error.args[1:])
            raise


def changes(text: str) -> bool:
    """Whether one of the statements of a text changes tables."""
    return any(kind in _CHANGES for kind, _ in _parts(text))


def _kind(kind: str, text: str) -> str:
    """What a statement does: DuckDB makes several of one that adds a column with a constraint."""
    alters = kind == "MULTI" and outside_quotes(text).strip().casefold().startswith("alter")
    return "ALTER" if alters else kind


def _parts(text: str) -> list[tuple[str, str]]:
    """The statements of a text, each with what DuckDB calls its kind."""
    duckdb = need("duckdb", "sql()", "duckdb")
    try:
        parts = [(_kind(part.type.name, part.query), part.query) for part in duckdb.cursor().extract_statements(text)]
    except duckdb.Error:
        # What DuckDB does not parse, we may.
        try:
            _drumlin.parse_statement(text)
        except InvalidArgument:
            check_dialect(text)
        else:
            return [("ALTER", text)]
        raise
    if not parts:
        raise InvalidArgument("the text has no statement")
    for kind, part in parts:
        check(part, known=kind in _READS | _CHANGES)
    return parts


#: The text of a statement, and what it is to do, if it changes something.
_Statement: TypeAlias = tuple[str, "dict[str, Any] | None"]


def _blocks(place: Any, parts: list[tuple[str, str]], params: Any) -> list[_Statement | list[_Statement]]:
    """The statements one by one, those between ``begin`` and ``commit`` as a list, at whose end is that or
    ``rollback``."""
    blocks: list[_Statement | list[_Statement]] = []
    begun: list[_Statement] | None = None
    for kind, part in parts:
        text = part if params is None or kind in _READS else with_params(part, params)
        told = None if kind in _READS else _parsed(text)
        match told:
            case {"do": "begin"}:
                if begun is not None or not hasattr(place, "transaction"):
                    raise InvalidArgument("a transaction has begun already, and has none within")
                begun = []
            case {"do": "commit" | "rollback" as end}:
                if begun is None:
                    raise InvalidArgument(
                        f"{end} without begin in the same text; at the prompt of drumlin sql they may be apart, in "
                        "Python with store.transaction() as tx: tx.sql(...)"
                    )
                blocks.append([*begun, (part, told)])
                begun = None
            case _:
                (blocks if begun is None else begun).append((part, told))
    if begun is not None:
        raise InvalidArgument(
            "the text begins a transaction and does not end it, so nothing was done; end it with commit; at the "
            "prompt of drumlin sql they may be apart, in Python with store.transaction() as tx: tx.sql(...)"
        )
    return blocks


def _parsed(text: str) -> dict[str, Any]:
    """What a statement is to do."""
    try:
        told: dict[str, Any] = json.loads(_drumlin.parse_statement(plain_quotes(text)))
    except InvalidArgument as error:
        raise InvalidArgument(with_way(str(error))) from None
    return told


def _one(place: Any, text: str, told: dict[str, Any] | None, as_of: AsOf | None, params: Any) -> Any:
    if told is None:
        return query(place._at_one_instant(), text, as_of, params)
    if _reads_nothing(told) and hasattr(place, "transaction"):
        # Its report has the version, which has no number in a transaction.
        return _again(lambda: _DO[told["do"]](place, told))
    return _again(lambda: place._atomically(lambda tables: _DO[told["do"]](tables, told)))


def _reads_nothing(told: dict[str, Any]) -> bool:
    """Whether a statement is one call of the store, and no query that reads tables."""
    if told["do"] == "insert":
        query = outside_quotes(told["query"] or "").casefold()
        return query.startswith("values") and "from" not in query
    return told["do"] in ("update", "delete", "create_index", "drop_index")


def _together(place: Any, block: list[_Statement], as_of: AsOf | None) -> Iterator[Any]:
    """The statements of a transaction in one commit; gives what each of them gives, rows as they are read now."""
    *statements, (_, end) = block
    made: list[Any] = []

    def run(tables: Any) -> None:
        made.clear()
        for text, told in statements:
            made.append(
                query(tables, text, as_of, None).to_arrow_table() if told is None else _DO[told["do"]](tables, told)
            )
        if end == {"do": "rollback"}:
            raise _Rollback

    try:
        _again(lambda: place._atomically(run))
    except _Rollback:
        pass
    except Exception:
        yield from made
        raise
    yield from made


def _again(run: Callable[[], Any]) -> Any:
    """Runs a change; again if rows written by key had to become row groups first, or others were faster."""
    for _ in range(_ATTEMPTS):
        try:
            return run()
        except Conflict:
            continue
    return run()


def _rows(place: Any, text: str, table: str, columns: list[str]) -> Any:
    """The rows of a query in the types that columns of a table have, as an Arrow reader."""
    connection = connect()
    types = types_of(connection, place, table)
    for name in columns:
        if name not in types:
            raise InvalidArgument(f"{table!r} has no column {name!r}; the columns are {list(types)}")
    bound = prepare(connection, place, text, None)
    given = len(relation(connection, bound).columns)
    if given != len(columns):
        raise InvalidArgument(f"{table!r}: {len(columns)} columns, but {given} values")
    keep_uuids(connection, types)
    casts = ", ".join(f"cast(#{at} as {types[name]}) as {quoted(name)}" for at, name in enumerate(columns, 1))
    return rows(connection, connection.sql(f"select {casts} from ({bound.text}) as rows"))


#: The metadata of versions that an INSERT of rows by key makes.
_NOTE = {"sql": "insert"}


def _insert(place: Any, told: dict[str, Any]) -> Any:
    table = place.table(told["table"])
    names = table.schema().names
    columns = told["columns"] or names
    if told["query"] is None:
        raise InvalidArgument("INSERT needs VALUES or a query")
    given = _rows(place, told["query"], told["table"], columns)
    # Columns that are not named get their default.
    schema = "strict" if set(columns) == set(names) else "evolve"
    key, conflict, returning = table.stat().key, told["conflict"], told.get("returning")
    if returning == ["*"]:
        returning = names
    # Statements that follow in the same transaction may change what is in a version, not what is in memory alone.
    if conflict is None:
        if key:
            return _told(table.insert(given, schema=schema, metadata=_NOTE, returning=returning or False), returning)
        if returning is not None:
            raise InvalidArgument(f"{told['table']!r} has no key: RETURNING gives rows by their keys")
        pa, count = need("pyarrow", "sql()", "duckdb"), 0

        def counted() -> Iterator[Any]:
            nonlocal count
            for batch in given:
                count += batch.num_rows
                yield batch

        version = table.append(pa.RecordBatchReader.from_batches(given.schema, counted()), schema=schema)
        return InsertReport(count, version)
    if not key:
        raise InvalidArgument(f"{told['table']!r} has no key, by which rows could conflict")
    if conflict["do"] == "replace":
        return _told(table.upsert(given, schema=schema, metadata=_NOTE, returning=returning or False), returning)
    if returning is not None:
        raise InvalidArgument("ON CONFLICT DO UPDATE or NOTHING has no RETURNING; select the rows by a statement")
    if conflict["on"] and set(conflict["on"]) != set(key):
        raise InvalidArgument(f"ON CONFLICT is for the key {key}, not for {conflict['on']}")
    merge = table.merge(given, on=key)
    if conflict["do"] == "update":

        def sides(text: str | None) -> str | None:
            return None if text is None else of_sides(text, {"excluded": "source"}, lambda _: "target", {*names})

        merge.when_matched(
            update={name: sides(value) for name, value in conflict["set"]}, condition=sides(conflict["where"])
        )
    return merge.when_not_matched(insert=True).execute()


def _told(report: Any, returning: list[str] | None) -> Any:
    """What a statement gives: the rows that it returns, or what it did."""
    return report if returning is None else report.returned


def _update(place: Any, told: dict[str, Any]) -> Any:
    return place.table(told["table"]).update(dict(told["set"]), where=told["where"])


def _delete(place: Any, told: dict[str, Any]) -> Any:
    return place.table(told["table"]).delete(told["where"] or "true")


def _truncate(place: Any, told: dict[str, Any]) -> Any:
    return [place.table(table).delete("true") for table in told["tables"]][-1]


def _drop(place: Any, told: dict[str, Any]) -> Any:
    return place.drop(told["tables"], missing_ok=told["if_exists"])


def _create(place: Any, told: dict[str, Any]) -> Any:
    table = place.table(told["table"])
    exists = table.exists()
    if exists and told["if_not_exists"]:
        return None
    if exists and not told["replace"]:
        raise AlreadyExists(f"there is a table at {told['table']!r}")
    if told["query"] is not None:
        if told["columns"] or told["key"] or told["checks"] or told["unique"]:
            raise InvalidArgument("CREATE TABLE AS takes no columns, key or checks; create the table, then insert")
        connection = connect()
        made = relation(connection, prepare(connection, place, told["query"], None))
        # They may be rows of the table that is replaced.
        given = rows(connection, made)
        if exists:
            given = given.read_all()
            table.drop()
        return table.write(given)
    if exists:
        table.drop()
    columns = told["columns"]
    made = table.create({one["name"]: one["type"] for one in columns}, key=told["key"])
    required = [one["name"] for one in columns if one["not_null"] or one["name"] in told["key"]]
    defaults = {one["name"]: _default(one["default"], one["type"]) for one in columns if one["default"] is not None}
    checks = {name or f"check_{at}": check for at, (name, check) in enumerate(told["checks"], 1)}
    for name, unique in told["unique"]:
        table.create_index(name or "_".join(unique), unique, unique=True)
    if required or defaults or checks:
        return table.add_constraints(not_null=required, defaults=defaults or None, checks=checks or None)
    return made


def _create_index(place: Any, told: dict[str, Any]) -> None:
    table, name = place.table(told["table"]), told["name"]
    if told["if_not_exists"] and any(index.name == name for index in table.indexes()):
        return
    table.create_index(name, told["columns"], where=told["where"], unique=told["unique"])


def _drop_index(place: Any, told: dict[str, Any]) -> None:
    table = place.table(told["table"])
    known = {index.name for index in table.indexes()} if told["if_exists"] else set(told["names"])
    for name in told["names"]:
        if name in known:
            table.drop_index(name)


def _default(text: str, kind: str) -> Any:
    """The default that an expression without columns says."""
    return from_sql(text) or _value(text, kind)


def _value(text: str, kind: str) -> Any:
    """The value of an expression without columns."""
    return connect().sql(f"select cast({text} as {kind})").fetchall()[0][0]


def _alter(place: Any, told: dict[str, Any]) -> Any:
    table = place.table(told["table"])
    if told["if_exists"] and not table.exists():
        return None
    answer = None
    for change in told["changes"]:
        answer = _altered(place, table, change)
    return answer


def _altered(place: Any, table: Any, change: dict[str, Any]) -> Any:
    names = table.schema().names
    match change:
        case {"do": "add", "column": column, "if_not_exists": lenient}:
            if lenient and column["name"] in names:
                return None
            kind, default = column["type"], column["default"]
            given = kind if default is None else (kind, _default(default, kind))
            made = table.add_columns({column["name"]: given})
            if column["unique"]:
                table.create_index(column["name"], column["name"], unique=True)
            return table.add_constraints(not_null=column["name"]) if column["not_null"] else made
        case {"do": "drop", "columns": columns, "if_exists": lenient}:
            there = [name for name in columns if name in names or not lenient]
            return table.drop_columns(there) if there else None
        case {"do": "rename", "old": old, "new": new}:
            return table.rename_columns({old: new})
        case {"do": "move", "to": to}:
            return place.move(table.path, to)
        case {"do": "widen", "column": name, "type": kind}:
            return table.widen({name: kind})
        case {"do": "not_null", "column": name}:
            return table.add_constraints(not_null=name)
        case {"do": "nullable", "column": name}:
            return table.drop_constraints(not_null=name)
        case {"do": "default", "column": name, "value": value}:
            kind = types_of(connect(), place, table.path).get(name, "varchar")
            return table.add_constraints(defaults={name: _default(value, kind)})
        case {"do": "no_default", "column": name}:
            return table.drop_constraints(defaults=name)
        case {"do": "check", "name": name, "check": check}:
            return table.add_constraints(checks={name or f"check_{len(table.constraints().checks) + 1}": check})
        case {"do": "no_check", "name": name, "if_exists": lenient}:
            if lenient and name not in table.constraints().checks:
                return None
            return table.drop_constraints(checks=name)
    raise InvalidArgument(f"ALTER TABLE: {change}")


def _copy(place: Any, told: dict[str, Any]) -> Any:
    if not told["to"]:
        if told["options"]:
            raise InvalidArgument(
                f"COPY FROM takes no options; use insert into t select * from read_csv({told['file']!r}, ...)"
            )
        asked = {"query": f"select * from {literal(told['file'])}", "conflict": None}
        return _insert(place, {**asked, "table": told["table"], "columns": told["columns"]})
    columns = ", ".join(map(quoted, told["columns"])) or "*"
    text = told["query"] or f"select {columns} from {quoted(told['table'])}"
    connection = connect()
    bound = prepare(connection, place, text, None)
    relation(connection, bound)
    text = f"copy ({bound.text}) to {literal(told['file'])} {told['options']}"
    return attended(connection, lambda: connection.sql(text))


_DO: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "insert": _insert,
    "merge": merged,
    "update": _update,
    "delete": _delete,
    "truncate": _truncate,
    "drop": _drop,
    "create": _create,
    "create_index": _create_index,
    "drop_index": _drop_index,
    "alter": _alter,
    "copy": _copy,
}
