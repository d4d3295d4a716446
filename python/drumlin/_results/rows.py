"""Rows in forms that every result has in common."""

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from drumlin import _drumlin
from drumlin._errors import InvalidArgument
from drumlin._optional import have, need

if TYPE_CHECKING:
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Rows"]


class Rows:
    """What can be read as a table of rows."""

    __slots__ = ()

    @property
    def schema(self) -> Any:
        """The columns."""
        raise NotImplementedError

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def to_arrow(self) -> "_pa.Table":
        """All rows as a pyarrow Table."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError

    def __len__(self) -> int:
        return self.num_rows

    def __bool__(self) -> bool:
        # Not whether it has rows, which might have to be counted.
        return True

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as a list of dicts, with Python values.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2], "s": ["a", None]})
        >>> store.read("numbers").to_dicts()
        [{'n': 1, 's': 'a'}, {'n': 2, 's': None}]
        """
        if not have("pyarrow"):
            return self._all().to_dicts()
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def _all(self) -> _drumlin.Batches:
        """All rows as the core has them."""
        raise NotImplementedError

    def to_csv(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes all rows to a CSV file with a line of names, batch by batch. A file at that path is replaced once all
        rows are written. Raises :class:`drumlin.InvalidArgument` for columns that CSV has no form for, such as lists.

        >>> import drumlin, io
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2], "s": ["a", "b"]})
        >>> file = io.BytesIO()
        >>> store.read("numbers").to_csv(file)
        >>> file.getvalue().decode()
        '"n","s"\\n1,"a"\\n2,"b"\\n'
        """
        csv = need("pyarrow.csv", "to_csv()", "pyarrow")
        types = need("pyarrow", "to_csv()", "pyarrow").types

        def write(batches: Any, to: Any) -> None:
            for field in batches.schema:
                kind = field.type.value_type if types.is_dictionary(field.type) else field.type
                if types.is_nested(kind):
                    raise InvalidArgument(
                        f"column {field.name!r} of type {field.type} has no form in CSV; leave it out, or write "
                        "to_parquet(...)"
                    )
            with csv.CSVWriter(to, batches.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)

        self._write(write, file)

    def to_parquet(self, file: str | os.PathLike[str] | IO[bytes], **options: Any) -> None:
        """Writes all rows to a Parquet file, batch by batch. A file at that path is replaced once all rows are written.
        ``options`` are passed to ``pyarrow.parquet.ParquetWriter``.

        >>> import drumlin, io, pyarrow.parquet
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2]})
        >>> file = io.BytesIO()
        >>> store.read("numbers").to_parquet(file)
        >>> pyarrow.parquet.read_table(file).num_rows
        2
        """
        parquet = need("pyarrow.parquet", "to_parquet()", "pyarrow")

        def write(batches: Any, to: Any) -> None:
            with parquet.ParquetWriter(to, batches.schema, **options) as writer:
                for batch in batches:
                    writer.write_batch(batch)

        self._write(write, file)

    def to_batches(self) -> "Iterator[_pa.RecordBatch]":
        """The rows as pyarrow RecordBatches, each read when it is asked for."""
        return iter(self._reader("to_batches()"))

    def _reader(self, what: str) -> Any:
        return need("pyarrow", what, "pyarrow").RecordBatchReader.from_stream(self)

    def _write(self, write: Callable[[Any, Any], None], file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes the batches to a file: at a path, beside it first, so that what is there stays if this fails."""
        batches = self._reader("writing a file")
        if not isinstance(file, (str, os.PathLike)):
            return write(batches, file)
        path = os.path.expanduser(os.fspath(file))
        folder, name = os.path.split(path)
        beside = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
        try:
            with open(beside, "xb") as to:
                write(batches, to)
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        return None
