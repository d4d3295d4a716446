"""Filters in any form: text, expressions of ours, and those of Polars and pyarrow that have an exact translation."""

from collections.abc import Callable
from typing import Any

from drumlin._arguments.checks import filter_text
from drumlin._arguments.expr import Expr
from drumlin._errors import InvalidArgument
from drumlin._optional import loaded, need
from drumlin._results.scanned import Scanned

__all__ = ["predicate"]


def predicate(where: Any, of: Callable[[], Scanned], params: Any = None) -> str | None:
    """The text of a filter of the rows of ``of``, which is asked only if their types matter. Fails if an expression of
    an engine would not be true for exactly the same rows."""
    if where is None or isinstance(where, (str, Expr)):
        return filter_text(where, params)
    polars, compute = loaded("polars"), loaded("pyarrow.compute")
    if polars is not None and isinstance(where, polars.Expr):
        from drumlin._engines import lazy

        schema = lazy.polars_schema(of())
        resolved = lazy.resolved(where, schema)
        mine, rest = ([], where) if resolved is None else lazy.split(resolved, schema)
        whose = "Polars"
    elif compute is not None and isinstance(where, compute.Expression):
        from drumlin._engines import arrow_filter

        schema = need("pyarrow", "", "").schema(of()._core.filter_schema)
        mine, rest = arrow_filter.split(where, schema)
        whose = "pyarrow"
    else:
        return filter_text(where, params)
    filter_text(None, params)
    if rest is not None:
        raise InvalidArgument(
            f"the expression {rest} of {whose} has no exact form in the filter language; write where as text or with "
            "drumlin.col, or filter the frame that is read"
        )
    return " and ".join(f"({text})" for text in mine) or "true"
