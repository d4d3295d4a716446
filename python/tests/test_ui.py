"""The page of a store in a real browser: everything that it shows, on a store in a folder and on one in a bucket."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from browser import LISTED, PLACES, TABLE, Visit, chromium, expected, fill, first_row, frame, until, visited
from servers.places import KINDS, place

import drumlin


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module", params=KINDS)
def shown(
    request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[drumlin.Store]:
    folder = tmp_path_factory.mktemp(request.param)
    with place(request.param, folder) as (uri, options):
        store = drumlin.open(uri, storage_options=options, writer="tests") if options else drumlin.open(uri)
        with store:
            fill(store)
            yield store


@pytest.fixture
def visit(browser: Any, shown: drumlin.Store, request: pytest.FixtureRequest) -> Iterator[Visit]:
    with shown.ui(open_browser=False, write=True) as page:
        visited = Visit(browser, page.address)
        yield visited
        visited.picture(request.node.name)
        visited.close()


def test_the_tree_shows_tables_with_their_rows_and_is_filtered(visit: Visit, shown: drumlin.Store) -> None:
    assert "2,500" in visit.node(TABLE).inner_text()
    assert visit.node("config/feeds/a").is_visible()
    visit.page.fill("#filter", "msf")
    visit.wait("document.querySelector('#matches').textContent === '1 found'")
    assert [visit.node(path).count() for path in ("prices/us/MSFT", TABLE)] == [1, 0]
    visit.page.fill("#filter", "")
    visit.node(TABLE).wait_for()
    visit.node("prices").locator(".fold").click()
    visit.node(TABLE).wait_for(state="detached")
    visit.node("prices").locator(".fold").click()
    visit.node(TABLE).click()
    visit.page.get_by_role("heading", name=TABLE).wait_for()
    visit.node("config/feeds/a").click()
    assert '"owner": "me"' in visit.page.locator("pre.value", has_text="owner").inner_text()


def test_rows_are_those_of_the_store(visit: Visit, shown: drumlin.Store) -> None:
    rows = expected(shown).to_pylist()
    visit.table(TABLE)
    for at in (0, 10, 20):
        row = rows[at]
        texts = [str(row["n"]), f"{row['close']:g}", row["venue"] or "null"]
        assert [visit.text(at, column) for column in range(3)] == texts
    # To the end, by keys.
    visit.cell(0, 0).focus()
    visit.page.keyboard.press("Control+End")
    assert visit.text(len(rows) - 1, 0) == str(rows[-1]["n"])
    assert visit.page.locator("[role=grid]:visible [role=row]").count() < 100


def test_rows_are_filtered_and_sorted(visit: Visit, shown: drumlin.Store) -> None:
    visit.table(TABLE)
    where = "venue = 'BATS' and close > 50"
    visit.page.get_by_label("Filter of rows").fill(where)
    visit.page.keyboard.press("Enter")
    found = expected(shown, where=where)
    visit.page.get_by_text(f"{found.num_rows:,} rows found").wait_for()
    assert visit.text(0, 0) == str(found["n"][0].as_py())
    visit.page.get_by_role("columnheader", name="close").get_by_role("button").click()
    visit.wait("document.querySelector('[aria-sort=ascending]') !== null")
    visit.shows(0, 1, f"{pc.min(found['close']).as_py():g}")
    visit.page.get_by_role("columnheader", name="close").get_by_role("button").click()
    visit.wait("document.querySelector('[aria-sort=descending]') !== null")
    visit.shows(0, 1, f"{pc.max(found['close']).as_py():g}")
    visit.page.get_by_label("Filter of rows").fill("nonsense >")
    visit.page.keyboard.press("Enter")
    visit.page.get_by_role("alert").filter(has_text=re.compile(r"\w")).wait_for()
    visit.refused(400)


def test_a_filter_typed_before_the_table_is_known_counts(visit: Visit, shown: drumlin.Store) -> None:
    visit.table("prices/us/MSFT")
    visit.text(0, 0)
    late = visit.hold("table", lambda: visit.table(TABLE))
    visit.page.get_by_label("Filter of rows").fill("close > 50")
    visit.page.keyboard.press("Enter")
    visit.let_go(late)
    found = expected(shown, where="close > 50")
    visit.page.get_by_text(f"{found.num_rows:,} rows found").wait_for()
    assert visit.text(0, 0) == str(found["n"][0].as_py())


@pytest.mark.parametrize("question", ["table", "versions", "layout"])
def test_an_answer_to_an_earlier_question_is_not_shown(visit: Visit, question: str) -> None:
    tab = {"table": "rows"}.get(question, question)
    late = visit.hold(question, lambda: visit.table(TABLE, tab, "0"))
    visit.table(TABLE if question == "table" else "prices/us/MSFT", tab)
    seen = {"table": "#panel-rows output", "versions": ".line", "layout": "[aria-label=Map] output"}[question]
    visit.page.locator(seen).first.filter(has_text=re.compile(r"\d")).wait_for()
    visit.wait("document.querySelectorAll('.line li').length !== 3")
    shown = visit.page.locator(seen).first.inner_text()
    visit.let_go(late)
    assert visit.page.locator(seen).first.inner_text() == shown


def test_the_schema_tells_columns_and_order(visit: Visit) -> None:
    visit.table(TABLE, "schema")
    row = visit.page.get_by_role("row", name=re.compile("int64"))
    assert "sort 1" in row.inner_text()


def test_versions_are_a_time_line_by_which_old_rows_are_read(visit: Visit, shown: drumlin.Store) -> None:
    visit.table(TABLE, "versions")
    items = visit.page.locator(".line li")
    items.first.wait_for()
    assert items.count() == 3
    newest = items.first.inner_text()
    assert all(part in newest for part in ("v2", "delete", "−500", "bad ticks"))
    assert "eod" in items.nth(1).inner_text()
    visit.page.get_by_role("button", name="Rows of version 0").click()
    visit.page.get_by_text("version 0", exact=True).wait_for()
    visit.shows(0, 0, str(expected(shown, as_of=0)["n"][0].as_py()))
    visit.page.get_by_role("button", name="show the newest").click()
    visit.shows(0, 0, "500")
    visit.table(TABLE, "versions")
    visit.page.get_by_role("button", name="Rows in snapshot eod").click()
    visit.shows(0, 0, "0")


def test_the_difference_of_two_versions(visit: Visit, shown: drumlin.Store) -> None:
    visit.table(TABLE, "versions")
    visit.page.get_by_role("button", name="Changes of version 2").click()
    visit.page.get_by_text("500 rows: 0 inserted, 500 deleted, 0 updated").wait_for()
    assert [visit.text(0, column) for column in (0, 1)] == ["delete", "0"]
    differs = shown.table(TABLE).diff(0, 1).to_arrow().num_rows
    visit.page.get_by_label("From version").select_option("0")
    visit.page.get_by_label("To version").select_option("1")
    visit.page.get_by_text(f"{differs:,} rows").first.wait_for()
    visit.shows(0, 0, "insert")


def test_a_chart_of_a_column_over_another(visit: Visit, shown: drumlin.Store) -> None:
    visit.table(TABLE, "chart")
    drawing = visit.page.get_by_role("img", name=re.compile("close over n"))
    drawing.wait_for()
    close = expected(shown)["close"]
    label = drawing.get_attribute("aria-label")
    assert label is not None
    assert label.endswith(f"from {pc.min(close).as_py():g} to {pc.max(close).as_py():g}")
    assert visit.page.get_by_text("2,500 rows in 600 buckets").is_visible()
    visit.page.get_by_label("Filter of the chart").fill("close < 10")
    visit.page.keyboard.press("Tab")
    few = expected(shown, where="close < 10").num_rows
    visit.page.get_by_text(re.compile(f"^{few:,} rows in")).wait_for()


def test_the_map_has_a_cell_for_each_row_group(visit: Visit, shown: drumlin.Store) -> None:
    visit.go("map")
    cells = visit.page.get_by_label("Row groups by block")
    visit.wait("document.querySelector('[data-cells]:not([data-cells=\"0\"])') !== null")
    assert int(cells.get_attribute("data-cells") or 0) == shown.stat().row_groups
    cells.focus()
    about = visit.page.locator(".about:visible")
    seen = set()
    for _ in range(shown.stat().row_groups):
        seen.add(re.sub(r"\s+", " ", about.inner_text()))
        visit.page.keyboard.press("ArrowRight")
    assert any(TABLE in text and "the newest version" in text for text in seen)
    assert len(seen) == shown.stat().row_groups
    for colour in ("dead share", "age", "who needs it"):
        visit.page.get_by_label(colour).check()
    held = visit.page.locator(".held")
    assert "older versions and snapshots" in held.inner_text()


def test_a_checkpoint_is_shown_before_and_after(visit: Visit, shown: drumlin.Store) -> None:
    shown.delete_versions({TABLE: [version.version for version in shown.table(TABLE).versions()[:-1]]})
    shown.drop_snapshot("eod")
    for start in range(0, 60, 10):
        shown.append("prices/eu/SAP", frame(start, 10))
    before = shown.stat().row_groups
    planned = sum(len(table.windows) for table in shown.vacuum_plan().tables)
    visit.go("map")
    windows = visit.page.get_by_role("table", name="Windows").locator("tbody tr")
    windows.first.wait_for()
    assert windows.count() == planned
    visit.page.get_by_role("button", name="Run a checkpoint").click()
    done = visit.page.get_by_role("table", name="What the checkpoint did")
    done.wait_for()
    after = shown.stat().row_groups
    assert after < before
    row = done.get_by_role("row", name=re.compile("row groups")).first.inner_text().split()
    assert row[-2:] == [str(before), str(after)]
    visit.page.get_by_label("before").check()
    visit.wait(f"document.querySelector('main [data-cells]').dataset.cells === '{before}'")
    # The store is for the tests that follow as it was for those before.
    shown.snapshot("eod", TABLE)


def test_the_log_is_followed(visit: Visit, shown: drumlin.Store) -> None:
    visit.go("log")
    visit.page.locator(".commits").wait_for(state="attached")
    shown.with_message("while one watches").write("live/new", {"x": [1]})
    visit.page.locator(".commits li", has_text="while one watches").wait_for()
    assert "live/new" in visit.page.locator(".commits li", has_text="while one watches").inner_text()
    # The tree follows, too.
    visit.node("live/new").wait_for()
    visit.page.get_by_label("Filter of commits").fill("nothing like it")
    visit.page.get_by_text(re.compile("^0 of the last")).wait_for()
    visit.page.get_by_label("Filter of commits").fill("")
    visit.page.get_by_role("button", name="live/new").first.click()
    visit.shows(0, 0, "1")
    # So do the rows of the table that is shown.
    shown.append("live/new", {"x": [2]})
    visit.shows(1, 0, "2")


def test_dropped_tables_come_back(visit: Visit, shown: drumlin.Store) -> None:
    shown.write("old/table", {"x": [1, 2, 3]})
    shown.drop("old/table")
    visit.go("activity")
    visit.page.get_by_role("button", name="Undrop old/table").click()
    visit.page.get_by_text("old/table is back").wait_for()
    visit.node("old/table").wait_for()
    assert shown.read("old/table").to_arrow().num_rows == 3
    assert "eod" in visit.page.get_by_role("region", name="Snapshots").inner_text()
    visit.page.get_by_role("button", name="Show by_owner").click()
    assert "config/feeds/a" in visit.page.get_by_role("dialog").inner_text()
    visit.page.get_by_role("button", name="Close").click()
    assert "this process" in visit.page.get_by_role("region", name="Sessions").inner_text()


def test_metrics_are_shown_and_given_as_text(visit: Visit, shown: drumlin.Store) -> None:
    visit.go("metrics")
    row = visit.page.get_by_role("row", name=re.compile("^drumlin_tables "))
    assert f" {shown.stat().tables}" in re.sub(r"\s+", " ", row.inner_text())
    visit.page.get_by_role("button", name="As text").click()
    assert f"drumlin_tables {shown.stat().tables}\n" in visit.page.locator("dialog pre").inner_text()
    visit.page.keyboard.press("Escape")


def test_hostile_names_and_values_are_shown_as_text(visit: Visit, shown: drumlin.Store) -> None:
    path = "hostile/<img src=x onerror=alert(1)>\u202e\"'"
    bold = "<b onclick=alert(2)>name</b>"
    long = "<script>alert(3)</script>" * 40_000
    shown.with_message("<script>alert(4)</script>").write(
        path, {bold: [long, "\u202eright\u0007", "x"], "y": [1, 2, 3]}
    )
    visit.node(path.replace('"', '\\"')).click()
    visit.page.get_by_role("heading", name="hostile/<img src=x onerror=alert(1)>").wait_for()
    assert visit.page.locator("main img, main b, main script").count() == 0
    assert visit.text(1, 0) == "\\u202eright\\u0007"
    assert visit.text(0, 0).startswith("<script>")
    assert len(visit.text(0, 0)) < 1000
    visit.cell(0, 0).focus()
    visit.page.keyboard.press("Enter")
    visit.page.get_by_text(f"{len(long):,} characters").wait_for()
    assert visit.page.locator("dialog pre").text_content() == long
    visit.page.keyboard.press("Escape")
    visit.go("log")
    visit.page.locator(".commits li", has_text="<script>alert(4)</script>").first.wait_for()
    shown.drop("hostile/**")


def test_everything_is_reached_by_keys(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#filter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is visible"
    for _ in range(40):
        page.keyboard.press("ArrowDown")
        if page.evaluate("document.activeElement.dataset.path") == TABLE:
            break
    assert page.locator("[role=tree] [tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=TABLE).wait_for()
    visit.text(0, 0)
    page.locator("#tab-rows").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tab-schema[aria-selected=true]")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tab-rows[aria-selected=true]")
    visit.text(0, 0)
    visit.cell(0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End", "Home", "PageDown", "PageUp", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        assert page.locator("[role=grid]:visible [tabindex='0']").count() == 1, key
    assert page.evaluate("document.activeElement.getAttribute('role')") == "columnheader"
    unnamed = """[...document.querySelectorAll('button, input, select, [role=grid], [role=tree], [role=application]')]
        .filter(e => e.checkVisibility() && !(e.ariaLabel || e.labels?.length || e.textContent.trim()))
        .map(e => e.outerHTML)"""
    assert page.evaluate(unnamed) == []


def test_a_server_that_only_reads_offers_no_changes(browser: Any, shown: drumlin.Store) -> None:
    shown.write("old/reading", {"x": [1]})
    shown.drop("old/reading")
    seq = shown.seq
    with shown.ui(open_browser=False) as page:
        visit = Visit(browser, page.address, color_scheme="dark")
        assert visit.page.get_by_text("read only").is_visible()
        for view in ("map", "activity", "log", "metrics"):
            visit.go(view)
            visit.page.wait_for_timeout(300)
            assert visit.page.get_by_role("button", name=re.compile("Undrop|Run a checkpoint")).count() == 0
            visit.picture(f"dark-{view}")
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, re.findall(r"\d+", ground))) < 150, "dark"
        visit.close()
    assert shown.seq == seq


def test_the_page_is_locked_without_the_token(browser: Any, shown: drumlin.Store) -> None:
    with shown.ui(open_browser=False) as page:
        address, token = page.address.split("#token=")
        assert token not in repr(page)
        context = browser.new_context()
        for place in (address, f"{address}#token={'0' * 64}"):
            tab = context.new_page()
            tab.goto(place)
            tab.get_by_role("heading", name="This page is locked").wait_for()
            assert TABLE not in tab.content()
            tab.close()
        tab = context.new_page()
        tab.goto(page.address)
        tab.wait_for_selector("[role=treeitem]")
        assert token not in tab.url, "the token does not stay in the address"
        assert "token" not in tab.evaluate("document.cookie")
        # Another page of this host, which is not the server's own, cannot read it.
        other = context.new_page()
        other.goto("about:blank")
        read = "address => fetch(address + 'api/store').then(answer => answer.status, error => error.name)"
        assert other.evaluate(read, address) == "TypeError"
        context.close()


def test_the_command_line_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    uri = str(tmp_path / "store")
    with drumlin.open(uri) as store:
        store.write("t", {"n": [1, 2, 3]})
    program = "import sys; from drumlin._cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "ui", uri, "--no-open"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        address, token = run.stdout.readline().strip().split("#token=")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}api/store", timeout=10)
        asked = urllib.request.Request(f"{address}api/store", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert b'"tables":1' in answer.read()
        # It reads, so another process may write, and is seen.
        with drumlin.open(uri) as store:
            store.write("u", {"n": [1]})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert b'"tables":2' in answer.read()
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=20) == 130
        assert "the server has ended" in run.stderr.read()


def test_millions_of_rows_and_many_tables_are_scrolled_over(browser: Any, store: drumlin.Store) -> None:
    many = 2_000_000
    store.write("big", pa.table({"n": pa.array(range(many), pa.int64())}))
    store.write_many({f"t/{n // 100:02}/{n:04}": {"x": [n]} for n in range(1000)})
    with store.ui(open_browser=False) as page:
        visit = Visit(browser, page.address)
        visit.table("big")
        visit.text(0, 0)
        # By the scroll bar, which is spread over more rows than a browser takes pixels, and from there row by row.
        grid = visit.page.locator("[role=grid]:visible").element_handle()
        visit.page.evaluate("grid => { grid.scrollTop = grid.scrollHeight }", grid)
        visit.shows(many - 1, 0, str(many - 1))
        visit.page.mouse.move(800, 500)
        visit.page.mouse.wheel(0, -2400)
        visit.shows(many - 120, 0, str(many - 120))
        visit.page.evaluate("grid => { grid.scrollTop = grid.scrollHeight / 2 }", grid)
        until(lambda: abs(first_row(visit) - many / 2) < many / 100, "the rows in the middle")
        assert visit.page.locator("[role=grid]:visible [role=row]").count() < 100
        assert visit.page.locator("[role=treeitem]").count() < 100
        times = [visit.page.evaluate(LISTED, word) for word in ("05", "099", "t/", "1", "0")]
        assert min(times) < 100, f"1,000 tables take {times} ms to be listed"
        visit.close()


def test_many_tables_are_folded_and_the_open_one_is_in_view(browser: Any, store: drumlin.Store) -> None:
    store.write_many({"a": {"x": [1]}, **{f"t/{n // 100:02}/{n:04}": {"x": [n]} for n in range(1000)}})
    with visited(browser, store) as visit:
        nodes = visit.page.locator("[role=treeitem]")
        assert [node.get_attribute("data-path") for node in nodes.all()] == ["a", "t"]
        assert visit.page.locator("aside .headings").inner_text().split() == ["Name", "Rows", "Size"]
        assert "1,000 tables" in visit.node("t").inner_text()
        visit.table("t/07/0750")
        visit.node("t/07/0750").wait_for()
        tree, row = visit.page.locator("#tree").bounding_box(), visit.node("t/07/0750").bounding_box()
        assert tree["y"] <= row["y"] <= tree["y"] + tree["height"] - row["height"]
        assert visit.node("t/07/0750").get_attribute("aria-selected") == "true"
        assert nodes.evaluate_all("all => all.some(node => node.dataset.path.startsWith('t/06/'))") is False
        # What is folded again stays so, whatever is committed.
        visit.page.evaluate("document.querySelector('#tree').scrollTop = 0")
        visit.node("t").locator(".fold").click()
        visit.node("t/07").wait_for(state="detached")
        store.write("b", {"x": [1]})
        visit.node("b").wait_for()
        assert visit.node("t/07").count() == 0


def test_the_facts_are_those_of_the_version_that_is_shown(browser: Any, store: drumlin.Store) -> None:
    store.write("t", {"x": list(range(2000))})
    store.append("t", {"x": [1]})
    store.table("t").add_columns({"y": "int64"})
    with visited(browser, store) as visit:
        facts = visit.page.locator(".head .facts")
        for as_of, told in (("0", "2,000 rows 1 column"), ("1", "2,001 rows 1 column"), ("", "2,001 rows 2 columns")):
            visit.table("t", as_of=as_of)
            until(lambda told=told: told in re.sub(r"\s+", " ", facts.inner_text()), told)
            assert f"{2 if as_of != '0' else 1} row group" in re.sub(r"\s+", " ", facts.inner_text())


def test_a_dropped_table_is_said_to_be_gone(browser: Any, store: drumlin.Store) -> None:
    others = ["gone", "later", *(f"many/{n}" for n in range(60))]
    store.write_many({"kept": {"x": [1234, 2]}, **{path: {"y": [7]} for path in others}})
    store.drop("gone")
    with visited(browser, store) as visit:
        for tab in ("rows", "schema", "versions", "chart", "changes", "layout"):
            visit.table("kept", tab)
            visit.page.locator(f"#panel-{tab}").filter(has_text=re.compile(r"\w")).wait_for()
            visit.go("tables", "gone", tab, "")
            visit.page.get_by_text("There is no table at gone.").wait_for()
            assert visit.page.get_by_text(re.compile("It was dropped .* the trash")).is_visible()
            assert re.search("1,?234|2 rows|version|int64", visit.page.locator("main").inner_text()) is None
        # One that goes while it is looked at, and comes back.
        visit.table("later", "schema")
        visit.page.locator("#panel-schema").filter(has_text="int64").wait_for()
        store.drop("later")
        visit.page.get_by_text("There is no table at later.").wait_for()
        store.undrop("later")
        visit.page.locator("#panel-schema").filter(has_text="int64").wait_for()
        # One of more than a commit of the log tells of.
        visit.table("many/59", "schema")
        visit.page.locator("#panel-schema").filter(has_text="int64").wait_for()
        store.drop("many/**")
        visit.page.get_by_text("There is no table at many/59.").wait_for()
        visit.refused(404)


def test_updates_are_shown_in_one_row(browser: Any, store: drumlin.Store) -> None:
    rows = {"id": [1, 2, 3], "price": [10.5, 20.0, None], "name": ["a", "b", "c"]}
    store.table("k").create(pa.table(rows).schema, key=["id"])
    store.table("k").write(rows)
    store.table("k").update({"price": "30.25"}, where="id >= 2")
    store.table("k").delete("id = 1")
    with visited(browser, store) as visit:
        visit.go("tables", "k", "versions", "")
        visit.page.get_by_role("button", name="Changes of version 2").click()
        visit.page.get_by_text("2 rows: 0 inserted, 0 deleted, 2 updated").wait_for()
        assert [visit.text(0, column) for column in range(4)] == ["update", "2", "20 → 30.25", "b"]
        assert visit.text(1, 2) == "null → 30.25"
        changed = visit.page.locator("[role=grid]:visible .cell.changed")
        assert [cell.inner_text() for cell in changed.all()] == ["20 → 30.25", "null → 30.25"]
        visit.page.get_by_label("To version").select_option("3")
        visit.page.get_by_text("3 rows: 0 inserted, 1 deleted, 2 updated").wait_for()


def test_what_is_empty_is_said_in_words(browser: Any, store: drumlin.Store) -> None:
    with visited(browser, store) as visit:
        assert visit.page.locator("aside").get_by_text("There are no tables yet.").is_visible()
        assert visit.page.locator("main").get_by_text("This store has no tables yet.").is_visible()
        visit.go("log")
        visit.page.get_by_text("There are no commits yet").wait_for()
        visit.go("map")
        visit.page.get_by_text("There are no row groups.").wait_for()
        store.write("t", {"x": [1, 2]})
        store.table("t").delete("x > 0")
        store.append("t", {"x": [3]})
        visit.table("t", as_of="1")
        visit.page.get_by_text("Version 1 has no rows.").wait_for()
        visit.table("t")
        visit.shows(0, 0, "3")
        assert visit.page.get_by_text("no rows").count() == 0
        visit.page.get_by_label("Filter of rows").fill("x > 5")
        visit.page.keyboard.press("Enter")
        visit.page.get_by_text("No row passes the filter.").wait_for()
        visit.table("t", "changes")
        visit.page.get_by_label("From version").select_option("2")
        visit.page.get_by_text("The two versions have the same rows.").wait_for()
        visit.page.fill("#filter", "nothing like it")
        visit.page.locator("aside").get_by_text("Nothing in the tree matches.").wait_for()
        visit.go("log")
        visit.page.get_by_label("Filter of commits").fill("nothing like it")
        visit.page.get_by_text("No commit matches the filter.").wait_for()


def test_a_sort_by_a_column_that_is_gone_is_given_up(browser: Any, store: drumlin.Store) -> None:
    store.write("t", {"x": [1, 2, 3], "y": [1, 3, 2]})
    store.table("t").add_columns({"z": "int64"})
    with visited(browser, store) as visit:
        for column in ("z", "y"):
            visit.table("t")
            visit.text(0, 0)
            visit.page.get_by_role("columnheader", name=column).get_by_role("button").click()
            visit.page.get_by_text(f"sorted here by {column}").wait_for()
            # An older version lacks the one, the newest soon the other.
            visit.table("t", as_of="0") if column == "z" else store.table("t").drop_columns("y")
            visit.page.get_by_text("in the order of insertion").wait_for()
            visit.shows(2, 0, "3")
            assert visit.page.locator("[role=alert]:visible").count() == 0


def test_types_are_spelled_as_arrow_does_and_times_are_in_their_zone(browser: Any, store: drumlin.Store) -> None:
    times = pa.array([1_705_276_800_000_000, 1_705_320_000_000_000], pa.int64())
    table = pa.table(
        {
            "berlin": times.cast(pa.timestamp("us", "Europe/Berlin")),
            "utc": times.cast(pa.timestamp("us", "UTC")),
            "price": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            "venue": pa.array(["a", "b"]).dictionary_encode(),
            "n": [1.0, 2.0],
        }
    )
    store.write("t", table)
    # Whether a dictionary is ordered is not kept.
    types = [str(field.type).replace(", ordered=0", "") for field in store.read("t").to_arrow().schema]
    assert types[0] == "timestamp[us, tz=Europe/Berlin]"
    with visited(browser, store) as visit:
        visit.table("t")
        assert visit.text(0, 0) == "2024-01-15T01:00:00+01:00"
        assert visit.text(0, 1) == "2024-01-15T00:00:00Z"
        assert visit.page.locator("[role=grid]:visible .type").all_inner_texts() == types
        visit.table("t", "schema")
        visit.page.locator("#panel-schema td .mono").first.wait_for()
        assert visit.page.locator("#panel-schema td .mono").all_inner_texts() == types
        visit.table("t", "chart")
        visit.page.get_by_label("Across").select_option("berlin")
        visit.page.get_by_label("Upwards").select_option("n")
        visit.page.get_by_role("img", name=re.compile("n over berlin")).wait_for()
        assert "times in Europe/Berlin" in visit.page.locator(".chart").inner_text()
        assert "2024-01-15 03:00" in visit.page.locator(".chart").inner_text()


def test_a_narrow_page_fits(browser: Any, store: drumlin.Store) -> None:
    fill(store, long_names=True)
    store.set_retention("prices/**", keep_last=3)
    with visited(browser, store, write=True, viewport={"width": 600, "height": 800}) as visit:
        for place, text in PLACES.items():
            visit.go(*place)
            visit.page.locator("main", has_text=text).wait_for()
            visit.picture(f"narrow-{'-'.join(place)}")
            assert visit.overflows() == [], place
        visit.go("map")
        visit.page.get_by_role("button", name="Run a checkpoint").click()
        visit.page.get_by_role("table", name="What the checkpoint did").wait_for()
        assert visit.overflows() == []
        # A broken word would be noticed.
        visit.page.evaluate("document.querySelector('.held span').style = 'width: 1ch; overflow-wrap: anywhere'")
        assert len(visit.overflows()) > 0
        cells = visit.page.get_by_label("Row groups by block").bounding_box()
        assert cells["height"] > 120, "the map is seen beside what is said of it"


def test_the_log_names_what_happened(visit: Visit, shown: drumlin.Store) -> None:
    shown.write("logged/t", {"x": [1]})
    shown.snapshot("named", "logged/t")
    shown.set_retention("logged/**", keep_last=2)
    shown.drop("logged/**")
    visit.go("log")
    commits = visit.page.locator(".commits")
    assert "Time (UTC)" in visit.page.locator("[aria-label=Log] .headings").inner_text()
    for told in ("snapshot named 1 table", "retention logged keeps the last 2 versions", "drop logged/t"):
        until(lambda told=told: told in re.sub(r"\s+", " ", commits.inner_text()), told)
    # The one that is dropped while one watches.
    shown.drop_snapshot("named")
    visit.page.locator(".commits li", has_text=re.compile(r"drop snapshot\s+named")).wait_for()
