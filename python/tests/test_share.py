"""A folder becomes shared, and back: from Python and from the command line."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import drumlin
import drumlin.aio

ROWS = pa.table({"n": [1, 2, 3]})


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("drumlin")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_many_processes_write_it_then_one_again(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with drumlin.open(folder) as store:
        store.write("a", ROWS)
        with pytest.raises(drumlin.Locked):
            drumlin.share(folder)
    seen: list[object] = []
    drumlin.share(folder, progress=lambda *step: seen.append(step))
    drumlin.share(folder)
    with drumlin.open(folder) as one:
        other = "import drumlin, sys; s = drumlin.open(sys.argv[1]); s.append('a', {'n': [4]}); s.close()"
        subprocess.run([sys.executable, "-c", other, str(folder)], check=True)
        one.append("a", {"n": [5]})
        assert sorted(one.read("a").to_arrow()["n"].to_pylist()) == [1, 2, 3, 4, 5]
        with pytest.raises(drumlin.Locked, match="fence_idle"):
            drumlin.unshare(folder)
    drumlin.unshare(folder)
    drumlin.unshare(folder)
    with drumlin.open(folder) as store:
        assert [version.version for version in store.table("a").versions()] == [0, 1, 2]
        code = "import drumlin, sys; drumlin.open(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "drumlin.Locked" in done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    folder = str(tmp_path / "store")
    assert run("share", folder).returncode != 0
    assert not Path(folder).exists()
    drumlin.open(folder).close()
    refused = pytest.raises(drumlin.InvalidArgument, match=f"drumlin share {folder}")
    with refused:
        drumlin.open(folder, shared=True)
    done = run("share", folder)
    assert (done.returncode, done.stdout) == (0, "many processes can write it now\n"), done.stderr
    drumlin.open(folder, shared=True).close()
    done = run("unshare", folder)
    assert (done.returncode, done.stdout) == (0, "one process at a time can write it now\n"), done.stderr
    refused = run("share", "s3://bucket/prefix")
    assert refused.returncode != 0
    assert "expected the folder of a store" in refused.stderr


def test_without_blocking(tmp_path: Path) -> None:
    async def turn() -> None:
        folder = tmp_path / "store"
        async with drumlin.aio.open(folder) as store:
            await store.write("a", ROWS)
        await drumlin.aio.share(folder)
        await drumlin.aio.unshare(folder)

    asyncio.run(turn())


@pytest.mark.parametrize("turn", [drumlin.share, drumlin.unshare])
def test_what_is_no_folder_is_refused(turn: object, tmp_path: Path) -> None:
    assert callable(turn)
    for place in ("memory://", "s3://bucket/prefix"):
        with pytest.raises(drumlin.InvalidArgument, match="expected the folder of a store"):
            turn(place)
    with pytest.raises(drumlin.NotFound):
        turn(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="store must be a str or a path"):
        turn(5)
