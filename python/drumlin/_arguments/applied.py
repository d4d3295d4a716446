"""The caller's functions that compute columns."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._arguments.fit import Fit
from drumlin._arguments.frames import FrameLike, to_stream
from drumlin._optional import need
from drumlin._values.evidence import a_type

if TYPE_CHECKING:
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

#: A function that computes columns: from a batch of rows, a frame with the same number of rows.
ColumnFunction = Callable[["_pa.RecordBatch"], FrameLike]


def applied(using: ColumnFunction, schema: Any) -> Callable[[Any], Any]:
    """The function in the form that the core calls: it gets rows of the core, and returns what the core can pull rows
    from, with the columns of ``schema``."""
    if not callable(using):
        raise TypeError(f"using must be a function of a record batch, not {a_type(using)}")
    pyarrow = need("pyarrow", "a function that computes columns", "pyarrow")

    fit = Fit(onto=lambda: _drumlin.Schema(schema))

    def call(rows: Any) -> Any:
        batch = pyarrow.table(rows).combine_chunks().to_batches()
        return to_stream(using(batch[0]), fit, "what using returned")

    return call
