"""A function of the caller's that computes columns."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drumlin._arguments.fit import Fit
from drumlin._arguments.frames import FrameLike, to_stream
from drumlin._optional import need
from drumlin._values.evidence import a_type

if TYPE_CHECKING:
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

#: Of a batch of rows, columns with as many.
ColumnFunction = Callable[["_pa.RecordBatch"], FrameLike]


def applied(using: ColumnFunction) -> Callable[[Any], Any]:
    """The function as the core calls it: with rows of the core's, for what the core draws rows from."""
    if not callable(using):
        raise TypeError(f"using must be a function of a record batch, not {a_type(using)}")
    pyarrow = need("pyarrow", "a function that computes columns", "pyarrow")

    def call(rows: Any) -> Any:
        batch = pyarrow.table(rows).combine_chunks().to_batches()
        return to_stream(using(batch[0]), Fit(), "what using returned")

    return call
