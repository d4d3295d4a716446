"""From a table with versions: each becomes a version of one table, the oldest first.

What a version only added is appended here; else all its rows are written. Rows stream through, and are read back before
the commit.
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
    """Rows that can be drawn, again where a commit is tried again."""

    schema: Any
    batches: Callable[[], Iterator[Any]]


class Step(NamedTuple):
    """One version of the source."""

    number: int
    time: str
    operation: str
    #: What the source says of the version, as JSON.
    details: dict[str, Any]
    #: All rows of the version.
    rows: Callable[[], Rows]
    #: The rows that it adds to those of the version before it, if it does nothing else.
    added: Callable[[], Rows | None]
    #: Whether the source still has what the version needs.
    readable: Callable[[], bool]


def bring(steps: list[Step], store: Store, path: str, origin: dict[str, Any], tally: Tally) -> None:
    """Brings the versions of one table that are not there."""
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
    """A version did not come over: a failure, unless it is an old one that the source itself has cleaned up."""
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
    """Writes rows, or appends them, and reads them back; gives their number and bytes. The version's metadata have
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
            # What the source said, without what Arrow's interface makes of it.
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
