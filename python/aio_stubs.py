"""Writes the stubs of `drumlin.aio`: the signatures of the package's classes, as methods that are awaited.

    python python/aio_stubs.py          writes them, as `make build` and `make dev` do
    python python/aio_stubs.py --check  says whether they are up to date

Signatures are taken from the sources of the classes, so they are never written by hand; `tests/test_aio.py` compares.
"""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent / "drumlin" / "aio"
#: Stubs by module, and the classes and functions in each.
MODULES = {
    "_rows": ["Result", "Groups", "Joined", "Windows", "Dataset", "Lookup", "Diff", "RowFeed", "Results"],
    "_table": ["Merge", "Table", "ProjectionView", "Presence", "Tree"],
    "_store": [
        "Tables",
        "Transaction",
        "Sink",
        "Ticket",
        "ChangeFeed",
        "Store",
        "open",
        "move_log",
        "salvage",
        "share",
        "unshare",
        "follow",
        "promote",
        "clone",
    ],
}
#: Where names are defined that stubs of a module use, beside those that their sources import.
OWN = {name: module for module, names in MODULES.items() for name in names}
#: Classes of which a type says what is made.
GENERIC = {"Tables": "Handle, Generic[_V]", "Table": "Handle, Generic[_V]"}
BASES = {
    "Transaction": "Tables[None], Block",
    "Store": "Tables[Version], Block",
    "Presence": "Block",
    "Ticket": "Block",
    "ChangeFeed": "Handle, AsyncIterator[Commit]",
    "Result": "Iterated[Any]",
    "Dataset": "Iterated[Any]",
    "Joined": "Iterated[Any]",
    "Diff": "Iterated[Any]",
    "RowFeed": "Handle, AsyncIterator[RowChanges]",
    "Lookup": "Iterated[dict[str, Any] | None]",
}
#: Methods with signatures of their own: the same, except for what is written here.
CHANGED = {
    ("Store", "transact"): {"function": "Callable[[Transaction], Awaitable[_T]]"},
    ("Sink", "transact"): {"function": "Callable[[Any], _T]"},
    ("Tree", "on"): {"callback": "Callable[[Event], object]"},
    ("Table", "on"): {"callback": "Callable[[RowChanges], object]"},
}
#: Annotations that mean more here: rows may come from a handle.
WIDER = {"FrameLike": "FrameLike | Result | Dataset | Diff"}
EXTRA = {
    "Results": [
        "def __getitem__(self, path: str) -> Any: ...",
        "def __iter__(self) -> Iterator[str]: ...",
        "def __len__(self) -> int: ...",
    ],
    "RowFeed": ["async def __anext__(self) -> RowChanges: ...", "def __aiter__(self) -> Self: ..."],
    "ChangeFeed": ["async def __anext__(self) -> Commit: ...", "def __aiter__(self) -> Self: ..."],
}
IMPORTS = """
import datetime as dt
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import IO, Any, BinaryIO, Generic, Literal, NoReturn, Self, TypeAlias, TypeVar, overload

import duckdb as _duckdb  # type: ignore[import-not-found, unused-ignore]
import numpy as _np
import pandas as _pd  # type: ignore[import-untyped, unused-ignore]
import polars as _pl
import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]
from drumlin import (
    Change, Changes, CheckpointReport, CloneReport, Commit, Constraints, CopyReport, CopyToReport, DatasetPlan,
    DeleteReport, DropReport, Event, Expr, Follower, ImportReport, Index, ListEntry, Mask, MergeReport, Metrics,
    Node, PresenceInfo, ProjectionEntry, PromoteReport, PurgePlan, PurgeReceipt, ReclaimReport, ReplicateReport,
    Retention, RowChanges, RowsReport, SalvageReport, Schema, Snapshot, Splits, StagedReport, StoreStat, TableStat,
    TimeToLive, Token, TrashItem, TriggerFailure, Ui, UpdateReport, VacuumPlan, VerifyReport, Version,
    VersionsReport, View,
)
from drumlin._arguments.applied import ColumnFunction
from drumlin._arguments.checks import AsOf, Compression, FilterLike, Params, Progress, SchemaMode
from drumlin._arguments.frames import FrameLike, SchemaLike
from drumlin._nouns.merge import Values
from drumlin._nouns.sink import SinkMode
from drumlin._arguments.rows import KeysLike, RowsLike
from drumlin._results.joined import Span
from drumlin._nouns.tree import KeepWhile
from drumlin.aio._handles import Block, Handle, Iterated
from drumlin.tree import Condition, PatternLike
"""
VARIABLES = {"_V": '_V = TypeVar("_V")', "_T": '_T = TypeVar("_T")', "_List": "_List: TypeAlias = list"}


def definitions(kind: type) -> dict[str, list[ast.FunctionDef]]:
    """The definitions of a class's public methods, with overloads, from its source or its stub."""
    from drumlin.aio._handles import public

    found: dict[str, list[ast.FunctionDef]] = {}
    for one in reversed(kind.__mro__):
        for node in ast.walk(ast.parse(source(one))):
            if isinstance(node, ast.ClassDef) and node.name == one.__name__:
                methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
                found.update({method.name: [m for m in methods if m.name == method.name] for method in methods})
    return {name: found[name] for name in public(kind)}


def source(kind: type) -> str:
    """The source of the module of a class: of the core's, the stub."""
    if kind.__module__.partition(".")[0] != "drumlin":
        return ""
    if kind.__module__ in ("drumlin", "drumlin._drumlin"):
        return (FOLDER.parent / "_drumlin" / "nodes.pyi").read_text()
    return inspect.getsource(importlib.import_module(kind.__module__))


def stub(name: str, made: Any) -> str:
    """The stub of a class of handles."""
    lines = [f"class {name}({GENERIC.get(name) or BASES.get(name) or 'Handle'}):", f'    """{inspect.getdoc(made)}"""']
    lines += [f"    {line}" for line in EXTRA.get(name, [])]
    inherited = {one for base in made.__mro__[1:] if hasattr(base, "of") for one in definitions(base.of)}
    for method, nodes in definitions(made.of).items():
        if method in inherited and name != "Tables":
            continue
        overloads = [node for node in nodes if any(ast.unparse(mark) == "overload" for mark in node.decorator_list)]
        for node in overloads or nodes[-1:]:
            lines.append(signature(name, made, method, node))
    return "\n".join(lines)


def signature(kind: str, made: Any, method: str, node: ast.FunctionDef) -> str:
    """A method as it is called here."""
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        changed = CHANGED.get((kind, method), {}).get(argument.arg)
        if changed is not None:
            argument.annotation = ast.parse(changed, mode="eval").body
        elif argument.annotation is not None:
            argument.annotation = Wider().visit(unquoted(argument.annotation))
    simple(node)
    returned = ast.unparse(Wider().visit(unquoted(node.returns))) if node.returns else "Any"
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    if "property" in marks:
        told = returned if method in made.giving else f"Awaitable[{returned}]"
        return f"    @property\n    def {method}(self) -> {told}: ..."
    awaited = inspect.iscoroutinefunction(getattr(made, method))
    if method in ("batches", "to_batches"):
        returned = "AsyncIterator[Any]"
    begin = "    @overload\n" if "overload" in marks else ""
    return f"{begin}    {'async ' if awaited else ''}def {method}({ast.unparse(node.args)}) -> {returned}: ..."


def simple(node: ast.FunctionDef) -> None:
    """Leaves out defaults that are computed, as stubs do."""
    for at, default in enumerate(node.args.kw_defaults):
        if isinstance(default, ast.Call):
            node.args.kw_defaults[at] = ast.Constant(...)


class Wider(ast.NodeTransformer):
    """Replaces annotations by wider ones, and the core's names by the package's."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr) if ast.unparse(node.value) == "_drumlin" else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(WIDER[node.id], mode="eval").body if node.id in WIDER else node


def unquoted(node: ast.expr) -> ast.expr:
    """An annotation without the quotes of what is defined later."""

    class Unquoted(ast.NodeTransformer):
        def visit_Subscript(self, part: ast.Subscript) -> ast.AST:
            return part if ast.unparse(part.value) == "Literal" else self.generic_visit(part)

        def visit_Constant(self, part: ast.Constant) -> ast.AST:
            return ast.parse(part.value, mode="eval").body if isinstance(part.value, str) else part

    made: ast.expr = Unquoted().visit(node)
    return made


def function(name: str, made: Any) -> str:
    """The stub of a function of the module."""
    [node] = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(inspect.unwrap(made).__module__))))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    awaited = "async " if inspect.iscoroutinefunction(made) else ""
    simple(node)
    assert node.returns is not None
    return f"{awaited}def {name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}: ..."


def module(name: str) -> str:
    """The stub of a module."""
    made: ModuleType = importlib.import_module(f"drumlin.aio.{name}")
    parts = [
        stub(one, getattr(made, one)) if one[0].isupper() else function(one, getattr(made, one))
        for one in MODULES[name]
    ]
    body = "\n\n".join(parts)
    names = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    used = [line for variable, line in VARIABLES.items() if variable in names]
    own: dict[str, list[str]] = {}
    for one in sorted(names & set(OWN)):
        if OWN[one] != name:
            own.setdefault(OWN[one], []).append(one)
    imports = imported(names | {n.id for line in used for n in ast.walk(ast.parse(line)) if isinstance(n, ast.Name)})
    imports += [f"from drumlin.aio.{of} import {', '.join(ones)}" for of, ones in own.items()]
    head = f'"""{inspect.getdoc(made)}\n\nWritten by aio_stubs.py."""'
    listed = f"__all__ = {sorted(MODULES[name])!r}"
    return "\n\n".join([head, "\n".join(imports), listed, *used, body]) + "\n"


def imported(names: set[str]) -> list[str]:
    """The imports of ``IMPORTS`` that are used."""
    lines = []
    for node in ast.parse(IMPORTS).body:
        assert isinstance(node, (ast.Import, ast.ImportFrom))
        wanted = [alias for alias in node.names if (alias.asname or alias.name) in names]
        if not wanted:
            continue
        told = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in wanted)
        # Packages that may have no types of their own.
        loose = "import-not-found, import-untyped, unused-ignore"
        ignored = f"  # type: ignore[{loose}]" if wanted[0].name in ("duckdb", "pandas", "pyarrow") else ""
        lines.append(f"import {told}{ignored}" if isinstance(node, ast.Import) else f"from {node.module} import {told}")
    return lines


def formatted(text: str) -> str:
    """The text as ruff formats it, with imports in order."""
    settings = ["--config", str(FOLDER.parent.parent / "pyproject.toml"), "--stdin-filename", str(FOLDER / "a.pyi")]
    for command in (["check", "--select", "I,RUF022", "--fix-only", "--quiet"], ["format", "--quiet"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *settings, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = ran.stdout
    return text


def stubs() -> dict[Path, str]:
    """The stubs by file, as they should be."""
    return {FOLDER / f"{name}.pyi": formatted(module(name)) for name in MODULES}


def main() -> int:
    made = stubs()
    if "--check" in sys.argv:
        return int(any(not path.exists() or path.read_text() != text for path, text in made.items()))
    for path, text in made.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
