"""The result of a look-up by key."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, final

from drumlin import _drumlin
from drumlin._habits import Habits
from drumlin._results.result import Result

if TYPE_CHECKING:
    import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
    import polars as _pl
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Lookup"]

_T = TypeVar("_T")


@final
class Lookup(Habits):
    """The rows for a list of keys, in the order of the keys, including repeated ones. It is a sequence of dicts, with
    None where there is no such row; :attr:`rows` has them as frames and Arrow data. Made by :meth:`Table.get_many
    <drumlin.Table.get_many>`.

    >>> import drumlin, pyarrow
    >>> store = drumlin.open("memory://")
    >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
    >>> _ = store.table("people").create(schema, key=["id"])
    >>> _ = store.table("people").upsert({"id": [1, 2], "name": ["Ada", "Grace"]})
    >>> answer = store.table("people").get_many([2, 5, 1])
    >>> answer.rows.to_arrow().to_pydict()
    {'id': [2, 5, 1], 'name': ['Grace', None, 'Ada']}
    >>> answer.found.to_pylist()
    [True, False, True]
    >>> len(answer), list(answer)[:2]
    (3, [{'id': 2, 'name': 'Grace'}, None])
    >>> answer.to_polars()["name"].to_list()
    ['Grace', None, 'Ada']
    """

    __slots__ = ("_core", "_path")

    def __init__(self, core: _drumlin.Lookup, path: str) -> None:
        self._core = core
        self._path = path

    @property
    def rows(self) -> Result:
        """One row for each key: its key and its values, which are null if there is no such row."""
        return self._result(self._core.rows)

    @property
    def keys(self) -> Result:
        """The requested keys: one row for each, with the key columns."""
        return self._result(self._core.keys)

    @property
    def found(self) -> _drumlin.Mask:
        """For each key, whether there is such a row."""
        return self._core.found

    def _result(self, batches: _drumlin.Batches) -> Result:
        return Result(batches, self._path, selects=True)

    def to_arrow(self) -> "_pa.Table":
        """The rows as a pyarrow Table."""
        return self.rows.to_arrow()

    def to_pandas(self, **options: Any) -> "_pd.DataFrame":
        """The rows as a pandas DataFrame. See :meth:`Result.to_pandas <drumlin.Result.to_pandas>`."""
        return self.rows.to_pandas(**options)

    def to_polars(self) -> "_pl.DataFrame":
        """The rows as a Polars DataFrame."""
        return self.rows.to_polars()

    def to_objects(self, kind: Callable[..., _T]) -> list[_T | None]:
        """The rows as objects, with None where there is no such row: see :meth:`Result.to_objects
        <drumlin.Result.to_objects>`."""
        return [None if row is None else kind(**row) for row in self]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._core)

    def __iter__(self) -> Iterator[dict[str, Any] | None]:
        return map(self._core.row, range(len(self)))

    def __getitem__(self, at: int) -> dict[str, Any] | None:
        return self._core.row(range(len(self))[at])

    def __repr__(self) -> str:
        return f"Lookup({self._path!r}, {self.found.count()} of {len(self)} keys found)"
