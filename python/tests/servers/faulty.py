"""The failing proxies as separate processes, controlled by tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Proxy:
    """The proxy of an S3 server (proxy.py)."""

    program = "proxy.py"
    faults: tuple[str, ...] = ("refuse", "cut", "lose", "error", "late", "truncate", "partial", "lie")

    def __init__(self, upstream: int, seed: int = 0) -> None:
        command = [sys.executable, str(HERE / self.program), str(upstream), str(seed)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def _tell(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self._line()

    def set(self, **settings: float) -> None:
        for name, value in settings.items():
            assert self._tell(f"{name}={value}") == "ok\n"

    def heal(self) -> None:
        self.set(**dict.fromkeys(self.faults, 0))

    def count(self) -> dict[str, int]:
        return {key: int(count) for key, _, count in (part.partition("=") for part in self._tell("count").split())}

    def settle(self) -> None:
        """Waits until everything that clients asked for before they ended is done: a killed client's last request may
        still be on its way, and would be done while somebody else looks at what was left."""
        left = self._tell("settle")
        assert left == "0\n", f"{left.strip()} connections stay open"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Wire(Proxy):
    """The proxy of any other server (wire.py)."""

    program = "wire.py"
    faults = ("latency", "hold", "refuse", "cut", "lose", "late", "truncate")


@contextmanager
def proxy(upstream: int, seed: int = 0, of: type[Proxy] = Proxy) -> Iterator[Proxy]:
    running = of(upstream, seed)
    try:
        yield running
    finally:
        running.close()
