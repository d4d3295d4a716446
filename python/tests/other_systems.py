"""The systems that tables are migrated from and to, for tests.

ArcticDB needs pandas 2, so they are in a folder of their own (`make test`, requirements-migrate.txt). Where they are
not, tests say that they do without; with DRUMLIN_MIGRATE set they fail.
"""

import importlib
import os
from typing import Any

import pytest


def need(module: str) -> Any:
    """The module, or the end of the test."""
    if os.environ.get("DRUMLIN_MIGRATE"):
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"{module} is not here: `make test` runs this with it")
