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
    """The base class of all errors of a store."""

    __module__ = "drumlin"


class NotFound(Error, LookupError):
    """A path, version, snapshot or store does not exist."""

    __module__ = "drumlin"


class AlreadyExists(Error):
    """A key, table, node, job or store that the call would create exists already. Nothing was changed."""

    __module__ = "drumlin"


class InvalidArgument(Error, ValueError):
    """The call is wrong, whatever the store holds. Nothing was changed."""

    __module__ = "drumlin"


class SchemaMismatch(Error, ValueError):
    """The data does not fit the table's columns or constraints. Nothing was changed."""

    __module__ = "drumlin"


class ConditionFailed(Error):
    """A condition of the operation does not hold. Nothing was changed."""

    __module__ = "drumlin"


class Conflict(Error):
    """Another commit changed what this one is based on. Run it again."""

    __module__ = "drumlin"


class Unavailable(Error):
    """Storage could not do it: disk full, no permission, I/O error, too many requests. Nothing was changed."""

    __module__ = "drumlin"


class InDoubt(Error):
    """There was no answer, so the commit may or may not have been done; the message has its id."""

    __module__ = "drumlin"


class Corrupt(Error):
    """The bytes that were read are not those that were written. The message names the object and offset."""

    __module__ = "drumlin"


class Locked(Error):
    """Another process has the store open for writing; the message names it."""

    __module__ = "drumlin"


class SnapshotExpired(Error):
    """The version being read is gone, or the log no longer has the commits that a feed would show."""

    __module__ = "drumlin"


class Unsupported(Error):
    """The store has a newer format, or needs a feature that this build or the bucket does not have."""

    __module__ = "drumlin"


class Closed(Error):
    """The store was closed, or belongs to the process from which this one was forked. Open it again."""

    __module__ = "drumlin"


class Internal(Error):
    """A bug in Drumlin; please report it. Nothing was changed."""

    __module__ = "drumlin"


class Abort(Error):
    """Raised to leave a transaction without a commit; ``value`` is any value for the caller.

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
