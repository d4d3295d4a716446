"""Where stores are: what is pickled of a store, a table or a data set, and how the store is found again.

An address has no secrets. In a process that has the store open, it leads to that same store; any other process opens
the store, once.
"""

import itertools
import os
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from drumlin import _drumlin
from drumlin._errors import Closed, InvalidArgument, Locked

#: Settings that other processes must not repeat.
_ONCE = {"accept_loss": False}


class Address(NamedTuple):
    """How another process opens a store; for a store in memory, a process and a number instead of settings."""

    uri: str
    #: ``"read"`` or ``"write"``; never ``"create"``, since the store exists.
    mode: str
    settings: dict[str, Any]

    @property
    def place(self) -> tuple[Any, ...]:
        """The key by which an open store is found in this process."""
        number = self.settings.get("number") if _in_memory(self.uri) else None
        return (os.getpid(), self.uri, self.mode, number)


#: Numbers of stores in memory, which have nothing else to tell them apart.
_numbers = itertools.count()
#: The addresses of the stores that this process has open.
_addresses: "weakref.WeakKeyDictionary[_drumlin.Store, Address]" = weakref.WeakKeyDictionary()
#: The same stores by place; for each place, the newest.
_open: "weakref.WeakValueDictionary[tuple[Any, ...], _drumlin.Store]" = weakref.WeakValueDictionary()
#: Stores that were opened for unpickled objects and that lock no one out; they are kept open for later ones.
_kept: dict[tuple[Any, ...], "_drumlin.Store"] = {}


def _in_memory(uri: str) -> bool:
    return uri.startswith("memory://")


def _absolute(uri: str) -> str:
    """The address of a folder, independent of the working directory."""
    scheme, found, path = uri.partition("://")
    if not found:
        return os.path.abspath(uri)
    return f"file://{os.path.abspath(path)}" if scheme == "file" else uri


def remember(core: "_drumlin.Store", mode: str, settings: Mapping[str, Any]) -> None:
    """Remembers an open store, so that it can be pickled, and found by objects that are unpickled here."""
    kept = {name: value for name, value in settings.items() if name not in ("storage_options", "log")}
    kept = {**kept, **_ONCE, "storage_options": core.storage_options(), "log": None}
    if _in_memory(core.uri):
        kept = {"process": os.getpid(), "number": next(_numbers)}
    address = Address(_absolute(core.uri), "read" if mode == "read" else "write", kept)
    _addresses[core] = address
    _open[address.place] = core


def address_of(core: "_drumlin.Store") -> Address:
    """The address that is pickled for a store."""
    address = _addresses[core]
    if "@" in address.uri.partition("://")[2].partition("/")[0]:
        raise InvalidArgument(
            "the store's address has a user or a secret before '@', which is never pickled; open it by an address "
            "without them, and give credentials in the environment"
        )
    return address


def find(address: Address) -> "_drumlin.Store":
    """The store at an address: the one that this process has open, or else opened now."""
    here = _open.get(address.place)
    if here is not None and not _is_closed(here):
        return here
    if _in_memory(address.uri):
        process = address.settings["process"]
        why = "was closed" if process == os.getpid() else f"lives in process {process} only"
        raise InvalidArgument(f"this was pickled from a memory:// store, which {why}; write it to a folder or a bucket")
    kept = _kept.get(address.place)
    if kept is not None and not _is_closed(kept):
        if _addresses[kept].mode == "read":
            kept.refresh()
        return kept
    core, mode = _opened(address)
    remember(core, mode, address.settings)
    if mode == "read" or "://" in address.uri.removeprefix("file://"):
        _kept[address.place] = core
    return core


def _opened(address: Address) -> "tuple[_drumlin.Store, str]":
    try:
        return _drumlin.open(address.uri, address.mode, address.settings), address.mode
    except Locked:
        # The process that pickled it, or another, writes this folder, so it is opened read-only here.
        return _drumlin.open(address.uri, "read", address.settings), "read"


def to_read(address: Address) -> "_drumlin.Store":
    """The store at an address, not necessarily opened for writing."""
    if _in_memory(address.uri) or address.mode == "read":
        return find(address)
    here = _open.get(address.place)
    return here if here is not None and not _is_closed(here) else find(address._replace(mode="read"))


def _is_closed(core: "_drumlin.Store") -> bool:
    try:
        core.seq()
    except Closed:
        return True
    return False


class Addressed:
    """An object that is pickled as the address of its store and its place there. A copy of it is the same object."""

    __slots__ = ()

    def _reduced(self) -> Any:
        """The function that makes the object again, and its arguments."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        return self._reduced()
