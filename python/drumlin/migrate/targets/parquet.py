"""Exports to Parquet: all tables of a pattern, a folder each."""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from drumlin import AlreadyExists, AsOf, InvalidArgument, Progress, Store
from drumlin.migrate.arguments import flag, names
from drumlin.migrate.packages import need
from drumlin.migrate.record import FATAL, Mismatch
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.targets.tables import Leaving, leaving
from drumlin.migrate.threads import Crew, Stopped

__all__ = ["to_parquet"]

#: The number of rows of a row group, the same as in a store.
_GROUP_ROWS = 122_880
#: The key of the metadata in which a store describes the columns of a pandas frame.
_PANDAS = b"drumlin.pandas"
#: The start of the names of folders while they are written.
_BEGIN = ".drumlin-"


@halts
def to_parquet(
    store: Store,
    pattern: str,
    directory: str | os.PathLike[str],
    *,
    partition_by: Iterable[str] | None = None,
    path_columns: Iterable[str] | None = None,
    as_of: AsOf | None = None,
    compression: str = "zstd",
    replace: bool = False,
    strict: bool = False,
    threads: int = 2,
    progress: Progress | None = None,
) -> Report:
    """Exports the tables that ``pattern`` matches, all as of one instant, to Parquet: the table ``prices/AAPL`` becomes
    the file ``prices/AAPL/part-0.parquet`` below ``directory``. Rows are streamed from the store to the file.

    With ``partition_by``, a table becomes a folder of files such as ``year=2024/part-0.parquet``, by the values of
    these columns. ``path_columns`` gives a name to each part of the pattern with a wildcard; then all tables become one
    partitioned data set. For ``prices/*`` with ``path_columns=["symbol"]``, the files are
    ``symbol=AAPL/part-0.parquet``.

    A file is written in a hidden folder, and moved once it is complete. If there are Parquet files at the place of any
    table, nothing is written, unless ``replace`` is True: then these files are removed. ``as_of`` is the number of a
    version, the name of a snapshot or a time. The files contain the metadata of pandas and Arrow, so pandas and pyarrow
    read the same as from the store. Data that Parquet cannot hold are a failure in the report; with ``strict``,
    :class:`Incomplete` is raised at the end.

    >>> import drumlin, pandas, tempfile
    >>> from drumlin.migrate import to_parquet
    >>> store, folder = drumlin.open("memory://"), tempfile.mkdtemp()
    >>> frame = pandas.DataFrame({"close": [187.5, 190.0]}, index=pandas.Index(["mon", "tue"], name="day"))
    >>> _ = store.write("prices/AAPL", frame)
    >>> print(to_parquet(store, "prices/*", folder))  # doctest: +ELLIPSIS
    to parquet: 1 files of 1 tables, 2 rows, ...
    >>> pandas.read_parquet(folder + "/prices/AAPL/part-0.parquet").equals(frame)
    True
    """
    need("pyarrow.parquet", "an export to Parquet", "pyarrow")
    flag(replace, "replace")
    columns = [] if partition_by is None else names(partition_by, "partition_by")
    tally, crew = Tally("to parquet", progress), Crew(threads, 1 << 30)

    def work(table: Leaving) -> None:
        crew.check()
        try:
            written = _write(table, columns, compression, replace)
        except (*FATAL, Stopped):
            raise
        except Exception as error:
            tally.fail(table.path, None, error, 1)
        else:
            tally.brought(table.path, *written, versions=1)

    with leaving(store, pattern, Path(directory), as_of, tally, path_columns) as tables:
        _check_places(tables, columns, replace)
        crew.run(work, tables)
    return tally.report(strict)


def _check_places(tables: list[Leaving], columns: list[str], replace: bool) -> None:
    folders: dict[Path, str] = {}
    for table in tables:
        if (other := folders.setdefault(table.folder, table.path)) != table.path:
            raise InvalidArgument(f"'{other}' and '{table.path}' would both become {table.folder}")
        missing = [column for column in columns if column not in table.result.schema.names]
        if missing:
            raise InvalidArgument(f"'{table.path}' has no column {missing[0]!r} to partition by")
        if columns and set(columns) == set(table.result.schema.names):
            raise InvalidArgument(
                f"'{table.path}' has only the columns to partition by, so its files would have no columns"
            )
    taken = [] if replace else [table for table in tables if earlier(table.folder)]
    if taken:
        more = f", and {len(taken) - 1} more tables have theirs" if len(taken) > 1 else ""
        raise AlreadyExists(f"{taken[0].folder} has Parquet files{more}; give replace (--force) to replace them")


def earlier(folder: Path) -> list[Path]:
    """The files and the folders of partitions that an earlier export has written to a table's folder, which may also
    contain folders of other tables."""
    if not folder.is_dir():
        return []
    return [
        entry
        for entry in folder.iterdir()
        if (entry.is_file() and entry.suffix == ".parquet") or (entry.is_dir() and "=" in entry.name)
    ]


def _write(table: Leaving, columns: list[str], compression: str, replace: bool) -> tuple[int, int]:
    """Writes a table, and returns the number of its rows and the size of its files in bytes."""
    table.folder.mkdir(parents=True, exist_ok=True)
    made = table.folder / f"{_BEGIN}{secrets.token_hex(8)}"
    made.mkdir()
    try:
        if columns:
            rows = _write_partitions(table, columns, compression, made)
        else:
            rows = _write_file(table, compression, made / "part-0.parquet")
        files = sorted(made.rglob("*.parquet"))
        pq = need("pyarrow.parquet", "", "pyarrow")
        stored = sum(pq.read_metadata(file).num_rows for file in files)
        if stored != rows:
            raise Mismatch(f"{stored} rows are in the files instead of {rows}")
        size = sum(file.stat().st_size for file in files)
        for file in files:
            _sync(file)
        _put(made, table.folder, replace)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return rows, size


def _put(made: Path, folder: Path, replace: bool) -> None:
    """Moves new files to their place. Old ones are removed first, so that no reader sees a mixture of two exports."""
    there = earlier(folder)
    if there and not replace:
        raise AlreadyExists(f"{folder} has Parquet files; give replace (--force) to replace them")
    old = made / "old"
    if len(there) == 1 and there[0].is_file() and (made / there[0].name).is_file():
        os.replace(made / there[0].name, there[0])
        return
    old.mkdir()
    new = [entry for entry in made.iterdir() if entry != old]
    for entry in there:
        os.rename(entry, old / entry.name)
    for entry in new:
        os.rename(entry, folder / entry.name)


def _kept(schema: Any, pyarrow: Any) -> Any:
    """A schema in which dictionaries are plain values, except those of text: Parquet does not keep the others."""
    types = pyarrow.types

    def kept(field: Any) -> Any:
        if not types.is_dictionary(field.type):
            return field
        values = field.type.value_type
        texts = types.is_string(values) or types.is_large_string(values) or types.is_binary(values)
        return field if texts else field.with_type(values)

    plain = pyarrow.schema([kept(field) for field in schema])
    changed = {before.name for before, after in zip(schema, plain, strict=True) if before.type != after.type}
    return plain.with_metadata(_metadata(schema.metadata, changed))


def _metadata(metadata: dict[bytes, bytes] | None, changed: set[str]) -> dict[bytes, bytes] | None:
    """The metadata of a schema, without the Arrow types of the columns that were changed."""
    if not metadata or not changed or _PANDAS not in metadata:
        return metadata
    told = json.loads(metadata[_PANDAS])
    columns = told.get("columns", {})
    for name in changed:
        if columns.get(name, {}).get("type") == "arrow":
            del columns[name]
    return {**metadata, _PANDAS: json.dumps(told).encode()}


def _sync(file: Path) -> None:
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())


def _write_file(table: Leaving, compression: str, file: Path) -> int:
    pyarrow, pq = need("pyarrow", "", "pyarrow"), need("pyarrow.parquet", "", "pyarrow")
    schema, rows = _kept(pyarrow.schema(table.result), pyarrow), 0
    with pq.ParquetWriter(file, schema, compression=compression) as writer:
        for part in _groups(table.result, schema, pyarrow):
            rows += part.num_rows
            writer.write_table(part, row_group_size=_GROUP_ROWS)
    return rows


def _groups(batches: Any, schema: Any, pyarrow: Any) -> Iterator[Any]:
    """Combines batches, so that files have few row groups."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _GROUP_ROWS:
            yield pyarrow.Table.from_batches(waiting).cast(schema)
            waiting, rows = [], 0
    if waiting:
        yield pyarrow.Table.from_batches(waiting).cast(schema)


def _write_partitions(table: Leaving, columns: list[str], compression: str, folder: Path) -> int:
    pyarrow, pads = need("pyarrow", "", "pyarrow"), need("pyarrow.dataset", "", "pyarrow")
    schema, rows = _kept(pyarrow.schema(table.result), pyarrow), 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for batch in table.result:
            rows += batch.num_rows
            yield from pyarrow.Table.from_batches([batch]).cast(schema).to_batches()

    form = pads.ParquetFileFormat()
    keys = pyarrow.schema([schema.field(column) for column in columns])
    pads.write_dataset(
        pyarrow.RecordBatchReader.from_batches(schema, counted()),
        folder,
        format=form,
        file_options=form.make_write_options(compression=compression),
        partitioning=pads.partitioning(keys, flavor="hive"),
        basename_template="part-{i}.parquet",
        max_rows_per_group=_GROUP_ROWS,
        # So that the rows of a file keep their order.
        use_threads=False,
        existing_data_behavior="overwrite_or_ignore",
    )
    return rows
