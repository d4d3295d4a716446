"""A relation of DuckDB whose errors are the store's own where they come from it: DuckDB knows only their text."""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from drumlin import _errors
from drumlin._engines.interrupts import attended, reader
from drumlin._optional import need

__all__ = ["Relation"]

#: What an error of a store begins with in the text of one of DuckDB's.
_OWN = re.compile(rf"\b({'|'.join(name for name in _errors.__all__ if name != 'Error')}): (.+)", re.DOTALL)

#: What other frames call methods of a relation.
_ALSO = {"to_pandas": "df", "to_polars": "pl", "to_arrow": "to_arrow_table"}


class Relation:
    """Everything that a relation of DuckDB has, and the relations that its methods give are of this kind, too.
    Ctrl-C ends what any of them does."""

    __slots__ = ("_connection", "_relation")

    def __init__(self, relation: Any, connection: Any) -> None:
        self._relation = relation
        self._connection = connection

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """What it passes for."""
        return type(self._relation)

    def __getattr__(self, name: str) -> Any:
        found = self._run(lambda: getattr(self._relation, _ALSO.get(name, name)))
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            return self._wrapped(self._run(lambda: found(*map(_plain, arguments), **named)))

        return call

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow_reader().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def __getitem__(self, name: str) -> Any:
        return self._wrapped(self._run(lambda: self._relation[name]))

    def __contains__(self, name: str) -> bool:
        return bool(self._run(lambda: name in self._relation))

    def __len__(self) -> int:
        return int(self._run(lambda: len(self._relation)))

    def __repr__(self) -> str:
        return str(self._run(lambda: repr(self._relation)))

    def __str__(self) -> str:
        return str(self._run(lambda: str(self._relation)))

    def _run(self, run: Any) -> Any:
        duckdb = need("duckdb", "sql()", "duckdb")
        try:
            return attended(self._connection, run)
        except duckdb.Error as error:
            _reraise(error)

    def _wrapped(self, value: Any) -> Any:
        duckdb = need("duckdb", "sql()", "duckdb")
        if type(value) is duckdb.DuckDBPyRelation:
            return Relation(value, self._connection)
        pa = need("pyarrow", "sql()", "duckdb")
        return reader(self._connection, value) if isinstance(value, pa.RecordBatchReader) else value


def _reraise(error: Exception) -> NoReturn:
    """Raises the store's own error, if its text is in that of DuckDB's."""
    if found := _OWN.search(str(error)):
        raise getattr(_errors, found[1])(found[2].strip()) from error
    raise error


def _plain(value: Any) -> Any:
    return value._relation if type(value) is Relation else value
