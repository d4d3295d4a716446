"""What calls that change rows answer, as the core gives it."""

from typing import ClassVar, final

from drumlin._drumlin.reports import Version

__all__ = [
    "DeleteReport",
    "MergeReport",
    "RowsReport",
    "UpdateReport",
]

@final
class DeleteReport:
    """What a row delete did."""

    @property
    def rows(self) -> int:
        """Rows deleted."""
    @property
    def version(self) -> Version | None:
        """The version that it made; the newest one as it was if no row matched. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class MergeReport:
    """What a merge did."""

    @property
    def updated(self) -> int:
        """Rows that got new values."""
    @property
    def deleted(self) -> int:
        """Rows deleted."""
    @property
    def inserted(self) -> int:
        """Rows added."""
    @property
    def version(self) -> Version | None:
        """The version that it made; the newest one as it was if nothing changed. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RowsReport:
    """What a write by key did."""

    @property
    def seq(self) -> int | None:
        """The number of the commit; None in a transaction."""
    @property
    def rows(self) -> int:
        """Rows written, or keys deleted, whether they were there or not."""
    @property
    def version(self) -> Version | None:
        """The version it made, if it was large or had metadata. Other rows belong to the version that the next
        checkpoint, snapshot or large write makes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class UpdateReport:
    """What an update did."""

    @property
    def rows(self) -> int:
        """Rows updated."""
    @property
    def version(self) -> Version | None:
        """The version that it made; the newest one as it was if no row matched. None in a transaction."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
