"""Arguments in the form that the core takes."""

import contextlib
import datetime as dt
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Union

from drumlin._arguments.expr import Expr, literal
from drumlin._arguments.fit import Fit
from drumlin._arguments.frames import FrameLike, to_schema, to_stream
from drumlin._arguments.generated import Generated
from drumlin._arguments.parameters import with_params
from drumlin._errors import InvalidArgument, SchemaMismatch
from drumlin._habits import instead
from drumlin._optional import need
from drumlin._values.evidence import a_type, shown
from drumlin._values.json import plain_json, to_json
from drumlin._values.names import check_name, field_name
from drumlin.tree import P, PatternLike, plain_text

if TYPE_CHECKING:
    import polars as _pl
    import pyarrow.compute as _pc  # type: ignore[import-untyped, unused-ignore]

#: The state of a table to read: a version number (-1 is the newest version, -2 the one before), a snapshot's name, or a
#: time, for what was committed by then: a datetime or date, or as text, such as ``"2026-01-31"`` or
#: ``"2026-01-31T16:00:00+01:00"``, unless a snapshot has that name. A date is its first instant; without a zone, a time
#: is in UTC.
AsOf: TypeAlias = int | str | dt.date
#: Which rows: text in the filter language, an expression made with :func:`drumlin.col`, or an expression of Polars or
#: pyarrow that has an exact form in that language.
FilterLike: TypeAlias = Union[str, Expr, "_pl.Expr", "_pc.Expression"]
#: Values for the parameters of a filter: a list for ``?`` and ``$1``, a dict for ``:name`` and ``$name``.
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
#: Called at each step of a long call, with the steps done, all steps (0 while unknown), the rows and bytes handled, and
#: the seconds left (None while unknown). An exception from it stops the call.
Progress: TypeAlias = Callable[[int, int, int, int, float | None], object]
#: What happens to columns that the table lacks: ``"strict"`` refuses them, ``"evolve"`` adds them to the table.
SchemaMode: TypeAlias = Literal["strict", "evolve"]
#: How rows are compressed.
Compression: TypeAlias = Literal["balanced", "small", "fast"]

_SETTINGS = (
    "memory_bytes",
    "cache_bytes",
    "cpu_threads",
    "checkpoint_log_bytes",
    "inline_bytes",
    "memtable_bytes",
    "row_write_bytes",
    "io_threads",
    "block_grace_micros",
    "sync_micros",
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def count(value: int | None, name: str) -> int | None:
    """A number of at least 0, or None."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not a bool")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a number, not {a_type(value)}") from None
    if not 0 <= number < 2**63:
        raise InvalidArgument(f"{name}={number} is out of range; expected 0 or more")
    return number


def number_of(version: Any) -> int:
    """The number of a version."""
    number = count(version, "version")
    if number is None:
        raise TypeError("a version must be a number, not None")
    return number


def since_epoch(when: dt.datetime) -> int:
    """Whole microseconds since 1970; a time without a zone is UTC."""
    moment = when if when.tzinfo is not None else when.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def as_of_argument(when: Any, name: str = "as_of") -> int | str | dt.datetime | None:
    """The state to read; a time is in UTC and in whole microseconds."""
    if type(when).__name__ == "datetime64" and type(when).__module__ == "numpy":
        when = when.astype("datetime64[us]").item()
        if not isinstance(when, dt.datetime):
            raise InvalidArgument(f"{name} is no time: NaT, or out of range")
    match when:
        case None:
            return None
        case str():
            return text(when, name)
        case dt.datetime() if when != when:
            raise InvalidArgument(f"{name} is no time: NaT")
        case dt.timedelta():
            raise TypeError(
                f"{name} must be a time, not {a_type(when)}; write "
                f"{name}=datetime.datetime.now(datetime.timezone.utc) - span"
            )
        case dt.datetime():
            # A subclass of datetime may be more precise.
            # The core counts from 1970; no store is older.
            micros = max(since_epoch(when), 0)
            return _EPOCH + dt.timedelta(microseconds=micros)
        case bool():
            pass
        case dt.date():
            return dt.datetime(when.year, when.month, when.day, tzinfo=dt.UTC)
        case _:
            with contextlib.suppress(TypeError):
                number = operator.index(when)
                # The binding counts back in 64 bits.
                return max(number, -(1 << 63)) if number < 0 else count(number, name)
    raise TypeError(f"{name} must be a version's number, a snapshot's name or a time, not {a_type(when)}")


def assignments(values: Any, name: str = "set") -> list[tuple[str, str]]:
    """Pairs of a column and its new value, as an expression in the filter language."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict of columns and values, not {a_type(values)}")
    return [(field_name(column), _value_text(value, column)) for column, value in values.items()]


def _value_text(value: Any, column: Any) -> str:
    if isinstance(value, (str, Expr)):
        return str(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "null"
    return str(literal(value, f"{column} ="))


def filter_text(where: Any, params: Any = None) -> str | None:
    """The text of a filter, with values in the place of its parameters."""
    if where is None or isinstance(where, Expr):
        if params is not None:
            raise InvalidArgument("params are for a filter as text, such as where='id = ?'")
        return None if where is None else str(where)
    if isinstance(where, str):
        return where if params is None else with_params(where, params)
    raise TypeError(
        "where is text in the filter language or an expression made with drumlin.col, polars.col or "
        f"pyarrow.dataset.field, such as where='n = ?' with params=[1], not {a_type(where)}"
    )


def note(metadata: Any) -> str | None:
    """The metadata of a version, as JSON text."""
    return None if metadata is None else to_json(plain_json(metadata), "metadata")


def evolves(schema: Any) -> bool:
    """Whether rows may have columns that their table lacks."""
    one_of(schema, "schema", ("strict", "evolve"))
    return bool(schema == "evolve")


def new_columns(columns: Mapping[str, Any] | Any) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Columns to add: a schema, the defaults of those that have one, and the expressions of those that are computed."""
    if not isinstance(columns, Mapping) or hasattr(columns, "__arrow_c_schema__"):
        return to_schema(columns, "columns"), None, []
    types, defaults, computed = {}, {}, []
    for name, column in columns.items():
        types[name] = column
        if isinstance(column, (tuple, list)):
            if len(column) != 2:
                raise InvalidArgument(
                    f"column {name!r} has {len(column)} parts; expected a type, or a pair: a type and a default, or a "
                    "type and an expression"
                )
            types[name], fill = column
            if isinstance(fill, Expr):
                computed.append((name, str(fill)))
            elif isinstance(fill, Generated):
                raise InvalidArgument(
                    f"column {name!r}: rows that are there would get no value of {fill!r}; add the column with its "
                    f"type, then table.add_constraints(defaults={{{name!r}: {fill!r}}})"
                )
            else:
                defaults[name] = fill
        elif isinstance(column, Expr):
            raise InvalidArgument(f"column {name!r} is an expression without a type; give both, as a pair")
    schema = to_schema(types, "columns")
    return schema, {name: plain(value) for name, value in defaults.items()} or None, computed


def plain(value: Any) -> Any:
    """A pyarrow scalar, or a NumPy datetime or timedelta, as a Python value."""
    if type(value).__module__ == "numpy" and type(value).__name__ in ("datetime64", "timedelta64"):
        value = need("pyarrow", f"a numpy {type(value).__name__}", "pyarrow").scalar(value)
    return value.as_py() if hasattr(value, "as_py") else value


def renamed(names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of an old name and a new name."""
    if not isinstance(names, Mapping):
        raise TypeError(f"names must be a dict of old and new names, not {a_type(names)}")
    for old, new in names.items():
        if not isinstance(old, str) or not isinstance(new, str):
            raise TypeError(f"names must be a dict of old and new names, each a str, not {shown(old)}: {shown(new)}")
        check_name(new, f"the name {shown(new)}")
    return list(names.items())


def listed(values: Iterable[Any] | str, name: str) -> list[Any]:
    """A list; a name is a list of one. Names whose order matters are not given as a set, which has none."""
    if isinstance(values, str):
        return [values]
    wrong = (bytes, Mapping, set, frozenset) if name in ("columns", "key", "sort") else (bytes, Mapping)
    if isinstance(values, wrong) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of names, not {a_type(values)}{instead(name, type(values).__name__)}")
    return list(values)


def names(values: Iterable[str] | str, name: str) -> list[str]:
    """A list of names."""
    checked = listed(values, name)
    for value in checked:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of names, each a str; {shown(value)} is {a_type(value)}")
    return checked


def path_argument(path: Any, name: str = "path") -> str:
    """The path of a table."""
    return text(path, name)


def one_path(path: Any, code: str, name: str = "path") -> None:
    """Checks that a path or a pattern is not many, for which ``code`` is called."""
    if isinstance(path, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be one path or pattern, not {a_type(path)}; here: {code}")


def text(value: Any, name: str) -> str:
    """A str."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {a_type(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name}: {shown(value)} has half a surrogate pair, which is not valid text") from None
    return value


def one_of(value: Any, name: str, known: Iterable[str]) -> None:
    """Checks that a value is one of some words."""
    expected = f"one of {', '.join(map(repr, known))}"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {expected}, not {a_type(value)}")
    if value not in known:
        raise InvalidArgument(f"{name} {shown(value)} is not known; expected {expected}")


def optional_text(value: Any, name: str) -> str | None:
    """A str, or None."""
    return None if value is None else text(value, name)


def sort_columns(columns: Iterable[str] | None) -> list[str] | None:
    """The columns to sort by, or None. Labels that are not a str become the text that they were written as."""
    return None if columns is None else [field_name(name) for name in listed(columns, "sort")]


def column_names(columns: Iterable[Any] | str | None) -> list[str] | None:
    """The columns to read, or None. Labels that are not a str become the text that they were written as; an expression
    of Polars, pyarrow or ours that is a column is its name."""
    return None if columns is None else [_column_name(name) for name in listed(columns, "columns")]


def some_columns(columns: Iterable[Any] | str | None) -> list[str] | None:
    """The columns to read, at least one, or None."""
    asked = column_names(columns)
    if asked == []:
        raise InvalidArgument("columns is empty; expected the names of columns, or None for all")
    return asked


def returned_columns(returning: bool | Iterable[Any] | str) -> list[str] | None:
    """The columns of written rows that are asked for; an empty list means all, None no rows."""
    if isinstance(returning, bool) or returning is None:
        return [] if returning else None
    try:
        return some_columns(returning)
    except (TypeError, InvalidArgument) as error:
        raise type(error)(f"returning: {error}") from None


def _column_name(label: Any) -> str:
    kind = type(label)
    if isinstance(label, Expr):
        return str(label).strip('"').replace('""', '"')
    if kind.__name__ == "Expr" and kind.__module__.startswith("polars"):
        if not label.meta.is_column():
            raise InvalidArgument(
                f"columns: {shown(str(label))} is many columns or a calculation; read columns=['a', 'b'] by name, and "
                "calculate on the frame"
            )
        return str(label.meta.output_name())
    if kind.__name__ == "Expression" and kind.__module__.startswith("pyarrow"):
        return str(label)
    return field_name(label)


def optional_names(given: Iterable[str] | str | None, name: str) -> list[str] | None:
    """Names of columns, or None."""
    return None if given is None else names(given, name)


def micros(span: dt.timedelta, name: str) -> int:
    """A timedelta in whole microseconds."""
    if not isinstance(span, dt.timedelta):
        raise TypeError(f"{name} must be a timedelta, not {a_type(span)}")
    if span < dt.timedelta(0):
        raise InvalidArgument(f"{name}={span} is in the future; expected 0 or more")
    return span // dt.timedelta(microseconds=1)


def optional_micros(span: dt.timedelta | None, name: str) -> int | None:
    """A timedelta in whole microseconds, or None."""
    return None if span is None else micros(span, name)


def to_streams(
    frames: Mapping[str, FrameLike],
    wrong: dict[str, Any] | None = None,
    fit: Callable[[str], Fit] = lambda _: Fit(),
) -> list[tuple[str, Any]]:
    """Frames by path, as objects from which the core can pull rows. If ``wrong`` is given, exceptions for invalid
    frames are added to it; otherwise they are raised."""
    if not isinstance(frames, Mapping):
        raise TypeError(f"frames must be a dict of paths and frames, not {a_type(frames)}")
    converted = []
    for path, data in frames.items():
        path_argument(path)
        try:
            converted.append((path, to_stream(data, fit(path), "")))
        except (InvalidArgument, SchemaMismatch, TypeError) as error:
            told = type(error)(f"{path!r}: {error}")
            if wrong is None:
                raise told from error
            wrong[path] = told
    return converted


def numbered_paths(
    versions: Mapping[str, int] | None, pattern: PatternLike, including: str | None
) -> list[tuple[str, int]] | None:
    """The version of each table that a snapshot should hold, if given, in addition to those of another snapshot."""
    if versions is None and including is None:
        return None
    versions = {} if versions is None else versions
    if not isinstance(versions, Mapping):
        raise TypeError(f"versions must be a dict of paths and numbers, not {a_type(versions)}")
    if pattern != "**":
        raise InvalidArgument("give a pattern, for the newest versions, or versions or another snapshot, not both")
    return [(path_argument(path), number_of(version)) for path, version in versions.items()]


def version_lists(versions: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    """Version numbers by path."""
    if not isinstance(versions, Mapping):
        raise TypeError(f"versions must be a dict of paths and lists of versions, not {a_type(versions)}")
    return {path: list(map(number_of, _listed_numbers(numbers))) for path, numbers in versions.items()}


def _listed_numbers(numbers: Any) -> list[Any]:
    return [numbers] if hasattr(numbers, "__index__") else listed(numbers, "versions")


def paths_to_drop(paths: PatternLike | Iterable[PatternLike]) -> list[str]:
    """The texts of paths and patterns."""
    return [plain_text(path) for path in ([paths] if isinstance(paths, (str, P)) else listed(paths, "paths"))]


def rows_filter(where: Any) -> str:
    """A filter for the rows to delete, which is required."""
    if where is None:
        raise InvalidArgument("where is None; to delete all rows, give where='true'")
    if not isinstance(where, (str, Expr)):
        raise TypeError(
            f"where says which rows to delete, such as 'n > 1', not {a_type(where)}; rows by key are deleted with "
            "delete_keys([...])"
        )
    return str(where)


class Selection(NamedTuple):
    """The state, columns and rows to read, in the order of the core's arguments."""

    as_of: int | str | dt.datetime | None
    columns: list[str] | None
    where: str | None
    offset: int
    limit: int | None
    tail: int | None
    native: bool

    @property
    def selects(self) -> bool:
        """Whether rows are left out."""
        return self.where is not None or self.limit is not None or self.tail is not None or self.offset > 0


def selection(
    as_of: AsOf | None,
    columns: Iterable[Any] | str | None,
    where: str | None,
    limit: int | None,
    tail: int | None,
    native: bool,
    rows: slice | None,
) -> Selection:
    """The checked arguments of a read."""
    first, last = count(limit, "limit"), count(tail, "tail")
    offset = 0
    if rows is not None:
        if first is not None or last is not None:
            raise InvalidArgument("rows already says which rows to read; give it without limit and tail")
        offset, first, last = _bounds(rows)
    return Selection(as_of_argument(as_of), column_names(columns), where, offset, first, last, native)


def _bounds(rows: slice) -> tuple[int, int | None, int | None]:
    """The offset, limit and tail for a slice of rows."""
    if not isinstance(rows, slice):
        raise TypeError(f"rows must be a slice, such as slice(10, 20), not {a_type(rows)}")
    for end in (rows.start, rows.stop, rows.step):
        if end is not None and not hasattr(end, "__index__"):
            raise TypeError(f"rows must be a slice of numbers, such as slice(10, 20), not of {a_type(end)}")
        count(None if end is None else abs(operator.index(end)), "rows")
    start, stop = (None if end is None else operator.index(end) for end in (rows.start, rows.stop))
    if rows.step is not None and operator.index(rows.step) != 1:
        raise InvalidArgument(f"rows: {rows!r} has a step; expected a slice without one")
    if start is not None and start < 0 and stop is None:
        return 0, None, -start
    if (start or 0) < 0 or (stop or 0) < 0:
        raise InvalidArgument(f"rows: {rows!r} counts from the end; only slice(-n, None), the last n rows, may")
    offset = start or 0
    return offset, None if stop is None else max(stop - offset, 0), None


#: What s3fs and fsspec call the settings of a bucket's client.
_FSSPEC = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "anon": "aws_skip_signature",
    "region_name": "aws_region",
}


def bucket_options(options: Mapping[str, Any] | None, named: str = "storage_options") -> dict[str, str]:
    """Settings of a bucket's client, by its names or those of fsspec. Errors show their names, never their values."""
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"{named} must be a dict of str to str, not {a_type(options)}")
    given = {} if options is None else dict(options)
    inner = given.pop("client_kwargs", None)
    if isinstance(inner, Mapping):
        given = {**inner, **given}
    elif inner is not None:
        raise InvalidArgument(f"{named}: 'client_kwargs' must be a dict")
    checked = {}
    for name, value in given.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgument(f"{named}: the name and the value of {name!r} must be str")
        checked[_FSSPEC.get(name, name)] = value
    return checked


def storage_settings(options: Mapping[str, str] | None, named: str = "storage_options") -> dict[str, Any]:
    """Settings of a store of which only those of its bucket are given."""
    settings: dict[str, Any] = dict.fromkeys(_SETTINGS)
    settings |= {"shared": False, "fresh": False, "accept_loss": False, "retry_micros": None, "writer": None}
    settings |= {"compression": None, "verify_rewrites": True, "log": None}
    settings["storage_options"] = bucket_options(options, named)
    return settings


def place_of(place: str | os.PathLike[str], name: str) -> str:
    """The address of a store; ``~`` is the home folder."""
    path = place if isinstance(place, str) else os.fspath(place) if isinstance(place, os.PathLike) else None
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a str or a path, not {a_type(place)}")
    return os.path.expanduser(path)
