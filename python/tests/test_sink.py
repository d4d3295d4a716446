"""Sinks: batches of a source are committed with its offset, each once, whatever dies in between."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from servers import broker

import drumlin


@pytest.fixture
def ticks() -> drumlin.Store:
    store = drumlin.open("memory://")
    store.table("ticks").create({"n": int, "s": str})
    return store


def test_rows_and_offset_are_one_commit(ticks: drumlin.Store) -> None:
    sink = ticks.sink("ticks", source="topic/3")
    assert (sink.offset, sink.source, sink.path) == (None, "topic/3", "ticks")
    # The first rows of a process begin a session.
    ticks.append("ticks", {"n": [0], "s": ["z"]})
    seq = ticks.seq
    sink.write([{"n": 1, "s": "a"}], 1)
    assert ticks.seq == seq + 1
    assert ticks.tree.get("sources/topic/3") == sink.offset == 1
    with pytest.raises(drumlin.SchemaMismatch):
        sink.write([{"n": "x", "s": "a"}], 2)
    with pytest.raises(drumlin.SchemaMismatch):
        sink.write([{"m": 1}], 2)
    assert (ticks.seq, sink.offset) == (seq + 1, 1)
    # It is usable after what was refused.
    for offset, rows in enumerate(
        [
            pd.DataFrame({"n": [2], "s": ["b"]}),
            pa.table({"n": [3], "s": ["c"]}),
            iter([{"n": 4, "s": "d"}]),
            pa.table({"n": [5], "s": ["e"]}).to_reader(),
            {"n": [6], "s": ["f"]},
        ],
        2,
    ):
        sink.write(rows, offset)
    assert ticks.read("ticks", columns="n").to_arrow()["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 6]
    assert repr(sink) == "Sink('ticks', source='topic/3', offset=6)"


def test_offsets_go_on(ticks: drumlin.Store) -> None:
    sink = ticks.sink("ticks", source="t")
    sink.write([{"n": 1, "s": "a"}], 10)
    for wrong in (10, 9, 3.5):
        with pytest.raises(drumlin.InvalidArgument, match="is not after 10"):
            sink.write([{"n": 2, "s": "a"}], wrong)
    with pytest.raises(drumlin.InvalidArgument, match="None"):
        sink.write([{"n": 2, "s": "a"}], None)
    sink.rewind(4)
    assert ticks.sink("ticks", source="t").offset == 4
    sink.write([{"n": 2, "s": "a"}], 5)
    sink.rewind(None)
    assert ticks.sink("ticks", source="t").offset is None
    # A restore does not go back.
    sink.write([{"n": 3, "s": "a"}], {"0": 3, "1": 9})
    ticks.restore("ticks", 1)
    assert ticks.sink("ticks", source="t").offset == {"0": 3, "1": 9}
    with pytest.raises(TypeError, match="source"):
        ticks.sink("ticks", source=3)  # type: ignore[arg-type]
    with pytest.raises(drumlin.InvalidArgument):
        ticks.sink("ticks", source="a//b")
    with pytest.raises(drumlin.InvalidArgument, match="how"):
        sink.write([], 99, how="replace")  # type: ignore[arg-type]


def test_one_consumer_takes_the_place_of_another(ticks: drumlin.Store) -> None:
    zombie = ticks.sink("ticks", source="t")
    zombie.write([{"n": 1, "s": "a"}], 1)
    other = ticks.sink("ticks", source="t")
    other.write([{"n": 2, "s": "a"}], 2)
    with pytest.raises(drumlin.ConditionFailed, match="'t' was written up to 2 by another consumer; this one was at 1"):
        zombie.write([{"n": 2, "s": "a"}], 2)
    with pytest.raises(drumlin.InvalidArgument, match="no longer usable"):
        zombie.write([{"n": 3, "s": "a"}], 3)
    other.write([{"n": 3, "s": "a"}], 3)
    assert ticks.read("ticks").to_arrow()["n"].to_pylist() == [1, 2, 3]
    # Other sources are not concerned.
    ticks.sink("ticks", source="u").write([{"n": 9, "s": "u"}], "any text")


def test_keys_and_other_tables(ticks: drumlin.Store) -> None:
    ticks.table("keyed").create({"id": int, "n": int}, key="id")
    sink = ticks.sink("keyed", source="t")
    sink.write([{"id": 1, "n": 1}], 1)
    sink.write([{"id": 1, "n": 2}], 2)
    with pytest.raises(drumlin.AlreadyExists):
        sink.write([{"id": 1, "n": 3}], 3, how="insert")
    assert ticks.table("keyed").get(1) == {"id": 1, "n": 2}

    def both(tx: drumlin.Transaction) -> str:
        tx.append("ticks", {"n": [1], "s": ["x"]})
        tx.table("keyed").increment({"n": 5}, 1)
        return "done"

    assert sink.transact(both, 3) == "done"
    assert (ticks.table("keyed").get(1), ticks.read("ticks").num_rows, sink.offset) == ({"id": 1, "n": 7}, 1, 3)

    def fails(tx: drumlin.Transaction) -> None:
        tx.append("ticks", {"n": [2], "s": ["x"]})
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        sink.transact(fails, 4)
    sink.transact(both, 4)
    assert ticks.read("ticks").num_rows == 2


#: Reads a source of numbers from the sink's offset on, in batches of odd sizes, and writes them.
CONSUMER = """
import sys, drumlin
uri, total, shared = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
with drumlin.open(uri, shared=shared) as store:
    sink = store.sink("numbers", source="counter")
    at = sink.offset or 0
    while at < total:
        size = 1 + at * 7919 % 23
        rows = [{"n": n} for n in range(at, min(at + size, total))]
        at += len(rows)
        sink.write(rows, at)
        print(at, flush=True)
"""


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("key", [(), ("n",)])
def test_consumers_that_are_killed_lose_and_repeat_nothing(tmp_path: Path, shared: bool, key: tuple[str, ...]) -> None:
    rng, total, kills = random.Random(f"{shared}{key}"), 1500, 0
    uri = str(tmp_path / "store")
    with drumlin.open(uri, shared=shared) as store:
        store.table("numbers").create({"n": int}, key=key)
    done = 0
    while done < total:
        command = [sys.executable, "-c", CONSUMER, uri, str(total), str(shared)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            # Until it has printed some commits.
            for line in _some(process.stdout, rng.randrange(1, 40)):
                done = int(line)
            if done < total:
                process.kill()
                kills += 1
        with drumlin.open(uri, shared=shared, mode="read") as store:
            offset = store.tree.get("sources/counter")
            # What it printed was committed, and perhaps one batch more.
            assert offset >= done
            assert store.read("numbers").to_arrow()["n"].to_pylist() == list(range(offset))
    assert kills > 2


#: Reads the partitions of a topic from the sink's offsets on, and writes what it gets.
KAFKA_CONSUMER = """
import sys, drumlin
from kafka import KafkaConsumer, TopicPartition
uri, address, topic, partitions, total = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
with drumlin.open(uri) as store:
    sink = store.sink("ticks", source=topic)
    at = sink.offset or {}
    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False, group_id=None)
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    for part in consumer.assignment():
        consumer.seek(part, at.get(str(part.partition), 0))
    while sum(at.values()) < total:
        got = consumer.poll(timeout_ms=500, max_records=37)
        records = [record for batch in got.values() for record in batch]
        if records:
            at = {**at, **{str(part.partition): batch[-1].offset + 1 for part, batch in got.items()}}
            sink.write([{"n": int(record.value), "part": record.partition} for record in records], at)
            print(sum(at.values()), flush=True)
"""


def test_a_topic_is_read_once_by_consumers_that_are_killed(tmp_path: Path) -> None:
    kafka = pytest.importorskip("kafka")
    program = broker.build(tmp_path)
    if program is None:
        pytest.skip("NO GO: no broker to read from")
    rng, total, kills, done = random.Random(7), 1200, 0, 0
    uri = str(tmp_path / "store")
    with drumlin.open(uri) as store:
        store.table("ticks").create({"n": int, "part": int})
    with broker.serve(program) as address:
        producer = kafka.KafkaProducer(bootstrap_servers=address)
        for n in range(total):
            producer.send(broker.TOPIC, str(n).encode(), partition=n % broker.PARTITIONS)
        producer.flush()
        producer.close()
        while done < total:
            arguments = [uri, address, broker.TOPIC, str(broker.PARTITIONS), str(total)]
            with subprocess.Popen(
                [sys.executable, "-c", KAFKA_CONSUMER, *arguments], stdout=subprocess.PIPE, text=True
            ) as process:
                for line in _some(process.stdout, rng.randrange(1, 12)):
                    done = int(line)
                if done < total:
                    process.kill()
                    kills += 1
            with drumlin.open(uri, mode="read") as store:
                at = store.tree.get(f"sources/{broker.TOPIC}")
                rows = store.read("ticks").to_dicts()
            assert done <= sum(at.values()) == len(rows)
            for part in range(broker.PARTITIONS):
                own = [row["n"] for row in rows if row["part"] == part]
                assert own == list(range(part, total, broker.PARTITIONS))[: at.get(str(part), 0)]
    assert kills > 2


def _some(lines: Any, n: int) -> Iterator[str]:
    for _ in range(n):
        if not (line := lines.readline()):
            return
        yield line
