"""The package for asyncio: the same names, awaited.

Calls that return another handle (``open``, ``table``, ``read``, ``transaction`` ...) only record what is asked; they
need not be awaited, unless they should happen now. Everything else is awaited, including properties. Calls run on a
pool of 32 threads, so they never block the event loop. If a task is cancelled, for example by ``asyncio.timeout``, its
call stops: it was done as a whole or not at all.

>>> import asyncio, drumlin.aio
>>> async def main() -> int:
...     async with drumlin.aio.open("memory://") as store:
...         await store.write("numbers", {"n": [1, 2, 3]})
...         rows = await store.read("numbers", where="n > 1").to_arrow()
...         async with store.transaction() as tx:
...             await tx.append("numbers", {"n": [rows.num_rows]})
...         return (await store.table("numbers").stat()).rows
>>> asyncio.run(main())
4
"""

from drumlin.aio._rows import Dataset, Diff, Groups, Joined, Lookup, Result, Results, RowFeed, Windows
from drumlin.aio._store import (
    ChangeFeed,
    Sink,
    Store,
    Tables,
    Ticket,
    Transaction,
    clone,
    follow,
    move_log,
    open,
    promote,
    salvage,
    share,
    unshare,
)
from drumlin.aio._table import Merge, Presence, ProjectionView, Table, Tree

__all__ = [
    "ChangeFeed",
    "Dataset",
    "Diff",
    "Groups",
    "Joined",
    "Lookup",
    "Merge",
    "Presence",
    "ProjectionView",
    "Result",
    "Results",
    "RowFeed",
    "Sink",
    "Store",
    "Table",
    "Tables",
    "Ticket",
    "Transaction",
    "Tree",
    "Windows",
    "open",
    "clone",
    "follow",
    "move_log",
    "promote",
    "salvage",
    "share",
    "unshare",
]
