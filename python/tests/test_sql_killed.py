"""A transaction of SQL over five tables, in a process that is killed at one storage operation after the other: what is
there afterwards is all of it or nothing.

``DRUMLIN_KILLS`` says how many operations are struck (0 for every one), spread over all; strace strikes them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from torture.places import have_strace

import drumlin

KILLS = int(os.environ.get("DRUMLIN_KILLS", "8"))
#: System calls that change what is stored.
CALLS = (
    "pwrite64",
    "write",
    "fsync",
    "fdatasync",
    "renameat",
    "renameat2",
    "linkat",
    "unlinkat",
    "ftruncate",
    "mkdirat",
)

SCRIPT = """
begin;
insert into a values (10, 'new'), (11, 'new');
update b set name = concat(name, '!') where id > 1;
delete from c where id = 1;
merge into d using a on d.id = a.id when matched then update set name = 'both' when not matched then insert *;
drop table e;
create table f as select * from a;
commit;
"""
CHILD = "import sys, drumlin; store = drumlin.open(sys.argv[1]); store.sql(sys.argv[2]); store.close()"


def _contents(place: Path) -> dict[str, list[tuple[int, str]]]:
    with drumlin.open(place) as store:
        assert store.verify().faults == []
        return {
            path: sorted((row["id"], row["name"]) for row in store.read(path).to_dicts()) for path in store.tables()
        }


def _struck(place: Path, call: str, nth: int) -> bool:
    """Runs the script in a process that is killed at the n-th such call of one of its threads; whether it was."""
    strike = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
    strike += ["-e", f"inject={call}:signal=KILL:when={nth}"]
    child = [sys.executable, "-B", "-c", CHILD, place, SCRIPT]
    ran = subprocess.run([*strike, *child], capture_output=True, check=False)
    return ran.returncode != 0


@pytest.mark.skipif(not have_strace(), reason="needs strace, to strike at system calls")
def test_a_transaction_killed_at_any_operation_is_all_or_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old"
    with drumlin.open(old) as store:
        for path in "abcde":
            key = " primary key" if path in "abd" else ""
            store.sql(f"create table {path} (id bigint{key}, name text); insert into {path} values (1, 'x'), (2, 'y')")
    before = _contents(old)
    new = tmp_path / "new"
    shutil.copytree(old, new)
    subprocess.run([sys.executable, "-c", CHILD, new, SCRIPT], check=True)
    after = _contents(new)
    assert after["d"] == [(1, "both"), (2, "both"), (10, "new"), (11, "new")]
    assert "e" not in after
    assert len(after["f"]) == 4

    strikes = [(call, nth) for nth in range(1, 60) for call in CALLS]
    done: set[str] = set()
    struck = 0
    seen = set()
    for call, nth in strikes:
        if call in done or (KILLS and struck >= KILLS):
            continue
        place = tmp_path / f"{call}-{nth}"
        shutil.copytree(old, place)
        if not _struck(place, call, nth):
            # No thread makes as many of them.
            done.add(call)
        else:
            struck += 1
        found = _contents(place)
        assert found in (before, after), f"killed at {call} {nth}"
        seen.add(found == after)
        shutil.rmtree(place)
    assert struck >= min(KILLS or 8, 8)
    assert seen == {False, True}
