"""Packages of other systems. None of them is imported before it is needed."""

import importlib
from typing import Any


def need(module: str, why: str, extra: str) -> Any:
    """The module called ``module``; an error that says what to install if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{why} needs {module}: pip install 'drumlin[{extra}]'", name=module) from error
