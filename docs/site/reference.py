"""The reference of the Python package: pages made of its signatures and docstrings.

Which names there are is asked of the installed package; signatures and docstrings are read from its sources, stubs for
what is compiled, since those say types as their authors wrote them. A public name that is on no page, or has no source,
fails the build.
"""

import ast
import importlib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import Links, markdown

import drumlin

PACKAGE = Path(drumlin.__file__).parent
FOLDER = "reference/python"

_NOUNS = """The package is organised by nouns: `drumlin.open` returns a store, which leads to all others.

| noun | what it has |
|---|---|
| [`Store`](store.md) | reading and writing by path, many tables at once; snapshots, maintenance, transactions |
| [`Table`](table.md) | `store.table(path)`: everything about one table |
| [`Tree`](tree.md) | `store.tree`: nodes and their payloads, projections, triggers |
| [`Transaction`](transaction.md) | `store.transaction()`: the same nouns, committed together |
| [`Dataset`](dataset.md) | `store.scan(pattern)`: many tables as one, for engines and groups |
| [`Result`](results.md) | `store.read(path)`: rows as Arrow, pandas, Polars or NumPy |
"""
_FEEDS = ["ChangeFeed", "Commit", "Event", "RowFeed", "RowChanges", "Follower"]
_PROJECTIONS = ["ProjectionView", "ProjectionEntry"]
#: Pages, each with a title, what is said first, and the names on it; `*` is all others of `drumlin`.
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "open": (
        "Opening a store",
        _NOUNS,
        ["open", "follow", "promote", "clone", "salvage", "share", "unshare", "move_log", "__version__"],
    ),
    "store": ("Store", "", ["Store", "Retention", "Sink"]),
    "table": (
        "Table",
        "In a transaction, calls that make a version return None, since versions are numbered at its commit.",
        ["Table", "Merge", "Index", "Constraints", "TimeToLive", "now", "uuid", "sequence", "Generated"],
    ),
    "tree": (
        "Tree",
        "",
        ["Tree", "Presence", "PresenceInfo", "Node", "NodeChange", "Change", "Changes", "ListEntry", "ImportReport"],
    ),
    "transaction": ("Transaction", "", ["Transaction"]),
    "dataset": ("Dataset", "", ["Dataset", "Groups", "Joined", "Windows", "DatasetPlan"]),
    "results": ("Results", "What reads and look-ups return.", ["Result", "Results", "Lookup", "Batch", "Mask", "Diff"]),
    "jobs": (
        "Jobs",
        "Reading and writing with many processes.",
        ["Split", "Splits", "Ticket", "Token", "StagedReport"],
    ),
    "history": (
        "Versions, changes and feeds",
        "Versions and snapshots, and the changes of a store as they are reported.",
        ["Version", "Snapshot", "TrashItem", *_FEEDS, "TriggerFailure", *_PROJECTIONS],
    ),
    "errors": ("Exceptions", "What to do about each: [Errors](../errors.md).", []),
    "expressions": (
        "Expressions and types",
        "Filters as Python expressions, and names for the types of arguments.",
        ["col", "Expr", "P", "AsOf", "FrameLike", "SchemaLike", "RowsLike", "KeysLike", "Progress", "Schema", "tree"],
    ),
    "reports": ("Reports and plans", "What calls that change and maintain a store return.", ["*"]),
}
#: Modules beside it, each on a page: all names that they export.
MODULES = {
    "patterns": ["drumlin.tree"],
    "clusters": ["drumlin.ray", "drumlin.dask", "drumlin.daft", "drumlin.spark"],
    "migrate": ["drumlin.migrate"],
}

#: Of classes that share most of their methods, where those are described.
SHARED = {"Transaction": "Store"}

_SHORT = {
    "_np.": "numpy.",
    "_pa.": "pyarrow.",
    "_pd.": "pandas.",
    "_pl.": "polars.",
    "_data.": "ray.data.",
    "_duckdb.": "duckdb.",
    "_dd.": "dask.dataframe.",
    "_daft.": "daft.",
    "_DataFrame": "pyspark.sql.DataFrame",
    "_SparkSession": "pyspark.sql.SparkSession",
    "_drumlin.": "",
    "_List[": "list[",
}


@dataclass
class Source:
    """A module of the package as it is written."""

    text: str
    nodes: dict[str, ast.stmt] = field(default_factory=dict)


def sources() -> dict[str, Source]:
    """All modules, those in Python before stubs, by path within the package."""
    found = {}
    paths = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.glob("_drumlin/*.pyi"))
    for path in paths:
        source = Source(path.read_text())
        for node in ast.parse(source.text).body:
            match node:
                case ast.ClassDef() | ast.FunctionDef():
                    source.nodes[node.name] = node
                case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                    source.nodes[name] = node
        found[str(path.relative_to(PACKAGE))] = source
    return found


class Package:
    """The package's public names with their sources."""

    def __init__(self) -> None:
        self.sources = sources()
        named = [name for _, _, names in PAGES.values() for name in names if name != "*"]
        rest = [name for name in drumlin.__all__ if name not in named]
        errors = [name for name in rest if _is_error(getattr(drumlin, name))]
        others = [name for name in rest if name not in errors]
        if unknown := set(named) - set(drumlin.__all__):
            raise SystemExit(f"reference: drumlin has no {', '.join(sorted(unknown))}")
        lists = {"errors": sorted(errors, key=lambda name: name != "Error"), "reports": others}
        self.names = {page: lists.get(page, names) for page, (_, _, names) in PAGES.items()}

    def of(self, module: str) -> Source:
        """The source of a module or a package."""
        file = module.removeprefix("drumlin.")
        return self.sources.get(f"{file}.py") or self.sources[f"{file}/__init__.py"]

    def find(self, name: str, module: str | None = None) -> tuple[Source, ast.stmt]:
        """Where a name is declared: in a module, or in one of a package of that name; else anywhere in the private
        parts of the package, or in a module beside them."""
        for path, source in self.sources.items():
            fits = path == f"{module}.py" or path.startswith(f"{module}/")
            if module is None:
                fits = "/" not in path or path.startswith("_")
            if name in source.nodes and fits:
                return source, source.nodes[name]
        raise SystemExit(f"reference: no source declares {name}")

    def members(self, name: str, public: type) -> dict[str, ast.FunctionDef | ast.AnnAssign]:
        """Public members of a class, in the order of its sources, with those that it inherits within the package."""
        _, node = self.find(name)
        assert isinstance(node, ast.ClassDef)
        found: dict[str, ast.FunctionDef | ast.AnnAssign] = {}
        for base in node.bases:
            base_name = base.value.id if isinstance(base, ast.Subscript) and isinstance(base.value, ast.Name) else None
            base_name = base_name or (base.id if isinstance(base, ast.Name) else None)
            if base_name and any(base_name in source.nodes for source in self.sources.values()):
                found |= self.members(base_name, public)
        for member in node.body:
            match member:
                case ast.FunctionDef(name=known) | ast.AnnAssign(target=ast.Name(id=known)) if known[0] != "_":
                    found[known] = member
        return found

    def own(self, name: str) -> set[str]:
        """The members that a class declares itself."""
        _, node = self.find(name)
        assert isinstance(node, ast.ClassDef)
        return {member.name for member in node.body if isinstance(member, ast.FunctionDef)}


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def annotation(node: ast.expr | None) -> str:
    """A type as readers know it."""
    if node is None:
        return ""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    for short, long in _SHORT.items():
        text = text.replace(short, long)
    if "Literal" not in text:
        # Names of what is declared later.
        text = re.sub(r"'([\w.]+(?:\[[\w., ]*\])?)'", r"\1", text)
    return re.sub(r"\bdt\.", "datetime.", re.sub(r"\b_V\b", "Version", text))


def written(default: ast.expr) -> str:
    """A default as readers would write it."""
    return re.sub(r"\bdt\.", "datetime.", ast.unparse(default))


def signature(name: str, node: ast.FunctionDef, of: str | None) -> str:
    """A call with its arguments, over several lines if it is long."""
    arguments = node.args
    parts: list[str] = []

    def add(argument: ast.arg, default: ast.expr | None) -> None:
        text = argument.arg
        if argument.annotation is not None:
            text += f": {annotation(argument.annotation)}"
        if default is not None:
            text += f"{' = ' if argument.annotation is not None else '='}{written(default)}"
        parts.append(text)

    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    skip = 1 if of is not None and not static else 0
    for argument, default in list(zip(plain, defaults, strict=True))[skip:]:
        add(argument, default)
    if arguments.vararg is not None:
        add(ast.arg("*" + arguments.vararg.arg, arguments.vararg.annotation), None)
    elif arguments.kwonlyargs:
        parts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(argument, default)
    if arguments.kwarg is not None:
        add(ast.arg("**" + arguments.kwarg.arg, arguments.kwarg.annotation), None)
    returns = f" -> {annotation(node.returns)}" if node.returns is not None else ""
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= 96:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def said_above(source: Source, node: ast.stmt) -> str:
    """The comment `#:` above a declaration."""
    lines = source.text.splitlines()[: node.lineno - 1]
    said: list[str] = []
    while lines and lines[-1].startswith("#:"):
        said.insert(0, lines.pop()[2:].strip())
    return " ".join(said)


class Writer:
    """Writes pages, and knows where each name is described."""

    def __init__(self) -> None:
        self.package = Package()
        self.anchors: dict[str, str] = {}
        for page, names in self.package.names.items():
            for name in names:
                self.anchors[f"drumlin.{name}"] = page
                public = getattr(drumlin, name)
                if isinstance(public, type) and not _is_error(public):
                    for member in self.package.members(name, public):
                        if self._described(name, member):
                            self.anchors[f"drumlin.{name}.{member}"] = page
        for page, modules in MODULES.items():
            for module in modules:
                self.anchors[module] = page
                for name in exported(module, self.package):
                    self.anchors[f"{module}.{name}"] = page

    def _described(self, name: str, member: str) -> bool:
        return name not in SHARED or member in self.package.own(name)

    def links(self, page: str, of: str | None) -> Links:
        def target(name: str) -> str | None:
            name = name.removesuffix("()")
            inherits = SHARED.get(of or "")
            for scope in ("", f"drumlin.{of}.", f"drumlin.{inherits}.", "drumlin.", "drumlin.tree."):
                full = f"{scope}{name}"
                if full in self.anchors:
                    to = self.anchors[full]
                    return f"#{full}" if to == page else f"{to}.md#{full}"
            return None

        return target

    def page(self, page: str) -> str:
        title, said, _ = PAGES[page]
        lines = [f"# {title}", ""] + ([said, ""] if said else [])
        for name in self.package.names[page]:
            lines += self.name(page, name)
        return "\n".join(lines)

    def name(self, page: str, name: str) -> Iterator[str]:
        public = getattr(drumlin, name)
        if isinstance(public, type):
            yield from self.of_class(page, name, public)
        elif isinstance(public, ModuleType):
            yield from [f"## `{name}` {{ #drumlin.{name} }}", "", f"The module [`drumlin.{name}`](patterns.md).", ""]
        elif callable(public) and isinstance(self.package.find(name)[1], ast.FunctionDef):
            yield from self.function(page, name, f"drumlin.{name}", "##")
        elif name == "__version__":
            yield from [f"## `{name}` {{ #drumlin.version }}", "", "The version of the package, a `str`.", ""]
        else:
            source, node = self.package.find(name)
            value = getattr(node, "value", None)
            yield from [
                f"## `{name}` {{ #drumlin.{name} }}",
                "",
                markdown(said_above(source, node), self.links(page, None)),
                "",
            ]
            yield from ["```py", f"{name} = {annotation(value)}", "```", ""]

    def of_class(self, page: str, name: str, public: type) -> Iterator[str]:
        _, node = self.package.find(name)
        assert isinstance(node, ast.ClassDef)
        links = self.links(page, name)
        yield from [f"## `{name}` {{ #drumlin.{name} }}", ""]
        if _is_error(public):
            bases = [f"`{base.__name__}`" for base in public.__bases__ if base is not Exception]
            yield from ([f"Is {' and '.join(bases)}.", ""] if bases else [])
            yield from [markdown(ast.get_docstring(node) or "", links), ""]
            return
        yield from [markdown(ast.get_docstring(node) or "", links), ""]
        if issubclass(public, tuple):
            yield from self.fields(node)
        members = self.package.members(name, public)
        shared = [member for member in members if not self._described(name, member)]
        only_values = all(isinstance(m, ast.FunctionDef) and is_property(m) for m in members.values())
        if only_values and members:
            yield from self.values(name, members, links)
        for member, declared in members.items():
            if only_values or member in shared or isinstance(declared, ast.AnnAssign):
                continue
            if not hasattr(public, member):
                raise SystemExit(f"reference: {name}.{member} is declared, but {name} does not have it")
            yield from self.member(name, member, declared, links)
        declared_names = set(members)
        if missing := {m for m in vars(public) if not m.startswith("_")} - declared_names:
            raise SystemExit(f"reference: {name} has {', '.join(sorted(missing))}, which no source declares")
        if shared:
            of = SHARED[name]
            yield from [f"### As in a {of.lower()}", "", f"These are described with [`{of}`]({of.lower()}.md):", ""]
            for member in shared:
                yield f"- [`{member}`]({of.lower()}.md#drumlin.{of}.{member})"
            yield ""

    def fields(self, node: ast.ClassDef) -> Iterator[str]:
        yield from ["| field | type |", "|---|---|"]
        for member in node.body:
            if isinstance(member, ast.AnnAssign):
                yield f"| `{ast.unparse(member.target)}` | `{annotation(member.annotation)}` |"
        yield ""

    def values(self, of: str, members: dict[str, Any], links: Links) -> Iterator[str]:
        """A class that has nothing but values, as a table."""
        yield from ["| | type | |", "|---|---|---|"]
        for name, node in members.items():
            said = " ".join(markdown(ast.get_docstring(node) or "", links).split())
            row = [f"`{name}`{{ #drumlin.{of}.{name} }}", f"`{annotation(node.returns)}`", said]
            yield f"| {' | '.join(row)} |"
        yield ""

    def member(self, of: str, name: str, node: ast.FunctionDef, links: Links) -> Iterator[str]:
        yield from [f"### `{name}` {{ #drumlin.{of}.{name} }}", ""]
        if is_property(node):
            yield from ["```py", f"{of}.{name}: {annotation(node.returns)}", "```", ""]
        else:
            yield from ["```py", signature(f"{of}.{name}", node, of), "```", ""]
        yield from [markdown(ast.get_docstring(node) or "", links), ""]

    def function(self, page: str, name: str, anchor: str, level: str, module: str | None = None) -> Iterator[str]:
        _, node = self.package.find(name, module)
        assert isinstance(node, ast.FunctionDef)
        yield from [f"{level} `{name}` {{ #{anchor} }}", "", "```py", signature(anchor, node, None), "```", ""]
        yield from [markdown(ast.get_docstring(node) or "", self.links(page, None)), ""]

    def modules(self, page: str) -> str:
        many = len(MODULES[page]) > 1
        lines = (
            ["# Ray, Dask, Daft, Spark", "", "See [Many machines](../../guides/engines.md#many-machines).", ""]
            if many
            else []
        )
        for module in MODULES[page]:
            source = self.package.of(module)
            said = markdown(ast.get_docstring(ast.parse(source.text)) or "", self.links(page, None))
            lines += [f"{'##' if many else '#'} `{module}` {{ #{module} }}", "", said, ""]
            for name in exported(module, self.package):
                lines += self.module_name(page, module, name, "###" if many else "##")
        return "\n".join(lines)

    def module_name(self, page: str, module: str, name: str, level: str) -> Iterator[str]:
        file = module.removeprefix("drumlin.")
        source, node = self.package.find(name, file)
        anchor = f"{module}.{name}"
        if isinstance(node, ast.FunctionDef):
            yield from self.function(page, name, anchor, level, file)
            return
        yield from [f"{level} `{name}` {{ #{anchor} }}", ""]
        if isinstance(node, ast.ClassDef):
            yield from [markdown(ast.get_docstring(node) or "", self.links(page, name)), ""]
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name[0] != "_":
                    yield from ["```py", signature(f"{name}.{member.name}", member, name), "```", ""]
                    yield from [markdown(ast.get_docstring(member) or "", self.links(page, name)), ""]
            return
        yield from [markdown(said_above(source, node), self.links(page, None)), ""]
        yield from ["```py", f"{name} = {annotation(getattr(node, 'value', None))}", "```", ""]


def exported(module: str, package: Package) -> list[str]:
    """The names that a module exports, in the order of its source. Read, not imported: it may need a large package."""
    source = package.of(module)
    names = ast.literal_eval(source.nodes["__all__"].value)  # type: ignore[attr-defined]
    return sorted(names, key=lambda name: source.nodes[name].lineno if name in source.nodes else 0)


def python_pages() -> dict[str, str]:
    """All pages of the reference, by place."""
    importlib.import_module("drumlin")
    writer = Writer()
    pages = {page: writer.page(page) for page in PAGES} | {page: writer.modules(page) for page in MODULES}
    return {posixpath.join(FOLDER, f"{page}.md"): text + "\n" for page, text in pages.items()}
