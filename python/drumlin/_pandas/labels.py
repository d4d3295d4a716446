"""The labels of columns as JSON."""

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from drumlin._errors import InvalidArgument
from drumlin._pandas import columns
from drumlin._pandas.arrow_json import array_from_json, array_to_json
from drumlin._pandas.scalars import scalar_from_json, scalar_to_json


def levels_of(index: Any) -> list[Any]:
    """The levels of an index, each as an index of the same length."""
    if index.nlevels == 1 and not isinstance(index, pd.MultiIndex):
        return [index]
    # A number that is the name of a level would be taken as that level's position.
    bare = index.set_names([None] * index.nlevels)
    return [bare.get_level_values(at).rename(name) for at, name in enumerate(index.names)]


def labels_to_json(labels: Any, *, coerce: bool = False) -> Any:
    """Labels of columns, with one or more levels, as JSON."""
    if isinstance(labels, pd.MultiIndex):
        return {"levels": [_level_to_json(level, coerce) for level in levels_of(labels)]}
    return _level_to_json(labels, coerce)


def _level_to_json(level: Any, coerce: bool) -> Any:
    made: dict[str, Any] = {}
    if level.name is not None:
        try:
            made["name"] = scalar_to_json(level.name, "the name of the column labels")
        except InvalidArgument:
            if not coerce:
                raise
            made["name"] = str(level.name)
    if isinstance(level, pd.RangeIndex):
        return {**made, "range": [level.start, level.stop, level.step]}
    if isinstance(level.dtype, np.dtype) and level.dtype == object:
        return {**made, "scalars": [_scalar(label, coerce) for label in level]}
    array, of = columns.encode(level.array, "the index of the column labels", coerce=coerce)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return {**made, "of": of, "values": array_to_json(array)}


def _scalar(label: Any, coerce: bool) -> Any:
    try:
        return scalar_to_json(label, "the column label")
    except InvalidArgument:
        if not coerce:
            raise
        return str(label)


def labels_from_json(made: Any) -> Any:
    """The labels that ``made`` describes."""
    if "levels" in made:
        levels = [_level_from_json(level) for level in made["levels"]]
        return pd.MultiIndex.from_arrays(levels, names=[level.name for level in levels])
    return _level_from_json(made)


def _level_from_json(made: Any) -> Any:
    name = scalar_from_json(made.get("name"))
    if "range" in made:
        return pd.RangeIndex(*made["range"], name=name)
    if "scalars" in made:
        scalars = list(map(scalar_from_json, made["scalars"]))
        return pd.Index(
            np.fromiter(scalars, dtype=object, count=len(scalars)), dtype=object, name=name, tupleize_cols=False
        )
    array = columns.decode(array_from_json(made["values"]), made["of"])
    return pd.Index(array, dtype=array.dtype, name=name)
