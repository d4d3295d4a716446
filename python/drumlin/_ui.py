"""The page that shows a store, as the core serves it."""

from drumlin._drumlin import Ui

__all__ = ["Ui"]
