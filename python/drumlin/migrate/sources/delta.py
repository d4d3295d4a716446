"""Imports from Delta Lake: a table with its history."""

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from typing import Any

from drumlin import Progress, Store, Unsupported
from drumlin.migrate.packages import need
from drumlin.migrate.record import iso
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.sources.history import Rows, Step, bring

__all__ = ["from_delta"]


@halts
def from_delta(
    table: Any,
    store: Store,
    path: str,
    *,
    versions: bool = True,
    strict: bool = False,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Imports a Delta table, a ``deltalake.DeltaTable`` or its URI, into the table at ``path``. Each version that Delta
    can still read becomes a version. Its message has the number, time and operation, and its metadata have Delta's
    commit information. With ``versions=False``, only the newest version is imported.

    A version that only adds files is appended; for any other version, all rows are written. Rows have the order in
    which Delta reads its files, and appended rows come last. See :func:`from_arctic` for repeated runs, for how rows
    are checked, and for ``strict``.

    >>> import deltalake, drumlin, pyarrow, tempfile
    >>> from drumlin.migrate import from_delta
    >>> uri = tempfile.mkdtemp() + "/prices"
    >>> deltalake.write_deltalake(uri, pyarrow.table({"close": [187.5]}))
    >>> deltalake.write_deltalake(uri, pyarrow.table({"close": [190.0]}), mode="append")
    >>> store = drumlin.open("memory://")
    >>> from_delta(uri, store, "prices").versions
    2
    >>> [(version.kind, version.rows) for version in store.table("prices").versions()]
    [('write', 1), ('append', 2)]
    """
    deltalake = need("deltalake", "a Delta table", "delta")
    # A path that is not a str is refused before the source is read.
    store.table(path)
    if isinstance(table, deltalake.DeltaTable):
        newest, options = table, storage_options or getattr(table, "_storage_options", None)
    else:
        options = None if storage_options is None else dict(storage_options)
        newest = deltalake.DeltaTable(os.fspath(table), storage_options=options)
    source = _Delta(deltalake, newest.table_uri, options)
    tally = Tally("delta", progress)
    # deltalake misnumbers the history of an older version: it counts down from that version.
    history = deltalake.DeltaTable(newest.table_uri, storage_options=options).history()
    commits = {commit["version"]: commit for commit in history if commit["version"] <= newest.version()}
    wanted = sorted(commits) if versions else [newest.version()]
    steps = [source.step(commits.get(number, {"version": number}), wanted) for number in wanted]
    steps = source.readable(steps, path, tally)
    bring(steps, store, path, {"from": "delta", "table": str(newest.metadata().id)}, tally)
    return tally.report(strict)


class _Delta:
    """A Delta table, to be read at any version."""

    def __init__(self, deltalake: Any, uri: str, options: Any) -> None:
        self._deltalake = deltalake
        self._uri = uri
        self._options = options

    def _at(self, version: int) -> Any:
        return self._deltalake.DeltaTable(self._uri, version=version, storage_options=self._options)

    def _dataset(self, version: int) -> Any:
        table = self._at(version)
        mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mode != "none":
            # deltalake refuses only newer tables of this kind; in others it would not find the columns.
            raise Unsupported(f"its columns have other names in files (delta.columnMapping.mode={mode})")
        return table.to_pyarrow_dataset()

    def readable(self, steps: list[Step], path: str, tally: Tally) -> list[Step]:
        """The steps from the first version that Delta can read: it removes old versions from its log."""
        for at, step in enumerate(steps):
            try:
                self._at(step.number)
            except Exception as error:
                if at == len(steps) - 1:
                    raise
                first = str(error).splitlines()[0] if str(error) else type(error).__name__
                tally.note(f"{path}: Delta cannot read version {step.number} any more ({first})")
                continue
            return steps[at:]
        return steps

    def step(self, commit: dict[str, Any], wanted: list[int]) -> Step:
        """A version that is read when its turn comes."""
        number = int(commit["version"])
        stamp = commit.get("timestamp")
        time = "" if stamp is None else iso(dt.datetime.fromtimestamp(stamp / 1000, dt.UTC))
        operation = str(commit.get("operation", ""))
        details = {"delta": commit}
        return Step(
            number,
            time,
            operation,
            details,
            lambda: self._rows(number),
            lambda: self._added(number),
            lambda: self._readable(number),
        )

    def _readable(self, version: int) -> bool:
        """Whether the files of a version exist: Delta vacuums files that only old versions need."""
        dataset = self._dataset(version)
        paths = [fragment.path for fragment in dataset.get_fragments()]
        return all(info.type.name == "File" for info in dataset.filesystem.get_file_info(paths))

    def _rows(self, version: int) -> Rows:
        dataset = self._dataset(version)
        return _rows_of(dataset, list(dataset.get_fragments()))

    def _added(self, version: int) -> Rows | None:
        then, now = self._dataset(version - 1), self._dataset(version)
        old = {fragment.path for fragment in then.get_fragments()}
        fragments = list(now.get_fragments())
        if then.schema != now.schema or not old <= {fragment.path for fragment in fragments}:
            return None
        return _rows_of(now, [fragment for fragment in fragments if fragment.path not in old])


def _rows_of(dataset: Any, fragments: list[Any]) -> Rows:
    pads = need("pyarrow.dataset", "a Delta table", "delta")

    def batches() -> Iterator[Any]:
        some = pads.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)
        yield from some.to_batches(batch_readahead=4, fragment_readahead=1)

    return Rows(dataset.schema, batches)
