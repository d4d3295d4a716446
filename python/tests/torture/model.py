"""What a store must hold, as plain Python values: the oracle of the crash trials.

``Model.after(operation)`` returns the model after an operation, the name of the error that a store must raise, or
None if the operation makes no sense there and must be skipped: so any subset of a list of operations can be run. A
model never changes; rows are shared between models.

Operations are lists that JSON can hold: a name, then arguments. Rows are given by ``first, count, tag``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Row = tuple[int, str]
Rows = tuple[Row, ...]
Operation = list[Any]


def rows(first: int, count: int, tag: str) -> Rows:
    """The rows of an operation; their texts differ, so that they take space."""
    return tuple((n, f"{tag}-{n * 2654435761 % 1000003}") for n in range(first, first + count))


@dataclass(frozen=True)
class Table:
    """A table without a key: its versions, by number."""

    versions: dict[int, Rows] = field(default_factory=dict)
    next: int = 0

    def add(self, found: Rows) -> Table:
        return Table({**self.versions, self.next: found}, self.next + 1)

    @property
    def newest(self) -> Rows:
        return self.versions[max(self.versions)]


@dataclass(frozen=True)
class Keyed:
    """A table with a key: its current rows, and those of versions whose number a call has returned."""

    rows: dict[int, str] = field(default_factory=dict)
    told: dict[int, Rows] = field(default_factory=dict)

    @property
    def newest(self) -> Rows:
        return tuple(sorted(self.rows.items()))


@dataclass(frozen=True)
class Model:
    nodes: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    keyed: dict[str, Keyed] = field(default_factory=dict)
    snapshots: dict[str, dict[str, Rows]] = field(default_factory=dict)
    #: Dropped tables, the oldest first.
    trash: tuple[tuple[str, Table | Keyed], ...] = ()

    def after(self, operation: Operation) -> Model | str | None:
        """The model after an operation, the error it must raise, or None if it must be skipped."""
        name, *arguments = operation
        found = getattr(self, f"_{name}")(*arguments)
        assert found is None or isinstance(found, (str, Model))
        return found

    def learn(self, operation: Operation, told: dict[str, int] | None) -> Model:
        """This model, with the numbers of versions that ``operation`` returned, by path."""
        keyed = dict(self.keyed)
        for path, number in (told or {}).items():
            if path in keyed:
                keyed[path] = replace(keyed[path], told={**keyed[path].told, number: keyed[path].newest})
        return replace(self, keyed=keyed)

    # Nodes.

    def _put(self, path: str, value: Any) -> Model:
        return replace(self, nodes={**self.nodes, path: value})

    def _swap(self, path: str, expected: Any, value: Any) -> Model | str | None:
        if path not in self.nodes:
            return None
        return self._put(path, value) if self.nodes[path] == expected else "ConditionFailed"

    def _delete(self, path: str) -> Model | None:
        if path not in self.nodes:
            return None
        left = {
            other: value for other, value in self.nodes.items() if other != path and not other.startswith(path + "/")
        }
        return replace(self, nodes=left)

    # Tables.

    def _write(self, path: str, first: int, count: int, tag: str) -> Model:
        table = self.tables.get(path, Table()).add(rows(first, count, tag))
        return replace(self, tables={**self.tables, path: table})

    def _append(self, path: str, first: int, count: int, tag: str) -> Model | str:
        if path not in self.tables:
            return "NotFound"
        table = self.tables[path]
        return replace(self, tables={**self.tables, path: table.add(table.newest + rows(first, count, tag))})

    def _delete_rows(self, path: str, low: int, high: int) -> Model | None:
        if path not in self.tables:
            return None
        table = self.tables[path]
        kept = tuple(row for row in table.newest if not low <= row[0] < high)
        if len(kept) == len(table.newest):
            return self
        return replace(self, tables={**self.tables, path: table.add(kept)})

    def _update(self, path: str, low: int, high: int, tag: str) -> Model | None:
        if path in self.keyed:
            found = self.keyed[path].rows
            return self._rekeyed(path, {n: tag if low <= n < high else text for n, text in found.items()})
        if path not in self.tables:
            return None
        table = self.tables[path]
        if not any(low <= n < high for n, _ in table.newest):
            return self
        changed = tuple((n, tag if low <= n < high else text) for n, text in table.newest)
        return replace(self, tables={**self.tables, path: table.add(changed)})

    def _merge(self, path: str, first: int, count: int, tag: str) -> Model | str:
        if path not in self.keyed:
            return "NotFound"
        return self._rekeyed(path, {**self.keyed[path].rows, **dict(rows(first, count, tag))})

    def _delete_versions(self, path: str, places: list[int]) -> Model | None:
        numbers = self.numbers(path, places)
        if not numbers:
            return None
        table = self.tables[path]
        left = {number: found for number, found in table.versions.items() if number not in numbers}
        return replace(self, tables={**self.tables, path: replace(table, versions=left)})

    def numbers(self, path: str, places: list[int]) -> list[int]:
        """The numbers of the versions at some places of the list of versions, but not of all."""
        versions = sorted(self.tables[path].versions) if path in self.tables else []
        found = sorted({versions[place] for place in places if place < len(versions)})
        return found if len(found) < len(versions) else []

    # Tables with a key.

    def _create(self, path: str) -> Model | str:
        if path in self.keyed:
            return "AlreadyExists"
        return replace(self, keyed={**self.keyed, path: Keyed()})

    def _upsert(self, path: str, first: int, count: int, tag: str) -> Model | None:
        if path not in self.keyed:
            return None
        return self._rekeyed(path, {**self.keyed[path].rows, **dict(rows(first, count, tag))})

    def _insert(self, path: str, first: int, count: int, tag: str) -> Model | str | None:
        if path in self.keyed and any(n in self.keyed[path].rows for n in range(first, first + count)):
            return "AlreadyExists"
        return self._upsert(path, first, count, tag)

    def _delete_keys(self, path: str, first: int, count: int) -> Model | None:
        if path not in self.keyed:
            return None
        gone = range(first, first + count)
        return self._rekeyed(path, {key: value for key, value in self.keyed[path].rows.items() if key not in gone})

    def _rekeyed(self, path: str, found: dict[int, str]) -> Model:
        return replace(self, keyed={**self.keyed, path: replace(self.keyed[path], rows=found)})

    # The store.

    @property
    def newest(self) -> dict[str, Rows]:
        """The newest rows of all tables."""
        return {path: table.newest for path, table in {**self.tables, **self.keyed}.items()}

    def _snapshot(self, name: str) -> Model | str:
        if name in self.snapshots:
            return "AlreadyExists"
        if not self.newest:
            return "NotFound"
        return replace(self, snapshots={**self.snapshots, name: self.newest})

    def _drop_snapshot(self, name: str) -> Model | str:
        if name not in self.snapshots:
            return "NotFound"
        return replace(self, snapshots={other: held for other, held in self.snapshots.items() if other != name})

    def _drop(self, paths: list[str]) -> Model | None:
        there = sorted(path for path in paths if path in self.tables or path in self.keyed)
        if not there:
            return None
        everything: dict[str, Any] = {**self.tables, **self.keyed}
        return replace(
            self,
            tables={path: table for path, table in self.tables.items() if path not in there},
            keyed={path: table for path, table in self.keyed.items() if path not in there},
            trash=(*self.trash, *((path, everything[path]) for path in there)),
        )

    def _undrop(self, path: str) -> Model | str | None:
        at = max((at for at, (other, _) in enumerate(self.trash) if other == path), default=-1)
        if at < 0:
            return None
        if path in self.tables or path in self.keyed:
            return "AlreadyExists"
        table = self.trash[at][1]
        trash = self.trash[:at] + self.trash[at + 1 :]
        if isinstance(table, Table):
            return replace(self, trash=trash, tables={**self.tables, path: table})
        return replace(self, trash=trash, keyed={**self.keyed, path: table})

    def _restore(self, path: str, place: int) -> Model | None:
        versions = sorted(self.tables[path].versions) if path in self.tables else []
        if place >= len(versions):
            return None
        table = self.tables[path]
        return replace(self, tables={**self.tables, path: table.add(table.versions[versions[place]])})

    def _copy(self, src: str, dst: str) -> Model | str:
        if src not in self.tables and src not in self.keyed:
            return "NotFound"
        if dst in self.tables or dst in self.keyed:
            return "AlreadyExists"
        if src in self.tables:
            return replace(self, tables={**self.tables, dst: self.tables[src]})
        return replace(self, keyed={**self.keyed, dst: self.keyed[src]})

    def _move(self, src: str, dst: str) -> Model | str:
        copied = self._copy(src, dst)
        if not isinstance(copied, Model):
            return copied
        tables = {path: table for path, table in copied.tables.items() if path != src}
        keyed = {path: table for path, table in copied.keyed.items() if path != src}
        return replace(copied, tables=tables, keyed=keyed)

    def _transaction(self, steps: list[Operation]) -> Model | None:
        """All steps or none; it consists only of steps that succeed."""
        model = self
        for step in steps:
            found = model.after(step)
            if not isinstance(found, Model):
                return None
            model = found
        return model

    def _purge(self, divisor: int, remainder: int) -> Model | str:
        if not (self.newest or self.trash or any(self.snapshots.values())):
            return "NotFound"

        def left(found: Rows) -> Rows:
            return tuple(row for row in found if row[0] % divisor != remainder)

        def table(of: Table) -> Table:
            return replace(of, versions={number: left(found) for number, found in of.versions.items()})

        def keyed(of: Keyed) -> Keyed:
            told = {number: left(found) for number, found in of.told.items()}
            return replace(of, rows=dict(left(tuple(of.rows.items()))), told=told)

        return replace(
            self,
            tables={path: table(of) for path, of in self.tables.items()},
            keyed={path: keyed(of) for path, of in self.keyed.items()},
            snapshots={
                name: {path: left(found) for path, found in held.items()} for name, held in self.snapshots.items()
            },
            trash=tuple((path, table(of) if isinstance(of, Table) else keyed(of)) for path, of in self.trash),
        )

    def _checkpoint(self) -> Model:
        return self

    def _reclaim(self) -> Model:
        return replace(self, trash=())

    def _reopen(self) -> Model:
        return self

    def _fill(self) -> Model:
        return self

    def _free(self) -> Model:
        return self
