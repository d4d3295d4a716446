"""Imports a table with versions: each becomes a version of one table, the oldest first.

Rows are appended if a version only adds some; otherwise all rows of the version are written. Rows are streamed, and
are read back before the commit.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from drumlin import Error, Store, Transaction
from drumlin.migrate.digest import ArrowDigest
from drumlin.migrate.metadata import as_json
from drumlin.migrate.packages import need
from drumlin.migrate.record import FATAL, Mismatch, commit, found, message
from drumlin.migrate.report import Tally


class Rows(NamedTuple):
    """Rows that can be read repeatedly, since a commit may be tried again."""

    schema: Any
    batches: Callable[[], Iterator[Any]]


class Step(NamedTuple):
    """One version of the source."""

    number: int
    time: str
    operation: str
    #: What the source says about the version, which becomes metadata.
    details: dict[str, Any]
    #: All rows of the version.
    rows: Callable[[], Rows]
    #: The rows that it adds to the version before it, if it does nothing else; else None.
    added: Callable[[], Rows | None]
    #: Whether the source still has the files of the version.
    readable: Callable[[], bool]


def bring(steps: list[Step], store: Store, path: str, origin: dict[str, Any], tally: Tally) -> None:
    """Imports the versions of one table that are not in the store."""
    tally.expect(len(steps))
    name = path
    there = found(store, path, origin, {step.number: step.time for step in steps})
    newest = there.newest
    later = [step for step in steps if newest is None or step.number > newest]
    older = [step for step in steps[: len(steps) - len(later)] if step.number not in there.numbers]
    lost = older if len(older) > there.deleted else []
    for step in lost:
        said = "an earlier run did not bring it, and later versions are there: drop the table, and run again"
        _miss(step, said, steps, name, tally)
    tally.skip(len(steps) - len(later) - len(lost))
    before = {step.number: earlier.number for earlier, step in pairwise(steps)}
    for step in later:
        follows = newest is not None and before.get(step.number) == newest
        try:
            rows, size = _bring(step, store, path, origin, follows)
        except FATAL:
            raise
        except Exception as error:
            _miss(step, error, steps, name, tally)
            continue
        newest = step.number
        tally.brought(name, rows, size)


def _miss(step: Step, reason: object, steps: list[Step], name: str, tally: Tally) -> None:
    """Reports a version that was not migrated: a failure, unless the source itself has removed its files."""
    if step is not steps[-1] and not step.readable():
        tally.gone(f"{name} version {step.number}: its files are no longer in the source")
    else:
        tally.fail(name, step.number, reason, 1)


def _bring(step: Step, store: Store, path: str, origin: dict[str, Any], follows: bool) -> tuple[int, int]:
    added = step.added() if follows else None
    rows = step.rows() if added is None else added
    said = message(origin, step.number, step.time, operation=step.operation)
    counted = (0, 0)

    def write(tx: Transaction) -> None:
        nonlocal counted
        counted = write_rows(tx, path, rows, step.details, append=added is not None)

    commit(store, said, write)
    return counted


def write_rows(
    tx: Transaction, path: str, rows: Rows, details: dict[str, Any], *, append: bool = False
) -> tuple[int, int]:
    """Writes or appends rows, reads them back, and returns their number and size in bytes. The version's metadata are
    ``details`` and the digest."""
    pyarrow = need("pyarrow", "a migration", "pyarrow")
    table = tx.table(path)
    before = table.stat().rows if append else 0
    digest = ArrowDigest(rows.schema)
    wrong: Exception | None = None

    def drawn() -> Iterator[Any]:
        nonlocal wrong
        try:
            yield from digest.passing(rows.batches())
        except Exception as error:
            wrong = error
            raise

    stream = pyarrow.RecordBatchReader.from_batches(rows.schema, drawn())
    try:
        _ = table.append(stream) if append else table.write(stream)
    except Error:
        if wrong is not None:
            # The error of the source, not the one that Arrow's interface made of it.
            raise wrong from None
        raise
    sent = digest.hexdigest()
    result = table.read(rows=slice(before, None)) if append else table.read()
    back: ArrowDigest | None = None
    for batch in result:
        back = back or ArrowDigest(batch.schema)
        back.take(batch)
    back = back or ArrowDigest(pyarrow.schema(result))
    if back.hexdigest() != sent:
        raise Mismatch(
            f"the store reads back {back.rows} rows other than the {digest.rows} written to '{path}', or columns of "
            "other types; nothing was committed"
        )
    table.set_metadata(as_json({**details, "sha256": sent}))
    return digest.rows, digest.bytes
