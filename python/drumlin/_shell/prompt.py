"""The prompt of ``drumlin sql``: it asks for statements, keeps those that were given, and completes their words."""

import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import drumlin
from drumlin import Error
from drumlin._shell.session import Session, say
from drumlin._shell.words import ends, words

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


class Prompt:
    """Asks for statements until the end of the input."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns: dict[str, list[str]] = {}
        self._offered: list[str] = []

    def run(self) -> int:
        """Asks and runs. Returns the exit code."""
        # It fails now if there is no store, rather than with the first statement.
        session = self._session
        store = session.store()
        print(f"drumlin {drumlin.__version__}, {session.uri}: {len(store.tables())} tables. .help tells more.")
        readline = self._readline()
        given: list[str] = []
        while True:
            try:
                line = input(_NEXT if given else _FIRST)
            except EOFError:
                print()
                if given:
                    say("the last statement was not run, since it has no semicolon at its end")
                break
            except KeyboardInterrupt:
                # Gives up what has been typed.
                given.clear()
                print("^C")
                continue
            command = words(line)
            if command is not None and not given:
                self._attempt(partial(session.command, command))
                if session.quits:
                    break
                continue
            if command is not None and line.strip().startswith((".", "\\")):
                say(f"{line.strip()}: a statement has begun; a semicolon ends it, Ctrl-C clears it")
                continue
            given.append(line)
            text = "\n".join(given)
            if not text.strip():
                given.clear()
            elif ends(text):
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
        match text.strip(" \t\r\n;").lower().split():
            case ["begin"] | ["begin", "transaction"] | ["start", "transaction"]:
                self._attempt(session.begin)
            case ["commit"] | ["end"]:
                self._attempt(lambda: session.end(commit=True))
            case ["rollback"] | ["abort"]:
                self._attempt(lambda: session.end(commit=False))
            case _:
                self._attempt(lambda: session.run(text))

    def _attempt(self, do: Callable[[], object]) -> None:
        """Does something; says why if it fails."""
        try:
            do()
        except Error as error:
            say(error)
        except KeyboardInterrupt:
            say("interrupted: what is committed stays")

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
