"""The reference of the command line: what `drumlin --help` and the `--help` of its subcommands print."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

_COMMAND = re.compile(r"^  ([a-z][a-z-]*)(?:  +(.*))?$", re.MULTILINE)

_HEAD = """# Command line

`drumlin` comes with the Python package. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a condition did not hold, 130
interrupted. A store is a folder or an address such as `s3://bucket/prefix`, as for
[`drumlin.open`](python/open.md#drumlin.open).

This page is what the command prints with `--help`.
"""


def _help(*command: str) -> str:
    arguments = [sys.executable, "-m", "drumlin._cli", *command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"drumlin {' '.join(command)} --help failed: {done.stderr}")
    return done.stdout.rstrip()


def _subcommands(text: str) -> list[str]:
    """The names in the list of commands."""
    found = re.search(r"^Commands:\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [] if found is None else [name for name, _ in _COMMAND.findall(found[1]) if name != "help"]


def command_line() -> dict[str, str]:
    """The page, by its place."""
    top = _help()
    lines = [_HEAD, "```text", top, "```", ""]
    commands = [[name] for name in _subcommands(top)]
    if not commands:
        raise SystemExit("drumlin --help lists no commands")
    while commands:
        with ThreadPoolExecutor() as pool:
            texts = list(pool.map(lambda command: _help(*command), commands))
        below: list[list[str]] = []
        for command, text in zip(commands, texts, strict=True):
            name = " ".join(command)
            lines += [f"## `{name}` {{ #{'-'.join(command)} }}", "", "```text", text, "```", ""]
            below += [[*command, under] for under in _subcommands(text)]
        commands = below
    return {"reference/command-line.md": "\n".join(lines)}
