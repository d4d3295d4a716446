"""Places for shared stores: a folder, and a bucket on a server of this machine."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import drumlin

from . import s3

#: What :func:`place` knows.
KINDS = ["folder", "versitygw"]


@contextlib.contextmanager
def place(kind: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """An address and settings; skips the test if the server cannot be built."""
    if kind == "folder":
        uri = str(folder / "store")
        drumlin.open(uri, shared=True).close()
        yield uri, {}
        return
    if s3.build(kind) is None:
        pytest.skip(f"NO GO: not tested against a bucket of {kind}")
    with s3.serve(kind, folder / "data") as port:
        yield "s3://test/store", s3.options(port)
