"""Progress bars of calls, in notebooks and terminals: by tqdm if it is installed, otherwise a line of our own.

The core asks for one when a call has taken two seconds, and shows its steps on the thread that waits for the call. If a
bar cannot be drawn, it is given up, and the call continues.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from drumlin import _drumlin
from drumlin._display.options import options
from drumlin._optional import have, need

#: Seconds between two drawings.
_EVERY = 0.1

#: Held while a bar is shown, since there is only one at a time.
_drawn = threading.Lock()


class Drawing(Protocol):
    """How a bar is drawn."""

    def draw(self, done: int, total: int, more: str) -> None:
        """Shows how many steps are done, out of how many (0 if unknown), and further text."""

    def end(self) -> None:
        """Removes the bar."""


class Line:
    """A line on standard error that is overwritten."""

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file, self._width = name, file, 0
        self._begun = time.monotonic()

    def draw(self, done: int, total: int, more: str) -> None:
        steps = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        share = f"{100 * done // total} %" if total else ""
        told = [told for told in (share, steps, more) if told] or [f"{time.monotonic() - self._begun + 2:.0f} s"]
        line = f"{self._name}: {', '.join(told)}"[: shutil.get_terminal_size().columns - 1]
        self._file.write(f"\r{line:{self._width}}")
        self._file.flush()
        self._width = len(line)

    def end(self) -> None:
        self._file.write(f"\r{'':{self._width}}\r")
        self._file.flush()


class Tqdm:
    """A bar of tqdm."""

    def __init__(self, name: str, file: Any, notebook: bool) -> None:
        kind = need("tqdm.notebook" if notebook else "tqdm", "a bar", "progress").tqdm
        # Without tqdm's own thread that monitors bars.
        quiet: Any = type("Quiet", (kind,), {"monitor_interval": 0})
        where = {} if notebook else {"file": file, "dynamic_ncols": True}
        self._bar = quiet(desc=name, leave=False, mininterval=0, miniters=0, **where)

    def draw(self, done: int, total: int, more: str) -> None:
        self._bar.total = total or None
        self._bar.n = done
        self._bar.set_postfix_str(more, refresh=False)
        self._bar.refresh()

    def end(self) -> None:
        self._bar.close()


class Bar:
    """The bar of one call."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing: Drawing | None = drawing
        self._last = 0.0

    def show(self, done: int, total: int, rows: int, bytes: int, left: float | None) -> None:
        """Draws the bar, if it is time to."""
        now = time.monotonic()
        if now - self._last < _EVERY or self._drawing is None:
            return
        self._last = now
        told = [f"{rows:,} rows"] if rows else []
        told += [f"{bytes / 1e6:,.0f} MB"] if bytes >= 1e6 else []
        told += [f"about {left:,.0f} s left"] if left is not None else []
        self._try(lambda drawing: drawing.draw(min(done, total or done), total, ", ".join(told)))

    def close(self) -> None:
        """Removes the bar."""
        self._try(lambda drawing: drawing.end())
        self._drawing = None
        _drawn.release()

    def _try(self, draw: Callable[[Drawing], None]) -> None:
        if self._drawing is None:
            return
        try:
            draw(self._drawing)
        except Exception:
            # For example, standard error is closed. The call matters more than its bar.
            self._drawing = None


def make() -> Bar | None:
    """A bar for the call that runs on this thread, or None if none should be shown."""
    file = sys.stderr
    if not options.progress or file is None:
        return None
    try:
        notebook = _in_notebook()
        if not (notebook or file.isatty()) or not _drawn.acquire(blocking=False):
            return None
    except Exception:
        # A replaced standard error, which cannot tell what it is, or is closed.
        return None
    try:
        return Bar(_drawing(f"drumlin {_operation(sys._getframe(1))}", file, notebook))
    except BaseException as error:
        _drawn.release()
        if isinstance(error, Exception):
            return None
        raise


def _drawing(name: str, file: Any, notebook: bool) -> Drawing:
    if have("tqdm") and (not notebook or have("ipywidgets")):
        return Tqdm(name, file, notebook)
    return Line(name, file)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _operation(frame: FrameType | None) -> str:
    """The name of the public call that is running: the outermost of the package's functions."""
    name = ""
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "drumlin":
        found = frame.f_code.co_name
        if not found.startswith(("_", "<")) and found not in ("call", "make"):
            name = found
        frame = frame.f_back
    return name


def install() -> None:
    """Makes the core ask this module for bars."""
    _drumlin.make_bars(make)
