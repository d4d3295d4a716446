"""The page that shows a store."""

from typing import Self, final

__all__ = ["Ui"]

@final
class Ui:
    """A page that shows a store, served until it is closed."""

    @property
    def address(self) -> str:
        """The address to open in a browser. It contains a token that gives access to the store: do not share it."""
    def close(self) -> None:
        """Stops the server. The store stays open."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_ended: object) -> None: ...
