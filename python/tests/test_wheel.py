"""The wheel built by `make wheel` installs into a clean virtual environment, with its command, and needs no Rust."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

WHEELS = sorted((Path(__file__).parents[2] / "dist").glob("drumlin-*-cp311-abi3-*.whl"))


@pytest.mark.skipif(not WHEELS, reason="no wheel was built: run make wheel")
def test_a_wheel_installs_without_rust(tmp_path: Path) -> None:
    [wheel] = WHEELS
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
    # What type checkers read, also of `aio`, whose stubs the build writes.
    [package] = (tmp_path / "clean").rglob("site-packages/drumlin")
    assert (package / "py.typed").exists()
    assert (package / "aio" / "_store.pyi").exists()
    assert sys.version_info >= (3, 11)
