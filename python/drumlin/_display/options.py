"""Settings of this process that belong to no store."""

import os

from drumlin._values.evidence import a_type

__all__ = ["Options", "options"]

#: The environment variable that turns progress bars off.
PROGRESS = "DRUMLIN_PROGRESS"
_OFF = ("0", "false", "no", "off")


class Options:
    """Settings of this process, held by :data:`drumlin.options`.

    >>> import drumlin
    >>> drumlin.options.progress = False
    >>> drumlin.options
    Options(progress=False)
    >>> drumlin.options.progress = True
    """

    __slots__ = ("_progress",)

    def __init__(self) -> None:
        self._progress = True

    @property
    def progress(self) -> bool:
        """Whether a call that takes longer than two seconds shows a progress bar: in a notebook, or if standard error
        is a terminal, never elsewhere. Also False while the environment variable ``DRUMLIN_PROGRESS`` is ``0``,
        ``false``, ``no`` or ``off``. A call with its own ``progress`` never shows a bar."""
        return self._progress and os.environ.get(PROGRESS, "").strip().lower() not in _OFF

    @progress.setter
    def progress(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"progress must be True or False, not {a_type(value)}")
        self._progress = value

    def __repr__(self) -> str:
        return f"Options(progress={self.progress})"


options = Options()
