"""`drumlin.migrate` is written against the public API alone, as a package of another author would be."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import drumlin.migrate

OWN = "drumlin.migrate"
FOLDER = Path(drumlin.migrate.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
#: Private attributes of other packages, which have no public ones for the same.
OTHERS = {"_storage_options"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_own(module: str) -> bool:
    return f"{module}.".startswith(f"{OWN}.")


def imported(node: ast.AST, package: str) -> Iterator[tuple[str, str | None]]:
    """The modules that a statement imports, or the modules and the names that it imports from them."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, None) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        yield from ((module, alias.name) for alias in node.names)


def is_public(module: str, name: str | None) -> bool:
    """Whether a module of drumlin is public, and so is a name in it: where a module lists its names, it lists it."""
    if any(map(is_private, [*module.split("."), name or ""])):
        return False
    listed = getattr(importlib.import_module(module), "__all__", None)
    return name is None or is_own(f"{module}.{name}") or listed is None or name in listed


def complaints(source: str, package: str) -> list[str]:
    """What of drumlin a source text in a package uses that is not public."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for module, name in imported(node, package):
            if f"{module}.".startswith("drumlin.") and not is_own(module) and not is_public(module, name):
                found.append((node.lineno, f"imports {module}{'' if name is None else f'.{name}'}"))
        match node:
            case ast.Attribute(value=of, attr=attribute) if is_private(attribute):
                if not (isinstance(of, ast.Name) and of.id in ("self", "cls")):
                    found.append((node.lineno, f"uses {ast.unparse(node)}"))
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(value=str(attribute)), *_]):
                if is_private(attribute) and attribute not in OTHERS:
                    found.append((node.lineno, f"uses {ast.unparse(node)}"))
    return [f"line {line} {what}" for line, what in sorted(found)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_it_uses_what_is_public(file: Path) -> None:
    package = ".".join([OWN, *file.relative_to(FOLDER).parts[:-1]])
    assert complaints(file.read_text(), package) == []


@pytest.mark.parametrize(
    "line",
    [
        "from drumlin._optional import need",
        "import drumlin._optional",
        "import os, drumlin._values.json as json",
        "from drumlin import _drumlin",
        "from drumlin import Error, _pandas",
        "from drumlin import Fit",
        "def f():\n    from drumlin._pandas import to_arrow",
        "from ... import _errors",
        "from ..._errors import Error",
        "store._core",
        "drumlin._optional.need('numpy')",
        "table.read()._reading",
        "getattr(store, '_core')",
    ],
)
def test_what_is_private_is_noticed(line: str) -> None:
    assert len(complaints(line, f"{OWN}.sources")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import drumlin",
        "from drumlin import Error, __version__, migrate, tree",
        "from drumlin.tree import P",
        "from drumlin.migrate.names import _path",
        "from ..names import _path",
        "from . import _path",
        "from collections import _tuplegetter",
        "self._store.table",
        "cls._made",
        "type(self).__name__",
        "getattr(table, '_storage_options', None)",
    ],
)
def test_what_is_public_or_its_own_is_not(line: str) -> None:
    assert complaints(line, f"{OWN}.sources") == []
