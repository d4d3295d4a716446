"""Builds the documentation site: puts its pages together in a folder, and has Zensical make HTML of them.

Called by `make docs`. Pages come from four places:

- `pages` beside this file: written by hand;
- other documents of the repository (`INCLUDED`): copied, with links between them mended;
- the package and the command line, as they are installed: `reference.py` and `commands.py`;
- drawings: `drawings.py`, put in the place of `<!-- drawing: NAME -->`.

A page that the navigation lacks, or a link that leads nowhere, fails the build. `llms.txt` lists all pages for language
models.
"""

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commands import command_line
from drawings import DRAWINGS
from measured import FOLDER, RAW, measured_page
from reference import python_pages

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGES = HERE / "pages"
#: Where files of the repository are read by those who follow a link to one that is no page.
SOURCES = "https://github.com/drumlin-db/drumlin/blob/main/"

#: Documents of the repository that are pages of the site, by where they are there.
INCLUDED = {
    "docs/engines.md": "guides/engines.md",
    "docs/following.md": "guides/following.md",
    "docs/pandas.md": "guides/pandas.md",
    "docs/notebooks.md": "guides/notebooks.md",
    "docs/migrating.md": "guides/migrating.md",
    "docs/ui.md": "guides/ui.md",
    "docs/scale.md": "internals/scale.md",
    "docs/format.md": "internals/format.md",
    "docs/faults.md": "internals/faults.md",
    "docs/walk.md": "internals/walk.md",
    "docs/decisions.md": "internals/decisions.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "CHANGELOG.md": "internals/changelog.md",
    "bench/RESULTS.md": "internals/benchmarks.md",
}

_FENCE = re.compile(r"^(```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
#: A picture beside a document.
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s:]+)\)")
_DRAWING = re.compile(r"^<!-- drawing: ([\w-]+) -->$", re.MULTILINE)
#: An address in a script that is no namespace.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\"'`\s]*")


def outside_of_code(page: str, change: Any) -> str:
    """A page, with its text changed and its blocks of code as they are."""
    parts = _FENCE.split(page)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def included(source: str) -> str:
    """A document of the repository as a page: its links lead to pages, or else to the sources."""
    folder, page = posixpath.dirname(source), INCLUDED[source]

    def mend(found: re.Match[str]) -> str:
        text, target = found.groups()
        if re.match(r"\w+:", target) or target.startswith("#"):
            return found[0]
        path, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if path in INCLUDED:
            to = posixpath.relpath(INCLUDED[path], posixpath.dirname(page))
            return f"[{text}]({to}{'#' + anchor if anchor else ''})"
        if not (ROOT / path).exists():
            raise SystemExit(f"{source}: the link to {target} leads nowhere")
        return f"[{text}]({SOURCES}{path})"

    return outside_of_code((ROOT / source).read_text(), lambda text: _LINK.sub(mend, text))


def drawn(page: str, place: str) -> str:
    """A page with its drawings."""

    def figure(found: re.Match[str]) -> str:
        if found[1] not in DRAWINGS:
            raise SystemExit(f"{place}: there is no drawing {found[1]!r}; there are {', '.join(DRAWINGS)}")
        return f'<figure class="drawing">\n{DRAWINGS[found[1]]()}\n</figure>'

    return outside_of_code(page, lambda text: _DRAWING.sub(figure, text))


def all_pages() -> dict[str, str]:
    """The text of all pages, by their places in the site."""
    pages = {str(path.relative_to(PAGES)): path.read_text() for path in sorted(PAGES.rglob("*.md"))}
    made = {page: included(source) for source, page in INCLUDED.items()} | python_pages() | command_line()
    made |= measured_page()
    if both := sorted(pages.keys() & made.keys()):
        raise SystemExit(f"written by hand, and made: {', '.join(both)}")
    return {place: drawn(page, place) for place, page in sorted((pages | made).items())}


def listed(nav: list[dict[str, Any]], section: str = "") -> Iterator[tuple[str, str, str]]:
    """The pages of the navigation, in order: section, title and place."""
    for entry in nav:
        for title, below in entry.items():
            if isinstance(below, str):
                yield section, title, below
            else:
                yield from listed(below, f"{section}: {title}" if section else title)


def summary(page: str) -> str:
    """The first sentence of a page."""
    for paragraph in _FENCE.sub("", page).split("\n\n"):
        text = " ".join(paragraph.split())
        if text and not re.match(r"[#|<!-]", text):
            text = _LINK.sub(r"\1", text).replace("**", "")
            return re.split(r"(?<=[.:]) (?=[A-Z`])", text)[0].rstrip(":")
    return ""


def for_language_models(config: dict[str, Any], pages: dict[str, str]) -> str:
    """`llms.txt`: what the site is, and a line for each page, whose text lies beside its HTML."""
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}.", ""]
    lines += ["Each page is here as Markdown; the same address with .html is for readers.", ""]
    last = ""
    for section, title, place in listed(config["nav"]):
        if section != last:
            lines += ["", f"## {section}", ""]
            last = section
        said = summary(pages[place])
        lines.append(f"- [{title}]({place}){': ' + said if said else ''}")
    return "\n".join(lines) + "\n"


def self_contained(html: Path) -> None:
    """Takes out of the theme's scripts the addresses of what it would load for features that the site does not use."""
    for script in html.rglob("*.js"):
        text = script.read_text()
        if (changed := _ADDRESS.sub("about:blank", text)) != text:
            script.write_text(changed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the documentation site.")
    parser.add_argument("folder", type=Path, help="where; what an earlier build left there is replaced")
    folder = parser.parse_args().folder.resolve()
    config = tomllib.loads((HERE / "zensical.toml").read_text())["project"]
    pages = all_pages()
    places = [place for _, _, place in listed(config["nav"])]
    if wrong := sorted(set(places) ^ set(pages)):
        raise SystemExit(f"in the navigation or among the pages, but not in both: {', '.join(wrong)}")

    shutil.rmtree(folder / "pages", ignore_errors=True)
    shutil.rmtree(folder / "html", ignore_errors=True)
    shutil.copytree(PAGES / "assets", folder / "pages" / "assets")
    shutil.copy(HERE / "zensical.toml", folder / "zensical.toml")
    for place, page in pages.items():
        (folder / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / place).write_text(page)
    for source, page in INCLUDED.items():
        for picture in _PICTURE.findall((ROOT / source).read_text()):
            shutil.copy((ROOT / source).parent / picture, (folder / "pages" / page).parent / picture)
    shutil.copytree(RAW, folder / "pages" / FOLDER)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", folder / "zensical.toml"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        return done.returncode
    html = folder / "html"
    self_contained(html)
    for place, page in pages.items():
        (html / place).write_text(page)
    (html / "llms.txt").write_text(for_language_models(config, pages))
    print(f"{len(pages)} pages in {html}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
