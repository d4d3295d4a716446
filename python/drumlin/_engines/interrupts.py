"""Ctrl-C while DuckDB runs. DuckDB looks at signals by itself, but loses some, so a query runs on a thread of its own
while the main thread, which alone sees signals, waits for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from drumlin._optional import need

__all__ = ["attended", "reader", "rows"]

_T = TypeVar("_T")
#: How often a query is interrupted that has not ended, in seconds: DuckDB forgets what comes before it begins.
_AGAIN = 0.05


def attended(connection: Any, run: Callable[[], _T]) -> _T:
    """Calls a function that has DuckDB work. If a signal's handler raises, its query is interrupted first."""
    if threading.current_thread() is not threading.main_thread():
        return run()
    running: Future[_T] = Future()
    thread = threading.Thread(target=_work, args=(running, run), name="drumlin-sql", daemon=True)
    try:
        thread.start()
        return running.result()
    except BaseException:
        while thread.is_alive() and not running.done():
            with contextlib.suppress(KeyboardInterrupt):
                connection.interrupt()
                wait([running], _AGAIN)
        raise
    finally:
        # Its exception has frames that have it: a store in them would stay open.
        del running


def _work(running: "Future[_T]", run: Callable[[], _T]) -> None:
    try:
        running.set_result(run())
    except BaseException as error:
        running.set_exception(error)
    finally:
        del running


def reader(connection: Any, batches: Any) -> Any:
    """The same reader of Arrow's, each of whose batches is attended."""

    def each() -> Iterator[Any]:
        with contextlib.closing(batches):
            while True:
                # StopIteration cannot leave a generator, nor be the result of a future.
                batch = attended(connection, lambda: next(batches, None))
                if batch is None:
                    return
                yield batch

    pa = need("pyarrow", "sql()", "duckdb")
    return pa.RecordBatchReader.from_batches(batches.schema, each())


def rows(connection: Any, relation: Any) -> Any:
    """The rows of a relation of DuckDB, as an Arrow reader that is attended."""
    return reader(connection, attended(connection, relation.to_arrow_reader))
