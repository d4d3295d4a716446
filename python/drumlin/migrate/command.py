"""The command ``drumlin migrate``: imports tables from other systems, and exports them.

The exit codes are those of the other commands: 0 done; 1 failed, or something was not migrated; 2 wrong usage; 130
interrupted. The report goes to standard output, everything else to standard error.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import drumlin
from drumlin import Error, InvalidArgument, NotFound, Store, migrate
from drumlin.migrate.packages import need
from drumlin.migrate.report import Report, bytes_text, reason_text

_DONE, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130
#: The time between two updates of the progress line, in seconds.
_EVERY = 0.1

_EXAMPLES = """\
examples:
  drumlin migrate arcticdb lmdb:///data/arctic prices market.drumlin --prefix prices
  drumlin migrate delta /lake/trades market.drumlin --table trades
  drumlin migrate parquet exports/ market.drumlin
  drumlin migrate to-parquet market.drumlin 'prices/**' exports/ --partition-by year
  drumlin migrate to-delta market.drumlin trades /lake

exit codes: 0 done; 1 failed, or something did not come over; 2 wrong usage; 130 interrupted.
What was interrupted goes on if it is run again.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the command with the arguments after ``drumlin migrate``, and returns its exit code."""
    try:
        asked = _parser().parse_args(arguments)
    except SystemExit as ended:
        return _DONE if ended.code is None else int(ended.code)
    try:
        with _line() as progress:
            report: Report = asked.run(asked, progress)
    except KeyboardInterrupt:
        _say("interrupted: what is committed stays; run it again to go on")
        return _INTERRUPTED
    except (InvalidArgument, _Usage) as error:
        _say(str(error))
        return _USAGE
    except (Error, ImportError, OSError) as error:
        _say(str(error))
        return _FAILED
    except Exception as error:
        # Packages of other systems raise exceptions of any type.
        _say(reason_text(error))
        return _FAILED
    print(report)
    return _DONE if report.ok else _FAILED


class _Usage(Exception):
    """The arguments are invalid."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"drumlin: {message}\n\n{self.format_usage()}")


def _say(message: str) -> None:
    print(f"drumlin: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="drumlin migrate",
        description="Bring in tables of other systems with their history, and take tables out.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _arcticdb(commands)
    _with_history(commands, "delta", "a Delta table", _from_delta)
    _with_history(commands, "lance", "a Lance data set", _from_lance)
    _parquet(commands)
    _to_parquet(commands)
    _to_lake(commands, "to-delta", "Delta", _to_delta)
    _to_lake(commands, "to-iceberg", "Iceberg", _to_iceberg)
    return parser


def _command(commands: Any, name: str, what: str, run: Callable[[Any, Any], Report]) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=f"{what[0].upper()}{what[1:]}.", allow_abbrev=False
    )
    made.set_defaults(run=run)
    made.add_argument(
        "--storage-option", action="append", default=[], metavar="KEY=VALUE", help="an option of the store's bucket"
    )
    return made


def _threads(made: argparse.ArgumentParser, default: int) -> None:
    made.add_argument(
        "--threads", type=int, default=default, metavar="N", help=f"how many work at once [default: {default}]"
    )


def _arcticdb(commands: Any) -> None:
    made = _command(commands, "arcticdb", "bring in an ArcticDB library: versions, metadata, snapshots", _from_arctic)
    made.add_argument("uri", help="where ArcticDB is, such as lmdb:///data/arctic or s3://endpoint:bucket?...")
    made.add_argument("library", help="the library")
    made.add_argument("store", help="the store; it is made if needed")
    made.add_argument("--prefix", default="", help="the path above the tables [default: none]")
    made.add_argument("--pattern", help="the symbols to bring, with * for anything [default: all]")
    made.add_argument("--symbol", action="append", metavar="NAME", help="a symbol to bring; may be repeated")
    made.add_argument("--newest", action="store_true", help="bring newest versions only, and those that snapshots show")
    made.add_argument("--no-snapshots", action="store_true", help="leave snapshots out")
    made.add_argument("--snapshot-prefix", default="", metavar="TEXT", help="what names of snapshots begin with")
    made.add_argument("--coerce", action="store_true", help="store what would not come back equal as pyarrow has it")
    _threads(made, 4)


def _with_history(commands: Any, name: str, what: str, run: Callable[[Any, Any], Report]) -> None:
    made = _command(commands, name, f"bring in {what} with its history", run)
    made.add_argument("uri", help=f"where {what} is")
    made.add_argument("store", help="the store; it is made if needed")
    made.add_argument("--table", required=True, metavar="PATH", help="the path of the table that it becomes")
    made.add_argument("--newest", action="store_true", help="bring the newest version only")
    made.add_argument(
        "--source-option", action="append", default=[], metavar="KEY=VALUE", help="an option of the source's storage"
    )


def _parquet(commands: Any) -> None:
    made = _command(commands, "parquet", "bring in a directory of Parquet files", _from_parquet)
    made.add_argument("directory", help="the directory")
    made.add_argument("store", help="the store; it is made if needed")
    made.add_argument("--prefix", default="", help="the path above the tables [default: none]")
    made.add_argument("--folders", action="store_true", help="one table a folder [default: one a file]")
    _threads(made, 2)


def _export(commands: Any, name: str, what: str, run: Callable[[Any, Any], Report]) -> argparse.ArgumentParser:
    made = _command(commands, name, what, run)
    made.add_argument("store", help="the store")
    made.add_argument("pattern", help="the tables, such as 'prices/**'")
    made.add_argument("directory", help="the directory that gets a folder for each table")
    made.add_argument("--as-of", metavar="WHEN", help="a version's number, or a snapshot's name [default: the newest]")
    made.add_argument("--force", action="store_true", help="replace what is there")
    return made


def _to_parquet(commands: Any) -> None:
    made = _export(commands, "to-parquet", "write the tables of a pattern to Parquet, a folder each", _to_parquet_run)
    made.add_argument("--partition-by", action="append", metavar="COLUMN", help="a folder for each value of it")
    made.add_argument("--path-column", action="append", metavar="NAME", help="a column for a wildcard of the pattern")
    made.add_argument("--compression", default="zstd", help="[default: zstd]")
    _threads(made, 2)


def _to_lake(commands: Any, name: str, lake: str, run: Callable[[Any, Any], Report]) -> None:
    made = _export(commands, name, f"write the tables of a pattern as {lake} tables", run)
    if lake == "Delta":
        made.add_argument("--partition-by", action="append", metavar="COLUMN", help="a folder for each value of it")


def _from_arctic(asked: Any, progress: Any) -> Report:
    arcticdb = need("arcticdb", "a migration from ArcticDB", "arcticdb")
    library = arcticdb.Arctic(asked.uri).get_library(asked.library)
    with _opened(asked, "create") as store:
        return migrate.from_arctic(
            library,
            store,
            pattern=asked.pattern,
            symbols=asked.symbol,
            prefix=asked.prefix,
            versions=not asked.newest,
            snapshots=not asked.no_snapshots,
            snapshot_prefix=asked.snapshot_prefix,
            coerce=asked.coerce,
            threads=asked.threads,
            progress=progress,
        )


def _from_delta(asked: Any, progress: Any) -> Report:
    options = _options(asked.source_option) or None
    table = need("deltalake", "a Delta table", "delta").DeltaTable(asked.uri, storage_options=options)
    with _opened(asked, "create") as store:
        return migrate.from_delta(
            table, store, asked.table, versions=not asked.newest, storage_options=options, progress=progress
        )


def _from_lance(asked: Any, progress: Any) -> Report:
    options = _options(asked.source_option) or None
    dataset = need("lance", "a Lance data set", "lance").dataset(asked.uri, storage_options=options)
    with _opened(asked, "create") as store:
        return migrate.from_lance(
            dataset, store, asked.table, versions=not asked.newest, storage_options=options, progress=progress
        )


def _from_parquet(asked: Any, progress: Any) -> Report:
    if not os.path.isdir(asked.directory):
        raise NotFound(f"'{asked.directory}' is not a directory")
    with _opened(asked, "create") as store:
        return migrate.from_parquet(
            asked.directory,
            store,
            prefix=asked.prefix,
            tables="folders" if asked.folders else "files",
            threads=asked.threads,
            progress=progress,
        )


def _to_parquet_run(asked: Any, progress: Any) -> Report:
    with _opened(asked, "read") as store:
        return migrate.to_parquet(
            store,
            asked.pattern,
            asked.directory,
            partition_by=asked.partition_by,
            path_columns=asked.path_column,
            as_of=_as_of(asked.as_of),
            compression=asked.compression,
            replace=asked.force,
            threads=asked.threads,
            progress=progress,
        )


def _to_delta(asked: Any, progress: Any) -> Report:
    with _opened(asked, "read") as store:
        return migrate.to_delta(
            store,
            asked.pattern,
            asked.directory,
            partition_by=asked.partition_by,
            as_of=_as_of(asked.as_of),
            replace=asked.force,
            progress=progress,
        )


def _to_iceberg(asked: Any, progress: Any) -> Report:
    with _opened(asked, "read") as store:
        return migrate.to_iceberg(
            store, asked.pattern, asked.directory, as_of=_as_of(asked.as_of), replace=asked.force, progress=progress
        )


def _opened(asked: Any, mode: Any) -> Store:
    return drumlin.open(asked.store, mode=mode, storage_options=_options(asked.storage_option) or None)


def _options(given: list[str]) -> dict[str, str]:
    options = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise _Usage(f"the option {text!r} is not of the form KEY=VALUE")
        options[key] = value
    return options


def _as_of(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text


@contextmanager
def _line() -> Iterator[Callable[[int, int, int, int, float | None], None] | None]:
    """Shows a progress line on standard error if that is a terminal, and removes it at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    said = 0.0

    def progress(done: int, total: int, rows: int, size: int, left: float | None) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < _EVERY:
            return
        said = now
        share = f"{done * 100 // total:>3}%  " if total else ""
        eta = "" if left is None else f"  ETA {int(left) // 60}:{int(left) % 60:02}"
        print(f"\r\x1b[K{share}{done:,} of {total:,}, {rows:,} rows, {bytes_text(size)}{eta}", end="", file=sys.stderr)

    try:
        yield progress
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
