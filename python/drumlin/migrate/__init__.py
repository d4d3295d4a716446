"""Imports tables from other systems, and exports them.

:func:`from_arctic`, :func:`from_delta`, :func:`from_lance` and :func:`from_parquet` import tables with their history.
They check each version by a digest before it is committed, and continue where an earlier run stopped.
:func:`to_parquet`, :func:`to_delta` and :func:`to_iceberg` export tables. ``docs/migrating.md`` lists what is migrated
and what is not. The command is ``drumlin migrate``. The package uses the public API of :mod:`drumlin` alone.

>>> import drumlin, tempfile
>>> from drumlin import migrate
>>> store, other, folder = drumlin.open("memory://"), drumlin.open("memory://"), tempfile.mkdtemp()
>>> _ = store.write_many({"prices/AAPL": {"close": [187.5]}, "prices/MSFT": {"close": [410.0, 411.5]}})
>>> migrate.to_parquet(store, "prices/*", folder).rows
3
>>> migrate.from_parquet(folder, other).symbols, other.tables()
(2, ['prices/AAPL', 'prices/MSFT'])
"""

from drumlin.migrate.names import path_of, symbol_of
from drumlin.migrate.report import Failure, Incomplete, Report
from drumlin.migrate.sources.arctic import from_arctic
from drumlin.migrate.sources.delta import from_delta
from drumlin.migrate.sources.lance import from_lance
from drumlin.migrate.sources.parquet import from_parquet
from drumlin.migrate.targets.delta import to_delta
from drumlin.migrate.targets.iceberg import to_iceberg
from drumlin.migrate.targets.parquet import to_parquet

__all__ = [
    "Failure",
    "Incomplete",
    "Report",
    "from_arctic",
    "from_delta",
    "from_lance",
    "from_parquet",
    "path_of",
    "symbol_of",
    "to_delta",
    "to_iceberg",
    "to_parquet",
]
