"""Counters of a store's work."""

from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Durations", "Metrics"]


class Durations:
    """The durations of an operation, in seconds."""

    __slots__ = ("buckets", "count", "sum")

    #: Pairs of a bound in seconds and the number of durations up to it; ascending.
    buckets: list[tuple[float, int]]
    #: The number of durations.
    count: int
    #: The sum of the durations.
    sum: float

    def __init__(self, buckets: list[tuple[float, int]], count: int, sum: float) -> None:
        self.buckets, self.count, self.sum = buckets, count, sum

    def __repr__(self) -> str:
        return f"Durations(count={self.count}, sum={self.sum!r})"

    @property
    def mean(self) -> float:
        """The mean in seconds; 0.0 without durations."""
        return self.sum / self.count if self.count else 0.0


_Value = int | tuple[list[tuple[float, int]], int, float]
_Row = tuple[str, tuple[str, str] | None, str, str, _Value]


class Metrics(Mapping[str, int | Durations]):
    """Metrics by name, as of the call of :meth:`Store.metrics`. The names are those of Prometheus, some with a label:
    ``drumlin_storage_requests_total{kind="get"}``. A metric whose name ends in ``_total`` only grows; one whose name
    ends in ``_seconds`` is a :class:`Durations`.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.tree.put("a", 1)
    >>> metrics = store.metrics()
    >>> metrics["drumlin_commit_seconds"].count
    1
    >>> print(metrics.to_prometheus().splitlines()[2])
    drumlin_commits_total 1
    """

    __slots__ = ("_help", "_text", "_values")

    def __init__(self, rows: Sequence[_Row], text: str) -> None:
        self._values: dict[str, int | Durations] = {}
        self._help: dict[str, str] = {}
        self._text = text
        for name, label, told, _, value in rows:
            key = name if label is None else f'{name}{{{label[0]}="{label[1]}"}}'
            self._values[key] = value if isinstance(value, int) else Durations(*value)
            self._help[key] = told

    def __getitem__(self, name: str) -> int | Durations:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def help(self, name: str) -> str:
        """The description of a metric."""
        return self._help[name]

    def to_prometheus(self) -> str:
        """All metrics in the text format of Prometheus."""
        return self._text

    def __repr__(self) -> str:
        def text(value: int | Durations) -> str:
            return str(value) if isinstance(value, int) else f"{value.count} in {value.sum:.6g} s"

        return "\n".join(f"{name}: {text(value)}" for name, value in self._values.items())
