"""Exceptions: one class for each thing that a caller can do about an error."""

__all__ = [
    "AlreadyExists",
    "Closed",
    "Conflict",
    "Corrupt",
    "Error",
    "InDoubt",
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


class Conflict(Error):
    """Another commit touched what this one rests on: run it again."""

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
