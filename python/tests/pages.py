"""Pages of the documentation: their blocks of code, run as a reader would run them.

The blocks of a page run in order, in one namespace and one folder. A block of Python may be followed by one of
`output`: what the block prints, with the value of its last line if that is an expression; or the error that it ends
with. In a block of `console` the lines after a command are what that prints. `...` stands for any text. A block whose
first line says `# not run:` and why is left out.
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
NOT_RUN = "# not run: "

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    """A block of code on a page."""

    page: str
    language: str
    code: str
    line: int
    #: What the block of `output` after it shows, if there is one.
    output: str | None = None

    @property
    def runs(self) -> bool:
        return not self.code.startswith(NOT_RUN)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(text: str, language: str | None = None, page: str = "README.md") -> list[Block]:
    """The blocks of a page, those of one language if one is given."""
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(text):
        kind, code, line = fence[1], fence[2], text.count("\n", 0, fence.start()) + 2
        if kind == "output":
            follows = found and found[-1].language == "python" and not text[end : fence.start()].strip()
            assert follows, f"{page}:{line}: no block of Python stands before this output"
            found[-1].output = code
        else:
            found.append(Block(page, kind, code, line))
        end = fence.end()
    return [block for block in found if language is None or block.language == language]


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Runs a block; what it prints must be what is shown."""
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
            print(f"{kind.__module__}.{kind.__qualname__}: {error}")
            if block.output is None or not _agree(block.output, printed.getvalue()):
                raise
    if block.output is not None:
        _compare(block.place, block.output, printed.getvalue())


def run_console(block: Block) -> None:
    """Runs the commands of a block; what they print must be what is shown, if anything is."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or shown, f"{block.place}: {command}: {done.stderr}"
        if shown:
            _compare(f"{block.place}: {command}", shown, done.stdout + done.stderr)


def run_page(text: str, page: str) -> dict[str, Any]:
    """Runs the blocks of a page in the folder that this is. Returns the names that it leaves."""
    names: dict[str, Any] = {}
    try:
        for block in blocks(text, page=page):
            if block.language == "python" and block.runs:
                run_python(block, names)
            elif block.language == "console" and block.runs:
                run_console(block)
    finally:
        for value in names.values():
            if isinstance(value, drumlin.Store):
                value.close()
    return names


def _agree(shown: str, printed: str) -> bool:
    trimmed = "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"
    return doctest.OutputChecker().check_output(shown, trimmed, doctest.ELLIPSIS)


def _compare(place: str, shown: str, printed: str) -> None:
    assert _agree(shown, printed), f"{place} shows\n{shown}\nbut this is printed:\n{printed}"
