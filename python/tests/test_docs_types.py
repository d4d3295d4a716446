"""The code of the pages, as a type checker of its readers sees it: the blocks of a page in one module."""

import subprocess
import sys
from pathlib import Path

import pages
import pytest

sys.path.insert(0, str(pages.ROOT / "docs" / "site"))

import make_site

#: Packages of other systems, which are not installed for the tests.
ELSEWHERE = {"docs/migrating.md"}


def test_the_code_of_each_page_has_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    written = {str(path.relative_to(make_site.PAGES)): path for path in sorted(make_site.PAGES.rglob("*.md"))}
    written |= {source: pages.ROOT / source for source in make_site.INCLUDED if source not in ELSEWHERE}
    modules = 0
    for page, path in written.items():
        code = [
            f"# {block.place}\n{block.code}" for block in pages.blocks(path.read_text(), "python", page) if block.runs
        ]
        if code:
            name = "".join(c if c.isalnum() else "_" for c in page.removesuffix(".md"))
            (tmp_path / f"{name}.py").write_text("\n".join(code))
            modules += 1
    assert modules > 20
    # What a page shows as wrong is run, and is of the right types for all that.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", pages.ROOT / "python" / "pyproject.toml", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=pages.ROOT / "python",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
