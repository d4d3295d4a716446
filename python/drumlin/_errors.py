"""Exceptions: one class for each thing that a caller can do about an error."""

from typing import Any

__all__ = [
    "Abort",
    "AlreadyExists",
    "Closed",
    "ConditionFailed",
    "Conflict",
    "Corrupt",
    "Error",
    "InDoubt",
    "Internal",
    "InvalidArgument",
    "Locked",
    "NotFound",
    "SchemaMismatch",
    "SnapshotExpired",
    "Unavailable",
    "Unsupported",
]


class Error(Exception):
    """The base of all errors of a store."""

    __module__ = "drumlin"


class NotFound(Error, LookupError):
    """A path, version, snapshot or store does not exist."""

    __module__ = "drumlin"


class AlreadyExists(Error):
    """Something is in the way of what was to be made."""

    __module__ = "drumlin"


class InvalidArgument(Error, ValueError):
    """The call cannot be right whatever the store holds. Nothing was changed."""

    __module__ = "drumlin"


class SchemaMismatch(Error, ValueError):
    """The data's schema does not fit the table's. Nothing was changed."""

    __module__ = "drumlin"


class ConditionFailed(Error):
    """What was asked to hold before the operation does not. Nothing was changed."""

    __module__ = "drumlin"


class Conflict(Error):
    """Another commit changed what this one is based on: run it again."""

    __module__ = "drumlin"


class Unavailable(Error):
    """Storage did not do it: disk full, no permission, I/O error. Nothing was applied."""

    __module__ = "drumlin"


class InDoubt(Error):
    """The commit was asked for and it is not yet known whether it was applied; the message carries its id."""

    __module__ = "drumlin"


class Corrupt(Error):
    """Bytes read are not the bytes written. The message names object and offset."""

    __module__ = "drumlin"


class Locked(Error):
    """Another process has the store open for writing; the message names it."""

    __module__ = "drumlin"


class SnapshotExpired(Error):
    """The version read from is gone."""

    __module__ = "drumlin"


class Unsupported(Error):
    """The store was made by a newer format, or asks for a feature that this build does not know."""

    __module__ = "drumlin"


class Closed(Error):
    """The store was closed, or belongs to the process that this one was forked from: open it again."""

    __module__ = "drumlin"


class Internal(Error):
    """A bug in Drumlin, to be reported; what the call was to change was not changed."""

    __module__ = "drumlin"


class Abort(Error):
    """Raised to leave a transaction without a commit; it passes on ``value``, whatever that is.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> try:
    ...     with store.transaction() as tx:
    ...         _ = tx.tree.put("a", 1)
    ...         tx.abort("changed my mind")
    ... except drumlin.Abort as abort:
    ...     abort.value, store.tree.exists("a")
    ('changed my mind', False)
    """

    __module__ = "drumlin"

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return "the transaction was aborted" if self.value is None else f"the transaction was aborted: {self.value}"
