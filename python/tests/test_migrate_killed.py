"""A migration of 1,000 symbols with 5 versions each and 3 snapshots, killed at random moments until it is done: all of
it is there, each frame equal, and nothing twice."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from other_systems import need

import drumlin
from drumlin.migrate import from_arctic

arcticdb = need("arcticdb")

SYMBOLS, VERSIONS = 1000, 5
ROWS = 40


def frame(symbol: int, version: int) -> pd.DataFrame:
    """Frames of a few kinds: some versions add rows, others change them."""
    rng = np.random.default_rng(symbol)
    rows = ROWS + 10 * version
    columns = {
        "x": rng.random(200)[:rows] + (version == 3),
        "n": rng.integers(-100, 100, 200)[:rows],
        "b": (rng.random(200) < 0.5)[:rows],
        "s": np.array([None, "a", "", "ü", f"of {symbol}"], dtype=object)[rng.integers(0, 5, 200)][:rows],
    }
    columns["x"][::7] = np.nan
    made = pd.DataFrame(columns)
    match symbol % 4:
        case 0:
            made.index = pd.date_range("2024-03-30", periods=rows, freq="h", tz="Europe/Berlin", name="time")
        case 1:
            made.index = pd.date_range("2024-01-01", periods=rows, freq="min")
        case 2:
            made.index = pd.MultiIndex.from_arrays([made.pop("n"), made.index.map(str)], names=["k", "at"])
    return made


def fill(library: Any) -> None:
    for version in range(VERSIONS):
        payloads = [
            arcticdb.WritePayload(f"g{n % 10}/s{n}", frame(n, version), metadata={"n": n, "v": version})
            for n in range(SYMBOLS)
        ]
        library.write_batch(payloads)
        if version in (1, 3):
            library.snapshot(f"snap {version}")
    library.snapshot("mixed", versions={f"g{n % 10}/s{n}": n % VERSIONS for n in range(0, SYMBOLS, 3)})
    # Gaps, and versions that snapshots alone show.
    library.delete_batch(
        [arcticdb.version_store.library.DeleteRequest(f"g{n % 10}/s{n}", [1, 2]) for n in range(0, SYMBOLS, 2)]
    )
    for n in range(0, 20, 4):
        library.delete(f"g{n % 10}/s{n}")


def killed(arguments: list[str], rng: random.Random) -> str:
    """Runs the migration, and kills it at a random moment after its first version; what it said."""
    script = Path(__file__).with_name("arctic_killed.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        first = child.stdout.readline().decode()
        if first == "begun\n":
            time.sleep(rng.random() * 1.5)
        child.kill()
        return first + child.stdout.read().decode()


# ArcticDB's own warnings are no subject here.
@pytest.mark.filterwarnings("ignore")
def test_it_goes_on_wherever_it_was_killed(tmp_path: Path) -> None:
    seed = int(os.environ.get("DRUMLIN_SEED", random.randrange(1 << 30)))
    print(f"DRUMLIN_SEED={seed}")
    rng = random.Random(seed)
    folder, place = tmp_path / "arctic", tmp_path / "store"
    library = arcticdb.Arctic(f"lmdb://{folder}").create_library("lib")
    fill(library)
    counts = [0]
    said = ""
    for _ in range(8):
        said = killed([str(folder), str(place)], rng)
        with drumlin.open(place) as store:
            counts.append(len(store.history("in/**")))
        if "done" in said:
            break
    middle = [n for n in counts if 0 < n < 0.9 * VERSIONS * SYMBOLS]
    assert len(middle) >= 2, f"it was hardly killed in the middle: {counts}"
    assert counts == sorted(counts) or "done" in said
    with drumlin.open(place) as store:
        report = from_arctic(library, store, prefix="in")
        assert report.failures == []
        compare(library, store)
        assert store.verify().ok
        again = from_arctic(library, store, prefix="in")
        assert (again.versions, again.snapshots, again.failures) == (0, [], [])
    print(f"versions after each kill: {counts}; then {report}")


def compare(library: Any, store: drumlin.Store) -> None:
    listed = library.list_versions()
    live = Counter(key.symbol for key, info in listed.items() if not info.deleted)
    assert store.tables() == sorted((f"in/{symbol}" for symbol in live), key=lambda path: path.split("/"))
    assert Counter(path[3:] for path, _ in store.history("in/**")) == live
    messages = Counter(version.message for _, version in store.history("in/**"))
    assert max(messages.values()) == 1
    numbers: dict[str, list[int]] = {}
    for key in sorted(key for key, info in listed.items() if not info.deleted):
        numbers.setdefault(f"in/{key.symbol}", []).append(key.version)
    for path, version in sorted(store.history("in/**"), key=lambda one: (one[0], one[1].version)):
        number = numbers[path].pop(0)
        assert version.metadata == {"n": of(path), "v": number}
        here = store.read(path, as_of=version.version).to_pandas()
        pd.testing.assert_frame_equal(here, frame(of(path), number), check_freq=False)
    assert not any(numbers.values())
    snapshots = {snapshot.name: snapshot.versions for snapshot in store.snapshots()}
    assert sorted(snapshots) == ["mixed", "snap 1", "snap 3"]
    for name, versions in snapshots.items():
        shown = {key.symbol: key.version for key in library.list_versions(snapshot=name)}
        assert sorted(versions) == sorted(f"in/{symbol}" for symbol in shown)
        for symbol, number in shown.items():
            here = store.read(f"in/{symbol}", as_of=name).to_pandas()
            pd.testing.assert_frame_equal(here, frame(of(symbol), number), check_freq=False)


def of(path: str) -> int:
    """The number of the symbol in a path."""
    return int(path.split("/s")[1])
