"""Stores, tables and data sets that are pickled, copied, and found again, here and in other processes."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import drumlin
from drumlin._processes import places as _places

SECRETS = {
    "aws_access_key_id": "AKIAIOSFODNN7",
    "aws_secret_access_key": "hush-hush",
    "token": "sesame",
    "endpoint": "http://localhost:9000",
}


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def look(stores: Any, answers: Any = None) -> Any:
    """What another process sees of what it was sent."""
    store, table, ds = stores
    told = (os.getpid(), store.tables(), table.read().num_rows, ds.to_arrow().num_rows, table._place is store)
    if answers is not None:
        answers.put(told)
    return told


def write(store: drumlin.Store) -> int:
    return store.append("t", {"n": [4]}).version


def refused(store: drumlin.Store) -> str:
    try:
        store.append("t", {"n": [4]})
    except drumlin.Error as error:
        return f"{type(error).__name__}: {error}"
    return "written"


def test_a_folder_opened_twice_is_one_store(folder: str) -> None:
    one, other = drumlin.open(folder), drumlin.open(folder)
    one.write("t", {"n": [1]})
    # What is seen is that of the same store, without any refresh.
    assert other.read("t").version == 0
    assert one.seq == other.seq
    one.close()
    assert other.tables() == ["t"]
    other.close()


def test_in_its_own_process_it_is_the_same_store(folder: str) -> None:
    for store in (drumlin.open(folder), drumlin.open("memory://"), drumlin.open(folder + "2", shared=True)):
        store.write("t", {"n": [1]})
        found, table, ds = again((store, store.table("t"), store.scan("t")))
        found.append("t", {"n": [2]})
        assert store.read("t").num_rows == table.read().num_rows == 2
        assert ds.count_rows() == 1
        assert again(store)._core is again(found)._core is store._core
        assert (repr(found), repr(table)) == (repr(store), repr(store.table("t")))
        store.close()
        with pytest.raises(drumlin.Closed):
            found.tables()


def test_a_message_goes_along(store: drumlin.Store) -> None:
    nightly = again(store.with_message("nightly"))
    nightly.write("t", {"n": [1]})
    again(nightly.table("t")).append({"n": [2]})
    assert [version.message for version in store.table("t").versions()] == ["nightly", "nightly"]


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_other_processes_open_it(folder: str, method: str) -> None:
    with drumlin.open(folder, shared=True) as store:
        store.write("t", {"n": [1, 2, 3]})
        with multiprocessing.get_context(method).Pool(2) as pool:
            sent = [(store, store.table("t"), store.scan("t"))] * 4
            answers = pool.map(look, sent, chunksize=1)
            assert [answer[1:] for answer in answers] == [(["t"], 3, 3, True)] * 4
            assert os.getpid() not in {answer[0] for answer in answers}
            # Many processes write such a store.
            assert sorted(pool.map(write, [store] * 3, chunksize=1)) == [1, 2, 3]
        store.refresh()
        assert store.read("t").num_rows == 6


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_folder_that_is_being_written_is_read_there(folder: str, method: str) -> None:
    with drumlin.open(folder) as store:
        store.write("t", {"n": [1, 2, 3]})
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(look, ((store, store.table("t"), store.scan("t")),))[1:4] == (["t"], 3, 3)
            assert "InvalidArgument" in pool.apply(refused, (store,))
            assert "reading only" in pool.apply(refused, (store,))
            # It was opened once, and sees what was committed since.
            store.append("t", {"n": [4]})
            assert pool.apply(look, ((store, store.table("t"), store.scan("t")),))[1:4] == (["t"], 4, 4)


def test_what_a_forked_process_inherits_it_sends_on(folder: str) -> None:
    store = drumlin.open(folder)
    store.write("t", {"n": [1]})
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_look_inherited, args=(store, answers))
    child.start()
    assert answers.get(timeout=60) == ("Closed", ["t"])
    child.join()
    store.close()


def _look_inherited(store: drumlin.Store, answers: Any) -> None:
    try:
        store.tables()
        told = "seen"
    except drumlin.Error as error:
        told = type(error).__name__
    answers.put((told, again(store).tables()))


def elsewhere(data: bytes, program: str, folder: Path) -> str:
    """What a new process, which works in another folder, says of what was pickled."""
    code = f"import pickle, sys; import drumlin; value = pickle.load(sys.stdin.buffer); {program}"
    environment = {**os.environ, "PYTHONPATH": str(Path(drumlin.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd=folder, env=environment)
    return done.stdout.decode() + done.stderr.decode()


def test_relative_paths_and_settings_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    for uri in ("relative", f"file://{tmp_path}/a/absolute"):
        with drumlin.open(uri, shared=True, writer="me", compression="small") as store:
            store.write("t", {"n": [1]})
            data = pickle.dumps(store)
            said = elsewhere(data, "print(value.append('t', {'n': [2]}).writer)", tmp_path / "b")
            assert said == "me\n"
    assert not list((tmp_path / "b").iterdir())
    # One that is gone is not made again.
    said = elsewhere(data.replace(b"absolute", b"nowhere!"), "", tmp_path / "b")
    assert "NotFound" in said
    assert not (tmp_path / "a" / "nowhere!").exists()


def test_secrets_are_not_pickled(folder: str) -> None:
    with drumlin.open(folder, storage_options=SECRETS) as store:
        store.write("t", {"n": [1]})
        for value in (
            store,
            store.table("t"),
            store.with_message("m"),
            store.scan("t"),
            store.with_message("m").table("t"),
        ):
            data = pickle.dumps(value)
            assert b"localhost:9000" in data
            for name in ("aws_access_key_id", "aws_secret_access_key", "token"):
                assert SECRETS[name].encode() not in data
                assert name.encode() not in data
        address = _places._addresses[store._core]
        _places._addresses[store._core] = address._replace(uri="s3://user:hush@bucket/prefix")
        with pytest.raises(drumlin.InvalidArgument, match="before '@'"):
            pickle.dumps(store)


def test_a_store_in_memory_is_found_in_its_process_alone(store: drumlin.Store, tmp_path: Path) -> None:
    store.write("t", {"n": [1]})
    with drumlin.open("memory://") as other:
        other.write("other", {"n": [1]})
        assert again(store).tables() == ["t"]
        assert again(other).tables() == ["other"]
        closed = pickle.dumps(other.table("other"))
    with pytest.raises(drumlin.InvalidArgument, match="memory.*was closed"):
        pickle.loads(closed)
    for value in (store, store.table("t"), store.scan("t")):
        said = elsewhere(pickle.dumps(value), "print(value)", tmp_path)
        assert f"lives in process {os.getpid()} only" in said


def test_copies_are_the_same(store: drumlin.Store) -> None:
    store.write("t", {"n": [1]})
    result = store.read("t")
    for value in (store, store.table("t"), store.scan("t"), store.with_message("m"), result):
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
    assert copy.deepcopy({"a": [store, result]})["a"][0] is store
    with store.transaction() as tx:
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(tx)
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(tx.table("t"))
    with pytest.raises(TypeError, match="data set"):
        pickle.dumps(result)


def test_one_that_reads_is_opened_for_reading(folder: str, tmp_path: Path) -> None:
    drumlin.open(folder).close()
    with drumlin.open(folder, mode="read") as reader:
        assert again(reader)._core is reader._core
        data = pickle.dumps(reader)
    said = elsewhere(data, "print(value.write('t', {'n': [1]}))", tmp_path)
    assert "reading only" in said


def test_what_was_closed_is_opened_again(folder: str) -> None:
    store = drumlin.open(folder)
    store.write("t", {"n": [1]})
    data = pickle.dumps(store.table("t"))
    store.close()
    table = pickle.loads(data)
    assert table.append({"n": [2]}).version == 1
    # It is closed with the last that refers to it, and keeps nobody out.
    del table
    with drumlin.open(folder) as store:
        assert store.read("t").num_rows == 2
