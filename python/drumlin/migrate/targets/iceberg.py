"""Exports to Iceberg: each table becomes an Iceberg table, without a catalog."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drumlin import AlreadyExists, AsOf, InvalidArgument, Progress, Store
from drumlin.migrate.arguments import flag
from drumlin.migrate.packages import need
from drumlin.migrate.record import FATAL, Mismatch
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.targets.delta import check_nesting
from drumlin.migrate.targets.lake_types import lake_schema, to_lake
from drumlin.migrate.targets.tables import Leaving, leaving

__all__ = ["to_iceberg"]

_HINT = "version-hint.text"
_FOLDERS = ("data", "metadata")


@halts
def to_iceberg(
    store: Store,
    pattern: str,
    directory: str | os.PathLike[str],
    *,
    as_of: AsOf | None = None,
    replace: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Exports the tables that ``pattern`` matches, all as of one instant, as Iceberg tables, by the package pyiceberg:
    ``prices/AAPL`` becomes the Iceberg table in the folder ``prices/AAPL`` below ``directory``. Rows are streamed. The
    table exists once ``metadata/version-hint.text`` names its metadata file; then pyiceberg (``StaticTable``) and
    DuckDB can read the folder, and a catalog can register the metadata file. File paths in an Iceberg table are
    absolute, so the folder cannot be read after it is moved.

    Types are converted as by :func:`to_delta`, except that ``int8``, ``int16`` and ``uint8`` become ``int32``. If there
    is an Iceberg table at the place of any table, nothing is written, unless ``replace`` is True: then the new table
    replaces it, and the files of the old one are deleted. See :func:`to_parquet` for the other parameters.

    >>> import drumlin, pyiceberg.table, tempfile
    >>> from drumlin.migrate import to_iceberg
    >>> store, folder = drumlin.open("memory://"), tempfile.mkdtemp()
    >>> _ = store.write("prices/AAPL", {"close": [187.5, 190.0]})
    >>> to_iceberg(store, "prices/AAPL", folder).rows
    2
    >>> table = pyiceberg.table.StaticTable.from_metadata(folder + "/prices/AAPL")
    >>> table.scan().to_arrow()["close"].to_pylist()
    [187.5, 190.0]
    """
    need("sqlalchemy", "an export to Iceberg", "iceberg")
    catalogs = need("pyiceberg.catalog.memory", "an export to Iceberg", "iceberg")
    flag(replace, "replace")
    tally = Tally("to iceberg", progress)
    with leaving(store, pattern, Path(directory).absolute(), as_of, tally) as tables:
        check_nesting(tables)
        taken = [table.folder for table in tables if _files(table.folder)]
        if taken and not replace:
            raise AlreadyExists(f"{taken[0]} is an Iceberg table; give replace (--force) to put another in its place")
        catalog = catalogs.InMemoryCatalog("export", warehouse=f"file://{Path(directory).absolute()}")
        catalog.create_namespace("export")
        for table in tables:
            try:
                written = _write(catalog, table)
            except FATAL:
                raise
            except Exception as error:
                tally.fail(table.path, None, error, 1)
            else:
                tally.brought(table.path, *written)
    return tally.report(strict)


def _files(folder: Path) -> set[Path]:
    return {file for name in _FOLDERS for file in (folder / name).rglob("*") if file.is_file()}


def _write(catalog: Any, table: Leaving) -> tuple[int, int]:
    pyarrow = need("pyarrow", "an export to Iceberg", "iceberg")
    if odd := {"?", "#"}.intersection(str(table.folder)):
        raise InvalidArgument(f"the folder {table.folder} has {min(odd)!r} in its name, which Iceberg does not allow")
    schema = lake_schema(pyarrow.schema(table.result), "Iceberg")
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for batch in table.result:
            rows += batch.num_rows
            yield to_lake(batch, schema)

    before = _files(table.folder)
    table.folder.mkdir(parents=True, exist_ok=True)
    try:
        made = catalog.create_table(f"export.t{secrets.token_hex(8)}", schema, location=f"file://{table.folder}")
        made.append(pyarrow.RecordBatchReader.from_batches(schema, counted()))
        sizes = [(task.file.record_count, task.file.file_size_in_bytes) for task in made.scan().plan_files()]
        stored = sum(count for count, _ in sizes)
        if stored != rows:
            raise Mismatch(f"{stored} rows are in the Iceberg table instead of {rows}")
        _name_newest(table.folder, made.metadata_location)
    except BaseException:
        for file in _files(table.folder) - before:
            file.unlink(missing_ok=True)
        raise
    for file in before - {table.folder / "metadata" / _HINT}:
        file.unlink(missing_ok=True)
    return rows, sum(size for _, size in sizes)


def _name_newest(folder: Path, metadata: str) -> None:
    """Names the metadata file that is current, which makes what was written the table."""
    name = metadata.rsplit("/", 1)[-1].removesuffix(".metadata.json")
    waiting = folder / "metadata" / f".drumlin-{secrets.token_hex(8)}"
    with open(waiting, "w", encoding="utf-8") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    os.replace(waiting, folder / "metadata" / _HINT)
