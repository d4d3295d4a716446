"""Stores and tables as containers: what of it they do, and for the rest the call that does it."""

from collections.abc import Iterator
from typing import Any, NoReturn

from drumlin import _drumlin
from drumlin._values.evidence import shown

__all__ = ["Paths", "RowsByKey"]


class Paths:
    """Tables by path."""

    __slots__ = ()

    _tables: _drumlin.Tables

    def __setitem__(self, path: str, data: Any) -> None:
        raise TypeError(f"a table is written with store.write({shown(path)}, data)")

    def __delitem__(self, path: str) -> None:
        raise TypeError(f"a table is dropped with store.drop({shown(path)})")

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._tables.table(path).exists()

    def __len__(self) -> int:
        raise TypeError("the number of tables is len(store.tables())")

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        """The paths of all tables, in order."""
        return iter(self._tables.tables("**"))


class RowsByKey:
    """Rows of a table by key."""

    __slots__ = ()

    _core: _drumlin.Table

    def __len__(self) -> int:
        return self._all().count_rows()

    def __bool__(self) -> bool:
        # Not whether it has rows, nor whether it exists.
        return True

    def __contains__(self, key: Any) -> bool:
        return self._core.get(key, None, None) is not None

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a table is no sequence: for batch in table.read(): ..., or table.read().to_dicts() for all rows"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "a table is not an array: call table.read().to_pandas() for a DataFrame, and "
            "table.read().to_pandas().to_numpy() for an array"
        )

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(
            f"a table is no sequence: a row by key is table.get({shown(key)}), columns are table.read(columns=[...]), "
            "rows by place are table.read(rows=slice(10, 20)), batches are for batch in table.read(): ..."
        )

    def __setitem__(self, key: Any, row: Any) -> None:
        raise TypeError("a row is written with table.upsert({'id': 1, ...}), which replaces the one with its key")

    def __delitem__(self, key: Any) -> None:
        raise TypeError(f"a row by key is deleted with table.delete_keys([{shown(key)}])")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._all().stream().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._core.schema(None).__arrow_c_schema__()

    def _all(self) -> _drumlin.Reading:
        return self._core.read(None, None, None, 0, None, None, False)
