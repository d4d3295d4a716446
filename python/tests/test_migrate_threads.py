"""The threads of a migration, and their budget of memory."""

import random
import threading
import time

import pytest

import drumlin
from drumlin.migrate.threads import Crew, Stopped


def test_the_budget_is_kept_and_what_is_larger_is_alone() -> None:
    crew, lock = Crew(8, 100), threading.Lock()
    using: list[int] = []
    most, alone = 0, []
    rng = random.Random(1)
    sizes = [rng.choice([10, 30, 60, 250]) for _ in range(200)]

    def work(size: int) -> None:
        nonlocal most
        with crew.memory(size):
            with lock:
                using.append(size)
                if max(using) > 100:
                    alone.append(len(using))
                else:
                    most = max(most, sum(using))
            time.sleep(0.0005)
            with lock:
                using.remove(size)

    crew.run(work, sizes)
    assert most <= 100
    assert set(alone) == {1}


def test_what_fits_into_the_budget_is_done_at_the_same_time() -> None:
    crew, both = Crew(2, 100), threading.Barrier(2)

    def meet(size: int) -> None:
        with crew.memory(size):
            both.wait(60)

    crew.run(meet, [60, 40])
    assert not both.broken


def test_the_first_error_ends_all() -> None:
    crew, done = Crew(4, 100), []

    def work(item: int) -> None:
        crew.check()
        if item == 20:
            raise ValueError(f"item {item}")
        with crew.memory(90):
            time.sleep(0.001)
        done.append(item)

    with pytest.raises(ValueError, match="item 20"):
        crew.run(work, range(10_000))
    assert len(done) < 100
    with pytest.raises(Stopped):
        crew.check()


@pytest.mark.parametrize(("threads", "memory", "error"), [(0, 1, ValueError), (1, 0, ValueError), (True, 1, TypeError)])
def test_arguments(threads: int, memory: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        Crew(threads, memory)
    assert issubclass(drumlin.InvalidArgument, ValueError)
