"""The wheel built by `make wheel` installs into a clean virtual environment, with its command, and needs no Rust."""

import os
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Those of a release, and those that `make test` makes of what is compiled already; the most bytes of each.
LIMITS = {ROOT / "dist": 18_000_000, ROOT / "target" / "wheels": 22_000_000}
WHEELS = sorted(wheel for folder in LIMITS for wheel in folder.glob("drumlin-*-cp311-abi3-*.whl"))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        assert any(name.endswith("/LICENSE") for name in packed.namelist())
        return message_from_bytes(packed.read(name))


@pytest.mark.skipif(not WHEELS, reason="no wheel was built: run make wheel")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.parent.name)
def test_a_wheel_is_small_and_says_what_it_is(wheel: Path) -> None:
    assert wheel.stat().st_size <= LIMITS[wheel.parent]
    told = metadata(wheel)
    assert told["Author"] == "The Drumlin developers"
    named = {address.partition(",")[0] for address in told.get_all("Project-URL", [])}
    assert named >= {"Homepage", "Changelog", "Issues"}
    assert "versioned table store" in str(told.get_payload())
    if wheel.parent.name == "dist":
        assert "manylinux_2_28" in wheel.name


@pytest.mark.skipif(not WHEELS, reason="no wheel was built: run make wheel")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.parent.name)
def test_a_wheel_installs_without_rust(tmp_path: Path, wheel: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    program = tmp_path / "clean" / "bin"
    # Neither Rust nor anything else installed here can be found.
    environment = {"PATH": os.pathsep.join([str(program), "/usr/bin", "/bin"]), "HOME": str(tmp_path)}

    def run(*command: str) -> str:
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(str(program / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    code = "import drumlin; s = drumlin.open('made'); s.tree.put('a', 1); print(s.tree.get('a')); s.close()"
    assert run(str(program / "python"), "-c", code) == "1\n"
    assert run(str(program / "drumlin"), "get", "made", "a").strip() == "1"
    # The first example of the documentation, with no other package.
    page = (ROOT / "docs/site/pages/index.md").read_text()
    example, shown = page.split("```python\n")[1].split("```\n\n```output\n")
    *lines, last = example.strip().splitlines()
    code = "\n".join([*lines, f"print({last})"])
    assert run(str(program / "python"), "-c", code) == shown.partition("```")[0]
    # What type checkers read, also of `aio`, whose stubs the build writes.
    [package] = (tmp_path / "clean").rglob("site-packages/drumlin")
    assert (package / "py.typed").exists()
    assert (package / "aio" / "_store.pyi").exists()
    assert sys.version_info >= (3, 11)
