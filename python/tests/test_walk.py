"""The walk through the code names existing files and functions. Its snippets run in test_docs.py."""

import re

from pages import ROOT

WALK = (ROOT / "docs" / "walk.md").read_text()


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
