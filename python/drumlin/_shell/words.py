"""Commands of ``drumlin sql`` that are no statements, such as ``.tables``, at the prompt and in a text."""

import re
from collections.abc import Iterator

from drumlin._engines.sql import outside_quotes

__all__ = ["HELP", "ends", "parts", "words"]

HELP = """\
Statements end with a semicolon; tables are paths in dots or quotes: prices.us.aapl, 'prices/us/*'.
  show tables;              the tables
  describe prices.us.aapl;  the columns of a table
  begin; ... commit;        several statements as one commit (or rollback)
  .mode table|csv|json      how rows are printed
  .tables  .schema TABLE    the same in short, also \\dt and \\d TABLE
  .quit                     leave, as Ctrl-D, exit and \\q do"""

_BARE = {"exit": ".quit", "quit": ".quit", "bye": ".quit", "q": ".quit", ":q": ".quit", "help": ".help"}
_SAME = {".exit": ".quit", ".q": ".quit", "\\q": ".quit", "\\?": ".help", "\\dt": ".tables", "\\d": ".schema"}
#: What opens a text in quotes, or a comment, that does not end.
_OPEN = re.compile(r"['\"]|/\*|\$\w*\$")


def words(line: str) -> list[str] | None:
    """The words of a line that is a command, by the command's first name; None if it is a statement, or begins one."""
    text = line.strip().rstrip("; \t")
    if bare := _BARE.get(text.removesuffix("()").lower()):
        return [bare]
    if not text.startswith((".", "\\")):
        return None
    first, *rest = text.split(maxsplit=1)
    if (first, rest) == ("\\d", []):
        return [".tables"]
    return [_SAME.get(first, first), *rest]


def ends(text: str) -> bool:
    """Whether the last statement of a text is complete."""
    plain = outside_quotes(text).rstrip()
    return (not plain or plain.endswith(";")) and _OPEN.search(plain) is None


def parts(text: str) -> Iterator[str | list[str]]:
    """The statements of a text up to each line that is a command, and the words of that."""
    given = ""
    for line in text.splitlines(keepends=True):
        if (command := words(line)) is not None and ends(given):
            if given.strip():
                yield given
            given = ""
            yield command
        else:
            given += line
    if given.strip():
        yield given
