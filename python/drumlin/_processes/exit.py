"""The end of the process. A thread that asks for the interpreter after it has shut down aborts the process, so running
callbacks of triggers finish first, and no more are called."""

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import Any

#: How long to wait for a running callback, in seconds.
_PATIENCE = 5.0

_changed = threading.Condition()
_running = 0
_called = False
_stores: "weakref.WeakSet[Any]" = weakref.WeakSet()


class Watched:
    """A trigger's callback that is waited for when the process ends. It has the repr, equality and hash of the
    callback."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[Any], object]) -> None:
        self._callback = callback

    def __call__(self, event: Any) -> object:
        global _called, _running
        with _changed:
            _called, _running = True, _running + 1
        try:
            return self._callback(event)
        finally:
            with _changed:
                _running -= 1
                _changed.notify_all()

    def __eq__(self, other: object) -> bool:
        return bool(self._callback == (other._callback if isinstance(other, Watched) else other))

    def __hash__(self) -> int:
        return hash(self._callback)

    def __repr__(self) -> str:
        return repr(self._callback)


def watched(callback: Callable[[Any], object], store: Any) -> Watched:
    """``callback``, of a trigger in ``store``, wrapped so that it is waited for when the process ends."""
    _stores.add(store)
    return Watched(callback)


@atexit.register
def _end() -> None:
    for store in list(_stores):
        with contextlib.suppress(Exception):
            store.close()
    with _changed:
        ended = _changed.wait_for(lambda: not _running, _PATIENCE)
    if ended and _called:
        # The thread has left the callback and is about to release the interpreter.
        threading.Event().wait(0.02)
