"""Replicas, promotion, and copies of whole stores."""

import datetime as dt
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

from drumlin._drumlin import Store, _Progress

__all__ = ["CloneReport", "PromoteReport", "ReplicateReport", "clone", "promote", "replicate_at", "replicate_open"]

_Kept: TypeAlias = tuple[bool, int, bool, int | None, bool]
_CaughtUp: TypeAlias = Callable[[ReplicateReport], object]

@final
class ReplicateReport:
    """What was brought over to a replica, or to a copy of a store."""

    @property
    def seq(self) -> int:
        """The number of the last commit that it has."""
    @property
    def commits(self) -> int:
        """How many commits were added one by one."""
    @property
    def whole(self) -> int:
        """How often the newest state was taken over as a whole, because the source no longer had what led to it."""
    @property
    def blocks(self) -> int:
        """The number of copied blocks."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class PromoteReport:
    """The result of promoting a replica."""

    @property
    def store(self) -> str:
        """The id that the store has now, in hexadecimal."""
    @property
    def seq(self) -> int:
        """The number of the last commit that it has of its source."""
    @property
    def ended(self) -> str | None:
        """The source that was ended. None if it was given up: it may have later commits, and may still be written."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class CloneReport:
    """The result of copying a whole store."""

    @property
    def store(self) -> str:
        """The id of the copy, in hexadecimal."""
    @property
    def copied(self) -> ReplicateReport:
        """What was copied; its ``seq`` is the last commit that both stores have."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

def replicate_at(
    source: str,
    target: str,
    kept: _Kept,
    source_settings: dict[str, Any],
    target_settings: dict[str, Any],
    caught_up: _CaughtUp | None = None,
    progress: _Progress | None = None,
) -> ReplicateReport: ...
def replicate_open(
    store: Store,
    target: str,
    kept: _Kept,
    target_settings: dict[str, Any],
    caught_up: _CaughtUp | None = None,
    progress: _Progress | None = None,
) -> ReplicateReport: ...
def promote(
    store: str,
    lost: bool,
    source: str | None,
    settings: dict[str, Any],
    source_settings: dict[str, Any],
    progress: _Progress | None = None,
) -> PromoteReport: ...
def clone(
    source: str,
    target: str,
    when: int | str | dt.datetime | None,
    source_settings: dict[str, Any],
    target_settings: dict[str, Any],
    progress: _Progress | None = None,
) -> CloneReport: ...
