"""What a store has counted of its work."""

from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Durations", "Metrics"]


class Durations:
    """How long something took, each time it was done, in seconds."""

    __slots__ = ("buckets", "count", "sum")

    #: Pairs of a number of seconds, and how many took no longer; ascending.
    buckets: list[tuple[float, int]]
    #: How many there were.
    count: int
    #: How long they took together.
    sum: float

    def __init__(self, buckets: list[tuple[float, int]], count: int, sum: float) -> None:
        self.buckets, self.count, self.sum = buckets, count, sum

    def __repr__(self) -> str:
        return f"Durations(count={self.count}, sum={self.sum!r})"

    @property
    def mean(self) -> float:
        """The mean in seconds; 0.0 if there were none."""
        return self.sum / self.count if self.count else 0.0


_Value = int | tuple[list[tuple[float, int]], int, float]
_Row = tuple[str, tuple[str, str] | None, str, str, _Value]


class Metrics(Mapping[str, int | Durations]):
    """Numbers by name, as they were when :meth:`Store.metrics` was called. Names are those of Prometheus, with a label
    where there is one: ``drumlin_storage_requests_total{kind="get"}``. What ends in ``_total`` only grows; what ends in
    ``_seconds`` is :class:`Durations`.

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
        """What a metric says."""
        return self._help[name]

    def to_prometheus(self) -> str:
        """All of them in the text format that Prometheus reads."""
        return self._text

    def __repr__(self) -> str:
        def text(value: int | Durations) -> str:
            return str(value) if isinstance(value, int) else f"{value.count} in {value.sum:.6g} s"

        return "\n".join(f"{name}: {text(value)}" for name, value in self._values.items())
