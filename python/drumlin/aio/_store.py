"""Stores, transactions and feeds, awaited."""

import functools
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import drumlin
from drumlin import _drumlin
from drumlin._nouns.tables import Tables as _Tables
from drumlin._values.evidence import a_type
from drumlin.aio._calls import run
from drumlin.aio._handles import Block, Handle, awaits
from drumlin.aio._rows import Dataset, Result, Results
from drumlin.aio._table import Table, Tree
from drumlin.tree import P

__all__ = [
    "ChangeFeed",
    "Sink",
    "Store",
    "Tables",
    "Ticket",
    "Transaction",
    "clone",
    "follow",
    "move_log",
    "open",
    "promote",
    "salvage",
    "share",
    "unshare",
]

#: The version that a call made.
_V = TypeVar("_V")


@awaits(_Tables, table=Table, tree=Tree, scan=Dataset, read_many=Results)
class Tables(Handle, Generic[_V]):
    """See :meth:`drumlin.Store.with_message`."""

    @functools.wraps(_Tables.read)
    def read(self, path: Any, **named: Any) -> Any:
        many = isinstance(path, P) or (isinstance(path, str) and ("*" in path or "?" in path))
        return (Dataset if many else Result)(self._later("read", path, **named))


@awaits(drumlin.Transaction)
class Transaction(Tables, Block):
    """See :class:`drumlin.Transaction`: ``async with store.transaction() as tx``."""


@awaits(drumlin.Ticket)
class Ticket(Block):
    """See :class:`drumlin.Ticket`: ``async with store.ticket(...) as ticket``."""


@awaits(drumlin.ChangeFeed)
class ChangeFeed(Handle):
    """See :class:`drumlin.ChangeFeed`: ``async for commit in await store.changes()``. It begins when it is awaited."""

    def __aiter__(self) -> AsyncIterator[drumlin.Commit]:
        return self

    async def __anext__(self) -> drumlin.Commit:
        commit: drumlin.Commit = await self._call("next", (), {})
        return commit


@awaits(drumlin.Sink)
class Sink(Handle):
    """See :class:`drumlin.Sink`."""


@awaits(drumlin.Store, changes=ChangeFeed, sink=Sink, ticket=Ticket, transaction=Transaction, with_message=Tables)
class Store(Tables, Block):
    """See :class:`drumlin.Store`: ``async with drumlin.aio.open(uri) as store``."""

    @functools.wraps(drumlin.Store.transact)
    async def transact(self, function: Any, *, message: str | None = None) -> Any:
        if not callable(function):
            raise TypeError(f"function must be a coroutine function of a transaction, not {a_type(function)}")
        transaction = Transaction(self._later("transaction", message=message))
        while True:
            core: _drumlin.Transaction = (await transaction._get())._core
            try:
                answer = await function(transaction)
            except BaseException:
                await run(core.abort)
                raise
            again = await run(core.commit_or_again)
            if again is None:
                return answer
            transaction = Transaction(functools.partial(_made, drumlin.Transaction(again)))


async def _made(value: Any) -> Any:
    return value


@functools.wraps(drumlin.open)
def open(*arguments: Any, **named: Any) -> Store:
    return Store(lambda: run(lambda: drumlin.open(*arguments, **named)))


@functools.wraps(drumlin.salvage)
async def salvage(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.salvage(*arguments, **named))


@functools.wraps(drumlin.share)
async def share(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.share(*arguments, **named))


@functools.wraps(drumlin.unshare)
async def unshare(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.unshare(*arguments, **named))


@functools.wraps(drumlin.move_log)
async def move_log(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.move_log(*arguments, **named))


@functools.wraps(drumlin.follow)
async def follow(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.follow(*arguments, **named))


@functools.wraps(drumlin.promote)
async def promote(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.promote(*arguments, **named))


@functools.wraps(drumlin.clone)
async def clone(*arguments: Any, **named: Any) -> Any:
    return await run(lambda: drumlin.clone(*arguments, **named))
