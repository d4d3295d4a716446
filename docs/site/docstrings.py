"""Docstrings of the package as Markdown: roles become links, examples blocks of code, tables tables."""

import re
from collections.abc import Callable, Iterator

#: Where a name is described; None if nowhere.
Links = Callable[[str], str | None]

_ROLE = re.compile(r":(?:meth|class|attr|func|mod|data|exc):`(?:([^`<]+?)\s*<([^`>]+)>|([^`]+))`")
_PARAMETER = re.compile(r"^:param (\w+): ", re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*# doctest:.*$")
_RULE = re.compile(r"^=+( +=+)+$")


def markdown(docstring: str, links: Links) -> str:
    """A docstring as Markdown."""
    return "\n\n".join(_block(lines, links) for lines in _blocks(docstring))


def _blocks(docstring: str) -> Iterator[list[str]]:
    """Paragraphs; an example with its output is one, however many blank lines it has."""
    block: list[str] = []
    for line in docstring.splitlines():
        if not line.strip():
            if block:
                yield block
            block = []
        else:
            block.append(line)
    if block:
        yield block


def _block(lines: list[str], links: Links) -> str:
    if lines[0].startswith(">>> "):
        shown = (_DIRECTIVE.sub("", line) for line in lines)
        return "\n".join(["```pycon", *shown, "```"])
    if _RULE.match(lines[0]):
        return _table(lines, links)
    return _text("\n".join(lines), links)


def _text(text: str, links: Links) -> str:
    def link(found: re.Match[str]) -> str:
        shown, target = (found[1], found[2]) if found[1] else (found[3].lstrip("~"), found[3].lstrip("~"))
        to = links(" ".join(target.split()))
        shown = " ".join(shown.split())
        return f"[`{shown}`]({to})" if to else f"`{shown}`"

    text = _PARAMETER.sub(r"`\1`: ", text)
    return re.sub(r"``(.+?)``", r"`\1`", _ROLE.sub(link, text), flags=re.DOTALL)


def _table(lines: list[str], links: Links) -> str:
    """A table of two columns, whose rows go on in lines that begin with blanks."""
    at = lines[0].index(" ")
    rows: list[list[str]] = []
    for line in lines[1:]:
        if _RULE.match(line):
            continue
        left, right = line[:at].strip(), line[at:].strip()
        if left or not rows:
            rows.append([left, right])
        else:
            rows[-1][1] += f" {right}"
    cells = [" | ".join(_text(cell, links) for cell in row) for row in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {row} |" for row in cells)])
