"""A headless Chromium, driven by Playwright, and a store for it to look at. Where Chromium or Playwright is
missing, tests say loudly that they are skipped.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import drumlin

#: Left behind for people to look at.
SCREENSHOTS = Path(__file__).resolve().parent / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")

#: The table that most tests look at, and how many rows are written to it.
TABLE = "prices/us/AAPL"
ROWS = 3000
LONG = "market/equities_1/north_america_exchange/SYMBOL0003_adjusted_close"

_TABS = {"rows": "ARCX", "schema": "int64", "versions": "bad ticks", "chart": "600 buckets:", "changes": "deleted"}
_VIEWS = {"map": "cells in", "log": "retention", "activity": "this process", "metrics": "drumlin_tables"}
#: All that the page can show, by its address, and a text by which one sees that it is there.
PLACES: dict[tuple[str, ...], str] = {
    (): "Choose a table",
    **{("tables", TABLE, tab, ""): text for tab, text in {**_TABS, "layout": "cells in"}.items()},
    **{("tables", LONG, tab, ""): text for tab, text in {"versions": "append", "layout": "cells in"}.items()},
    **{(view,): text for view, text in _VIEWS.items()},
    ("nodes", "config/feeds/a"): "owner",
}


def frame(start: int, count: int) -> pa.Table:
    """Rows with a number, a price and a text that may be null."""
    numbers = range(start, start + count)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "close": [float(n * 37 % 1000) / 8 for n in numbers],
            "venue": [None if n % 10 == 0 else ("XNAS", "ARCX", "BATS")[n % 3] for n in numbers],
        }
    )


def fill(store: drumlin.Store, long_names: bool = False) -> None:
    """Tables, versions, a snapshot, a node and a projection; and with names that do not fit a line of a narrow page."""
    store.with_message("first load").write(TABLE, frame(0, 2000), sort=["n"])
    store.append(TABLE, frame(2000, ROWS - 2000))
    store.snapshot("eod", TABLE)
    store.with_message("bad ticks").table(TABLE).delete("n < 500")
    for name in ("MSFT", "NVDA"):
        store.write(f"prices/us/{name}", frame(0, 50))
    store.write("prices/eu/SAP", frame(0, 10))
    store.tree.put("config/feeds/a", {"owner": "me", "on": True})
    store.tree.projection("by_owner", "config/**", key="payload.owner", value="path")
    for kept in (False, True) if long_names else ():
        store.write(LONG, frame(0, 10))
        for start in range(10, 60, 10):
            store.append(LONG, frame(start, 10))
        store.snapshot(f"end_of_day_reconciliation_{kept}", LONG)
        if not kept:
            store.drop(LONG)


def expected(store: drumlin.Store, **what: Any) -> pa.Table:
    """The rows that are to be seen."""
    return store.read(TABLE, **what).to_arrow()


def skip(why: str) -> None:
    message = f"NO BROWSER: the page of a store is not tested: {why}"
    print(f"\n*** {message} ***", file=sys.__stderr__, flush=True)
    pytest.skip(message)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        skip("Chromium is not installed ('make browser' installs it by apt-get)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("playwright is not installed (python/requirements-dev.txt)")
    # Root has no sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


def until(holds: Callable[[], object], what: str) -> None:
    """Waits until something holds."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


class Visit:
    """A page of a store, and what is wrong with it: errors, and requests to anywhere else."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        settings = {"viewport": {"width": 1360, "height": 820}, "reduced_motion": "reduce", **context}
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.origin = address.split("#")[0]
        self.wrong: list[str] = []
        self.expected: str | None = None
        self.page.on("console", lambda message: self.wrong.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requested(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("#tree[data-loaded]", state="attached")

    def requested(self, url: str) -> None:
        if not url.startswith(self.origin):
            self.wrong.append(f"a request to {url}")

    def go(self, *parts: str) -> None:
        """Opens a view by its address."""
        place = "/".join(quote(part, safe="") for part in parts)
        self.page.evaluate("place => { location.hash = place }", f"#/{place}")

    def table(self, path: str, tab: str = "rows", as_of: str = "") -> None:
        self.go("tables", path, tab, as_of)
        self.page.wait_for_selector(f"#tab-{tab}[aria-selected=true]")

    def node(self, path: str) -> Any:
        return self.page.locator(f'[role=treeitem][data-path="{path}"]')

    def cell(self, row: int, column: int) -> Any:
        """A cell of the grid that is shown, without the column of row numbers."""
        grid = "[role=grid]:visible"
        return self.page.locator(f"{grid} [aria-rowindex='{row + 2}'] [aria-colindex='{column + 2}']")

    def text(self, row: int, column: int) -> str:
        """What a cell shows, once its row has come."""
        cell = self.cell(row, column)
        cell.wait_for()
        until(lambda: cell.text_content() != "…", "the row")
        return str(cell.text_content())

    def shows(self, row: int, column: int, text: str) -> None:
        """Waits until a cell shows something."""
        until(lambda: self.cell(row, column).all_text_contents() == [text], f"{text} in row {row}")

    def refused(self, status: int) -> None:
        """The server refuses something, as it is expected to; Chromium says so once a request."""
        until(lambda: any(f"status of {status}" in wrong for wrong in self.wrong), f"a refusal ({status})")
        self.expected = f"status of {status}"

    def wait(self, expression: str) -> None:
        """Waits until something is so in the page. (Its policy lets Playwright wait for no expressions.)"""
        until(lambda: self.page.evaluate(expression), expression)

    def hold(self, question: str, act: Callable[[], object]) -> list[Any]:
        """Does something by which the page asks the server something, and holds these requests back."""
        held: list[Any] = []
        holds = True
        self.page.route(f"**/api/{question}?*", lambda route: held.append(route) if holds else route.continue_())
        act()
        until(lambda: self.page.evaluate("true") and held, f"a question for {question}")
        holds = False
        return held

    def let_go(self, held: list[Any]) -> None:
        """Lets requests go on that were held back, and waits until the page has the answers that it still wants."""
        ended: list[str] = []
        for event in ("requestfinished", "requestfailed"):
            self.page.on(event, lambda request: ended.append(request.url))
        wanted = [route.request.url for route in held if route.request.failure is None]
        for route in held:
            route.continue_()
        until(lambda: self.page.evaluate("true") and set(wanted) <= set(ended), "an answer")
        self.page.evaluate("new Promise(done => setTimeout(done, 50))")

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png")

    def close(self) -> None:
        self.context.close()
        wrong = [wrong for wrong in self.wrong if self.expected is None or self.expected not in wrong]
        assert wrong == []

    def overflows(self) -> list[str]:
        """What is wrong with a narrow page: that it is wider than its window, and words that are broken."""
        return list(self.page.evaluate(OVERFLOWS))


@contextlib.contextmanager
def visited(browser: Any, store: drumlin.Store, write: bool = False, **context: Any) -> Iterator[Visit]:
    """A visit to the page of a store, which has no fault when it ends."""
    with store.ui(open_browser=False, write=write) as page:
        visit = Visit(browser, page.address, **context)
        yield visit
        visit.close()


#: A word is broken if its letters are on more than one line.
OVERFLOWS = """() => {
    const wrong = [];
    const { scrollWidth, clientWidth } = document.scrollingElement;
    if (scrollWidth > clientWidth) wrong.push(`the page is ${scrollWidth} px wide`);
    for (const part of document.querySelectorAll("header, .bar, .head, .tabs, .map")) {
        const right = part.getBoundingClientRect().right;
        if (part.checkVisibility() && right > clientWidth + 1) wrong.push(`.${part.className} ends at ${right} px`);
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!text.parentElement.checkVisibility()) continue;
        for (const word of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
            if (new Set(boxes.map((box) => Math.round(box.top))).size > 1) wrong.push(`${word[0]} in ${text.data}`);
        }
    }
    return wrong;
}"""


def first_row(visit: Visit) -> int:
    """The first row of the grid."""
    rows = "[...document.querySelectorAll('main [aria-rowindex]')].map(row => row.getAttribute('aria-rowindex') - 2)"
    return int(visit.page.evaluate(f"Math.min(...{rows}.filter(row => row >= 0))"))


#: The time from a word in the filter to its list, in milliseconds.
LISTED = """async (word) => {
    const [input, tree] = [document.querySelector("#filter"), document.querySelector("#tree")];
    const begun = performance.now();
    input.value = word;
    input.dispatchEvent(new Event("input"));
    while (tree.dataset.loaded !== word) await new Promise((resume) => setTimeout(resume, 1));
    return performance.now() - begun;
}"""
