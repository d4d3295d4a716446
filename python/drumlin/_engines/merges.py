"""``MERGE INTO`` as a merge of the store: what is equal, and expressions of which each column has a side."""

import re
from collections.abc import Callable
from typing import Any

from drumlin._engines.interrupts import rows
from drumlin._engines.sql import connect, keep_uuids, prepare, quoted, relation, types_of
from drumlin._errors import InvalidArgument

__all__ = ["merged", "of_sides"]

#: In an expression: text in quotes, or a name, in parts and quotes or not, and whether it is that of a function.
_WORD = re.compile(
    r"""'(?:[^']|'')*'|(?P<name>(?:[A-Za-z_]\w*|"(?:[^"]|"")*")(?:\.(?:[A-Za-z_]\w*|"(?:[^"]|"")*"))*)(?P<call>\s*\()?"""
)
_PART = re.compile(r"""[A-Za-z_]\w*|"(?:[^"]|"")*\"""")
#: A column of one side of a merge.
_COLUMN = re.compile(r"""(target|source)\.([A-Za-z_]\w*|"(?:[^"]|"")*")\Z""")


def of_sides(text: str, called: dict[str, str], bare: Callable[[str], str], known: set[str]) -> str:
    """An expression of SQL in the words of a merge: columns are of ``source`` or of ``target``. ``called`` says which
    of them a name in front of a column is, ``bare`` which one a ``known`` column is of without one."""
    columns = {name.casefold() for name in known}

    def side(match: "re.Match[str]") -> str:
        if match["name"] is None or match["call"] is not None:
            return match[0]
        first, *rest = _PART.findall(match["name"])
        plain = _unquoted(first)
        if rest and plain.casefold() in called:
            return ".".join([called[plain.casefold()], *rest])
        return f"{bare(plain)}.{match[0]}" if plain.casefold() in columns else match[0]

    return _WORD.sub(side, text)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def merged(place: Any, told: dict[str, Any]) -> Any:
    table = place.table(told["table"])
    names = table.schema().names
    connection = connect()
    types = types_of(connection, place, told["table"])
    keep_uuids(connection, types)
    bound = prepare(connection, place, f"select * from {told['source']}", None)
    source = relation(connection, bound).columns
    called = {told["called"].casefold(): "target"}
    if told["source_called"] is not None:
        called[told["source_called"].casefold()] = "source"

    def whose(column: str) -> str:
        sides = [side for side, among in (("target", names), ("source", source)) if column in among]
        if len(sides) != 1:
            raise InvalidArgument(
                f"{column!r} is a column of {'both tables' if sides else 'neither table'}; write "
                f"{told['called']}.{column}, or that of the source"
            )
        return sides[0]

    def sided(text: str | None, bare: Callable[[str], str] = whose) -> str | None:
        return None if text is None else of_sides(text, called, bare, {*names, *source})

    keys: dict[str, str] = {}
    for pair in told["on"]:
        sides = {found[1]: _unquoted(found[2]) for text in pair if (found := _COLUMN.match(str(sided(text))))}
        if sides.keys() != {"target", "source"}:
            raise InvalidArgument(f"ON {' = '.join(pair)}: expected a column of the table, and one of the source")
        keys[sides["target"]] = sides["source"]
    # The columns that must be equal have the same name on both sides.
    wanted = {key: name for key, name in keys.items() if key != name}
    if taken := [key for key in wanted if key in source]:
        raise InvalidArgument(f"the source has a column {taken[0]!r} that is another one; select it by another name")

    def cast(at: int, name: str) -> str:
        return f"cast(#{at} as {types[name]}) as {quoted(name)}" if name in types else f"#{at} as {quoted(name)}"

    chosen = [cast(at, name) for at, name in enumerate(source, 1)]
    chosen += [cast(source.index(name) + 1, key) for key, name in wanted.items()]
    text = f"select {', '.join(chosen)} from ({bound.text}) as rows"
    merge = table.merge(rows(connection, connection.sql(text)), on=list(keys))
    for clause in told["clauses"]:
        action = clause["action"]
        bare = {"matched": whose, "not_matched": lambda _: "source", "by_source": lambda _: "target"}[clause["when"]]
        condition = sided(clause["condition"], bare)
        match clause["when"], action["do"]:
            case "matched", "delete":
                merge.when_matched(delete=True, condition=condition)
            case "matched", "update":
                both = {name: f"source.{quoted(name)}" for name in names if name in source and name not in keys}
                values = both if action["set"] is None else {name: sided(value) for name, value in action["set"]}
                merge.when_matched(update=values, condition=condition)
            case "not_matched", "insert":
                columns = action["columns"] or names
                given = action["values"] or [quoted(name) for name in columns if name in {*source, *keys}]
                if action["values"] is None:
                    columns = [name for name in columns if name in {*source, *keys}]
                if len(given) != len(columns):
                    raise InvalidArgument(f"{told['table']!r}: {len(columns)} columns, but {len(given)} values")
                texts = [of_sides(value, called, bare, {*source, *keys}) for value in given]
                merge.when_not_matched(insert=dict(zip(columns, texts, strict=True)), condition=condition)
            case "by_source", "delete":
                merge.when_not_matched_by_source(delete=True, condition=condition)
            case "by_source", "update":
                values = {name: sided(value, bare) for name, value in action["set"] or []}
                merge.when_not_matched_by_source(update=values, condition=condition)
            case when, done:
                raise InvalidArgument(f"MERGE: rows that are {when} take no {done}")
    return merge.execute()
