"""How a test controls a proxy that is a process of its own: lines on its standard input, and one line as each answer.

``name=value`` sets a value, ``count`` counts requests, ``settle`` waits for what ended clients left under way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def obey(settings: dict[str, float], count: Callable[[], Mapping[str, int]], settle: Callable[[], int]) -> None:
    """Until the end of the input."""
    for line in sys.stdin:
        name, _, value = line.strip().partition("=")
        if name == "count":
            print(" ".join(f"{key}={number}" for key, number in sorted(count().items())), flush=True)
        elif name == "settle":
            print(settle(), flush=True)
        else:
            settings[name] = float(value)
            print("ok", flush=True)
