"""A store that statements are run over, one after the other, and what is printed of their answers."""

import contextlib
import re
import sys
from typing import Any

import drumlin
from drumlin import Abort, Error, InvalidArgument, Store, _drumlin
from drumlin._arguments.checks import AsOf
from drumlin._engines.sql import quoted
from drumlin._engines.statements import answers, changes
from drumlin._optional import need
from drumlin._shell.words import HELP, parts

__all__ = ["Session", "say"]

_DONE, _FAILED, _USAGE = 0, 1, 2
#: Rows that the table form prints.
_TABLE_ROWS = 100
_UNLIMITED = 2**64 - 1

#: What controls a terminal, hides, or turns the direction of text around it; but lines end.
_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def say(text: object) -> None:
    """Says something on standard error, after the program's name."""
    with contextlib.suppress(OSError):
        print(f"drumlin: {_UNSAFE.sub(lambda found: ascii(found[0])[1:-1], str(text))}", file=sys.stderr)


class Session:
    """A store, opened as statements need it, and the transaction that has begun."""

    def __init__(self, uri: str, options: dict[str, str], as_of: AsOf | None, form: str) -> None:
        need("duckdb", "drumlin sql", "duckdb")
        need("pyarrow", "drumlin sql", "duckdb")
        self.uri = uri
        self.form = form
        self.quits = False
        self.transaction: Any = None
        self._options = options or None
        self._as_of = as_of
        self._store: Store | None = None
        self._writes = False

    def close(self) -> None:
        """Gives up a transaction that was not committed, and closes the store."""
        if self.transaction is not None:
            with contextlib.suppress(Abort):
                self.transaction.abort()
            say("the transaction was not committed: nothing of it was kept")
        if self._store is not None:
            self._store.close()

    def store(self, *, writes: bool = False) -> Store:
        """The store as it is now, opened for writing if something is to change."""
        if self._store is not None and (self._writes or (self.transaction is not None)):
            return self._store
        if self._store is not None:
            self._store.close()
            self._store = None
        # A table may be created in a store that is not there yet.
        self._store = drumlin.open(self.uri, mode="create" if writes else "read", storage_options=self._options)
        self._writes = writes
        return self._store

    def script(self, text: str) -> int:
        """Runs the statements and commands of a text, up to the first that fails. Returns the exit code."""
        if not text.strip(" \t\r\n;"):
            # It fails if there is no store.
            self.store()
        for part in parts(text):
            code = self.run(part) if isinstance(part, str) else self.command(part)
            if code != _DONE or self.quits:
                return code
        return _DONE

    def command(self, words: list[str]) -> int:
        """Runs a command. Returns the exit code."""
        match words:
            case [".quit"]:
                self.quits = True
            case [".help"]:
                print(HELP, flush=True)
            case [".tables"]:
                return self.run("show tables")
            case [".schema", table]:
                name = table.strip("'\"")
                path = name if name in (self.transaction or self.store()).tables() else name.replace(".", "/")
                return self.run(f"describe {quoted(path)}")
            case [".schema"]:
                say(".schema takes a table: .schema prices.us.aapl")
                return _USAGE
            case [".mode", "table" | "csv" | "json" as form]:
                self.form = form
            case [".mode", *_]:
                say(f".mode takes table, csv or json; it is {self.form}")
                return _USAGE
            case _:
                say(f"{' '.join(words)}: not known; .help lists what is")
                return _USAGE
        return _DONE

    def run(self, text: str) -> int:
        """Runs statements; prints the answer of each, or why it failed. Returns the exit code."""
        duckdb = need("duckdb", "drumlin sql", "duckdb")
        try:
            return self._run(text)
        except (Error, duckdb.Error, TypeError) as error:
            say(error)
            return _USAGE if isinstance(error, InvalidArgument) and self.transaction is None else _FAILED
        except RuntimeError as error:
            # So DuckDB says that Ctrl-C was pressed.
            if "interrupt" not in str(error).lower():
                raise
            raise KeyboardInterrupt from None

    def _run(self, text: str) -> int:
        if not text.strip(" \t\r\n;"):
            return _DONE
        writes = changes(text)
        self._check_writes(writes)
        place = self.transaction or self.store(writes=writes)
        code = _DONE
        for answer in answers(place, text, self._as_of, None):
            code = max(code, self._print(answer))
        if code != _DONE and writes and self.transaction is None:
            say("what is committed stays")
        return code

    def _check_writes(self, writes: bool) -> None:
        if writes and self._as_of is not None:
            raise InvalidArgument(
                f"--as-of reads only; drumlin restore {self.uri} TABLE {self._as_of} makes an old version the newest"
            )

    def begin(self) -> None:
        """Begins a transaction, which takes the statements that follow."""
        if self.transaction is not None:
            raise InvalidArgument("a transaction has begun already; end it with commit or rollback")
        self._check_writes(True)
        self.transaction = self.store(writes=True).transaction()

    def end(self, *, commit: bool) -> None:
        """Ends the transaction."""
        if self.transaction is None:
            raise InvalidArgument("no transaction has begun")
        transaction, self.transaction = self.transaction, None
        if commit:
            transaction.commit()
        else:
            with contextlib.suppress(Abort):
                transaction.abort()

    def _print(self, answer: Any) -> int:
        if answer is None:
            return _DONE
        if hasattr(answer, "to_arrow_reader"):
            # Arrow's decimals have a digit less.
            wide = [name for name, type_ in zip(answer.columns, answer.types, strict=True) if "HUGEINT" in str(type_)]
            if wide and len(set(answer.columns)) == len(answer.columns):
                chosen = [
                    f"{quoted(name)}::varchar as {quoted(name)}" if name in wide else quoted(name)
                    for name in answer.columns
                ]
                answer = answer.project(", ".join(chosen))
            answer = answer.to_arrow_reader()
        if not hasattr(answer, "__arrow_c_stream__"):
            say(_told(answer))
            return _DONE
        names = answer.schema.names
        if self.form == "json" and (twice := [name for name in names if names.count(name) > 1]):
            raise InvalidArgument(f"two columns are named {twice[0]!r}, of which JSON has one; name one of them by as")
        most = _TABLE_ROWS if self.form == "table" else _UNLIMITED
        return _drumlin.print_rows(answer, self.form, most, "add limit, or use --format csv or json for all")


def _told(report: Any) -> str:
    """A report of a change in a few words."""
    rows = getattr(report, "rows", None)
    if isinstance(report, drumlin.MergeReport):
        rows = report.inserted + report.updated + report.deleted
    if isinstance(rows, int):
        return f"{rows:,} {'row' if rows == 1 else 'rows'}"
    paths = getattr(report, "paths", None)
    if isinstance(paths, list):
        return f"dropped {', '.join(paths)}" if paths else "nothing was dropped"
    return "done"
