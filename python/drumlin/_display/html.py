"""What notebooks show of stores, tables, results and reports: HTML of limited size, without scripts and external
resources, in the notebook's own colours. Everything that comes from a store is cut and escaped here.

If this fails, for example for a closed store, the plain text is shown: a cell never fails because of what it shows.
"""

import datetime as dt
import html
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from drumlin import _drumlin
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.store import Store
from drumlin._nouns.table import Table
from drumlin._optional import have, need
from drumlin._results.changes import RowChanges
from drumlin._results.diff import Diff
from drumlin._results.lookup import Lookup
from drumlin._results.metrics import Durations, Metrics
from drumlin._results.result import Result, Results
from drumlin._values.evidence import of_arrow, visible

#: The maximum size of the HTML in bytes of UTF-8.
BYTES_MAX = 60_000


class Bounds(NamedTuple):
    """Limits on what is shown."""

    rows: int
    columns: int
    #: Characters of a name or value.
    chars: int


#: Tried in turn until the HTML is small enough.
BOUNDS = (Bounds(10, 20, 80), Bounds(10, 10, 40), Bounds(5, 10, 20))

#: Classes of the core that are shown in their own way, or not at all.
_NOT_RECORDS = frozenset(
    [
        "Batch",
        "Batches",
        "ChangeFeed",
        "Condition",
        "Dataset",
        "Lease",
        "Lookup",
        "Mask",
        "NodeChanges",
        "Pattern",
        "ProjectionView",
        "Reading",
        "RowChanges",
        "RowFeed",
        "Schema",
        "Split",
        "SplitReader",
        "Stage",
        "Store",
        "Stream",
        "Table",
        "Tables",
        "Ticket",
        "Token",
        "Transaction",
        "Tree",
        # Its address gives access to the store.
        "Ui",
        "Walk",
    ]
)

_CELL = "padding:0.1em 0.6em;border-bottom:1px solid rgba(128,128,128,0.35);text-align:"
_FAINT = "opacity:0.65"
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 10


def text(value: str, chars: int) -> str:
    """Text, cut and escaped. Characters that would be invisible or reverse the text around them are shown as
    escapes."""
    return html.escape(visible(value, chars))


def value_text(value: Any, chars: int, name: str = "") -> str:
    """A value of a report, cut and escaped."""
    match value:
        case None:
            return f'<span style="{_FAINT}">none</span>'
        case bool():
            return str(value)
        case int():
            exact = f"{value:,}" if abs(value) < 1 << 64 else text(hex(value), chars)
            many = name == "bytes" or name.endswith("_bytes") or name.startswith("bytes_")
            return f"{exact} ({_size(value)})" if many and value >= 10_000 else exact
        case str():
            return text(value, chars)
        case dt.datetime():
            return text(value.isoformat(" ", "seconds"), chars)
        case dt.timedelta() | float():
            return text(str(value), chars)
        case bytes():
            return text(repr(value[:chars]), chars)
    return text(_SHORT.repr(value), chars * 3)


def _size(count: int) -> str:
    size, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size, _ = size / 1024, units.pop(0)
    return f"{size:.1f} {units[0]}"


def page(title: str, *parts: str) -> str:
    """A title, which is escaped already, and what comes below it."""
    below = "".join(parts)
    return f'<div class="drumlin" style="overflow-x:auto"><div><b>{title}</b></div>{below}</div>'


def note(words: str) -> str:
    """A remark, which is escaped already."""
    return f'<div style="{_FAINT}">{words}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells, which are escaped already."""
    above = "".join(f'<th style="{_CELL}left">{cell}</th>' for cell in head)
    lines = "".join("<tr>" + "".join(f'<td style="{_CELL}left">{c}</td>' for c in row) + "</tr>" for row in rows)
    begin = f"<thead><tr>{above}</tr></thead>" if head else ""
    return f'<table style="border-collapse:collapse;font-size:90%">{begin}<tbody>{lines}</tbody></table>'


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


# Records: reports, plans, versions, nodes.


def _fields(record: Any) -> list[str]:
    """The names of the fields, in the order of the record's text; then any others."""
    kind = type(record)
    names = sorted(name for name in vars(kind) if not name.startswith("_") and not callable(vars(kind)[name]))
    shown = repr(record)
    places = {name: shown.find(f"{name}=") for name in names}
    return sorted(names, key=lambda name: (places[name] < 0, places[name]))


def _is_record(value: Any) -> bool:
    return type(value) in _RECORDS


def record(value: Any, bounds: Bounds) -> str:
    """A report: its summary, if it has one, and its fields. Lists of records are tables."""
    parts, rows = [], []
    if "__str__" in vars(type(value)):
        # At most one screen.
        lines = str(value)[:4000].splitlines()[: 2 * bounds.rows]
        parts.append("<pre>" + "\n".join(text(line, 2 * bounds.chars) for line in lines) + "</pre>")
    for name in _fields(value):
        field = getattr(value, name)
        if isinstance(field, (list, tuple)) and field and all(map(_is_record, field[: bounds.rows])):
            parts.append(f"<div>{text(name, bounds.chars)}: {len(field):,}</div>{_records(field, bounds)}")
        else:
            rows.append((text(name, bounds.chars), _field(field, name, bounds)))
    return page(text(type(value).__name__, bounds.chars), table((), rows), *parts)


def _field(field: Any, name: str, bounds: Bounds) -> str:
    if isinstance(field, (list, tuple, dict)):
        items = list(field.items() if isinstance(field, dict) else field)[: bounds.rows] if len(field) else []
        shown = ", ".join(
            f"{value_text(one[0], bounds.chars)}: {value_text(one[1], bounds.chars)}"
            if isinstance(field, dict)
            else value_text(one, bounds.chars)
            for one in items
        )
        more = len(field) - len(items)
        return shown + (f" … and {more:,} more" if more else "")
    if _is_record(field):
        return text(repr(field)[: 4 * bounds.chars], 3 * bounds.chars)
    return value_text(field, bounds.chars, name)


def _records(values: Sequence[Any], bounds: Bounds) -> str:
    shown = values[: bounds.rows]
    names = _fields(shown[0])[: bounds.columns]
    rows = [[value_text(getattr(one, name), bounds.chars, name) for name in names] for one in shown]
    more = len(values) - len(shown)
    return table([text(name, bounds.chars) for name in names], rows) + (note(f"and {more:,} more") if more else "")


def _changes(changes: Any, bounds: Bounds) -> str:
    first = [change for change, _ in zip(changes, range(bounds.rows), strict=False)]
    rows = [(text(change.path, bounds.chars), text(change.cause, bounds.chars)) for change in first]
    more = len(changes) - len(first)
    title = f"{text(type(changes).__name__, 40)} of {_count(len(changes), 'node')}"
    return page(title, table(("path", "cause"), rows), note(f"and {more:,} more") if more else "")


# Rows.


def _grid(names: Sequence[str], types: Sequence[str], batches: Any, bounds: Bounds) -> str:
    """Columns with their types, and the first rows of Arrow batches, if given."""
    head = [
        f'{text(name, bounds.chars)}<br><span style="font-weight:normal;{_FAINT}">{text(kind, bounds.chars)}</span>'
        for name, kind in zip(names[: bounds.columns], types, strict=False)
    ]
    rows: list[list[str]] = []
    if batches is not None:
        read = need("pyarrow", "rows in a notebook", "pyarrow").table(batches)
        columns = [read.column(at) for at in range(min(read.num_columns, bounds.columns))]
        rows = [[_cell(column[at], bounds) for column in columns] for at in range(min(read.num_rows, bounds.rows))]
    hidden = len(names) - len(head)
    return table(head, rows) + (note(f"and {_count(hidden, 'column')} more") if hidden > 0 else "")


def _cell(scalar: Any, bounds: Bounds) -> str:
    """An Arrow value. Only the beginning of long strings and bytes is looked at."""
    if not scalar.is_valid:
        return f'<span style="{_FAINT}">null</span>'
    if hasattr(scalar, "as_buffer"):
        begin = bytes(memoryview(scalar.as_buffer())[: 4 * bounds.chars + 4])
        if "string" in str(scalar.type):
            return text(begin.decode("utf8", "ignore"), bounds.chars)
        return text(repr(begin), bounds.chars)
    value = of_arrow(scalar)
    match value:
        case str():
            return text(value, bounds.chars)
        case int() | float() | dt.datetime() | dt.date() | dt.time():
            return text(str(value), bounds.chars)
    return text(_SHORT.repr(value), bounds.chars)


def _result(result: Result, bounds: Bounds) -> str:
    reading, schema = result._reading, result.schema
    names = schema.names
    shown = names[: bounds.columns]
    rows = None
    if have("pyarrow") and names:
        rows = reading.collect(shown) if isinstance(reading, _drumlin.Batches) else reading.head(bounds.rows, shown)
    about = [_count(len(names), "column")]
    known = result._known_rows
    if known is not None:
        about.insert(0, _count(known, "row"))
    version = result.version
    if version is not None:
        about.insert(0, f"version {version}")
    title = f"{text(type(result).__name__, 40)} {text(result.path, bounds.chars)}"
    return page(title, note(", ".join(about)), _grid(names, schema.types, rows, bounds))


def _dataset(dataset: Dataset, bounds: Bounds) -> str:
    names, types = dataset._described_columns()
    rows = None
    if have("pyarrow") and names:
        limit = bounds.rows if dataset._limit is None else min(bounds.rows, dataset._limit)
        rows = dataset._core.collect(names[: bounds.columns], dataset._filters, limit)
    tables = len(dataset.paths)
    about = note(f"{_count(tables, 'table')}, {_count(len(names), 'column')}")
    return page(f"Dataset {text(dataset.pattern, bounds.chars)}", about, _grid(names, types, rows, bounds))


def _lookup(lookup: Lookup, bounds: Bounds) -> str:
    rows = lookup.rows
    names, batches = rows.schema.names, None
    if have("pyarrow"):
        batches = rows._reading.collect(names[: bounds.columns])
    about = note(f"{lookup.found.count():,} of {_count(len(lookup), 'key')} found")
    grid = _grid(names, rows.schema.types, batches, bounds)
    return page(f"Lookup {text(rows.path, bounds.chars)}", about, grid)


def _row_changes(changes: RowChanges, bounds: Bounds) -> str:
    rows = changes.rows
    names, batches = rows.schema.names, None
    if have("pyarrow"):
        batches = rows._reading.collect(names[: bounds.columns])
    about = note(f"{_count(len(changes), 'row')} of version {changes.version}, {text(changes.kind, bounds.chars)}")
    grid = _grid(names, rows.schema.types, batches, bounds)
    return page(f"Changes of {text(rows.path, bounds.chars)}", about, grid)


def _results(results: Results, bounds: Bounds) -> str:
    first = list(results.items())[: bounds.rows]
    rows = [
        (text(path, bounds.chars), text(repr(result)[: 9 * bounds.chars], 2 * bounds.chars)) for path, result in first
    ]
    more = len(results) - len(first)
    title = f"Results of {_count(len(results), 'table')}"
    return page(title, table(("path", "result"), rows), note(f"and {more:,} more") if more else "")


def _metrics(metrics: Metrics, bounds: Bounds) -> str:
    def told(value: int | Durations) -> str:
        return f"{value:,}" if isinstance(value, int) else f"{value.count:,}, {value.mean * 1000:.3g} ms each"

    rows = [(text(name, 2 * bounds.chars), told(value), metrics.help(name)) for name, value in metrics.items()]
    return page("Metrics", table(("name", "value", "what it is"), rows))


def _diff(diff: Diff, bounds: Bounds) -> str:
    # Only the columns: rows are compared when they are asked for.
    schema = diff._made().schema
    return page(text(repr(diff), 3 * bounds.chars), _grid(schema.names, schema.types, None, bounds))


# Stores and tables.


def _store(store: Store, bounds: Bounds) -> str:
    title = f"Store {text(store.uri, 2 * bounds.chars)}"
    if "://" in store.uri and not store.uri.startswith(("file://", "memory://")):
        # A bucket's figures cost requests, which may take long to fail.
        about, listed = {"seq": store.seq}, [entry.path for entry in store.tree.list("*")]
        return page(title, _figures(about, bounds), _paths(listed, bounds))
    stat = store.stat()
    wanted = ("seq", "tables", "versions", "nodes", "snapshots", "trash", "bytes", "memtable_bytes")
    figures = _figures({name: getattr(stat, name) for name in wanted}, bounds)
    # Listing many paths would cost more than it is worth.
    paths = store.tables() if stat.tables <= 1000 else []
    return page(title, figures, _paths(paths, bounds))


def _figures(figures: Mapping[str, Any], bounds: Bounds) -> str:
    rows = [(text(name, bounds.chars), _field(value, name, bounds)) for name, value in figures.items()]
    return table((), rows)


def _paths(paths: Sequence[str], bounds: Bounds) -> str:
    if not paths:
        return ""
    rows = [(text(path, bounds.chars),) for path in paths[: bounds.rows]]
    return table(("path",), rows) + (note(f"and {len(paths) - len(rows):,} more") if len(paths) > len(rows) else "")


def _table(of: Table[Any], bounds: Bounds) -> str:
    title = f"Table {text(of.path, 2 * bounds.chars)}"
    if not of.exists():
        return page(title, note("there is no table at this path"))
    stat, schema = of.stat(), of.schema()
    wanted = ("rows", "versions", "bytes", "key" if stat.key else "sort")
    figures = _figures({name: getattr(stat, name) for name in wanted}, bounds)
    return page(title, figures, _grid(schema.names, schema.types, None, bounds))


def _schema(schema: _drumlin.Schema, bounds: Bounds) -> str:
    return page(f"Schema of {_count(len(schema), 'column')}", _grid(schema.names, schema.types, None, bounds))


def shown(value: Any, show: Callable[[Any, Bounds], str]) -> str:
    """The HTML of a value, within the limits; its plain text if that fails."""
    try:
        for bounds in BOUNDS:
            made = show(value, bounds)
            if len(made.encode()) <= BYTES_MAX:
                return made
    except Exception:
        # Whatever is wrong with the store, the cell has done its work.
        pass
    return f"<pre>{text(_plain(value), 4000)}</pre>"


def _plain(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return object.__repr__(value)


_RECORDS = {
    kind
    for name, kind in vars(_drumlin).items()
    if isinstance(kind, type) and name not in _NOT_RECORDS and not name.startswith("_")
}
_SHOWN: Mapping[type, Callable[[Any, Bounds], str]] = {
    **dict.fromkeys(_RECORDS, record),
    _drumlin.Changes: _changes,
    _drumlin.Schema: _schema,
    Dataset: _dataset,
    Diff: _diff,
    Lookup: _lookup,
    RowChanges: _row_changes,
    Metrics: _metrics,
    Result: _result,
    Results: _results,
    Store: _store,
    Table: _table,
}


def _repr_html(show: Callable[[Any, Bounds], str]) -> Callable[[Any], str]:
    def _repr_html_(self: Any) -> str:
        return shown(self, show)

    return _repr_html_


def install() -> None:
    """Gives the classes the method that notebooks call."""
    method = "_repr_html_"
    for kind, show in _SHOWN.items():
        setattr(kind, method, _repr_html(show))
