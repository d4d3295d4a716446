"""A broker of Kafka's protocol on loopback, built from pinned sources by Go."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "kafka"
#: The topic, and how many partitions it has.
TOPIC, PARTITIONS = "ticks", 3


def build(folder: Path) -> Path | None:
    """The broker's program, built in ``folder``; None without Go."""
    go = shutil.which("go")
    if go is None:
        return None
    program = folder / "broker"
    command = [go, "build", "-mod=readonly", "-o", str(program), "."]
    subprocess.run(command, check=True, cwd=SOURCES, env={**os.environ, "GOFLAGS": "-buildvcs=false"})
    return program


@contextmanager
def serve(program: Path) -> Iterator[str]:
    """Runs a broker; gives its address."""
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()
