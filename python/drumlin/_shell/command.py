"""The command ``drumlin sql STORE ["statements"]``.

Results go to standard output, everything else to standard error. The exit codes are those of the other commands: 0
done; 1 failed; 2 wrong usage; 130 interrupted. A store is opened for reading until a statement changes something, so
queries run beside another process that writes.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence

from drumlin import Error, InvalidArgument
from drumlin._shell.prompt import Prompt
from drumlin._shell.session import Session, say

__all__ = ["main"]

_DONE, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130

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
        asked = _parser().parse_args(arguments)
    except SystemExit as ended:
        return _DONE if ended.code is None else int(ended.code)
    try:
        session = Session(asked.store, dict(asked.storage_option), asked.as_of, asked.format)
        with contextlib.closing(session):
            if asked.sql is None and sys.stdin.isatty():
                return Prompt(session).run()
            text = sys.stdin.read() if asked.sql is None else asked.sql
            return session.run(text)
    except KeyboardInterrupt:
        say("interrupted: what is committed stays")
        return _INTERRUPTED
    except InvalidArgument as error:
        say(error)
        return _USAGE
    except (Error, ImportError, OSError) as error:
        say(error)
        return _FAILED


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
    parser.add_argument("--as-of", metavar="WHICH", help="read as of a version number, a snapshot or a time")
    parser.add_argument(
        "-f", "--format", choices=("table", "csv", "json"), default="table", help="how rows are printed"
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
