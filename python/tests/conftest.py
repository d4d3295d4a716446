"""Fixtures: a store in memory, a store on disk, and doctests of the package."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from people import PEOPLE

import drumlin


@pytest.fixture
def store() -> Iterator[drumlin.Store]:
    with drumlin.open("memory://") as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A place for a store on disk."""
    return str(tmp_path / "store")


@pytest.fixture
def people(store: drumlin.Store) -> drumlin.Table:
    table = store.table("people")
    table.create(PEOPLE, key=["id"])
    return table
