"""Imports from Lance: a data set with its history."""

import datetime as dt
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from drumlin import Progress, Store
from drumlin.migrate.packages import need
from drumlin.migrate.record import iso
from drumlin.migrate.report import Report, Tally, halts
from drumlin.migrate.sources.history import Rows, Step, bring

__all__ = ["from_lance"]


@halts
def from_lance(
    dataset: Any,
    store: Store,
    path: str,
    *,
    versions: bool = True,
    strict: bool = False,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Imports a Lance data set, a ``lance.LanceDataset`` or its URI, into the table at ``path``. Each version that
    Lance lists becomes a version, whose message has the number, time and operation. With ``versions=False``, only the
    newest version is imported. Indexes, and blobs outside the data set, are not migrated.

    A version that only adds fragments is appended; for any other version, all rows are written, in Lance's order. See
    :func:`from_arctic` for repeated runs, for how rows are checked, and for ``strict``.

    >>> import drumlin, lance, pyarrow, tempfile
    >>> from drumlin.migrate import from_lance
    >>> uri = tempfile.mkdtemp() + "/prices.lance"
    >>> _ = lance.write_dataset(pyarrow.table({"close": [187.5, 190.0]}), uri)
    >>> _ = lance.dataset(uri).delete("close > 188")
    >>> store = drumlin.open("memory://")
    >>> from_lance(uri, store, "prices").versions
    2
    >>> [version.rows for version in store.table("prices").versions()]
    [2, 1]
    """
    lance = need("lance", "a Lance data set", "lance")
    # A path that is not a str is refused before the source is read.
    store.table(path)
    if isinstance(dataset, lance.LanceDataset):
        newest, options = dataset, storage_options or getattr(dataset, "_storage_options", None)
    else:
        options = None if storage_options is None else dict(storage_options)
        newest = lance.dataset(os.fspath(dataset), storage_options=options)
    source = _Lance(lance, newest.uri, options)
    tally = Tally("lance", progress)
    listed = sorted(newest.versions(), key=lambda version: version["version"])
    listed = [version for version in listed if version["version"] <= newest.version]
    bring(
        [source.step(version) for version in (listed if versions else listed[-1:])],
        store,
        path,
        {"from": "lance"},
        tally,
    )
    return tally.report(strict)


class _Lance:
    """A Lance data set, to be read at any version."""

    def __init__(self, lance: Any, uri: str, options: Any) -> None:
        self._lance = lance
        self._uri = uri
        self._options = options

    def _at(self, version: int) -> Any:
        return self._lance.dataset(self._uri, version=version, storage_options=self._options)

    def step(self, version: dict[str, Any]) -> Step:
        """A version that is read when its turn comes."""
        number = int(version["version"])
        details = {"lance": {"version": number, **(version.get("metadata") or {})}}
        return Step(
            number,
            # Lance returns local time, without a zone.
            iso(version["timestamp"].astimezone(dt.UTC)),
            self._operation(number),
            details,
            lambda: _rows_of(self._at(number), None),
            lambda: self._added(number),
            lambda: True,
        )

    def _operation(self, version: int) -> str:
        try:
            made = self._at(version).read_transaction(version)
        except Exception:
            # Lance may have removed the transaction of a version that it still has.
            return ""
        return "" if made is None else type(made.operation).__name__

    def _added(self, version: int) -> Rows | None:
        try:
            then = self._at(version - 1)
        except Exception:
            # Lance no longer has it, though the store may.
            return None
        now = self._at(version)
        old = [_said(fragment) for fragment in then.get_fragments()]
        fragments = list(now.get_fragments())
        if then.schema != now.schema or [_said(fragment) for fragment in fragments[: len(old)]] != old:
            return None
        return _rows_of(now, fragments[len(old) :])


def _said(fragment: Any) -> str:
    return json.dumps(fragment.metadata.to_json(), sort_keys=True, default=str)


def _rows_of(dataset: Any, fragments: list[Any] | None) -> Rows:
    def batches() -> Iterator[Any]:
        if fragments is None or fragments:
            yield from dataset.scanner(fragments=fragments, scan_in_order=True).to_batches()

    return Rows(dataset.schema, batches)
