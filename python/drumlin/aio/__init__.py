"""The package for asyncio: the same names, awaited.

What gives another handle (``open``, ``table``, ``read``, ``transaction`` ...) only notes what is asked, and is not
awaited unless that is to happen now; everything else is awaited, properties too. Calls run on a pool of 32 threads, so
the event loop is never held up. A task that is cancelled, by ``asyncio.timeout`` say, stops its call: it was done, or
it was not.

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

from drumlin.aio._rows import Dataset, Diff, Groups, Lookup, Result, Results
from drumlin.aio._store import ChangeFeed, Store, Tables, Ticket, Transaction, open, salvage
from drumlin.aio._table import Merge, ProjectionView, Table, Tree

__all__ = [
    "ChangeFeed",
    "Dataset",
    "Diff",
    "Groups",
    "Lookup",
    "Merge",
    "ProjectionView",
    "Result",
    "Results",
    "Store",
    "Table",
    "Tables",
    "Ticket",
    "Transaction",
    "Tree",
    "open",
    "salvage",
]
