"""The torture's own tests: planted violations are found, a failing list of operations shrinks; and a minute of it."""

from __future__ import annotations

import math
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from servers.faulty import proxy
from torture import checker, crash, operations, registers, shrink, together, transactions
from torture.history import OK, REFUSED, UNSURE, Operation
from torture.life import Examination, Life, Outcome
from torture.model import Model
from torture.places import BUCKET, FOLDER, SHARED, buckets, have_bucket, in_folder

import drumlin

HERE = Path(__file__).resolve().parent


def register(begin: float, end: float, action: str, value: Any = None, result: Any = None, **more: Any) -> Operation:
    intent = {"kind": "register", "key": "r", "action": action, "value": value, **more}
    return Operation("c", begin, end, UNSURE if math.isinf(end) else OK, intent, result)


def wrote(begin: float, end: float, value: int) -> Operation:
    return register(begin, end, "write", value)


def read(begin: float, end: float, result: int) -> Operation:
    return register(begin, end, "read", result=result)


def swapped(begin: float, end: float, expected: int, value: int, result: bool) -> Operation:
    return register(begin, end, "swap", value, result, expected=expected)


REGISTERS: list[tuple[str, bool, list[Operation]]] = [
    ("one after the other", True, [wrote(0, 1, 1), read(2, 3, 1)]),
    ("at once, either may be first", True, [wrote(0, 3, 1), read(1, 2, 0), read(1, 2, 1)]),
    ("unsure, and seen later", True, [wrote(0, math.inf, 1), read(1, 2, 0), read(3, 4, 1)]),
    ("unsure, and never seen", True, [wrote(0, math.inf, 1), read(1, 2, 0)]),
    ("a refused swap beside an unsure write", True, [wrote(0, math.inf, 1), swapped(1, 2, 0, 5, False)]),
    ("swaps in a row", True, [swapped(0, 1, 0, 1, True), swapped(2, 3, 1, 2, True), swapped(4, 5, 1, 9, False)]),
    ("a stale read", False, [wrote(0, 1, 1), read(2, 3, 0)]),
    ("a value that goes back", False, [wrote(0, 9, 1), read(1, 2, 1), read(3, 4, 0)]),
    ("unsure, seen, and unseen again", False, [wrote(0, math.inf, 1), read(1, 2, 1), read(3, 4, 0)]),
    ("a lost write", False, [wrote(0, 1, 1), wrote(2, 3, 2), read(4, 5, 1)]),
    ("a lost update", False, [swapped(0, 3, 0, 1, True), swapped(1, 2, 0, 2, True)]),
    ("a value from nowhere", False, [read(0, 1, 7)]),
    ("a swap refused for nothing", False, [swapped(0, 1, 0, 1, False)]),
]


@pytest.mark.parametrize(("holds", "history"), [case[1:] for case in REGISTERS], ids=[case[0] for case in REGISTERS])
def test_histories_of_registers(holds: bool, history: list[Operation]) -> None:
    found = registers.violations(history)
    assert (found == []) == holds, found
    # The order in which clients' journals are read has no meaning.
    assert (registers.violations(history[::-1]) == []) == holds


def tx(begin: float, end: float, *steps: Any, outcome: str = OK) -> Operation:
    """Steps are ``("x", 1)``, which appends 1 to the list x, and ``("x", [1, 2])``, which reads that content."""
    intent = [["read", name] if isinstance(what, list) else ["append", name, what] for name, what in steps]
    result = [what for _, what in steps if isinstance(what, list)]
    outcome = UNSURE if math.isinf(end) else outcome
    return Operation("c", begin, end, outcome, {"kind": "list", "steps": intent}, result if outcome == OK else None)


LISTS: list[tuple[str, str, list[Operation]]] = [
    ("in order", "", [tx(0, 1, ("x", 1)), tx(2, 3, ("x", 2)), tx(4, 5, ("x", [1, 2]))]),
    ("at once", "", [tx(0, 9, ("x", 1), ("x", [1])), tx(0, 9, ("x", [])), tx(0, 9, ("y", []))]),
    ("unsure and seen", "", [tx(0, math.inf, ("x", 1)), tx(2, 3, ("x", [])), tx(4, 5, ("x", [1]))]),
    ("unsure and not seen", "", [tx(0, math.inf, ("x", 1)), tx(4, 5, ("x", []))]),
    ("a lost append", "cycle", [tx(0, 1, ("x", 1)), tx(2, 3, ("x", 2)), tx(4, 5, ("x", [2]))]),
    ("all lost", "cycle", [tx(0, 1, ("x", 1)), tx(2, 3, ("x", []))]),
    ("a stale read", "cycle", [tx(0, 1, ("x", 1)), tx(2, 3, ("x", [])), tx(4, 5, ("x", [1]))]),
    ("appends out of order", "cycle", [tx(0, 1, ("x", 1)), tx(2, 3, ("x", 2)), tx(4, 5, ("x", [2, 1]))]),
    ("an append done twice", "twice", [tx(0, 1, ("x", 1)), tx(4, 5, ("x", [1, 1]))]),
    ("a refused append is there", "refused", [tx(0, 1, ("x", 1), outcome=REFUSED), tx(4, 5, ("x", [1]))]),
    ("from nowhere", "never appended", [tx(4, 5, ("x", [1]))]),
    (
        "half a transaction",
        "cycle",
        [tx(0, math.inf, ("x", 1), ("y", 1)), tx(2, 3, ("x", [1]), ("y", [])), tx(4, 5, ("x", [1]), ("y", [1]))],
    ),
    (
        "histories that part",
        "contradict",
        [tx(0, 9, ("x", 1)), tx(0, 9, ("x", 2)), tx(0, 9, ("x", [1])), tx(0, 9, ("x", [2, 1]))],
    ),
    (
        "write skew",
        "cycle",
        [tx(0, 9, ("x", []), ("y", 1)), tx(0, 9, ("y", []), ("x", 1)), tx(0, 9, ("x", [1]), ("y", [1]))],
    ),
    (
        "a lost update",
        "cycle",
        [tx(0, 9, ("x", []), ("x", 1)), tx(0, 9, ("x", []), ("x", 2)), tx(10, 11, ("x", [1, 2]))],
    ),
    (
        "a long fork",
        "cycle",
        [tx(0, 9, ("x", 1)), tx(0, 9, ("y", 1)), tx(0, 9, ("x", [1]), ("y", [])), tx(0, 9, ("x", []), ("y", [1]))],
    ),
    ("not one's own append", "its own", [tx(0, 9, ("x", 1), ("x", [2])), tx(0, 9, ("x", 2))]),
]


@pytest.mark.parametrize(("wrong", "history"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS])
def test_histories_of_transactions_on_lists(wrong: str, history: list[Operation]) -> None:
    for order in (history, history[::-1]):
        found = transactions.violations(order)
        assert bool(found) == bool(wrong), found
        assert wrong in "".join(found)


def test_a_bank_and_its_transfers() -> None:
    def moved(number: str, amount: int, outcome: str = OK) -> Operation:
        intent = {"kind": "bank", "action": "transfer", "id": number, "from": 0, "to": 1, "amount": amount}
        return Operation("c", 0, 1, outcome, intent)

    def balances(first: int, second: int) -> Operation:
        rest = {str(account): checker.BALANCE for account in range(2, checker.ACCOUNTS)}
        found = {"0": first, "1": second, **rest}
        return Operation("c", 2, 3, OK, {"kind": "bank", "action": "snapshot"}, found)

    sound = [moved("a", 10), moved("b", 5, UNSURE), moved("c", 7, REFUSED), balances(90, 110)]
    assert checker.violations(sound, [["a", 0, 1, 10]]) == []
    assert checker.violations([*sound, balances(85, 115)], [["a", 0, 1, 10], ["b", 0, 1, 5]]) == []
    assert "the total" in checker.violations([balances(90, 100)])[0]
    assert "0 times" in checker.violations(sound, [])[0], "a lost transfer"
    assert "2 times" in checker.violations(sound, [["a", 0, 1, 10]] * 2)[0], "done twice"
    assert "1 times" in checker.violations(sound, [["a", 0, 1, 10], ["c", 0, 1, 7]])[0], "refused and done"
    assert "balances at the end" in checker.violations([moved("a", 10), balances(100, 100)], [["a", 0, 1, 10]])[0]


def test_a_pair_that_is_off() -> None:
    def look(*result: int) -> Operation:
        return Operation("c", 0, 1, OK, {"kind": "pair", "action": "snapshot"}, list(result))

    assert checker.violations([look(0, 1), look(1, 0)]) == []
    assert "both" in checker.violations([look(0, 0)])[0]


class Clients:
    """A store in memory, and clients whose calls take a random time; each call takes effect once within that time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.value, self.unique = 0, 0
        self.lists: dict[str, list[int]] = {"x": [], "y": [], "z": []}

    def span(self) -> tuple[float, float]:
        self.now += 1
        return self.now - self.random.random() * 4, self.now + self.random.random() * 4

    def register(self) -> Operation:
        begin, end = self.span()
        self.unique += 1
        match self.random.choice(["read", "write", "swap"]):
            case "read":
                return read(begin, end, self.value)
            case "write":
                self.value = self.unique
                return wrote(begin, self.random.choice([end, end, end, math.inf]), self.unique)
        expected = self.random.choice([self.value, 0])
        done = expected == self.value
        self.value = self.unique if done else self.value
        return swapped(begin, end, expected, self.unique, done)

    def transaction(self) -> Operation:
        begin, end = self.span()
        steps: list[Any] = []
        for _ in range(self.random.randint(1, 4)):
            name = self.random.choice("xyz")
            if self.random.random() < 0.5:
                steps.append((name, list(self.lists[name])))
            else:
                self.unique += 1
                self.lists[name].append(self.unique)
                steps.append((name, self.unique))
        return tx(begin, self.random.choice([end, end, end, math.inf]), *steps)


@pytest.mark.parametrize("seed", range(10))
def test_long_histories_hold_until_they_are_spoilt(seed: int) -> None:
    clients = Clients(seed)
    history = [clients.register() for _ in range(300)]
    assert registers.violations(history) == []
    spoil(history, lambda o: o.intent["action"] == "read" and o.outcome == OK, lambda o: setattr(o, "result", -1))
    assert registers.violations(history) != []
    history = [clients.transaction() for _ in range(600)]
    history.append(tx(8e9, 9e9, *((name, list(values)) for name, values in clients.lists.items())))
    assert transactions.violations(history) == []

    def lose(operation: Operation) -> None:
        lost = operation.intent["steps"][0][2]
        for other in history:
            if other.outcome == OK:
                other.result = [[value for value in values if value != lost] for values in other.result]

    spoil(history, lambda o: o.outcome == OK and o.intent["steps"][0][0] == "append", lose)
    assert transactions.violations(history) != []


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_store_lacks_shows(seed: int) -> None:
    rng, model = random.Random(seed), Model()
    with drumlin.open("memory://") as store:
        for operation in operations.series(rng, 30):
            after = model.after(operation)
            if operation[0] in ("reopen", "checkpoint") or not isinstance(after, Model):
                continue
            if after != model:
                assert operations.differences(store, after), f"{operation} was not done yet"
            after = after.learn(operation, operations.perform(store, model, operation))
            assert operations.differences(store, after, whole=False) == []
            model = after
        assert operations.differences(store, model) == []


def test_a_store_set_back_is_noticed(tmp_path: Path) -> None:
    """A crash trial's children, and a planted loss between them: the store as it was some operations ago."""
    place, numbered = in_folder(tmp_path, FOLDER), list(enumerate(operations.series(random.Random(1), 12)))
    models = [Model()]
    for part, name in ((numbered[:6], "early"), (numbered[6:], "late")):
        (tmp_path / name).mkdir()
        found = crash.strike(Life(place, {}, part, models[0], tmp_path / name), None)
        assert isinstance(found, Outcome), found
        models = found.models
        shutil.copytree(place.files, tmp_path / f"{name}-store")
        assert crash.look(Examination(place, models, tmp_path / name, reader=True)) == 0
    shutil.rmtree(place.files)
    shutil.copytree(tmp_path / "early-store", place.files)
    (tmp_path / "again").mkdir()
    noticed = crash.look(Examination(place, models, tmp_path / "again"))
    assert isinstance(noticed, list)
    assert "holds none of" in noticed[0]


@pytest.mark.skipif(not have_bucket(), reason="NO GO")
def test_a_bucket_that_lies_about_conditions_is_noticed(tmp_path: Path) -> None:
    """The checker on real processes: commits that came second are reported as done."""
    settings = {"checkpoint_log_bytes": 0, "fresh": True}
    noticed = ("no order explains", "cycle of", "contradict", "was done 0 times")
    with buckets(tmp_path) as bucket:
        # A busy machine may need more time for two commits to meet.
        for seconds in (2.0, 4.0, 8.0, 16.0):
            folder = tmp_path / f"{seconds}"
            folder.mkdir()
            spec = together.Spec(1, BUCKET, settings, 3, 1, 0, seconds, 1.0, (), (None,) * 3, {"lie": 0.5})
            wrong, _ = together.run(spec, folder, bucket)
            if any(text in " ".join(wrong) for text in noticed):
                return
    raise AssertionError(f"a lie went unnoticed: {wrong}")


def test_what_an_ended_client_left_under_way_is_waited_for() -> None:
    """Its last request may be done after it was killed, while others look at what it left."""
    done: list[str] = []

    class Upstream(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            time.sleep(0.2)
            done.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with proxy(server.server_port) as faulty:
            for late in (0, 1):
                faulty.set(late=late)
                with socket.create_connection(("127.0.0.1", faulty.port)) as client:
                    client.sendall(b"PUT /%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" % late)
                faulty.settle()
                assert done[-1] == f"/{late}"
        server.shutdown()


def test_a_failing_list_shrinks_to_what_matters() -> None:
    tried: list[int] = []

    def fails(some: list[int]) -> bool:
        tried.append(len(some))
        return {3, 17, 31} <= set(some)

    assert shrink.fewer(list(range(40)), fails, math.inf) == [3, 17, 31]
    assert len(tried) < 150
    assert shrink.fewer(list(range(40)), fails, 0) == list(range(40)), "no time"
    one, other = (["life 2: /dev/shm/x/1 is not ['a'] but 7"], ["life 1: /tmp/2 is not ['b'] but 80"])
    assert shrink.signature(one) == shrink.signature(other) != shrink.signature(["life 1: it hangs"])


def test_a_shrunk_trial_is_kept_as_text() -> None:
    for seed in range(12):
        spec = crash.draw(seed, random.Random(seed).choice([FOLDER, SHARED]))
        assert crash.from_json(crash.to_json(spec)) == spec
        many = together.draw(seed, spec.kind)
        assert together.from_json(together.to_json(many)) == many


# faults: crash, torn log tail, full disk, failed sync, wrong clock x random operations, verify
# faults: lost answer, paused process, concurrent change x write, upsert, snapshot, checkpoint, reclaim, read, look-up
# faults: lost answer, paused process, concurrent change x nodes, transaction, verify
def test_a_minute_of_torture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Longer: `make torture`. It reports loudly what it skips for lack of strace, libfaketime, root or Go."""
    command = [sys.executable, "-m", "torture", "--seconds", "50"]
    command += ["--failures", str(tmp_path), "--shrink-seconds", "30"]
    run = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=600, check=False)
    with capfd.disabled():
        print("".join(line for line in run.stderr.splitlines(keepends=True) if line.startswith("***")), end="")
    assert run.returncode == 0, run.stdout + run.stderr


def spoil(history: list[Operation], fit: Callable[[Operation], bool], change: Callable[[Operation], None]) -> None:
    change(random.Random(len(history)).choice([operation for operation in history if fit(operation)]))
