"""The documentation: its code runs and prints what it shows, its site is whole, and nothing of it comes from elsewhere.

`make docs` builds the site, in the folder `site`.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pages
import pytest
from servers import s3

import drumlin

sys.path.insert(0, str(pages.ROOT / "docs" / "site"))

import make_site

HTML = pages.ROOT / "site" / "html"
#: Blocks that are not run. One more is noticed here, and needs a reason.
NOT_RUN = 14
#: All that is written by hand: pages of the site, and documents that are pages of it.
WRITTEN = {
    **{str(path.relative_to(make_site.PAGES)): path for path in sorted(make_site.PAGES.rglob("*.md"))},
    **{source: pages.ROOT / source for source in make_site.INCLUDED},
}
#: Its code needs packages of other systems, and runs in test_migrate_page.py.
ELSEWHERE = {"docs/migrating.md"}
#: Attributes whose address a browser loads without being asked.
LOADS = {
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "image": ["href", "xlink:href"],
    "img": ["src", "srcset"],
    "input": ["src"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "track": ["src"],
    "use": ["href", "xlink:href"],
    "video": ["src", "poster"],
}
#: What pages call things by.
NOUNS = {
    "store": drumlin.Store,
    "store.tree": drumlin.Tree,
    "table": drumlin.Table,
    "tree": drumlin.Tree,
    "tx": drumlin.Transaction,
    "ds": drumlin.Dataset,
    "ticket": drumlin.Ticket,
}
#: What a `link` of one of these kinds names is not loaded.
NAMED_ONLY = {"next", "prev", "canonical"}
NAMESPACE = re.compile(r"https?://www\.w3\.org/\d+/")


@pytest.mark.parametrize("page", [page for page in WRITTEN if page not in ELSEWHERE])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run_page(WRITTEN[page].read_text(), page, WRITTEN[page])


def test_few_blocks_are_not_run() -> None:
    left_out = [
        block.place
        for page, path in WRITTEN.items()
        for block in pages.blocks(path.read_text(), page=page)
        if block.language in ("python", "console") and not block.runs
    ]
    assert len(left_out) == NOT_RUN, left_out


def test_what_needs_a_bucket_runs_on_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if s3.build("versitygw") is None:
        pytest.skip("NO GO: blocks of pages that need a bucket are not run")
    page = "guides/buckets.md"
    wanted = [
        block for block in pages.blocks(WRITTEN[page].read_text(), page=page) if block.not_run == "needs a bucket"
    ]
    assert len(wanted) == 4
    with s3.serve("versitygw", tmp_path / "buckets") as port:
        given = s3.options(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", given["endpoint"])
        for name in ("region", "aws_access_key_id", "aws_secret_access_key"):
            monkeypatch.setenv(f"AWS_{name.removeprefix('aws_').upper()}", given[name])
        names: dict[str, Any] = {}
        for at, block in enumerate(wanted):
            code = re.sub(r"s3://[\w/]+", f"s3://test/{at}", block.code)
            for name in ("endpoint", "region", "aws_access_key_id", "aws_secret_access_key"):
                code = re.sub(rf'"{name}": "[^"]+"', f'"{name}": "{given[name]}"', code)
            block.code = code
            if block.language == "python":
                pages.run_python(block, names)
                names["store"].tree.put("a", 1)
                names["store"].close()
            else:
                [doctor] = pages.run_console(block)
                shown, printed = (re.sub(r"[\d.]+ ms", "", text) for text in (doctor.shown, doctor.printed))
                assert shown == printed


def test_code_is_in_languages_that_are_known() -> None:
    known = {"python", "console", "text", "rust", "output"}
    wrong = [
        f"{block.place}: {block.language!r}"
        for page, path in WRITTEN.items()
        for block in pages.blocks(path.read_text(), page=page)
        if block.language not in known
    ]
    assert wrong == []


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    right = "```python\n1 + 1\n```\n\n```output\n2\n```\n\n```console\n$ echo a b\na ...\n```\n"
    pages.run_page(right, "right.md")
    pages.run_page("```python\nint('x')\n```\n\n```output\nbuiltins.ValueError: invalid literal ...\n```\n", "error.md")
    for wrong in (right.replace("\n2\n", "\n3\n"), right.replace("a ...", "b"), right.replace("1 + 1", "int('x')")):
        with pytest.raises((AssertionError, ValueError)):
            pages.run_page(wrong, "wrong.md")
    with pytest.raises(AssertionError, match="false"):
        pages.run_page("```console\n$ false\n```\n", "fails.md")
    path, wrong = tmp_path / "wrong.md", right.replace("\n2\n", "\n3\n").replace("a ...", "b")
    monkeypatch.setenv("DRUMLIN_WRITE_DOCS", "1")
    pages.run_page(wrong, "wrong.md", path)
    assert path.read_text() == right.replace("a ...", "a b")
    with pytest.raises(AssertionError, match="no block of Python stands before"):
        pages.blocks("```output\n2\n```\n")


def test_what_tables_and_text_call_exists() -> None:
    wrong = []
    for page in sorted(make_site.PAGES.rglob("*.md")):
        text: list[str] = []
        make_site.outside_of_code(page.read_text(), lambda part, text=text: text.append(part) or part)
        for code in re.findall(r"`([^`\n]+)`", "".join(text)):
            for noun, member in re.findall(r"(?<![\w.'/])(store\.tree|store|table|tree|tx|ds|ticket)\.(\w+)", code):
                if not hasattr(NOUNS[noun], member):
                    wrong.append(f"{page.name}: {code}")
    assert wrong == []


@pytest.fixture(scope="module")
def site() -> Path:
    if not HTML.exists():
        pytest.fail("the site is not built: run `make docs`")
    made = make_site.all_pages()
    there = {str(path.relative_to(HTML)): path.read_text() for path in HTML.rglob("*.md")}
    stale = sorted(place for place in made.keys() | there.keys() if made.get(place) != there.get(place))
    assert stale == [], "the site is not of these sources: run `make docs`"
    return HTML


class Page(HTMLParser):
    """What a page has that can be linked to, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._within = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._within = tag
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in NAMED_ONLY:
            self.loads.append(given.get("href", ""))
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            self.loads.append(given.get("content", ""))
        self.loads += [given[name] for name in LOADS.get(tag, []) if name in given]
        self.loads += loaded_by_style(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._within == "style":
            self.loads += loaded_by_style(data)
        elif self._within == "script":
            self.loads += re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]+[^\s\"'`)]*", data)

    def handle_endtag(self, tag: str) -> None:
        self._within = ""


@cache
def parsed(path: Path) -> Page:
    return Page(path)


def html_pages(site: Path) -> Iterator[tuple[str, Page]]:
    for path in sorted(site.rglob("*.html")):
        yield str(path.relative_to(site)), parsed(path)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    outside = [
        f"{place}: {address}"
        for place, page in html_pages(site)
        for address in page.loads
        if urlsplit(address).netloc and not NAMESPACE.match(address)
    ]
    assert outside == []
    assert len([*site.rglob("*.css")]) > 1
    for file in site.rglob("*.css"):
        assert [address for address in loaded_by_style(file.read_text()) if urlsplit(address).netloc] == [], file.name
    assert len([*site.rglob("*.js")]) > 1
    for file in site.rglob("*.js"):
        addresses = re.findall(r"https?://[^\s\"'`)]*", file.read_text())
        assert [address for address in addresses if not NAMESPACE.match(address)] == [], file.name


def loaded_by_style(text: str) -> list[str]:
    """The addresses that a style sheet loads; what it holds itself (`data:`) is none."""
    found = re.findall(r"url\(\s*[\"']?([^)\"']*)|@import\s+[\"']([^\"']*)", text)
    return [url or imported for url, imported in found if not (url or imported).startswith("data:")]


def test_a_page_that_loads_something_is_noticed(tmp_path: Path) -> None:
    shown = tmp_path / "page.html"
    shown.write_text(
        '<link rel="stylesheet" href="https://a.example/x.css"><script src="//b.example/y.js"></script>'
        '<img src="https://c.example/z.png"><p style="background: url(https://d.example/w.png)"><style>@import "https://g.example/u.css";</style>'
        '<script>load("https://e.example/v.js")</script><a href="https://f.example">clicked on</a>'
    )
    assert [urlsplit(address).netloc[0] for address in Page(shown).loads] == list("abcdge")


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    wrong = []
    links = 0
    for place, page in html_pages(site):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or place == "404.html":
                continue
            links += 1
            target = (site / place).parent / unquote(parts.path) if parts.path else site / place
            target = (target / "index.html" if target.is_dir() else target).resolve()
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                wrong.append(f"{place}: {link}: no such page")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).anchors:
                wrong.append(f"{place}: {link}: no such anchor")
    assert wrong == []
    assert links > 1000


def test_the_reference_names_every_public_method(site: Path) -> None:
    missing = []
    for kind in (drumlin.Store, drumlin.Table, drumlin.Tree, drumlin.Transaction, drumlin.Dataset):
        name = kind.__name__
        text = (site / "reference" / "python" / f"{name.lower()}.html").read_text()
        assert f'id="drumlin.{name}"' in text
        missing += [
            f"{name}.{member}"
            for member in dir(kind)
            if member[0] != "_" and not re.search(rf"[\"#]drumlin\.\w+\.{member}\"", text)
        ]
    # A data set is one of pyarrow's, too, where that is installed; what is its own is listed.
    assert missing == []


def test_the_reference_names_every_public_name(site: Path) -> None:
    anchors = {anchor for _, page in html_pages(site) for anchor in page.anchors}
    assert [name for name in drumlin.__all__ if f"drumlin.{name.strip('_')}" not in anchors] == []
    assert [name for name in drumlin.tree.__all__ if f"drumlin.tree.{name}" not in anchors] == []
    # Examples of docstrings run in test_package.py, so the reference has no blocks that would run here.
    assert [place for place in make_site.python_pages() if pages.blocks((site / place).read_text(), "python")] == []


def test_the_index_for_language_models_lists_every_page(site: Path) -> None:
    index = (site / "llms.txt").read_text()
    listed = set(re.findall(r"\]\(([^)]+)\)", index))
    assert listed == {str(path.relative_to(site)) for path in site.rglob("*.md")}
    assert listed == {place.removesuffix(".html") + ".md" for place, _ in html_pages(site)} - {"404.md"}
    assert index.startswith("# Drumlin\n\n> ")
