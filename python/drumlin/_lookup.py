"""What a look-up by key gives."""

from typing import final

from drumlin import _drumlin
from drumlin._result import Result

__all__ = ["Lookup"]


@final
class Lookup:
    """The rows of the keys that were asked for, in the order of the question, a key as often as it was asked for; made
    by :meth:`Store.get_rows <drumlin.Store.get_rows>`.

    >>> import drumlin, pyarrow
    >>> store = drumlin.open("memory://")
    >>> schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
    >>> _ = store.create("people", schema, key=["id"])
    >>> _ = store.upsert("people", {"id": [1, 2], "name": ["Ada", "Grace"]})
    >>> answer = store.get_rows("people", [2, 5, 1])
    >>> answer.rows.to_arrow().to_pydict()
    {'id': [2, 5, 1], 'name': ['Grace', None, 'Ada']}
    >>> answer.found.to_pylist()
    [True, False, True]
    """

    __slots__ = ("_core", "_path")

    def __init__(self, core: _drumlin.Lookup, path: str) -> None:
        self._core = core
        self._path = path

    @property
    def rows(self) -> Result:
        """A row for each key: its key and its values, which are null where there is no such row."""
        return self._result(self._core.rows)

    @property
    def keys(self) -> Result:
        """The keys that were asked for: a row for each, of the key columns."""
        return self._result(self._core.keys)

    @property
    def found(self) -> _drumlin.Mask:
        """For each key whether there is such a row."""
        return self._core.found

    def _result(self, batches: _drumlin.Batches) -> Result:
        return Result(batches, self._path, selects=True)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"Lookup({self._path!r}, {self.found.count()} of {len(self)} keys found)"
