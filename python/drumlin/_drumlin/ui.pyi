"""The page that shows a store."""

from typing import Self, final

__all__ = ["Ui"]

@final
class Ui:
    """A page that shows a store, served until it is closed."""

    @property
    def address(self) -> str:
        """The address to open in a browser. It has a token, which is a key to the store: show it to nobody else."""
    def close(self) -> None:
        """Ends the server. The store stays open."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_ended: object) -> None: ...
