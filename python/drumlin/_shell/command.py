"""The command ``drumlin sql STORE ["statements"]``.

Results go to standard output, everything else to standard error. The exit codes are those of the other commands: 0
done; 1 failed; 2 wrong usage; 130 interrupted. A store is opened for reading until a statement changes something, so
queries run beside another process that writes.
"""

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Sequence

from drumlin import Error, InvalidArgument
from drumlin._arguments.checks import AsOf
from drumlin._shell.prompt import Prompt
from drumlin._shell.session import Session, say

__all__ = ["main"]

_DONE, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130

#: Options of other shells.
_WAYS = {
    "-c": "statements are an argument by themselves: drumlin sql STORE 'select 1'",
    "--command": "statements are an argument by themselves: drumlin sql STORE 'select 1'",
    "--json": "the option is -f json",
    "--csv": "the option is -f csv",
    "--file": "statements of a file come from standard input: drumlin sql STORE < x.sql",
}
_FILE = re.compile(r"\S+\.sql", re.IGNORECASE)

_EXAMPLES = """\
examples:
  drumlin sql market.drumlin "select sym, avg(close) from prices.us.aapl group by sym"
  drumlin sql market.drumlin "update app.users set n = n + 1 where id = 4"
  drumlin sql market.drumlin < statements.sql
  drumlin sql market.drumlin                      (a prompt, where it is a terminal)
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the command with the arguments after ``drumlin sql``, and returns its exit code."""
    try:
        asked = _parsed(arguments)
    except SystemExit as ended:
        return _DONE if ended.code is None else int(ended.code)
    if asked.sql is None and sys.stdin is None:
        say("standard input is closed; give the statements as an argument")
        return _FAILED
    try:
        session = Session(asked.store, dict(asked.storage_option), asked.as_of, asked.format)
        with contextlib.closing(session):
            if asked.sql is None and sys.stdin.isatty():
                return Prompt(session).run()
            return session.script(_text(sys.stdin.buffer.read() if asked.sql is None else os.fsencode(asked.sql)))
    except KeyboardInterrupt:
        say("interrupted: what is committed stays")
        return _INTERRUPTED
    except InvalidArgument as error:
        say(error)
        return _USAGE
    except (Error, ImportError, OSError) as error:
        say(error)
        return _FAILED


def _text(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        raise InvalidArgument(f"line {line} is not valid UTF-8") from None


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    for argument in arguments:
        if way := _WAYS.get(argument):
            parser.error(f"{argument}: {way}")
    # Options may stand between the store and the statements.
    asked = parser.parse_intermixed_args(arguments)
    if asked.sql is not None and (asked.sql == "-" or _FILE.fullmatch(asked.sql)):
        parser.error(f"{asked.sql}: statements of a file come from standard input: drumlin sql STORE < x.sql")
    return asked


def _form(text: str) -> str:
    if text not in ("table", "csv", "json"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no form of rows: expected table, csv or json; statements of a file: drumlin sql STORE < x.sql"
        )
    return text


def _as_of(text: str) -> AsOf:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _option(text: str) -> tuple[str, str]:
    name, is_given, value = text.partition("=")
    if not is_given:
        # An error never shows the value.
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="drumlin sql",
        description="Run SQL over the tables of a store. Without statements, those of standard input are run; where "
        "that is a terminal, they are asked for one by one.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("store", metavar="STORE", help="the store: a folder, or s3://bucket/prefix")
    parser.add_argument("sql", nargs="?", metavar="SQL", help="statements, with semicolons between them")
    parser.add_argument(
        "--as-of", metavar="WHICH", type=_as_of, help="read as of a version number, a snapshot or a time"
    )
    parser.add_argument(
        "-f",
        "--format",
        metavar="{table,csv,json}",
        type=_form,
        default="table",
        help="how rows are printed (default: table)",
    )
    parser.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        action="append",
        type=_option,
        default=[],
        help="a setting of the bucket's client",
    )
    return parser
