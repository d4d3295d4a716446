"""Exports to Delta Lake: each table becomes a Delta table."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from drumlin import AlreadyExists, AsOf, InvalidArgument, Progress, Store
from drumlin.migrate.arguments import flag, names
from drumlin.migrate.packages import need
from drumlin.migrate.record import FATAL, Mismatch
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.targets.lake_types import lake_schema, to_lake
from drumlin.migrate.targets.tables import Leaving, leaving

__all__ = ["to_delta"]


@halts
def to_delta(
    store: Store,
    pattern: str,
    directory: str | os.PathLike[str],
    *,
    partition_by: Iterable[str] | None = None,
    as_of: AsOf | None = None,
    compression: str = "ZSTD",
    replace: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Exports the tables that ``pattern`` matches, all as of one instant, as Delta tables, by the package deltalake:
    ``prices/AAPL`` becomes the Delta table ``prices/AAPL`` below ``directory``. Rows are streamed, and the table exists
    once its log is written.

    Delta has fewer types. ``uint8``, ``uint16`` and ``uint32`` become ``int16``, ``int32`` and ``int64``, and
    ``uint64`` becomes ``decimal128(20, 0)``; ``float16`` becomes ``float32``, ``date64`` becomes ``date32``, a
    dictionary becomes its values, and timestamps get the unit ``us``, and the zone UTC if they have one. A timestamp
    that microseconds cannot hold is a failure; so is a column of type ``time32``, ``time64``, ``duration``,
    ``month_day_nano_interval`` or ``null``, or of decimals with more than 38 digits.

    If there is a Delta table at the place of any table, nothing is written, unless ``replace`` is True: then that Delta
    table gets a new version. See :func:`to_parquet` for the other parameters.

    >>> import deltalake, drumlin, tempfile
    >>> from drumlin.migrate import to_delta
    >>> store, folder = drumlin.open("memory://"), tempfile.mkdtemp()
    >>> _ = store.write("prices/AAPL", {"close": [187.5, 190.0]})
    >>> to_delta(store, "prices/AAPL", folder).rows
    2
    >>> deltalake.DeltaTable(folder + "/prices/AAPL").to_pyarrow_table()["close"].to_pylist()
    [187.5, 190.0]
    """
    deltalake = need("deltalake", "an export to Delta Lake", "delta")
    flag(replace, "replace")
    columns = [] if partition_by is None else names(partition_by, "partition_by")
    tally = Tally("to delta", progress)
    with leaving(store, pattern, Path(directory), as_of, tally) as tables:
        check_nesting(tables)
        taken = [table.folder for table in tables if (table.folder / "_delta_log").exists()]
        if taken and not replace:
            raise AlreadyExists(f"{taken[0]} is a Delta table; give replace (--force) to give it a new version")
        for table in tables:
            try:
                written = _write(deltalake, table, columns, compression, replace)
            except FATAL:
                raise
            except Exception as error:
                tally.fail(table.path, None, error, 1)
            else:
                tally.brought(table.path, *written)
    return tally.report(strict)


def check_nesting(tables: list[Leaving]) -> None:
    """Checks that no table lies in the folder of another, which may delete files that it does not know."""
    folders = {table.folder: table.path for table in tables}
    for table in tables:
        above = next((folders[folder] for folder in table.folder.parents if folder in folders), None)
        if above is not None:
            raise InvalidArgument(
                f"'{table.path}' would be within the folder of '{above}', which takes it for its own; export them to "
                "two directories"
            )


def _write(deltalake: Any, table: Leaving, columns: list[str], compression: str, replace: bool) -> tuple[int, int]:
    pyarrow = need("pyarrow", "an export to Delta Lake", "delta")
    schema = lake_schema(pyarrow.schema(table.result), "Delta Lake")
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for batch in table.result:
            rows += batch.num_rows
            yield to_lake(batch, schema)

    table.folder.mkdir(parents=True, exist_ok=True)
    deltalake.write_deltalake(
        table.folder,
        pyarrow.RecordBatchReader.from_batches(schema, counted()),
        mode="overwrite" if replace else "error",
        schema_mode="overwrite" if replace else None,
        partition_by=columns or None,
        writer_properties=deltalake.WriterProperties(compression=compression.upper()),
    )
    made = deltalake.DeltaTable(table.folder)
    actions = pyarrow.table(made.get_add_actions(flatten=True))
    stored, size = sum(actions["num_records"].to_pylist()), sum(actions["size_bytes"].to_pylist())
    if stored != rows:
        raise Mismatch(f"{stored} rows are in the Delta table instead of {rows}")
    return rows, size
