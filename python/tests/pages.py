"""Pages of the documentation: their blocks of code, run as a reader would run them.

The blocks of a page run in order, in one namespace and one folder. A block of Python may be followed by one of
`output`: what the block prints, with the value of its last line if that is an expression; or the error that it ends
with. In a block of `console` the lines after a command are what that prints. `...` stands for any text. A block below
a comment `<!-- not run: why -->` is left out. With `DRUMLIN_WRITE_DOCS=1` in the environment a page gets what its
blocks print, where it shows something else.
"""

import ast
import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drumlin

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]*) -->\n)?```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass
class Block:
    """A block of code on a page."""

    page: str
    language: str
    code: str
    line: int
    #: Where its code is in the text of the page.
    at: int = 0
    #: The block of `output` after it, if there is one.
    output: "Block | None" = None
    #: Why it is not run, if it is not.
    not_run: str | None = None

    @property
    def runs(self) -> bool:
        return self.not_run is None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass
class Shown:
    """What a page shows, where it does so, and what was printed."""

    place: str
    at: int
    shown: str
    printed: str

    @property
    def agree(self) -> bool:
        return doctest.OutputChecker().check_output(self.shown, self.printed, doctest.ELLIPSIS)

    def check(self) -> None:
        assert self.agree, f"{self.place} shows\n{self.shown}\nbut this is printed:\n{self.printed}"


def blocks(text: str, language: str | None = None, page: str = "README.md") -> list[Block]:
    """The blocks of a page, those of one language if one is given."""
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(text):
        at = fence.start("code")
        block = Block(page, fence["language"], fence["code"], text.count("\n", 0, at) + 1, at, not_run=fence["why"])
        if block.language == "output":
            follows = found and found[-1].language == "python" and not text[end : fence.start()].strip()
            assert follows, f"{block.place}: no block of Python stands before this output"
            found[-1].output = block
        else:
            found.append(block)
        end = fence.end()
    return [block for block in found if language is None or block.language == language]


def run_python(block: Block, names: dict[str, Any]) -> list[Shown]:
    """Runs a block. Returns what its output shows, if it has one, and what was printed."""
    # Errors show the page and its line.
    tree = ast.parse("\n" * (block.line - 1) + block.code, block.page)
    last = tree.body.pop() if block.output is not None and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(tree, block.page, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), block.page, "eval"), names)
                if value is not None:
                    print(repr(value))
        except Exception as error:
            kind = type(error)
            if block.output is None or not block.output.code.startswith(f"{kind.__module__}.{kind.__qualname__}: "):
                raise
            print(f"{kind.__module__}.{kind.__qualname__}: {error}")
    if block.output is None:
        return []
    return [Shown(block.output.place, block.output.at, block.output.code, _trimmed(printed.getvalue()))]


def run_console(block: Block) -> list[Shown]:
    """Runs the commands of a block. Returns what it shows of each that it shows something of, and what that printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    found = []
    for command in _COMMAND.finditer(block.code):
        arguments = ["bash", "-c", command[1]]
        done = subprocess.run(
            arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or command[2], f"{block.place}: {command[1]}: {done.stderr}"
        if command[2]:
            place, printed = f"{block.place}: {command[1]}", _trimmed(done.stdout + done.stderr)
            found.append(Shown(place, block.at + command.start(2), command[2], printed))
    return found


def run_page(text: str, page: str, path: Path | None = None) -> None:
    """Runs the blocks of a page in the folder that this is; what they print must be what is shown."""
    names: dict[str, Any] = {}
    found: list[Shown] = []
    writes = path is not None and os.environ.get("DRUMLIN_WRITE_DOCS") == "1"
    try:
        for block in blocks(text, page=page):
            if block.runs and block.language in ("python", "console"):
                new = run_python(block, names) if block.language == "python" else run_console(block)
                found += new
                if not writes:
                    [shown.check() for shown in new]
    finally:
        for value in names.values():
            if isinstance(value, drumlin.Store):
                value.close()
    if writes and path is not None:
        for shown in reversed([shown for shown in found if not shown.agree]):
            text = text[: shown.at] + shown.printed + text[shown.at + len(shown.shown) :]
        path.write_text(text)


def _trimmed(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
