"""The command ``drumlin sql``: statements given, piped and typed at a prompt in a terminal."""

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import drumlin

COMMAND = Path(sys.executable).with_name("drumlin")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store = drumlin.open(tmp_path / "s")
    store.write("prices/AAPL", {"day": [1, 2, 3], "close": [1.5, 2.5, 3.5]})
    store.table("users").create({"id": int, "name": str}, key="id")
    store.close()
    return tmp_path / "s"


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "sql", *arguments], input=text, capture_output=True, text=True, check=False)


def test_a_query_is_printed_in_each_form(place: Path) -> None:
    query = "select day, close from prices.AAPL where close > 2 order by day"
    assert run(str(place), query).stdout == "day  close\n  2    2.5\n  3    3.5\n"
    assert run(str(place), query, "--format", "csv").stdout == "day,close\n2,2.5\n3,3.5\n"
    assert run(str(place), query, "-f", "json").stdout == '{"day":2,"close":2.5}\n{"day":3,"close":3.5}\n'


def test_statements_change_the_store_and_say_how_many_rows(place: Path) -> None:
    ran = run(str(place), "insert into users values (1, 'ada'), (2, 'alan')")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "drumlin: 2 rows\n")
    ran = run(
        str(place), text="begin; update users set name = upper(name) where id = 1;\ndelete from prices.AAPL; commit;"
    )
    assert ran.returncode == 0, ran.stderr
    with drumlin.open(place, mode="read") as store:
        assert store.table("users").get(1)["name"] == "ADA"
        assert len(store.read("prices/AAPL")) == 0
    assert run(str(place), "select count(*) as n from prices.AAPL", "--as-of", "0").returncode == 1
    assert run(str(place), "select count(*) as n from prices.AAPL at (version => 0)").stdout == "n\n3\n"


def test_a_store_that_is_not_there_is_made_only_by_a_change(tmp_path: Path) -> None:
    ran = run(str(tmp_path / "new"), "select 1")
    assert ran.returncode == 1, ran
    assert not (tmp_path / "new").exists()
    assert run(str(tmp_path / "new"), "create table t (id bigint)").returncode == 0
    with drumlin.open(tmp_path / "new", mode="read") as store:
        assert store.tables() == ["t"]


def test_what_fails_says_why_and_has_an_exit_code(place: Path) -> None:
    for text, code, words in [
        ("select * from prices.APPL", 1, "did you mean 'prices/AAPL'?"),
        ("selct 1", 1, "syntax error"),
        ("create view v as select 1", 2, "VIEW"),
        ("set threads = 1", 2, "would be lost"),
        ("begin; delete from users", 2, "does not end it"),
    ]:
        ran = run(str(place), text)
        assert (ran.returncode, ran.stdout) == (code, ""), (text, ran)
        assert ran.stderr.startswith("drumlin: "), (text, ran.stderr)
        assert words in ran.stderr, (text, ran.stderr)
    assert run().returncode == 2
    assert "a prompt" in run("--help").stdout
    ran = run(str(place), "select 1", "--storage-option", "secret")
    assert ran.returncode == 2
    assert "NAME=VALUE" in ran.stderr


def test_each_statement_is_answered(place: Path) -> None:
    ran = run(str(place), "select 1 as a; insert into users values (5, 'x'); select 2 as b", "-f", "csv")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "a\n1\nb\n2\n", "drumlin: 1 row\n")
    ran = run(str(place), text="begin; select 3 as c; delete from users where id = 5; select 4 as d; commit;")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "c\n3\nd\n4\n", "drumlin: 1 row\n")
    wide = str(2**127 - 1)
    assert wide in run(str(place), f"select {wide}::hugeint as h").stdout


def test_closed_output_is_an_error(place: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", f"{COMMAND} sql {place} 'select 1' >&-"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "standard output is closed" in ran.stderr


def test_control_characters_are_escaped(place: Path) -> None:
    with drumlin.open(place) as store:
        store.write("odd", {"s": ["a\x1b[2Jb", "\u202eevil"]})
        store.write("bad", {"a\x1b[31mred": [1]})
    ran = run(str(place), "select nope from bad")
    assert ran.returncode == 1
    assert "\x1b" not in ran.stderr
    ran = run(str(place), "select s from odd")
    assert "\x1b" not in ran.stdout
    assert "\u202e" not in ran.stdout
    assert r"\u{1b}" in ran.stdout


class Terminal:
    """A prompt in a terminal."""

    def __init__(self, place: Path, home: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = os.environ | {
                "XDG_STATE_HOME": str(home),
                "TERM": "dumb",
                "COLUMNS": "60",
                "PYTHONUNBUFFERED": "1",
            }
            os.execve(COMMAND, ["drumlin", "sql", str(place)], environment)

    def until(self, words: str) -> str:
        """What it shows until some words come."""
        shown = ""
        begun = time.monotonic()
        while words not in shown:
            assert time.monotonic() - begun < 120, shown
            try:
                shown += os.read(self.fd, 4096).decode(errors="replace").replace("\r", "")
            except OSError:
                break
        assert words in shown, shown
        return shown

    def says(self, line: str, words: str) -> str:
        os.write(self.fd, (line + "\n").encode())
        return self.until(words)

    def end(self) -> int:
        os.write(self.fd, b"\x04")
        while True:
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_the_prompt_runs_what_is_typed(place: Path, tmp_path: Path) -> None:
    terminal = Terminal(place, tmp_path)
    terminal.until("drumlin> ")
    terminal.says("select max(close) as m", "...> ")
    assert "3.5" in terminal.says("from prices.AAPL;", "drumlin> ")
    terminal.says("begin;", "drumlin> ")
    terminal.says("insert into users values (7, 'x');", "drumlin> ")
    assert "7" in terminal.says("select id from users;", "drumlin> ")
    terminal.says("rollback;", "drumlin> ")
    assert re.search(r"\n0\n", terminal.says("select count(*) as n from users;", "drumlin> "))
    assert "did you mean" in terminal.says("select * from prices.APPL;", "drumlin> ")
    terminal.says("begin; insert into users values (8, 'y'); commit;", "drumlin> ")
    assert "prices/AAPL" in terminal.says(".tables", "drumlin> ")
    assert "close" in terminal.says(".schema prices/AAPL", "drumlin> ")
    assert "not known" in terminal.says(".nothing", "drumlin> ")
    # Ctrl-C ends a statement, not the prompt.
    os.write(terminal.fd, b"select count(*) from range(100000000000) a;\n")
    time.sleep(1)
    os.write(terminal.fd, b"\x03")
    terminal.until("interrupted")
    terminal.until("drumlin> ")
    assert "end with a semicolon" in terminal.says("help", "drumlin> ")
    # Tab completes tables and columns.
    assert "prices.AAPL" in terminal.says("select clo\t from prices.A\t;", "drumlin> ")
    assert terminal.end() == 0
    with drumlin.open(place, mode="read") as store:
        assert store.table("users").get(8) is not None
        assert store.table("users").get(7) is None
    assert "from prices.AAPL;" in (tmp_path / "drumlin" / "sql_history").read_text()


def test_words_are_offered(place: Path) -> None:
    from drumlin._shell.prompt import Prompt
    from drumlin._shell.session import Session

    session = Session(str(place), {}, None, "table")
    prompt = Prompt(session)
    assert prompt.offered("prices.", "select * from prices.") == ["prices.AAPL"]
    assert prompt.offered("prices/", "select * from 'prices/") == ["prices/AAPL"]
    assert prompt.offered("cl", "select cl from prices.AAPL") == ["close"]
    assert prompt.offered("sel", "sel") == ["select"]
    session.close()
