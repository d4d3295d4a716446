"""Imports from Parquet: a directory of files."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from drumlin import AlreadyExists, InvalidArgument, NotFound, Progress, Store, Transaction
from drumlin.migrate.names import file_path
from drumlin.migrate.packages import need
from drumlin.migrate.record import FATAL, commit, found, message
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.sources.history import Rows, write_rows
from drumlin.migrate.threads import Crew, Stopped

__all__ = ["from_parquet"]

_HIVE = re.compile(r"[^=]+=.*")
_BATCH_ROWS = 65536


class _Unit(NamedTuple):
    """Files that become one table."""

    #: The path below the directory, with slashes.
    name: str
    files: list[Path]
    #: The folder below which names such as ``year=2024`` are columns; None if there are none.
    hive: Path | None


@halts
def from_parquet(
    directory: str | os.PathLike[str],
    store: Store,
    *,
    prefix: str = "",
    tables: Literal["files", "folders"] = "files",
    strict: bool = False,
    threads: int = 2,
    progress: Progress | None = None,
) -> Report:
    """Imports the Parquet files below a directory into ``store``. Each ``.parquet`` file becomes a table, at ``prefix``
    and the path of the file below the directory, without the suffix. With ``tables="folders"``, the files of each
    folder, in the order of their names, become one table at the path of the folder. In either case, a file that is
    called ``part-0`` and alone in its folder, as :func:`to_parquet` writes it, becomes a table at the path of the
    folder.

    A folder that contains folders such as ``year=2024`` is one table in either case: it has the rows of all files below
    the folder, with these names as columns. Files and folders whose names begin with ``.`` or ``_`` are ignored. A
    folder that is a Delta or Iceberg table is a failure, because only its log says which of its files are current.

    The files of one table may have different columns: a column that a file lacks is null, and types are widened. The
    metadata that pandas writes into a file are kept if the table consists of one file. See :func:`from_arctic` for
    repeated runs, for how rows are checked, and for ``strict``.

    >>> import drumlin, os, pyarrow, pyarrow.parquet, tempfile
    >>> from drumlin.migrate import from_parquet
    >>> folder = tempfile.mkdtemp()
    >>> for place in ("us", "by_year/year=2024", "by_year/year=2025"):
    ...     os.makedirs(f"{folder}/{place}")
    ...     pyarrow.parquet.write_table(pyarrow.table({"close": [187.5]}), f"{folder}/{place}/AAPL.parquet")
    >>> store = drumlin.open("memory://")
    >>> _ = from_parquet(folder, store, prefix="prices")
    >>> store.tables(), store.read("prices/by_year").to_arrow()["year"].to_pylist()
    (['prices/by_year', 'prices/us/AAPL'], [2024, 2025])
    """
    need("pyarrow.dataset", "a directory of Parquet files", "pyarrow")
    if tables not in ("files", "folders"):
        raise InvalidArgument(f"tables={tables!r}; expected 'files' or 'folders'")
    top = Path(directory)
    if not top.is_dir():
        raise NotFound(f"'{top}' is not a directory")
    tally, crew = Tally("parquet", progress), Crew(threads, 1 << 30)
    units = _units(top, tables == "folders", tally)
    if not units and not tally.report(strict=False).failures:
        raise NotFound(f"'{top}' has no Parquet files")
    tally.expect(len(units))

    def work(unit: _Unit) -> None:
        crew.check()
        try:
            _bring(unit, store, prefix or "", tally)
        except (*FATAL, Stopped):
            raise
        except Exception as error:
            tally.fail(unit.name, None, error, 1)

    crew.run(work, units)
    return tally.report(strict)


def _bring(unit: _Unit, store: Store, prefix: str, tally: Tally) -> None:
    path = file_path(unit.name, prefix)
    size = sum(file.stat().st_size for file in unit.files)
    origin = {"from": "parquet", "name": unit.name}
    if found(store, path, origin, {}).newest is not None:
        record = store.table(path).versions()[-1].message or ""
        if record != message(origin, 0, "", files=len(unit.files), bytes=size):
            raise AlreadyExists(f"'{path}' was made of other files than are there now; drop the table, and run again")
        tally.skip(1)
        return
    rows = _rows(unit)
    counted = (0, 0)

    def write(tx: Transaction) -> None:
        nonlocal counted
        counted = write_rows(tx, path, rows, {"parquet": {"files": len(unit.files), "bytes": size}})

    commit(store, message(origin, 0, "", files=len(unit.files), bytes=size), write)
    tally.brought(unit.name, *counted)


def _rows(unit: _Unit) -> Rows:
    pads, pq, pyarrow = need("pyarrow.dataset", "", ""), need("pyarrow.parquet", "", ""), need("pyarrow", "", "")
    if len(unit.files) == 1 and unit.hive is None:
        [file] = unit.files

        def of_file() -> Iterator[Any]:
            with pq.ParquetFile(file) as opened:
                yield from opened.iter_batches(batch_size=_BATCH_ROWS)

        return Rows(pq.read_schema(file), of_file)
    schemas = [pq.read_schema(file).remove_metadata() for file in unit.files]
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    options: dict[str, Any] = {}
    if unit.hive is not None:
        options = {"partitioning": "hive", "partition_base_dir": str(unit.hive)}
        keys = pads.dataset([str(file) for file in unit.files], format="parquet", **options).partitioning.schema
        for field in keys:
            if field.name not in schema.names:
                schema = schema.append(field)
    dataset = pads.dataset([str(file) for file in unit.files], schema=schema, format="parquet", **options)

    def of_files() -> Iterator[Any]:
        yield from dataset.to_batches(batch_size=_BATCH_ROWS, batch_readahead=4, fragment_readahead=1)

    return Rows(schema, of_files)


def _units(top: Path, by_folder: bool, tally: Tally) -> list[_Unit]:
    """The files of each table, ordered by name."""
    units: list[_Unit] = []
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        name = "" if folder == top else folder.relative_to(top).as_posix()
        wrong = _other_format(folder)
        if wrong:
            tally.fail(name or folder.name, None, f"the folder is {wrong}: which of its files count is in its log")
            continue
        entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith((".", "_"))]
        folders = [entry for entry in entries if entry.is_dir()]
        files = [entry for entry in entries if entry.is_file() and entry.suffix == ".parquet"]
        named = name or top.resolve().name
        if any(_HIVE.fullmatch(entry.name) for entry in folders):
            below = sorted(file for file in folder.rglob("*.parquet") if not _hidden(file.relative_to(folder)))
            if below:
                units.append(_Unit(named, below, folder))
            continue
        waiting.extend(folders)
        if not files:
            continue
        if by_folder or (len(files) == 1 and files[0].stem == "part-0"):
            units.append(_Unit(named, files, None))
        else:
            units.extend(_Unit(file.relative_to(top).with_suffix("").as_posix(), [file], None) for file in files)
    return sorted(units, key=lambda unit: unit.name)


def _other_format(folder: Path) -> str | None:
    if (folder / "_delta_log").is_dir():
        return "a Delta table, which from_delta brings"
    if any((folder / "metadata").glob("*.metadata.json")):
        return "an Iceberg table"
    return None


def _hidden(place: Path) -> bool:
    return any(part.startswith((".", "_")) for part in place.parts)
