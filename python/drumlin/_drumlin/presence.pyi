"""Presences."""

import datetime as dt
from typing import ClassVar, final

from drumlin._drumlin import Transaction, Tree

__all__ = ["Presence", "PresenceInfo", "begin_presence", "presences"]

@final
class Presence:
    """What a program holds while it is present."""

    @property
    def number(self) -> int: ...
    @property
    def life_micros(self) -> int: ...
    def is_open(self) -> bool: ...
    def beat(self) -> None: ...
    def end(self) -> None: ...
    def require(self, transaction: Transaction) -> None:
        """Has a transaction commit only while it has not ended."""

@final
class PresenceInfo:
    """A presence that has not ended."""

    @property
    def number(self) -> int:
        """Its number; nodes that end with it have the same."""
    @property
    def name(self) -> str:
        """What its program calls itself."""
    @property
    def life(self) -> dt.timedelta:
        """How long it lasts once its program has fallen silent."""
    @property
    def began(self) -> dt.datetime:
        """When it began, in UTC."""
    def __eq__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

def begin_presence(tree: Tree, name: str, life: int | None) -> Presence:
    """Says that this program is there."""

def presences(tree: Tree) -> list[PresenceInfo]:
    """The presences that have not ended."""
