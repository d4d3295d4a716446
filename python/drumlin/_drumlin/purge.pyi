"""The result of a purge, and its plan."""

import datetime as dt
from typing import ClassVar, final

__all__ = [
    "PurgePlan",
    "PurgeProof",
    "PurgeReceipt",
    "PurgedObject",
    "PurgedTable",
]

@final
class PurgedTable:
    """Rows of a table that a purge erases."""

    @property
    def path(self) -> str:
        """The table's path; for a table in the trash or held only by snapshots, its former path."""
    @property
    def named(self) -> bool:
        """Whether the pattern matches it; otherwise it has rows in common with a table that does."""
    @property
    def versions(self) -> list[int]:
        """The versions that showed some of these rows."""
    @property
    def rows(self) -> int:
        """The number of these rows, including rows that no version showed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgePlan:
    """What a purge would erase, or has erased. `print` it."""

    @property
    def tables(self) -> list[PurgedTable]:
        """The tables with such rows."""
    @property
    def rows(self) -> int:
        """The number of rows in row groups, each counted once."""
    @property
    def rows_in_memory(self) -> int:
        """The number of rows in memory, written by key."""
    @property
    def row_groups(self) -> int:
        """The number of row groups to rewrite."""
    @property
    def bytes(self) -> int:
        """The bytes of these row groups."""
    @property
    def not_covered(self) -> list[tuple[str, str]]:
        """Tables to which the filter does not apply in any version: the path, and why."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgedObject:
    """An object that a purge deleted."""

    @property
    def name(self) -> str:
        """The object's name in the store."""
    @property
    def bytes(self) -> int:
        """The object's size in bytes."""
    @property
    def crc32c(self) -> int:
        """The CRC32C checksum of its bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgeProof:
    """The evidence that a purge collected afterwards."""

    @property
    def commit(self) -> int:
        """The number of the newest commit at the time of the examination."""
    @property
    def objects(self) -> int:
        """The number of objects in the store; each is in use, or listed as held."""
    @property
    def bytes(self) -> int:
        """The bytes of these objects."""
    @property
    def row_groups(self) -> int:
        """The number of row groups of the affected tables; the filter was evaluated on all of their rows."""
    @property
    def rows(self) -> int:
        """The number of these rows."""
    @property
    def matching(self) -> int:
        """The number of rows that match: 0, unless some were written during the purge."""
    @property
    def blocks_with_unused_bytes(self) -> int:
        """The number of blocks with bytes that belong to no row group."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgeReceipt:
    """The result of a purge. `print` it."""

    @property
    def time(self) -> dt.datetime:
        """When the purge was done, in UTC."""
    @property
    def erased(self) -> PurgePlan:
        """What was erased."""
    @property
    def commits(self) -> list[int]:
        """The numbers of the purge's commits."""
    @property
    def bytes_written(self) -> int:
        """Bytes written."""
    @property
    def deleted(self) -> list[PurgedObject]:
        """The deleted objects."""
    @property
    def held(self) -> list[tuple[str, str]]:
        """What may still hold erased rows, and why; empty if nothing does."""
    @property
    def not_examined(self) -> list[str]:
        """What the receipt says nothing about."""
    @property
    def proof(self) -> PurgeProof:
        """The evidence that the rows are gone."""
    @property
    def complete(self) -> bool:
        """Whether nothing in the store still holds an erased row."""
    def to_json(self) -> str:
        """The whole receipt as JSON text."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
