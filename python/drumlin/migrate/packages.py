"""Optional packages. None of them is imported before it is needed."""

import importlib
from typing import Any


def need(module: str, why: str, extra: str) -> Any:
    """Imports ``module``. If it is missing, the error says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{why} needs {module}: pip install 'drumlin[{extra}]'", name=module) from error
