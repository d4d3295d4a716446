"""Digests of rows by content: equal for equal values, types and names, whatever their layout in memory.

The digest does not depend on how Arrow rows are cut into batches, nor on how the index of a pandas frame was built. It
ignores the values of null slots, the payloads of NaNs and the ``freq`` of an index.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from drumlin import Unsupported
from drumlin.migrate.packages import need

#: The number of rows that are hashed at a time, whatever the size of the batches.
_ROWS = 65536


class FrameDigest(NamedTuple):
    """The digest of a pandas frame."""

    #: SHA-256, in hexadecimal digits.
    sha256: str
    #: For each column of objects, the kinds of missing values in it, between which the digest does not distinguish.
    missing: dict[str, frozenset[str]]


def frame_digest(frame: Any) -> FrameDigest:
    """The digest of a pandas frame: its rows, index, dtypes and column labels."""
    pandas = need("pandas", "a frame's digest", "pandas")
    digest = hashlib.sha256()
    missing: dict[str, frozenset[str]] = {}
    _say(digest, "rows", len(frame))
    index = frame.index
    if isinstance(index, pandas.RangeIndex):
        _say(digest, "range", index.start, index.stop, index.step, _label(index.name))
    else:
        for level in range(index.nlevels):
            _say(digest, "level", _label(index.names[level]))
            _pandas_values(digest, index.get_level_values(level), f"index level {level}", missing)
    _say(digest, "columns", [_label(name) for name in frame.columns.names])
    for at, label in enumerate(frame.columns):
        _say(digest, "column", _label(label))
        _pandas_values(digest, frame.iloc[:, at], str(label), missing)
    return FrameDigest(digest.hexdigest(), missing)


def converted_digest(frame: Any) -> str:
    """The digest of a pandas frame as pyarrow converts it."""
    pyarrow = need("pyarrow", "a frame's digest", "pandas")
    table = pyarrow.Table.from_pandas(frame, preserve_index=True)
    digest = ArrowDigest(table.schema)
    for batch in table.to_batches():
        digest.take(batch)
    return digest.hexdigest()


class ArrowDigest:
    """The digest of Arrow rows with one schema, computed as they pass."""

    def __init__(self, schema: Any) -> None:
        self._pyarrow = need("pyarrow", "a digest of Arrow rows", "pyarrow")
        self._digest = hashlib.sha256()
        self._schema = schema
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self.rows = 0
        self.bytes = 0
        for field in schema:
            _say(self._digest, "column", field.name, _type_text(field.type, self._pyarrow))

    def passing(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields the same batches."""
        for batch in batches:
            self.take(batch)
            yield batch

    def take(self, batch: Any) -> None:
        """Adds the next rows, a RecordBatch."""
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _ROWS:
            rest = self._pyarrow.Table.from_batches(self._waiting)
            whole = rest.num_rows // _ROWS * _ROWS
            for begin in range(0, whole, _ROWS):
                self._hash(rest.slice(begin, _ROWS))
            rest = rest.slice(whole)
            self._waiting, self._waiting_rows = rest.to_batches(), rest.num_rows

    def hexdigest(self) -> str:
        """The SHA-256 of all rows. No more can be added."""
        if self._waiting_rows:
            self._hash(self._pyarrow.Table.from_batches(self._waiting))
            self._waiting, self._waiting_rows = [], 0
        _say(self._digest, "rows", self.rows)
        return self._digest.hexdigest()

    def _hash(self, part: Any) -> None:
        for column in part.columns:
            _arrow_values(self._digest, column.combine_chunks(), self._pyarrow)


def _say(digest: Any, *what: Any) -> None:
    digest.update(repr(what).encode("utf-8", "backslashreplace"))


def _type_text(kind: Any, pyarrow: Any) -> str:
    """A type as text, without the names of the fields of lists and maps, which have no meaning."""
    types = pyarrow.types
    if types.is_map(kind):
        return f"map<{_type_text(kind.key_type, pyarrow)}, {_type_text(kind.item_type, pyarrow)}>"
    if types.is_struct(kind):
        return f"struct<{[(part.name, _type_text(part.type, pyarrow)) for part in kind]}>"
    if getattr(kind, "value_field", None) is not None:
        size = getattr(kind, "list_size", "")
        return f"{type(kind).__name__}{size}<{_type_text(kind.value_type, pyarrow)}>"
    return str(kind)


def _label(label: Any) -> tuple[str, str]:
    return type(label).__name__, repr(label)


def _pandas_values(digest: Any, values: Any, what: str, missing: dict[str, frozenset[str]]) -> None:
    pandas, numpy = need("pandas", "", "pandas"), need("numpy", "", "pandas")
    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        _say(digest, "category", dtype.ordered)
        _pandas_values(digest, dtype.categories, f"the categories of {what}", missing)
        codes = values.cat.codes if hasattr(values, "cat") else values.codes
        digest.update(numpy.ascontiguousarray(codes, dtype="int64").tobytes())
        return
    _say(digest, str(dtype))
    if isinstance(dtype, pandas.DatetimeTZDtype):
        digest.update(numpy.asarray(values, dtype=f"datetime64[{dtype.unit}]").view("int64").tobytes())
    elif isinstance(dtype, numpy.dtype) and dtype.kind in "biu":
        digest.update(numpy.ascontiguousarray(values.to_numpy()).tobytes())
    elif isinstance(dtype, numpy.dtype) and dtype.kind == "f":
        numbers = values.to_numpy()
        digest.update(numpy.where(numpy.isnan(numbers), numpy.array(numpy.nan, numbers.dtype), numbers).tobytes())
    elif isinstance(dtype, numpy.dtype) and dtype.kind in "mM":
        digest.update(numpy.ascontiguousarray(values.to_numpy()).view("int64").tobytes())
    else:
        _objects(digest, values.to_numpy(dtype=object), what, missing)


def _objects(digest: Any, values: Any, what: str, missing: dict[str, frozenset[str]]) -> None:
    pandas, numpy = need("pandas", "", "pandas"), need("numpy", "", "pandas")
    nothing = pandas.isna(values)
    digest.update(numpy.packbits(nothing).tobytes())
    if nothing.any():
        missing[what] = frozenset(type(value).__name__ for value in values[nothing])
    rest = values[~nothing].tolist()
    if all(type(value) is str for value in rest):
        texts = [value.encode("utf-8", "surrogatepass") for value in rest]
        _say(digest, "text")
        digest.update(numpy.fromiter(map(len, texts), "int64", len(texts)).tobytes())
        digest.update(b"".join(texts))
        return
    for value in rest:
        if isinstance(value, numpy.ndarray):
            _say(digest, "array", str(value.dtype), value.shape, value.tolist())
        else:
            _say(digest, _label(value))


def _arrow_values(digest: Any, array: Any, pyarrow: Any) -> None:
    """Hashes an array. Its type was hashed before."""
    types, kind = pyarrow.types, array.type
    if isinstance(array, pyarrow.ChunkedArray):
        for chunk in array.chunks:
            _arrow_values(digest, chunk, pyarrow)
        return
    if isinstance(kind, pyarrow.BaseExtensionType):
        _arrow_values(digest, array.storage, pyarrow)
        return
    if types.is_dictionary(kind):
        _arrow_values(digest, array.dictionary_decode(), pyarrow)
        return
    if (plain := _without_views(kind, pyarrow)) != kind:
        array = array.cast(plain)
    _say(digest, len(array), array.null_count)
    if types.is_null(kind):
        return
    if array.null_count:
        numpy = need("numpy", "a digest of Arrow rows", "pandas")
        digest.update(numpy.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes())
        # pyarrow cannot drop the nulls of a list_view; their lengths are null, and they have no items.
        array = array if types.is_list_view(kind) or types.is_large_list_view(kind) else array.drop_null()
    _valid_values(digest, array, pyarrow)


def _without_views(kind: Any, pyarrow: Any) -> Any:
    """The type itself, or the one without a view for string_view and binary_view, whose nulls pyarrow cannot drop."""
    types = pyarrow.types
    if types.is_string_view(kind):
        return pyarrow.large_string()
    if types.is_binary_view(kind):
        return pyarrow.large_binary()
    return kind


def _valid_values(digest: Any, array: Any, pyarrow: Any) -> None:
    """Hashes an array without nulls."""
    types, kind = pyarrow.types, array.type
    compute = need("pyarrow.compute", "", "pyarrow")
    numpy = need("numpy", "a digest of Arrow rows", "pandas")
    if types.is_boolean(kind):
        digest.update(numpy.packbits(array.to_numpy(zero_copy_only=False)).tobytes())
    elif types.is_floating(kind):
        numbers = array.to_numpy(zero_copy_only=False)
        digest.update(numpy.where(numpy.isnan(numbers), numpy.array(numpy.nan, numbers.dtype), numbers).tobytes())
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        digest.update(compute.binary_length(array).cast("int64").to_numpy().tobytes())
        width = "int64" if types.is_large_string(kind) or types.is_large_binary(kind) else "int32"
        _, offsets, data = array.buffers()
        if len(array) and data is not None:
            ends = numpy.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
            digest.update(memoryview(data)[int(ends[0]) : int(ends[-1])])
    elif types.is_struct(kind):
        for field in array.flatten():
            _arrow_values(digest, field, pyarrow)
    elif types.is_fixed_size_list(kind):
        _arrow_values(digest, array.flatten(), pyarrow)
    elif types.is_map(kind):
        _valid_values(digest, array.cast(pyarrow.list_(pyarrow.struct([kind.key_field, kind.item_field]))), pyarrow)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        lengths = compute.list_value_length(array).cast("int64")
        digest.update(lengths.fill_null(0).to_numpy().tobytes())
        _arrow_values(digest, array.flatten(), pyarrow)
    elif (bits := getattr(kind, "bit_width", 0)) and bits % 8 == 0:
        step = bits // 8
        data = array.buffers()[1]
        if len(array):
            digest.update(memoryview(data)[array.offset * step : (array.offset + len(array)) * step])
    else:
        raise Unsupported(f"a digest of values of type {kind}")
