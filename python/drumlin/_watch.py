"""What watches calls that take long, as the core has it."""

from drumlin._drumlin import make_bars, stoppable

__all__ = ["make_bars", "stoppable"]
