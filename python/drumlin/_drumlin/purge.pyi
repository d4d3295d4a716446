"""What a purge would do and did."""

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
        """Where the table is; or was, for one in the trash or that only snapshots hold."""
    @property
    def named(self) -> bool:
        """Whether the pattern matches it; otherwise it has rows in common with a table that does."""
    @property
    def versions(self) -> list[int]:
        """The versions that showed some of the rows."""
    @property
    def rows(self) -> int:
        """The rows, those that no version showed included."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgePlan:
    """What a purge would erase, or erased. `print` it."""

    @property
    def tables(self) -> list[PurgedTable]:
        """The tables with such rows."""
    @property
    def rows(self) -> int:
        """The rows in row groups, each counted once."""
    @property
    def rows_in_memory(self) -> int:
        """The rows in memory, as written by key."""
    @property
    def row_groups(self) -> int:
        """Row groups to write again."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
    @property
    def not_covered(self) -> list[tuple[str, str]]:
        """Tables for which the filter means nothing in any version: the path, and why."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgedObject:
    """An object that a purge deleted."""

    @property
    def name(self) -> str:
        """Its name in the store."""
    @property
    def bytes(self) -> int:
        """Its bytes."""
    @property
    def crc32c(self) -> int:
        """CRC32C of these."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgeProof:
    """What was looked at after a purge."""

    @property
    def commit(self) -> int:
        """The newest commit when it was looked at."""
    @property
    def objects(self) -> int:
        """Objects of the store, each needed by it, or listed as held."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
    @property
    def row_groups(self) -> int:
        """Row groups of the tables in question, all of whose rows were judged."""
    @property
    def rows(self) -> int:
        """Those rows."""
    @property
    def matching(self) -> int:
        """How many of them match: 0, unless they were written while the purge ran."""
    @property
    def blocks_with_unused_bytes(self) -> int:
        """Blocks with bytes that belong to no row group."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PurgeReceipt:
    """What a purge did. `print` it."""

    @property
    def time(self) -> dt.datetime:
        """When it was done, in UTC."""
    @property
    def erased(self) -> PurgePlan:
        """What was erased."""
    @property
    def commits(self) -> list[int]:
        """The commits that did it."""
    @property
    def bytes_written(self) -> int:
        """Bytes written."""
    @property
    def deleted(self) -> list[PurgedObject]:
        """The objects deleted."""
    @property
    def held(self) -> list[tuple[str, str]]:
        """What may still hold erased rows, and why; empty if nothing does."""
    @property
    def not_examined(self) -> list[str]:
        """What this says nothing about."""
    @property
    def proof(self) -> PurgeProof:
        """What shows that the rows are gone."""
    @property
    def complete(self) -> bool:
        """Whether nothing in the store holds an erased row any more."""
    def to_json(self) -> str:
        """All of it as JSON text."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
