"""The prompt of ``drumlin sql``: it asks for statements, keeps those that were given, and completes their words."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import drumlin
from drumlin import Error
from drumlin._engines.sql import outside_quotes
from drumlin._shell.session import Session

__all__ = ["Prompt"]

_FIRST, _NEXT = "drumlin> ", "    ...> "
#: How many lines are kept from one time to the next.
_KEPT = 10_000
#: Words in the middle of which a completion begins.
_BREAKS = " \t\n`~!@#$%^&*()-=+[]{}\\|;:'\",<>?"

_WORDS = (
    "add all alter and as asc between begin by case cast check column commit conflict copy count create cross default "
    "delete desc describe distinct do drop else end except exists explain false from full group having if in inner "
    "insert intersect into is join key left like limit not null nulls offset on or order outer over partition primary "
    "rename replace right rollback select set show summarize table tables then true truncate union update using "
    "values when where with"
)

_HELP = """\
Statements end with a semicolon; tables are paths in dots or quotes: prices.us.aapl, 'prices/us/*'.
  show tables;              the tables
  describe prices.us.aapl;  the columns of a table
  begin; ... commit;        several statements as one commit (or rollback)
  .mode table|csv|json      how rows are printed
  .tables  .schema TABLE    the same in short
  .quit                     leave, as Ctrl-D does"""


class Prompt:
    """Asks for statements until the end of the input."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns: dict[str, list[str]] = {}
        self._offered: list[str] = []

    def run(self) -> int:
        """Asks and runs. Returns the exit code."""
        # It fails now if there is no store, rather than with the first statement.
        store = self._session.store()
        print(f"drumlin {drumlin.__version__}, {self._session.uri}: {len(store.tables())} tables. .help tells more.")
        readline = self._readline()
        given: list[str] = []
        while True:
            try:
                line = input(_NEXT if given else _FIRST)
            except EOFError:
                print()
                break
            except KeyboardInterrupt:
                # Gives up what has been typed.
                given.clear()
                print("^C")
                continue
            if not given and line.strip() in ("exit", "quit", "help"):
                # As shells have it.
                line = f".{line.strip()}"
            if not given and line.strip().startswith("."):
                if self._short(line.strip()):
                    break
                continue
            given.append(line)
            text = "\n".join(given)
            if not text.strip():
                given.clear()
            elif outside_quotes(text).rstrip().endswith(";"):
                given.clear()
                self._answer(text)
        if readline is not None:
            try:
                readline.write_history_file(_history())
            except OSError as error:
                print(f"drumlin: the history was not kept: {error}", file=sys.stderr)
        return 0

    def _answer(self, text: str) -> None:
        session = self._session
        try:
            match text.strip(" \t\r\n;").lower().split():
                case ["begin"] | ["begin", "transaction"] | ["start", "transaction"]:
                    session.begin()
                case ["commit"] | ["end"]:
                    session.end(commit=True)
                case ["rollback"] | ["abort"]:
                    session.end(commit=False)
                case _:
                    session.run(text)
        except Error as error:
            print(f"drumlin: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            print("drumlin: interrupted: what is committed stays", file=sys.stderr)

    def _short(self, line: str) -> bool:
        """Runs a word with a dot before it; returns whether to leave."""
        match line.split():
            case [".quit" | ".exit" | ".q"]:
                return True
            case [".help"]:
                print(_HELP)
            case [".tables"]:
                self._answer("show tables")
            case [".schema", table]:
                self._answer(f"describe '{table}'")
            case [".mode", "table" | "csv" | "json" as form]:
                self._session.form = form
            case _:
                print(f"{line}: not known; .help tells what is", file=sys.stderr)
        return False

    def _readline(self) -> Any:
        try:
            import readline
        except ImportError:
            # Python was built without it: lines are typed without history.
            return None
        readline.set_completer(self._complete)
        readline.set_completer_delims(_BREAKS)
        readline.set_history_length(_KEPT)
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
        with contextlib.suppress(OSError):
            readline.read_history_file(_history())
        return readline

    def _complete(self, typed: str, state: int) -> str | None:
        if state == 0:
            import readline

            try:
                self._offered = self.offered(typed, readline.get_line_buffer())
            except Error:
                self._offered = []
        return self._offered[state] if state < len(self._offered) else None

    def offered(self, typed: str, line: str) -> list[str]:
        """The words that may stand where ``typed`` does: tables, by dots or slashes, columns of the tables in the line,
        and words of SQL."""
        place = self._session.transaction or self._session.store()
        paths = place.tables()
        named = [path for path in paths if path in line or path.replace("/", ".") in line]
        columns: list[str] = []
        for path in named:
            if path not in self._columns:
                self._columns[path] = list(place.table(path).schema().names)
            columns += self._columns[path]
        tables = paths if "/" in typed or "'" in line else [path.replace("/", ".") for path in paths]
        found = [name for name in [*dict.fromkeys(columns), *tables] if name.startswith(typed)]
        return found + [
            word for word in _WORDS.split() if typed and word.startswith(typed.lower()) and word not in found
        ]


def _history() -> Path:
    """The file with what was typed."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    folder = Path(base).expanduser() / "drumlin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(os.devnull)
    return folder / "sql_history"
