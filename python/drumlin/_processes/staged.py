"""Rows that many processes write for one job, and the commit that makes them part of their tables."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from drumlin import _drumlin
from drumlin._arguments.checks import Progress, count, names, optional_micros, path_argument
from drumlin._arguments.fit import Fit
from drumlin._arguments.frames import FrameLike, to_stream
from drumlin._errors import Error, InvalidArgument
from drumlin._processes.splits import Beats, life_micros, of_place
from drumlin._values.evidence import a_type

__all__ = ["Ticket", "Token"]

_MODES = ("append", "overwrite", "upsert")


class Token:
    """Rows that are on storage but in no table yet; made by :meth:`Ticket.stage` and :meth:`Store.stage
    <drumlin.Store.stage>`. It can be pickled."""

    __slots__ = ("_core",)

    def __init__(self, encoded: bytes) -> None:
        self._core = _drumlin.Token(encoded)

    @property
    def path(self) -> str:
        """The path of the table."""
        return self._core.path

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._core.rows

    @property
    def bytes(self) -> int:
        """The size of its blocks in bytes."""
        return self._core.bytes

    @property
    def part(self) -> tuple[int, int] | None:
        """The position of its rows among those of the job: by task, then by part."""
        return self._core.part

    def __repr__(self) -> str:
        return f"Token({self.path!r}, rows={self.rows}, part={self.part})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and self._core.encode() == other._core.encode()

    def __hash__(self) -> int:
        return hash(self._core.encode())

    def __reduce__(self) -> Any:
        return (Token, (self._core.encode(),))


class Ticket:
    """What the workers of a job need to stage rows for its tables; made by :meth:`Store.ticket <drumlin.Store.ticket>`.
    It can be pickled, and has no secrets: a bucket's credentials come from the environment of the worker or from
    ``storage_options``.

    In the process that made it, a thread renews the job until it is committed or aborted, or the ticket is garbage
    collected. The end of a ``with`` block aborts a job that was not committed.
    """

    __slots__ = ("__weakref__", "_beats", "_core", "_options", "_process", "_store")

    _beats: Beats | None
    _store: "_drumlin.Store | None"

    def __init__(self, encoded: bytes, storage_options: Mapping[str, str] | None = None) -> None:
        self._core = _drumlin.Ticket(encoded)
        self._options = dict(storage_options or {})
        self._beats = self._store = None
        self._process = os.getpid()

    @property
    def job(self) -> str:
        """The job's name."""
        return self._core.job

    @property
    def paths(self) -> list[str]:
        """The paths of the job's tables."""
        return self._core.paths

    def stage(
        self,
        path: str,
        data: FrameLike,
        *,
        part: tuple[int, int] | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Token:
        """Writes rows for the table at ``path``, converted to the schema that the job began with. This works in any
        process that can reach the store's folder or bucket; the log and the catalog are not read. The rows are part of
        no table until their token is committed. ``part`` (task, part) is their position among the rows of the job; if
        no token of the job has one, their position is the order in which the tokens are committed. An attempt that
        fails deletes what it wrote."""
        if self._store is not None and not storage_options and self._process == os.getpid():
            stage = _drumlin.Stage.of(self._store)
        else:
            stage = of_place(_drumlin.Stage, self._core.uri, {**self._options, **(storage_options or {})})
        path = path_argument(path)
        stream = to_stream(data, Fit(onto=lambda: self._core.schema(path)))
        core = stage.write(self._core, path, stream, part_argument(part), progress)
        return token_of(core)

    def __repr__(self) -> str:
        return f"Ticket({self.job!r}, {self.paths!r})"

    def __reduce__(self) -> Any:
        return (Ticket, (self._core.encode(), self._options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        store, self._store = self._store, None
        self._stop()
        # After a commit there is nothing to end. If an exception leaves the block, it matters more than a failure to
        # end the job.
        if store is not None:
            with contextlib.suppress(Error) if error is not None else contextlib.nullcontext():
                self._core.abort(store)

    def __del__(self) -> None:
        self._stop()

    def _done(self) -> None:
        """Called after the commit: the end of the block then aborts nothing."""
        self._store = None
        self._stop()

    def _stop(self) -> None:
        if getattr(self, "_beats", None) is not None:
            assert self._beats is not None
            self._beats.end()
            self._beats = None


def token_of(core: "_drumlin.Token") -> Token:
    """A token with the core's token."""
    token = Token.__new__(Token)
    token._core = core
    return token


def tokens_argument(tokens: Any, name: str = "tokens") -> list[Token]:
    """A list of tokens."""
    if isinstance(tokens, (Token, str, bytes)) or not isinstance(tokens, Iterable):
        raise TypeError(f"{name} must be a list of tokens, not {a_type(tokens)}")
    given = list(tokens)
    for token in given:
        if not isinstance(token, Token):
            raise TypeError(f"{name} must be a list of tokens, but holds {a_type(token)}")
    return given


def ticket_argument(ticket: Any) -> Ticket | None:
    """A ticket, or None."""
    if ticket is not None and not isinstance(ticket, Ticket):
        raise TypeError(f"ticket must be a ticket from Store.ticket(), not {a_type(ticket)}")
    return ticket


def part_argument(part: Any) -> tuple[int, int] | None:
    """The position of rows among those of a job, or None."""
    if part is None:
        return None
    if not isinstance(part, tuple) or len(part) != 2:
        raise TypeError(f"part must be a pair of numbers (task, part), not {part!r}")
    task, within = count(part[0], "part"), count(part[1], "part")
    if task is None or within is None:
        raise TypeError(f"part must be a pair of numbers (task, part), not {part!r}")
    return task, within


def job_settings(
    mode: Any, job: Any = None, sort: Iterable[str] = (), life: Any = None, work: Any = None
) -> dict[str, Any]:
    """The settings of a job, in the core's form."""
    if mode not in _MODES:
        raise InvalidArgument(f"mode {mode!r} is not known; expected one of {', '.join(map(repr, _MODES))}")
    if job is not None and not isinstance(job, str):
        raise TypeError(f"job must be a str, not {a_type(job)}")
    return {
        "job": job,
        "mode": mode,
        "sort": names(sort, "sort"),
        "life_micros": life_micros(life),
        "work_micros": optional_micros(work, "work"),
    }


def open_ticket(store: "_drumlin.Store", tables: list[tuple[str, Any]], settings: dict[str, Any]) -> Ticket:
    """A new job, which this process renews."""
    ticket = Ticket.__new__(Ticket)
    ticket._core = core = _drumlin.Ticket.open(store, tables, settings)
    ticket._options, ticket._store, ticket._process = store.storage_options(), store, os.getpid()
    ticket._beats = Beats(lambda: core.beat(store), None, core.life_micros)
    return ticket


def expected_versions(expected: Any, tokens: list[Token], ticket: Ticket | None) -> dict[str, int]:
    """The version that each table must be at; a single number is for the only table."""
    if expected is None:
        return {}
    if isinstance(expected, Mapping):
        return {path_argument(path): count(version, "expected_version") or 0 for path, version in expected.items()}
    version = count(expected, "expected_version")
    paths = {token.path for token in tokens} | set(ticket.paths if ticket is not None else ())
    if len(paths) != 1:
        raise InvalidArgument(
            "expected_version is a number, and there are several tables; give a dict of versions by path"
        )
    return {paths.pop(): version or 0}
