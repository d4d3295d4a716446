"""Rows in forms that every result has in common."""

import contextlib
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

from drumlin import _drumlin
from drumlin._errors import InvalidArgument, NotFound, Unavailable
from drumlin._optional import have, need
from drumlin._values.evidence import a_type, shown

if TYPE_CHECKING:
    import pyarrow as _pa  # type: ignore[import-untyped, unused-ignore]

__all__ = ["Rows"]

_T = TypeVar("_T")

#: How a CSV file is compressed, by the end of its name.
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


class NoArray:
    """Rows, which NumPy and pandas would take for an array of one value, or of their batches."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "rows are not an array: call .to_pandas() for a DataFrame, and .to_pandas().to_numpy() for an array"
        )


class Rows(NoArray):
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

    def to_objects(self, kind: Callable[..., _T]) -> list[_T]:
        """All rows as objects: ``kind`` is called for each with its values by the names of columns. It is a dataclass,
        a named tuple, a model of pydantic or attrs, or a function.

        >>> import drumlin
        >>> from typing import NamedTuple
        >>> class Trade(NamedTuple):
        ...     sym: str
        ...     price: float
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", [Trade("A", 1.5), Trade("B", 2.0)])
        >>> store.read("trades", where="price > 1.5").to_objects(Trade)
        [Trade(sym='B', price=2.0)]
        """
        return [kind(**row) for row in self.to_dicts()]

    def _all(self) -> _drumlin.Batches:
        """All rows as the core has them."""
        raise NotImplementedError

    def to_csv(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes all rows to a CSV file with a line of names, batch by batch: compressed if its name ends in ``.gz`` or
        ``.zst``, with tabs if it ends in ``.tsv``. A file at that path is replaced once all rows are written. Raises
        :class:`drumlin.InvalidArgument` for columns that CSV has no form for, such as lists.

        >>> import drumlin, io
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1, 2], "s": ["a", "b"]})
        >>> file = io.BytesIO()
        >>> store.read("numbers").to_csv(file)
        >>> file.getvalue().decode()
        '"n","s"\\n1,"a"\\n2,"b"\\n'
        """
        csv = need("pyarrow.csv", "to_csv()", "pyarrow")
        pyarrow = need("pyarrow", "to_csv()", "pyarrow")
        types = pyarrow.types
        name = str(file).lower() if isinstance(file, (str, os.PathLike)) else ""
        options = csv.WriteOptions(delimiter="\t" if name.endswith(".tsv") else ",")
        packed = next((codec for end, codec in _COMPRESSED.items() if name.endswith(end)), None)

        def write(batches: Any, to: Any) -> None:
            for field in batches.schema:
                kind = field.type.value_type if types.is_dictionary(field.type) else field.type
                if types.is_nested(kind):
                    raise InvalidArgument(
                        f"column {field.name!r} of type {field.type} has no form in CSV; leave it out, or write "
                        "to_parquet(...)"
                    )
            with contextlib.ExitStack() as open_files:
                if packed is not None:
                    to = open_files.enter_context(pyarrow.CompressedOutputStream(to, packed))
                writer = open_files.enter_context(csv.CSVWriter(to, batches.schema, write_options=options))
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
            if isinstance(file, io.TextIOBase) or not hasattr(file, "write"):
                raise TypeError(f"file must be a path or a file that is open for bytes, not {a_type(file)}")
            return write(batches, file)
        path = os.path.expanduser(os.fspath(file))
        if not isinstance(path, str):
            raise TypeError(f"file must be a str or a path, not {a_type(path)}")
        folder = os.path.dirname(path)
        beside = os.path.join(folder, f".{uuid.uuid4().hex}")
        if not _may_be_file(path):
            raise InvalidArgument(f"file: {shown(path, 200)} is not the path of a file")
        if not os.path.isdir(folder or "."):
            raise NotFound(f"file: there is no folder {shown(folder)}")
        try:
            with open(beside, "xb") as to:
                write(batches, to)
            os.replace(beside, path)
        except OSError as error:
            raise Unavailable(f"file: {shown(path, 200)} cannot be written: {error.strerror or error}") from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        return None


def _may_be_file(path: str) -> bool:
    """Whether a file can be at this path."""
    try:
        return bool(os.path.basename(path)) and not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return True
    except ValueError:
        return False
