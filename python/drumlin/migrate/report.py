"""Reports what a migration did: its threads count, and the caller gets the sums at the end."""

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec

from drumlin import Error, Progress

__all__ = ["Failure", "Incomplete", "Report"]

_P = ParamSpec("_P")


@dataclass(frozen=True)
class Failure:
    """Something that was not migrated."""

    #: The symbol, table, file or snapshot.
    name: str
    #: Its version in the source; None if the failure concerns all of its versions.
    version: int | None
    #: Why it was not migrated.
    reason: str

    def __str__(self) -> str:
        return f"{self.name}{'' if self.version is None else f' version {self.version}'}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """What one run of a migration did.

    >>> from drumlin.migrate import Failure, Report
    >>> print(Report("arcticdb", symbols=2, versions=10, rows=1000, bytes=16000, seconds=0.5, skipped=3))
    arcticdb: 10 versions of 2 symbols, 1,000 rows, 16.0 kB in 0.5 s; 3 versions were there
    >>> print(Report("arcticdb", failures=[Failure("model", 0, "it is pickled")]))
    arcticdb: 0 versions of 0 symbols, 0 rows, 0 B in 0.0 s
      failed: model version 0: it is pickled
    """

    #: The other system: ``"arcticdb"``, ``"to parquet"`` and so on.
    kind: str
    #: The number of symbols or tables of which something was migrated in this run.
    symbols: int = 0
    #: The number of versions that were migrated in this run; for an export, of files.
    versions: int = 0
    #: The number of their rows.
    rows: int = 0
    #: Their size in memory, in bytes; for an export, that of the files.
    bytes: int = 0
    #: How long the run took.
    seconds: float = 0.0
    #: The number of versions that an earlier run had migrated.
    skipped: int = 0
    #: The names of the snapshots that were made in this run.
    snapshots: list[str] = field(default_factory=list)
    #: What was not migrated.
    failures: list[Failure] = field(default_factory=list)
    #: Differences from the source, each as a sentence.
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything was migrated."""
        return not self.failures

    def __str__(self) -> str:
        unit = "versions" if not self.kind.startswith("to ") else "files"
        of = "symbols" if self.kind == "arcticdb" else "tables"
        said = f"{self.kind}: {self.versions:,} {unit} of {self.symbols:,} {of}, {self.rows:,} rows, "
        said += f"{bytes_text(self.bytes)} in {self.seconds:.1f} s"
        if self.skipped:
            said += f"; {self.skipped:,} versions were there"
        if self.snapshots:
            said += f"; {len(self.snapshots):,} snapshots"
        lines = [f"  note: {note}" for note in self.notes] + [f"  failed: {failure}" for failure in self.failures]
        return "\n".join([said, *lines])


class Incomplete(Error):
    """Raised at the end of a migration with ``strict=True`` if something was not migrated. Everything else was;
    :attr:`report` has the details."""

    __module__ = "drumlin.migrate"

    def __init__(self, report: Report) -> None:
        self.report = report
        first = "; ".join(map(str, report.failures[:3]))
        more = f"; and {len(report.failures) - 3} more" if len(report.failures) > 3 else ""
        super().__init__(f"{len(report.failures)} did not come over: {first}{more}")


def bytes_text(count: float) -> str:
    """A number of bytes as text, such as ``1.5 MB``."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def reason_text(reason: object) -> str:
    """A reason in one line. Messages of other packages may have many."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    return f"{type(reason).__name__}: {first}" if isinstance(reason, BaseException) else first


class _Halted(BaseException):
    """Carries what the caller's progress function raised, so that it is not taken for the failure of a version."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def halts(migration: Callable[_P, Report]) -> Callable[_P, Report]:
    """Decorates a migration so that it raises what its progress function raised."""

    @functools.wraps(migration)
    def call(*arguments: _P.args, **named: _P.kwargs) -> Report:
        try:
            return migration(*arguments, **named)
        except _Halted as halted:
            raise halted.error from None

    return call


class Tally:
    """Counts what the threads do, and calls the caller's progress function. All threads share one."""

    def __init__(self, kind: str, progress: Progress | None) -> None:
        self._kind = kind
        self._progress = progress
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._total = 0
        self._done = 0
        self._bytes = 0
        self._rows = 0
        self._versions = 0
        self._skipped = 0
        self._names: set[str] = set()
        self.snapshots: list[str] = []
        self._failures: list[Failure] = []
        self._notes: list[str] = []

    def expect(self, versions: int) -> None:
        """Adds to the number of versions that will be migrated."""
        with self._lock:
            self._total += versions

    def brought(self, name: str, rows: int, size: int, versions: int = 1) -> None:
        """Counts versions of ``name`` that were migrated."""
        with self._lock:
            self._names.add(name)
            self._versions += versions
            self._rows += rows
            self._bytes += size
            self._step(versions)

    def skip(self, versions: int) -> None:
        """Counts versions that an earlier run had migrated."""
        with self._lock:
            self._skipped += versions
            self._step(versions)

    def gone(self, sentence: str) -> None:
        """Notes that a version is no longer in the source."""
        with self._lock:
            self._notes.append(sentence)
            self._step(1)

    def fail(self, name: str, version: int | None, reason: object, steps: int = 0) -> None:
        """Adds a failure, which stands for ``steps`` of the expected versions."""
        said = reason_text(reason)
        with self._lock:
            self._failures.append(Failure(name, version, said))
            self._step(steps)

    def note(self, sentence: str) -> None:
        """Notes a difference from the source."""
        with self._lock:
            self._notes.append(sentence)

    def _step(self, steps: int) -> None:
        self._done += steps
        if self._progress is None or not steps:
            return
        left = None
        passed = time.monotonic() - self._begun
        if self._total and self._done and passed > 1:
            left = passed / self._done * (self._total - self._done)
        try:
            self._progress(self._done, self._total, self._rows, self._bytes, left)
        except Exception as error:
            raise _Halted(error) from error

    def report(self, strict: bool) -> Report:
        """The report of the run. Raises :class:`Incomplete` if ``strict`` and something failed."""
        order = sorted(self._failures, key=lambda failure: (failure.name, failure.version or 0))
        report = Report(
            self._kind,
            symbols=len(self._names),
            versions=self._versions,
            rows=self._rows,
            bytes=self._bytes,
            seconds=time.monotonic() - self._begun,
            skipped=self._skipped,
            snapshots=sorted(self.snapshots),
            failures=order,
            notes=sorted(self._notes),
        )
        if strict and report.failures:
            raise Incomplete(report)
        return report
