"""Schemas, batches and masks, as the core defines them."""

from collections.abc import Iterator
from typing import Any, ClassVar, final

from typing_extensions import CapsuleType

__all__ = ["Batches", "Batch", "Mask", "Schema", "Stream"]

@final
class Schema:
    """The columns of a table or result: names and Arrow types. `pyarrow.schema(...)` and anything else that takes
    `__arrow_c_schema__` accept it."""

    def __new__(cls, schema: Any, /) -> Schema: ...
    @staticmethod
    def parse(columns: list[tuple[str, str]]) -> Schema:
        """The schema of columns whose types are given as text."""
    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
    @property
    def types(self) -> list[str]:
        """The Arrow types of the columns, as text, in order."""
    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The schema's metadata."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Batch:
    """One batch of a result. `pyarrow.record_batch(...)` and anything that supports `__arrow_c_array__` accept it."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
    @property
    def schema(self) -> Schema:
        """The schema of the batch."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Mask:
    """A list of bools. `pyarrow.array(...)`, `polars.Series(...)` and anything that supports `__arrow_c_array__`
    accept it."""

    def to_pylist(self) -> list[bool]:
        """The bools as a list."""
    def count(self) -> int:
        """The number of true values."""
    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> bool: ...
    def __iter__(self) -> Iterator[bool]: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Stream:
    """A running scan: its batches are returned one by one, here or to the consumer of its Arrow stream."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Batches:
    """All batches of a reading, in memory. They can also be used as a reading."""

    @property
    def schema(self) -> Schema:
        """The schema of the batches."""
    @staticmethod
    def of(schema: Schema, columns: list[list[Any]]) -> Batches:
        """Columns of Python values, in the types of a schema."""
    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts of Python values."""
    def collect(self, columns: list[str] | None = None) -> Batches:
        """The batches with only those of `columns` that exist; without `columns`, with all."""
    def narrowed(
        self,
        columns: list[str] | None = None,
        filter: str | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> Batches:
        """The same with fewer columns, or only the first or the last rows. What is computed already takes no filter."""
    def stream(self) -> Batches:
        """The batches themselves."""
    def __iter__(self) -> Iterator[Batch]: ...
    @property
    def num_rows(self) -> int:
        """The number of rows in all batches."""
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
