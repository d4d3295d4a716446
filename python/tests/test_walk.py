"""The walk through the code names existing files and functions, and its snippets run, in order."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WALK = (ROOT / "docs" / "walk.md").read_text()


def test_the_snippets_of_the_walk_run() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", WALK, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "walk.md", "exec"), names)


def test_the_walk_names_what_is_there() -> None:
    text = re.sub(r"\s+", " ", WALK)
    steps = re.findall(r"`([\w/]+\.(?:rs|pyi?))`: `(\w+)`", text)
    assert len(steps) > 25
    missing = []
    for file, function in steps:
        path = ROOT / file
        declared = rf"(fn|def) {function}\b"
        if not path.exists() or not re.search(declared, path.read_text()):
            missing.append(f"{file}: {function}")
    assert missing == []
