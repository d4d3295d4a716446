"""Statements that a store has not, and what to use in their place."""

import re

from drumlin._engines.sql import outside_quotes
from drumlin._errors import InvalidArgument

__all__ = ["check", "check_dialect", "with_way"]

#: What DuckDB would do in its own memory, which each call has for itself, by the words it begins with.
_LOST = {
    r"(force\s+)?checkpoint": "use store.checkpoint(), or the command drumlin checkpoint STORE",
    r"vacuum": "use store.vacuum(), or the command drumlin vacuum STORE",
    r"analyze": "there is nothing to do: a store keeps the statistics of its tables by itself",
    r"export": "use copy t to 'file', or the command drumlin export STORE TABLE FILE",
    r"import": "use copy t from 'file', or the command drumlin import STORE FILE",
    r"pragma|call|show\s+(databases|schemas)|show(?!\s+\S)": "use show tables, or describe t",
    r"use": "name tables by their whole path, as in prices.us.aapl or 'prices/us/aapl'",
    r"attach|detach": "a statement is for one store; in Python, duckdb.connect() reads store.scan(pattern) of several",
    r"set|reset|install|load": "in Python, duckdb.connect() has settings and extensions, and reads store.scan(pattern)",
    r"prepare|execute|deallocate": "in Python, give store.sql(text, params=[...]) values",
}
_CATALOG = re.compile(r"\b(information_schema\s*\.\s*\w+|pg_catalog\s*\.\s*\w+|duckdb_\w+\s*\()", re.IGNORECASE)

#: What the core does not parse, by a word of its message.
_WAYS = {
    "VIEW": "there are no views; create table t as select ... keeps the rows",
    "SCHEMA": "there is nothing to create: create table a.b.t makes the path a/b/t",
    "TEMPORARY": "there are no temporary tables; use with t as (select ...) in the query that needs it",
    "REFERENCES": "there are no foreign keys",
    "FOREIGN": "there are no foreign keys",
    "UNIQUE": "create unique index name on table (columns) makes columns unique",
    "RETURNING": "there is no RETURNING, LIMIT or second table; select the rows by a statement of their own",
}
_NO_WAY = "there is no statement for it"
_CORE = "; use the call of the store that does it; help(drumlin.Store) lists them"

_OLD = re.compile(r"\bat\s*\(\s*(version|timestamp)\s+[^=\s]|\bas\s+of\b", re.IGNORECASE)
_SLASHES = re.compile(r"\b(?:from|join|into|update|table|describe|summarize)\s+(\w+(?:/\w+)+)", re.IGNORECASE)


def check(statement: str, *, known: bool) -> None:
    """Fails if DuckDB would run a statement in its own memory, or read its own catalog."""
    plain = outside_quotes(statement).strip()
    for begins, way in _LOST.items():
        if found := re.match(rf"(?:{begins})(?!\w)", plain, re.IGNORECASE):
            raise InvalidArgument(f"{found[0].upper()} would be lost, since each call has a DuckDB of its own; {way}")
    if found := _CATALOG.search(plain):
        raise InvalidArgument(
            f"{found[1].rstrip('( ')} is of DuckDB's own memory, where no table of the store is; use show tables, or "
            "describe t"
        )
    if not known:
        raise InvalidArgument(f"a store has no statement like this: {statement.strip()[:60]}")


def check_dialect(text: str) -> None:
    """Fails if a text that DuckDB does not parse is what others write for what it has."""
    plain = outside_quotes(text)
    if _OLD.search(plain):
        raise InvalidArgument("an old version is t AT (VERSION => 0), or t AT (TIMESTAMP => '2026-01-31')")
    if found := _SLASHES.search(plain):
        raise InvalidArgument(
            f"a path with slashes is in quotes, '{found[1]}', or has dots: {found[1].replace('/', '.')}"
        )


def with_way(message: str) -> str:
    """A message of the core's about a statement, with what to use in its place."""
    if not message.endswith(_CORE):
        return message
    ways = [way for word, way in _WAYS.items() if word in message]
    return f"{message.removesuffix(_CORE)}; {ways[0] if ways else _NO_WAY}"
