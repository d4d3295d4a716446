"""The runner of the night: it forgets no random test, adds up what was counted, goes on after a failure, keeps it."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from nightly import counts, parts
from nightly.__main__ import Night
from nightly.parts import ROOT, Job, Part


def test_all_tests_that_draw_seeds_are_found() -> None:
    found = parts.seeded(ROOT / "crates/drumlin/tests/it")
    for name in (
        "models::episodes::random_operations_equal_the_model",
        "faults::crash::a_crash_at_any_operation_leaves_before_or_after",
        "processes::shared::all_operations_over_a_network_that_fails_are_done_once_or_not",
        "models::swarm::whatever_follows_whatever_equals_the_model",
    ):
        assert name in found
    assert len(found) > 20
    for each in parts.COUNTED:
        if each.exists():
            assert f'"{each.variable}"' in (ROOT / "python/tests" / each.file).read_text()


def test_pairs_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "1-1.txt").write_text("drop>undrop 2 1 1 1 0\nwrite>drop>undrop 1 0 0 0 0\n")
    (tmp_path / "2-1.txt").write_text(
        "drop>undrop 3 0 1 0 5\nread>drop>undrop 0 1 0 0 0\ndrop>undrop>write 1 0 0 0 0\n"
    )
    [line] = [line for line in counts.pairs(tmp_path).splitlines() if not line.startswith("#")]
    assert line == "drop undrop 5 1 2 1 5 1"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_failure_is_kept_and_the_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = "import os, sys; sys.exit(f\"so wrong\\nseed 7; to run it again: x\\n{os.environ['DRUMLIN_SEED']}\")"
    jobs = [
        Job("good", python("print('3 trials')"), runs=3, figures=lambda output: Counter(trials=int(output.split()[0]))),
        Job("bad", python(fails), {"DRUMLIN_SEED": "5", "DRUMLIN_ROUNDS": "9"}),
        Job("good too", python("pass"), busy=True),
    ]
    ended: list[str] = []

    def end(job: Job, _: float) -> None:
        ended.append(job.name)

    part = Part("some", 1, "runs", lambda _: jobs.pop(0) if jobs else None, end)
    night = Night([part], 1, time.monotonic() + 60, tmp_path)
    night.run()
    assert sorted(ended) == ["good", "good too"]
    assert night.failed == ["some, bad"]
    assert night.told() == [("some", "5 runs, 3 trials")]
    shown = capsys.readouterr().out
    assert "FAILED: some, bad, status 1; it fails again" in shown
    # The seed that failed alone, as its output says.
    again = (tmp_path / "1-0" / "again.txt").read_text()
    assert "DRUMLIN_SEED=7 DRUMLIN_ROUNDS=1" in again
    assert again.rstrip().endswith("7")
    assert "so wrong" in (tmp_path / "1-0" / "output.txt").read_text()


def test_parts_get_their_shares() -> None:
    def one(name: str, share: float) -> Part:
        return Part(name, share, "runs", lambda _: Job(name, []))

    night = Night([one("a", 3), one("b", 1)], 1, time.monotonic() + 600, Path())
    turns = Counter()
    for _ in range(400):
        chosen = night.next()
        assert chosen is not None
        night.seconds[chosen[0].name] += 60
        turns[chosen[0].name] += 1
    assert 290 < turns["a"] < 310


def test_what_is_drawn_comes_from_the_seed() -> None:
    def drawn(seed: int) -> list[dict[str, str]]:
        rng, part = random.Random(seed), parts.COUNTED[0].part()
        return [job.environment for job in (part.next(rng), part.next(rng)) if job is not None]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)
    assert drawn(3)[0] != drawn(3)[1]
