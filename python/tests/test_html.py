"""What notebooks show: HTML that holds together, whatever names and values are, of bounded size, read from few rows."""

import datetime as dt
import html.parser
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import drumlin
from drumlin import _drumlin

#: Elements that may be shown, and those among them that have no end.
ELEMENTS = {"b", "br", "div", "pre", "span", "table", "tbody", "td", "th", "thead", "tr"}
ENDLESS = {"br"}
#: Names of columns and values that try to be something else.
HOSTILE = [
    "<script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "&lt;b&gt;",
    "a\x01b\x1b[31mred",
    "\u202eevil\u202c \u2066x",
    "e\u0301" * 50,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\ufffe\ufdd0\U0010ffff",
    "]]>-->",
    "line\nline\r\ttab\u2028",
    "x" * 1_000_000,
]


class Reader(html.parser.HTMLParser):
    """Checks that every element is known, closed in order, and has no attribute but a style or a class."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert name in ("class", "style"), (tag, name)
            assert "url" not in (value or "")
        if tag not in ENDLESS:
            self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def read(value: Any) -> Reader:
    """What a notebook shows of a value, checked."""
    shown = value._repr_html_()
    assert isinstance(shown, str)
    assert len(shown.encode()) <= 64 << 10
    for char in shown:
        # Nothing that turns text around, and nothing that ends it.
        assert char.isprintable() or char in "\n\u200d", ascii(char)
    reader = Reader()
    reader.feed(shown)
    reader.close()
    assert reader.open == []
    return reader


def text(value: Any) -> str:
    return "\n".join(read(value).text)


@pytest.fixture
def hostile(store: drumlin.Store) -> drumlin.Store:
    columns = {name[:200]: HOSTILE for name in HOSTILE}
    table = pa.table({**columns, "bytes": [value.encode() for value in HOSTILE], "nested": [[v] for v in HOSTILE]})
    store.write("<b>t</b>", table, metadata={value[:200]: value for value in HOSTILE})
    return store


def everything(store: drumlin.Store, path: str) -> Iterator[Any]:
    """One of each that is shown."""
    yield from (store, store.table(path), store.table("nothing here"), store.read(path), store.read(path, limit=3))
    yield from (store.scan("**"), store.table(path).schema(), store.table(path).diff(0), store.read_many([path]))
    yield from (*store.table(path).versions(), store.stat(), store.table(path).stat())
    yield store.vacuum_plan()
    yield store.scan("**").explain()
    yield store.snapshot("snap <i>", "**")
    yield from (store.tree.put_many({"n/<u>": {"<script>": "x" * 1_000_000}}), store.tree.node("n/<u>"))
    yield from (store.tree.put("m", HOSTILE), *store.tree.list())
    yield store.copy(path, "copy")
    yield next(store.table("copy").follow("beginning"))
    yield store.table("copy").update({store.table(path).schema().names[3]: "'<'"})
    yield store.purge("copy", "bytes = bytes", explain=True)
    yield store.purge("copy", "bytes = bytes")
    yield from (store.drop("copy"), *store.trash())
    yield from (store.checkpoint(), store.reclaim(), store.verify())


def test_hostile_names_and_values_are_text(hostile: drumlin.Store) -> None:
    kinds = set()
    for value in everything(hostile, "<b>t</b>"):
        read(value)
        kinds.add(type(value).__name__)
    assert kinds >= {"Store", "Table", "Result", "Version", "StoreStat", "CheckpointReport", "ReclaimReport"}
    assert kinds >= {"VacuumPlan", "DropReport", "VerifyReport", "PurgePlan", "PurgeReceipt", "UpdateReport"}
    shown = text(hostile.read("<b>t</b>"))
    assert "<script>alert(1)</script>" in shown
    assert "\\u202eevil" in shown
    assert "x" * 40 in shown


def test_every_report_of_the_package_is_shown() -> None:
    handles = {"Batch", "ChangeFeed", "Mask", "Options", "ProjectionView", "Split", "Splits", "Ticket", "Token"}
    handles |= {
        "Transaction",
        "Tree",
        "Groups",
        "Merge",
        "P",
        "Expr",
        "Generated",
        "Sink",
        "Constraints",
        "TimeToLive",
        "Retention",
        "Durations",
        "Ui",
    }
    handles |= {"Generated", "Joined", "Presence", "RowFeed", "Sink", "Windows"}
    kinds = {name: getattr(drumlin, name) for name in drumlin.__all__}
    plain = {
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and not issubclass(kind, Exception) and not hasattr(kind, "_repr_html_")
    }
    assert plain == handles


def test_fields_of_a_report_are_there_in_order(store: drumlin.Store) -> None:
    version = store.write("t", {"n": [1, 2, 3]}, metadata={"by": "me"})
    shown = read(version).text
    assert [shown[at] for at in range(1, 13, 2)] == ["version", "kind", "rows", "time", "metadata", "message"]
    assert "by: me" in shown
    stat = text(store.stat())
    assert "cache_hits" in stat
    assert "live_bytes" in stat
    for n in range(30):
        store.write(f"many/{n:02}", {"n": [n]})
    shown = text(store.drop("many/*"))
    assert "many/09" in shown
    assert "many/10" not in shown
    assert "20 more" in shown


def test_plans_list_their_tables(store: drumlin.Store) -> None:
    for name in ("a", "b"):
        for _ in range(3):
            store.append(name, {"n": [1]}) if name in store.tables() else store.write(name, {"n": [1]})
    shown = text(store.vacuum_plan())
    assert "tables: 2" in shown
    assert "row_groups_before" in shown


def test_a_result_shows_its_first_rows(store: drumlin.Store) -> None:
    times = [dt.datetime(2026, 1, 2, 3, 4, at % 60) for at in range(100)]
    store.write("t", {"n": list(range(100)), "x": [None] + [0.5] * 99, "at": times}, metadata="noted")
    reader = read(store.read("t"))
    assert reader.rows == 11
    assert {"version 0, 100 rows, 3 columns", "n", "int64", "null", "0.5", "2026-01-02 03:04:09"} <= set(reader.text)
    assert text(store.read("t", where="n >= 90", columns=["n"])).split()[-10:] == [str(n) for n in range(90, 100)]
    assert text(store.read("t", tail=50, columns=["n"])).split()[-10:] == [str(n) for n in range(50, 60)]
    assert text(store.read("t", tail=3, columns=["n"])).split()[-3:] == ["97", "98", "99"]
    assert text(store.read("t", rows=slice(20, 22), columns=["n"])).split()[-2:] == ["20", "21"]
    # The last rows that a filter keeps are found from the end; only columns are shown.
    assert read(store.read("t", tail=50, where="n > 1")).rows == 1
    assert text(store.scan("t", limit=2, columns=["n"])).split()[-2:] == ["0", "1"]
    assert text(store.scan("t").group_by().agg(rows="count")).split()[-1] == "100"


def test_wide_tables_are_cut(store: drumlin.Store) -> None:
    many = {f"column {n} " + "\U0001f600" * 100: ["&" * 1000] * 20 for n in range(10_000)}
    store.write("wide", pa.table(many))
    for value in (store.read("wide"), store.scan("wide"), store.table("wide"), store.table("wide").schema()):
        reader = read(value)
        assert any("more" in part for part in reader.text)


def looked_up(store: drumlin.Store, work: Callable[[], object]) -> int:
    before = store.stat()
    work()
    after = store.stat()
    return after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses


def test_only_the_rows_shown_are_read(store: drumlin.Store) -> None:
    rows = pa.table({f"c{n}": pa.array(range(300_000)) for n in range(40)})
    store.write("t", rows)
    shown = [f"c{n}" for n in range(20)]
    few = looked_up(store, lambda: store.read("t", limit=10, columns=shown).to_arrow())
    everything = looked_up(store, lambda: store.read("t").to_arrow())
    assert few * 5 < everything
    assert looked_up(store, lambda: read(store.read("t"))) <= few
    assert looked_up(store, lambda: read(store.read("t", rows=slice(200_000, None)))) <= few
    assert looked_up(store, lambda: read(store.read("t", tail=1000))) <= few
    assert looked_up(store, lambda: read(store.scan("t"))) <= few
    assert looked_up(store, lambda: read(store.table("t"))) == 0
    assert looked_up(store, lambda: read(store)) == 0


def test_a_result_that_was_shown_reads_as_before(store: drumlin.Store) -> None:
    store.write("t", {"n": [1, 2, 3]})
    result = store.read("t")
    read(result)
    store.write("t", {"n": [4]})
    assert result.to_arrow()["n"].to_pylist() == [1, 2, 3]
    assert "version 0, 3 rows, 1 column" in read(result).text


def test_what_fails_is_shown_by_its_plain_text(store: drumlin.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("t", {"n": [1, 2, 3]})
    values = [store, store.table("t"), store.scan("t"), store.read("t"), store.table("t").diff(0)]
    for value in values[3:4]:
        value.to_arrow()
    store.close()
    for value in values:
        shown = read(value)
        assert shown.text == [repr(value)]
    with monkeypatch.context() as broken:
        broken.setattr(drumlin.Store, "__repr__", lambda _: 1 / 0)
        assert "drumlin._nouns.store.Store object" in text(store)


def test_a_store_in_a_bucket_costs_no_requests(store: drumlin.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_many({f"t{n:02}": {"n": [n]} for n in range(30)})
    monkeypatch.setattr(drumlin.Store, "uri", "s3://bucket/prefix")
    monkeypatch.setattr(drumlin.Store, "stat", lambda _: pytest.fail("the bucket was asked"))
    shown = text(store)
    assert "s3://bucket/prefix" in shown
    assert "t09" in shown
    assert "and 20 more" in shown


def test_nothing_in_a_report_is_needed_to_be_small(store: drumlin.Store) -> None:
    store.write_many({f"t{n}": {"n": [n]} for n in range(3000)})
    for value in (store, store.snapshot("all"), store.drop("**"), store.checkpoint(), store.read_many([])):
        read(value)


def test_the_core_has_no_class_that_was_forgotten() -> None:
    for name, kind in vars(_drumlin).items():
        if isinstance(kind, type) and name.endswith(("Report", "Plan", "Stat", "Receipt")):
            assert hasattr(kind, "_repr_html_"), name
