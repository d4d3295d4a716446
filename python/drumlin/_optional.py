"""Optional packages. None of them is imported before it is needed."""

import importlib
import sys
from types import ModuleType
from typing import Any


def need(module: str, why: str, extra: str) -> Any:
    """The module ``module``; if it is not installed, an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{why} needs {module}: pip install 'drumlin[{extra}]'", name=module) from error


def have(module: str) -> bool:
    """Whether ``module`` can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def loaded(module: str) -> ModuleType | None:
    """The module ``module`` if it has been imported; otherwise None, and no object can be of its classes. A module that
    another thread is importing does not have its classes yet, and counts as not imported."""
    found = sys.modules.get(module)
    if found is None or getattr(getattr(found, "__spec__", None), "_initializing", False):
        return None
    return found
