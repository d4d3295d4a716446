"""Waiting for what other threads bring about: for a condition, however long a busy machine takes, never for a time."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Waits until ``condition`` holds; returns whether it did in time, which is far more than it should take."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
