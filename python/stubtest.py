"""Compares the stubs with what is there when the package is imported, by mypy's stubtest.

    python python/stubtest.py

The stub of the compiled module is a folder, of which each file declares a part. Stubtest asks for a module for each,
and leaves out what is imported from one; so each part is made a module here, with the names that it lists.
"""

import ast
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from mypy import stubtest

PYTHON = Path(__file__).resolve().parent


def part(file: Path) -> ModuleType:
    """The compiled module's names that a part of its stub lists, as a module."""
    core = importlib.import_module("drumlin._drumlin")
    made = ModuleType(f"{core.__name__}.{file.stem}")
    [names] = [
        ast.literal_eval(node.value)
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    made.__dict__.update({name: getattr(core, name) for name in names}, __all__=names)
    return made


def main() -> int:
    os.chdir(PYTHON)
    sys.path.insert(0, str(PYTHON))
    for file in sorted((PYTHON / "drumlin" / "_drumlin").glob("[a-z]*.pyi")):
        made = part(file)
        sys.modules[made.__name__] = made
    options = ["drumlin", "--allowlist", "stubtest-allowlist.txt", *sys.argv[1:]]
    return stubtest.test_stubs(stubtest.parse_options(options))


if __name__ == "__main__":
    sys.exit(main())
