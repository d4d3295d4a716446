"""Progress bars and stops for calls that take long, as the core defines them."""

from collections.abc import Callable
from typing import Any

__all__ = ["make_bars", "stoppable"]

def make_bars(make: Callable[[], Any]) -> None:
    """Sets the function that makes a progress bar for a call that takes long: an object with `show(done, total, rows,
    bytes, left)` and `close()`, or None for no bar."""

def stoppable(function: Callable[[], Any], stop: Callable[[], Any]) -> Any:
    """Calls `function`. While a call of the store within it takes long, `stop` is called about every 50 ms; an
    exception from it ends the call, as Ctrl-C does."""
