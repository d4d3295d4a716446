"""A pandas frame as an Arrow table."""

import json
from typing import Any

import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._arguments.fit import Fit, Order
from drumlin._drumlin import Schema
from drumlin._errors import InvalidArgument, SchemaMismatch
from drumlin._pandas.alike import from_alike, remember
from drumlin._pandas.columns import encode
from drumlin._pandas.description import (
    DESCRIPTION_KEY,
    PANDAS_KEY,
    VERSION,
    dtypes_of_meaning,
    has_meaning,
    pandas_metadata,
)
from drumlin._pandas.dtypes import dtype_from_json
from drumlin._pandas.labels import labels_to_json, levels_of
from drumlin._pandas.plain import is_plain
from drumlin._pandas.scalars import scalar_to_json
from drumlin._values.evidence import shown
from drumlin._values.json import to_json
from drumlin._values.names import check_arrow_names, check_name, field_name


def to_arrow(frame: pd.DataFrame, fit: Fit) -> pa.Table:
    """The rows of ``frame``; its index as columns, unless it is a RangeIndex.

    Raises :class:`drumlin.InvalidArgument` for what would not come back unchanged; if ``fit`` allows it, that is stored
    as pyarrow converts it instead, if it can. In a table with sort columns, a RangeIndex that does not count from 0
    also becomes a column, and so does one that is added to a table that has a column for it. In a table with a key, it
    is dropped. Rows that are added to a table leave out an index of whole numbers without a name that the table lacks.
    """
    schema = None if fit.onto is None else fit.onto()
    if schema is not None and not isinstance(frame.index, pd.RangeIndex):
        frame = _without_unnamed(frame, schema)
    ranged = frame.index if isinstance(frame.index, pd.RangeIndex) else None
    order = None if ranged is None else _order(ranged, fit)
    if ranged is not None and order == "key":
        ranged = pd.RangeIndex(len(ranged), name=ranged.name)
        frame = frame.set_axis(ranged)
    if ranged is not None and (
        _has_column(schema, ranged, frame) or order == "sort" or _is_sorted_by(ranged, frame, fit)
    ):
        ranged = None
    elif (schema is None or DESCRIPTION_KEY not in schema.metadata) and (alike := from_alike(frame)) is not None:
        return alike
    elif is_plain(frame):
        if schema is not None and DESCRIPTION_KEY in schema.metadata:
            _check_meaning(schema, {name: str(dtype) for name, dtype in frame.dtypes.items()})
        try:
            return remember(frame, pa.Table.from_pandas(frame, preserve_index=None))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidArgument(f"the DataFrame has no Arrow form: {error}") from error
    coerce = fit.coerce
    names = _field_names(frame)
    columns, described = [], {}
    for at, (label, name) in enumerate(zip(frame.columns, names, strict=True)):
        series = frame.iloc[:, at]
        array, described[name] = encode(series.array, f"column {shown(label)}", coerce=coerce)
        columns.append((label, array, name, series))
    made: dict[str, Any] = {"version": VERSION, "columns": described}
    levels: list[tuple[Any, ...]] = []
    if ranged is None:
        made["index"] = []
        made["multi"] = isinstance(frame.index, pd.MultiIndex)
        for at, level in enumerate(levels_of(frame.index)):
            name = _level_name(level.name, at, [*names, *(name for _, _, name, _ in levels)])
            what = f"index level {shown(level.name)}" if made["multi"] else "the index"
            array, column = encode(level.array, what, coerce=coerce)
            levels.append((level.name, array, name, level))
            made["index"].append({"field": name, "name": _name_to_json(level.name, coerce), "column": column})
    else:
        span = [ranged.start, ranged.stop, ranged.step]
        made["index"] = {"range": span, "name": _name_to_json(ranged.name, coerce)}
    labels, default = frame.columns, pd.Index(names)
    same = type(labels) is pd.Index and labels.dtype == default.dtype and labels.name is None and list(labels) == names
    if not same:
        made["labels"] = labels_to_json(labels, coerce=coerce)
    if frame.attrs and (attrs := _attrs(frame.attrs, coerce)):
        made["attrs"] = attrs
    if not frame.flags.allows_duplicate_labels:
        made["unique"] = True
    parts = [*columns, *levels]
    fields = [pa.field(name, array.type) for _, array, name, _ in parts]
    own = [(label, field, values) for (label, _, _, values), field in zip(parts, fields, strict=True)]
    metadata = {
        PANDAS_KEY: pandas_metadata(
            own[: len(columns)], own[len(columns) :], ranged, levels_of(frame.columns), made.get("attrs", {})
        ),
        DESCRIPTION_KEY: json.dumps(made, separators=(",", ":")).encode(),
    }
    schema_to_write = pa.schema(fields, metadata=metadata)
    check_arrow_names(schema_to_write)
    kept = made["index"] if ranged is None else []
    _check_meaning(schema, {**described, **{level["field"]: level["column"] for level in kept}}, schema_to_write)
    return pa.table([array for _, array, _, _ in parts], schema=schema_to_write)


def _without_unnamed(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """``frame`` for a table with this schema: numbered from 0 if its index has no name, is of whole numbers, and the
    table has no column for it. Whether a selection of rows still has a RangeIndex depends on the rows."""
    taken = list(map(field_name, frame.columns))
    lacking = [
        at
        for at, name in enumerate(frame.index.names)
        if name is None and _level_name(None, at, taken) not in schema.names
    ]
    if not lacking:
        return frame
    if frame.index.inferred_type in ("integer", "empty"):
        return frame.set_axis(pd.RangeIndex(len(frame)))
    named = "'name'" if frame.index.nlevels == 1 else "['name', ...]"
    raise SchemaMismatch(
        f"the index of the DataFrame has no name, and the table has no {_level_name(None, lacking[0], taken)!r}; leave "
        f"it out with df.reset_index(drop=True), or give it the name of a column with df.rename_axis({named})"
    )


def _order(index: pd.RangeIndex, fit: Fit) -> Order:
    """What reorders the rows of ``index``, if it does not count from 0."""
    return None if fit.ordered is None or index.equals(pd.RangeIndex(len(index))) else fit.ordered()


def _is_sorted_by(index: pd.RangeIndex, frame: pd.DataFrame, fit: Fit) -> bool:
    """Whether the rows are to be sorted by ``index``, which then becomes a column."""
    name = _column_of(index, frame)
    return name in fit.sort or (index.name is None and "index" in fit.sort and "index" not in frame.columns)


def _has_column(schema: Schema | None, index: pd.RangeIndex, frame: pd.DataFrame) -> bool:
    """Whether the table has a column for ``index`` that ``frame`` lacks."""
    return schema is not None and _column_of(index, frame) in schema.names


def _column_of(index: pd.RangeIndex, frame: pd.DataFrame) -> str:
    """The name of the column that ``index`` would become."""
    return _level_name(index.name, 0, list(map(field_name, frame.columns)))


def _check_meaning(schema: Schema | None, columns: dict[str, Any], added: pa.Schema | None = None) -> None:
    """Checks that periods and intervals are added to those of the same dtype, since Arrow types do not distinguish
    them. ``added`` has the Arrow types of ``columns``, if any of them may be affected."""
    if schema is None:
        return
    written = schema.metadata.get(DESCRIPTION_KEY)
    there = {} if written is None else dtypes_of_meaning(written)
    for field, column in columns.items():
        wanted = there.get(field)
        if column == wanted or not (wanted is not None or (has_meaning(column) and field in schema.names)):
            continue
        # A table without a description, for example one of an earlier version, has the name of the dtype in its Arrow
        # type.
        if written is None and added is not None and pa.schema(schema).field(field).type == added.field(field).type:
            continue
        came, has = _dtype_name(column), _dtype_name(wanted)
        raise SchemaMismatch(f"column {field!r}: the table has {has}, the data has {came}; convert it with astype()")


def _dtype_name(column: Any) -> str:
    if column is None:
        return "another dtype"
    kind = column if isinstance(column, str) else column["type"]
    return str(dtype_from_json(column)) if kind in ("period", "interval") else f"dtype {kind}"


def _field_names(frame: pd.DataFrame) -> list[str]:
    duplicates = frame.columns[frame.columns.duplicated()]
    if len(duplicates):
        raise InvalidArgument(f"two columns are called {duplicates[0]!r}; names must be unique")
    seen: dict[str, Any] = {}
    for label in frame.columns:
        name = field_name(label)
        _check_text(name, f"the column label {shown(label)}")
        if name in seen:
            both = f"the column labels {shown(seen[name])} and {shown(label)}"
            raise InvalidArgument(f"{both} are both {name!r} as text; rename one of them")
        seen[name] = label
    return list(seen)


def _check_text(name: str, what: str) -> None:
    check_name(name, what)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{what} holds half a surrogate pair; rename it") from None


def _level_name(name: Any, at: int, taken: list[str]) -> str:
    """The name that pyarrow gives the column for a level of the index."""
    if name is not None and field_name(name) not in taken:
        _check_text(field_name(name), f"the name {shown(name)} of the index")
        return field_name(name)
    while f"__index_level_{at}__" in taken:
        at += 1
    return f"__index_level_{at}__"


def _name_to_json(name: Any, coerce: bool) -> Any:
    try:
        return scalar_to_json(name, "the name of the index")
    except InvalidArgument:
        if not coerce:
            raise
        return str(name)


def _attrs(attrs: Any, coerce: bool) -> Any:
    """``attrs``, which must come back from JSON unchanged."""
    try:
        return json.loads(to_json(attrs, "attrs"))
    except InvalidArgument as error:
        if coerce:
            return None
        raise InvalidArgument(
            f"{error}; remove it from DataFrame.attrs, or give coerce=True to drop them all"
        ) from None
