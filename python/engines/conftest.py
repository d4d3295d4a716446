"""Places for stores: a folder, and a bucket on a server of this machine."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from servers import places


@pytest.fixture(params=places.KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with places.place(request.param, tmp_path) as found:
        yield found
