"""What watches calls that take long, as the core has it."""

from collections.abc import Callable
from typing import Any

__all__ = ["make_bars", "stoppable"]

def make_bars(make: Callable[[], Any]) -> None:
    """Sets the function that makes a bar for a call that takes long: an object with `show(done, total, rows, bytes,
    left)` and `close()`, or None for none."""

def stoppable(function: Callable[[], Any], stop: Callable[[], Any]) -> Any:
    """Calls `function`. Where a call of the store's within it takes long, `stop` is called about every 50 ms, and what
    that raises ends the call, as Ctrl-C does."""
