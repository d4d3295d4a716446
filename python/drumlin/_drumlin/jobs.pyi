"""Data sets and their parts, and rows staged for a job, as the core defines them."""

import datetime as dt
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

from drumlin._drumlin import Batches, Reading, Schema, Store, Stream
from drumlin._drumlin.plans import DatasetPlan
from drumlin._drumlin.reports import StagedReport

__all__ = [
    "Hold",
    "Dataset",
    "Join",
    "Lease",
    "Split",
    "SplitReader",
    "Stage",
    "Ticket",
    "Token",
    "abort_staged",
    "commit_staged",
    "stage_alone",
]

#: Of a data set, the columns (default: all) and filters.
_Side: TypeAlias = tuple[Dataset, tuple[list[str] | None, list[str]]]

@final
class Hold:
    """What is kept for other processes: a lease, or the rows staged for a job."""

    @property
    def number(self) -> int:
        """Its number, which is in the name of its folder of blocks."""
    @property
    def job(self) -> str | None:
        """The job for which rows are staged; None for a lease."""
    @property
    def replica(self) -> str | None:
        """Where the replica is that it is a lease for; None if it is for something else."""
    @property
    def beat(self) -> dt.datetime:
        """When its owner last renewed it, in UTC."""
    @property
    def life(self) -> dt.timedelta:
        """How long it lives after its last renewal."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Join:
    """A join of two data sets, not yet read."""

    @staticmethod
    def asof(
        left: _Side,
        right: _Side,
        on: tuple[str, str],
        by: list[str],
        suffix: str,
        direction: str,
        tolerance: tuple[bool, int] | None,
        allow_exact: bool,
    ) -> Join:
        """A join with the nearest row."""
    @staticmethod
    def window(
        left: _Side,
        right: _Side,
        on: tuple[str, str],
        by: list[str],
        before: tuple[bool, int],
        after: tuple[bool, int],
        aggregates: list[Any],
    ) -> Join:
        """A join with what is made of the rows in a window."""
    @property
    def schema(self) -> Schema:
        """The columns of the result."""
    def stream(self) -> Stream:
        """Joins, batch by batch."""
    def collect(self) -> Batches:
        """Joins all rows."""

@final
class Dataset:
    """One table, or all tables that match a pattern, as of one instant."""

    @staticmethod
    def of(reading: Reading) -> tuple[Dataset, str | None]:
        """What a reading shows, which must be without a limit, and its filter."""
    @property
    def schema(self) -> Schema:
        """The schema of all columns."""
    def for_engines(self) -> Dataset:
        """The same rows in types that an engine has, and for which it pushes down most filters."""
    def without_views(self) -> Dataset | None:
        """The same rows without Arrow views; None if there are none."""
    def with_narrow_decimals(self) -> Dataset | None:
        """The same rows with decimals of 128 bits in as few as they need; None if there are none."""
    @property
    def filter_schema(self) -> Schema:
        """The schema of all columns in the types that filters use."""
    @property
    def pattern(self) -> str:
        """The pattern."""
    @property
    def path_columns(self) -> list[str]:
        """The columns that hold names from paths."""
    @property
    def paths(self) -> list[str]:
        """The paths of the tables."""
    @property
    def versions(self) -> list[tuple[int, str | None] | None]:
        """The numbers of the versions that it shows, in the order of its tables, each with its metadata as JSON text;
        None for a table that its transaction has written."""
    def stream(self, columns: list[str] | None, filters: list[str], limit: int | None) -> Stream:
        """Scans the data set, batch by batch."""
    def collect(self, columns: list[str] | None, filters: list[str], limit: int | None) -> Batches:
        """Scans the data set, all at once and with all threads."""
    def count_rows(self, filters: list[str], limit: int | None) -> int:
        """The number of rows."""
    def check_readable(self, columns: list[str] | None) -> None:
        """Fails if one of the columns (default: any) cannot be read."""
    def rows_at_most(self, filters: list[str], limit: int | None) -> int:
        """An upper bound of the number of rows, without reading any."""
    def aggregate(self, keys: list[str], every: Any, aggregates: list[Any], filters: list[str]) -> Batches:
        """The aggregates of each group."""
    def plan(self, columns: list[str] | None, filters: list[str]) -> DatasetPlan:
        """The cost of reading it."""
    def split_by_table(self, filters: list[str]) -> list[Dataset]:
        """The tables one by one, each with the columns of all, without the tables that the filters rule
        out by paths and columns."""
    def splits(
        self,
        columns: list[str] | None,
        filters: list[str],
        limit: int | None,
        bytes: int,
        at_least: int,
        life_micros: int,
    ) -> tuple[list[Split], Lease]:
        """Parts for other processes, and the lease that keeps them readable."""
    def describe(self) -> bytes:
        """A description from which a store can make the data set again."""

_Progress: TypeAlias = Callable[[int, int, int, int, float | None], object]

@final
class Split:
    """Part of a data set."""

    def __new__(cls, encoded: bytes) -> Split: ...
    def encode(self) -> bytes: ...
    @property
    def uri(self) -> str: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def bytes(self) -> int: ...
    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """Bounds of the column that its table is sorted by: numbers in the unit of the column's type, or bytes."""

@final
class Lease:
    """Keeps what splits show from being deleted."""

    def beat(self) -> None: ...
    def end(self) -> None: ...
    @property
    def life_micros(self) -> int: ...

@final
class SplitReader:
    """Reads splits, without a store."""

    def __new__(cls, uri: str, settings: dict[str, Any]) -> SplitReader: ...
    @staticmethod
    def of(store: Store) -> SplitReader:
        """The reader of an open store."""
    def stream(self, split: Split, columns: list[str] | None, filter: str | None) -> Stream:
        """Reads a split, batch by batch."""
    def collect(self, split: Split, columns: list[str] | None, filter: str | None) -> Batches:
        """Reads a split, all at once."""

@final
class Ticket:
    """What the workers of a job need to stage rows."""

    def __new__(cls, encoded: bytes) -> Ticket: ...
    @staticmethod
    def open(store: Store, tables: list[tuple[str, Any]], settings: dict[str, Any]) -> Ticket:
        """Begins a job."""
    def encode(self) -> bytes: ...
    @property
    def job(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def life_micros(self) -> int: ...
    def schema(self, path: str) -> Schema | None: ...
    def beat(self, store: Store) -> None: ...
    def abort(self, store: Store) -> bool:
        """Ends the job. Returns whether it ended without a commit."""

@final
class Token:
    """Rows that are on storage but in no table yet."""

    def __new__(cls, encoded: bytes) -> Token: ...
    def encode(self) -> bytes: ...
    @property
    def path(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def job(self) -> str: ...
    @property
    def part(self) -> tuple[int, int] | None: ...

@final
class Stage:
    """Writes rows to storage for a worker."""

    def __new__(cls, uri: str, settings: dict[str, Any]) -> Stage: ...
    @staticmethod
    def of(store: Store) -> Stage:
        """The stage of an open store."""
    def write(
        self, ticket: Ticket, path: str, frame: Any, part: tuple[int, int] | None, progress: _Progress | None
    ) -> Token:
        """Writes rows for a table of the ticket."""

def stage_alone(
    store: Store,
    path: str,
    frame: Any,
    settings: dict[str, Any],
    part: tuple[int, int] | None,
    progress: _Progress | None,
) -> Token:
    """Writes rows for a table, as a job of their own."""

def commit_staged(
    store: Store,
    ticket: Ticket | None,
    tokens: list[Token],
    job: str | None,
    expected: dict[str, int],
    metadata: str | None,
    progress: _Progress | None,
) -> StagedReport:
    """Commits tokens."""

def abort_staged(store: Store, tokens: list[Token]) -> bool:
    """Ends the jobs of tokens. Returns whether none of them was committed."""
