"""What engines on many machines need from a store on their driver and on their workers: splits to read and tickets to
stage rows with, which are sent to the workers, and tokens, which come back. The core keeps what they refer to by a
lease or a stage (``crates/drumlin/src/catalog/holds.rs``)."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from drumlin._drumlin import StagedReport
from drumlin._errors import InDoubt, InvalidArgument
from drumlin._nouns.open import open as open_store
from drumlin._nouns.store import Store
from drumlin._processes.staged import Ticket, Token
from drumlin._values.evidence import a_type

__all__ = ["Driver", "bare", "read_split", "stage", "write_job"]

#: How often a commit without an answer is repeated.
_ATTEMPTS = 4


class Driver:
    """The driver's access to a store: an open one, or one that is opened for the job. Workers get no store, only what
    they need to reach its storage: its address and the settings that were given for it."""

    def __init__(self, store: Store | str, storage_options: Mapping[str, str] | None, mode: str) -> None:
        self.options = dict(storage_options or {})
        if isinstance(store, Store):
            self.store, self._own = store, False
            self.options = {**store._core.storage_options(), **self.options}
        elif isinstance(store, str):
            self.store = open_store(store, mode=mode, storage_options=self.options)  # type: ignore[arg-type]
            self._own = True
        else:
            raise TypeError(f"store must be a store or its address, not {a_type(store)}")

    def close(self) -> None:
        """Closes the store if it was opened for the job."""
        if self._own:
            with contextlib.suppress(Exception):
                self.store.close()

    def __reduce__(self) -> Any:
        raise InvalidArgument("a driver's store belongs to its process")


def write_job(
    store: Store | str,
    path: str,
    schema: Callable[[], Any],
    stage_all: Callable[[Ticket, dict[str, str]], list[bytes]],
    *,
    mode: Literal["append", "overwrite", "upsert"],
    sort: Iterable[str],
    job: str | None,
    expected_version: int | None,
    metadata: Any,
    storage_options: Mapping[str, str] | None,
) -> StagedReport:
    """Writes to one table with many processes: opens the job, calls ``stage_all``, which gets the settings of the
    workers' storage, stages everything and returns tokens, and commits these. ``schema`` returns the schema of the
    rows, for a new table."""
    driver = Driver(store, storage_options, "create")
    try:
        exists = mode != "overwrite" and driver.store.table(path).exists()
        tables = {path: None if exists else schema()}
        with driver.store.ticket(tables, mode=mode, job=job, sort=sort) as ticket:
            tokens = [Token(token) for token in stage_all(ticket, driver.options)]
            expected: dict[str, Any] = {"expected_version": expected_version, "metadata": metadata}
            # A commit without an answer is repeated: it is done only once.
            for _ in range(_ATTEMPTS):
                with contextlib.suppress(InDoubt):
                    return driver.store.commit(tokens, ticket=ticket, **expected)
            return driver.store.commit(tokens, ticket=ticket, **expected)
    finally:
        driver.close()


def bare(split: Any) -> Any:
    """A split in the form that a worker gets, without the reader of the process that made it."""
    kind, arguments = split.__reduce__()
    return kind(*arguments)


def read_split(split: Any, options: Mapping[str, str], rest: Any, columns: list[str] | None) -> Iterator[Any]:
    """A split's rows as pyarrow Tables, on a worker: those that ``rest``, a pyarrow expression, keeps."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    empty = True
    for batch in split.batches(storage_options=options):
        table = pa.Table.from_batches([batch])
        if rest is not None:
            table = table.filter(rest)
        if columns is not None:
            table = table.select(columns)
        empty = False
        yield table
    if empty:
        table = pa.table(split.to_arrow(storage_options=options))
        yield table if columns is None else table.select(columns)


def stage(ticket: Any, path: str, tables: Iterable[Any], task: int, options: Mapping[str, str]) -> list[bytes]:
    """Stages pyarrow Tables on a worker. Returns tokens. Consecutive tables with the same schema are staged
    together."""
    import itertools

    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    tokens = []
    filled = (table for table in tables if table.num_rows > 0)
    for part, (schema, alike) in enumerate(itertools.groupby(filled, lambda table: table.schema)):
        batches = itertools.chain.from_iterable(table.to_batches() for table in alike)
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        token = ticket.stage(path, reader, part=(task, part), storage_options=options)
        tokens.append(token._core.encode())
    return tokens
