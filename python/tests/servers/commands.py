"""How a test controls a proxy that is a process of its own: lines on its standard input, and one line as each answer.

``name=value`` sets a value, ``count`` counts requests, ``settle`` waits for what ended clients left under way.
"""

from __future__ import annotations

import socket
import sys
import time
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


def settled(address: tuple[str, int], clients: set[int], seconds_max: float) -> int:
    """Waits until nothing is under way at a proxy; its clients, known by their ports while they are served, must have
    ended. Returns how many remain."""
    deadline = time.monotonic() + seconds_max
    # Connections are accepted in order: once this one is, none of an ended client still waits.
    with socket.create_connection(address) as last:
        port = last.getsockname()[1]
        while port not in clients and time.monotonic() < deadline:
            time.sleep(0.001)
    while clients and time.monotonic() < deadline:
        time.sleep(0.001)
    return len(clients)
