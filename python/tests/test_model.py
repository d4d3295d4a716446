"""A store against a model: a dict of lists of versions."""

import tempfile

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import drumlin

Row = tuple[int, str | None]
PATHS = st.sampled_from(["a", "b/c", "b/d"])
ROWS = st.lists(st.tuples(st.integers(-20, 20), st.none() | st.sampled_from("xyz")), max_size=12)
SORTED = frozenset(["b/d"])


def table(rows: list[Row]) -> pa.Table:
    return pa.table({"k": pa.array([k for k, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.string())})


class Model:
    """One table: its listed versions, by number."""

    def __init__(self) -> None:
        self.versions: dict[int, list[Row]] = {}
        self.next = 0

    def add(self, rows: list[Row]) -> int:
        self.versions[self.next] = rows
        self.next += 1
        return self.next - 1

    @property
    def newest(self) -> list[Row]:
        return self.versions[max(self.versions)]


class StoreMachine(RuleBasedStateMachine):
    snapshots = Bundle("snapshots")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = drumlin.open(self.folder.name + "/store", cpu_threads=2)
        self.tables: dict[str, Model] = {}
        self.held: dict[str, dict[str, list[Row]]] = {}
        self.trash: list[tuple[str, Model]] = []
        self.results: list[tuple[drumlin.Result, list[Row]]] = []
        self.names = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    def ordered(self, path: str, rows: list[Row]) -> list[Row]:
        # Sorting is stable, in the model and in the store.
        return sorted(rows, key=lambda row: row[0]) if path in SORTED else rows

    def check(self, result: drumlin.Result, rows: list[Row]) -> None:
        found = result.to_arrow().to_pydict()
        assert list(zip(found["k"], found["v"], strict=True)) == rows

    @rule(path=PATHS, rows=ROWS)
    def write(self, path: str, rows: list[Row]) -> None:
        version = self.store.write(path, table(rows), sort=["k"] if path in SORTED else None, metadata=len(rows))
        number = self.tables.setdefault(path, Model()).add(self.ordered(path, rows))
        assert (version.version, version.rows, version.metadata) == (number, len(rows), len(rows))

    @rule(paths=st.sets(PATHS, min_size=1), rows=ROWS)
    def append_many(self, paths: set[str], rows: list[Row]) -> None:
        frames = {path: table(rows) for path in sorted(paths)}
        if not paths <= self.tables.keys():
            with pytest.raises(drumlin.NotFound):
                self.store.append_many(frames)
            return
        self.store.append_many(frames)
        for path in paths:
            model = self.tables[path]
            model.add(self.ordered(path, model.newest + rows))

    @rule(path=PATHS, rows=ROWS.filter(bool))
    def update(self, path: str, rows: list[Row]) -> None:
        if path not in self.tables or path not in SORTED:
            with pytest.raises((drumlin.NotFound, drumlin.InvalidArgument)):
                self.store.replace(path, table(rows))
            return
        self.store.replace(path, table(rows))
        model = self.tables[path]
        low, high = min(row[0] for row in rows), max(row[0] for row in rows)
        model.add(self.ordered(path, [row for row in model.newest if not low <= row[0] <= high] + rows))

    @rule(path=PATHS, low=st.integers(-20, 20), value=st.sampled_from("xyz"))
    def delete_rows(self, path: str, low: int, value: str) -> None:
        if path not in self.tables:
            return
        where = (drumlin.col("k") > low) & (drumlin.col("v") != value)
        model = self.tables[path]
        # A comparison with null is not true.
        kept = [(k, v) for k, v in model.newest if not (k > low and v is not None and v != value)]
        report = self.store.table(path).delete(where)
        assert report.rows == len(model.newest) - len(kept)
        if report.rows:
            assert report.version.version == model.add(kept)

    @rule(path=PATHS, data=st.data())
    def delete_versions(self, path: str, data: st.DataObject) -> None:
        if path not in self.tables:
            return
        model = self.tables[path]
        some = data.draw(st.sets(st.sampled_from(sorted(model.versions)), min_size=1))
        if len(some) == len(model.versions):
            with pytest.raises(drumlin.InvalidArgument):
                self.store.delete_versions({path: some})
            return
        self.store.delete_versions({path: some})
        for version in some:
            del model.versions[version]

    @rule(paths=st.sets(PATHS, min_size=1))
    def drop(self, paths: set[str]) -> None:
        there = sorted(paths & self.tables.keys())
        assert self.store.drop(paths, missing_ok=True).paths == there
        self.trash.extend((path, self.tables.pop(path)) for path in there)

    @precondition(lambda self: self.trash)
    @rule()
    def undrop(self) -> None:
        path = self.trash[-1][0]
        if path in self.tables:
            with pytest.raises(drumlin.AlreadyExists):
                self.store.undrop(path)
            return
        self.store.undrop(path)
        self.tables[path] = self.trash.pop()[1]

    @rule(target=snapshots)
    def snapshot(self) -> object:
        if not self.tables:
            return multiple()
        self.names += 1
        name = f"s{self.names}"
        self.store.snapshot(name)
        self.held[name] = {path: model.newest for path, model in self.tables.items()}
        return name

    @rule(name=consumes(snapshots))
    def drop_snapshot(self, name: str) -> None:
        self.store.drop_snapshot(name)
        del self.held[name]

    @rule()
    def checkpoint(self) -> None:
        report = self.store.checkpoint()
        assert report.row_groups_after <= report.row_groups_before

    @rule()
    def reclaim(self) -> None:
        assert self.store.reclaim().failures == []
        self.trash.clear()

    @rule()
    def reopen(self) -> None:
        self.results.clear()
        self.store.close()
        self.store = drumlin.open(self.folder.name + "/store", cpu_threads=2)

    @rule(path=PATHS)
    def hold_a_result(self, path: str) -> None:
        if path in self.tables:
            self.results.append((self.store.read(path), self.tables[path].newest))

    @precondition(lambda self: self.results)
    @rule()
    def read_a_held_result(self) -> None:
        self.check(*self.results.pop(0))

    @rule(path=PATHS, low=st.integers(-20, 20), count=st.integers(0, 15), tail=st.booleans(), data=st.data())
    def read_some(self, path: str, low: int, count: int, tail: bool, data: st.DataObject) -> None:
        if path not in self.tables:
            return
        versions = self.tables[path].versions
        as_of = data.draw(st.sampled_from(sorted(versions)))
        rows = [row for row in versions[as_of] if row[0] >= low]
        rows = rows[len(rows) - min(count, len(rows)) :] if tail else rows[:count]
        self.check(
            self.store.read(path, as_of=as_of, where=f"k >= {low}", **{"tail" if tail else "limit": count}), rows
        )

    @invariant()
    def newest_versions_are_the_models(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.tables() == sorted(self.tables)
        for path, model in self.tables.items():
            assert [version.version for version in self.store.table(path).versions()] == sorted(model.versions)
            self.check(self.store.read(path), model.newest)

    @rule()
    def everything_is_the_models(self) -> None:
        for path, model in self.tables.items():
            for number, rows in model.versions.items():
                self.check(self.store.read(path, as_of=number), rows)
        for name, tables in self.held.items():
            for path, rows in tables.items():
                self.check(self.store.read(path, as_of=name), rows)
        report = self.store.verify()
        assert report.ok, report.faults


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
