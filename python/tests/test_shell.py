"""The command ``drumlin sql``: statements given, piped and typed at a prompt in a terminal."""

import os
import pty
import re
import signal
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
    for options in (["--as-of", "0"], ["--as-of=-2"]):
        assert run(str(place), *options, "select count(*) as n from prices.AAPL").stdout == "n\n3\n", options
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
    assert "None" not in terminal.says("rollback;", "drumlin> ")
    assert re.search(r"\n0\n", terminal.says("select count(*) as n from users;", "drumlin> "))
    assert "did you mean" in terminal.says("select * from prices.APPL;", "drumlin> ")
    terminal.says("begin; insert into users values (8, 'y'); commit;", "drumlin> ")
    assert "prices/AAPL" in terminal.says(".tables", "drumlin> ")
    assert "close" in terminal.says(".schema prices/AAPL", "drumlin> ")
    assert "prices/AAPL" in terminal.says("\\dt", "drumlin> ")
    assert "close" in terminal.says("\\d prices.AAPL", "drumlin> ")
    assert "end with a semicolon" in terminal.says("HELP;", "drumlin> ")
    for unknown in (".nothing", "\\l"):
        assert "not known; .help lists what is" in terminal.says(unknown, "drumlin> ")
    terminal.says("select 4 as four", "...> ")
    assert "Ctrl-C clears it" in terminal.says(".tables", "...> ")
    assert "four" in terminal.says(";", "drumlin> ")
    # Ctrl-C ends a statement, not the prompt.
    os.write(terminal.fd, b"select count(*) from range(100000000000) a;\n")
    time.sleep(1)
    os.write(terminal.fd, b"\x03")
    terminal.until("interrupted")
    terminal.until("drumlin> ")
    assert "end with a semicolon" in terminal.says("help", "drumlin> ")
    # Tab completes tables and columns.
    assert "prices.AAPL" in terminal.says("select clo\t from prices.A\t;", "drumlin> ")
    terminal.says("select 1", "...> ")
    assert terminal.end() == 0
    with drumlin.open(place, mode="read") as store:
        assert store.table("users").get(8) is not None
        assert store.table("users").get(7) is None
    assert "from prices.AAPL;" in (tmp_path / "drumlin" / "sql_history").read_text()


@pytest.mark.parametrize("words", ["exit", "quit()", "EXIT;", "\\q", ".quit", "q"])
def test_a_prompt_is_left_by_many_words(place: Path, tmp_path: Path, words: str) -> None:
    terminal = Terminal(place, tmp_path)
    terminal.until("drumlin> ")
    os.write(terminal.fd, f"{words}\n".encode())
    assert terminal.end() == 0


def test_an_unfinished_statement_and_transaction_are_said_at_the_end(place: Path, tmp_path: Path) -> None:
    terminal = Terminal(place, tmp_path)
    terminal.until("drumlin> ")
    terminal.says("begin;", "drumlin> ")
    terminal.says("delete from users", "...> ")
    os.write(terminal.fd, b"\x04")
    shown = terminal.until("nothing of it was kept")
    assert "no semicolon at its end" in shown


def test_old_versions_are_only_read(place: Path) -> None:
    with drumlin.open(place, mode="read") as store:
        seq = store.seq
    for text in ("delete from prices.AAPL", "select 1; delete from prices.AAPL", "begin; select 1; commit"):
        ran = run("--as-of", "2020-01-01", str(place), text)
        assert (ran.returncode, ran.stdout) == (2, ""), ran
        assert f"drumlin restore {place} TABLE 2020-01-01" in ran.stderr
    with drumlin.open(place, mode="read") as store:
        assert store.seq == seq


MANY = "range(1000000) a, range(10000000) b where a.range * b.range % 7"


@pytest.mark.parametrize(
    "statement",
    [
        f"select count(*) from {MANY} = 3",
        f"select a.range from {MANY} = 9",
        f"insert into prices.AAPL (day) select a.range from {MANY} = 9",
        f"begin; create table t as select a.range from {MANY} = 9; commit",
    ],
)
def test_ctrl_c_ends_any_statement(place: Path, statement: str) -> None:
    for at in range(5):
        child = subprocess.Popen(
            [COMMAND, "sql", place, f"select 1 as begun; {statement}", "-f", "csv"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        # The rest begins soon after the first statement has been printed.
        time.sleep(0.3 * at)
        child.send_signal(signal.SIGINT)
        if at % 2:
            child.send_signal(signal.SIGINT)
        try:
            _, told = child.communicate(timeout=60)
        finally:
            child.kill()
        assert (child.returncode, told) == (130, "drumlin: interrupted: what is committed stays\n"), at


def test_a_text_may_have_commands_between_statements(place: Path) -> None:
    text = ".tables\n.schema prices.AAPL\nselect 'a;\n.b' as\nx;\n"
    text += ".mode csv\nselect 1 as y, 2 as z;\nhelp\nEXIT\nselect nope;"
    ran = run(str(place), text=text)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("name\nprices/AAPL\nusers\ncolumn_name")
    assert "close        DOUBLE" in ran.stdout
    assert "y,z\n1,2\nStatements end" in ran.stdout
    for command, told in [(".nothing", "not known"), (".mode", "table, csv or json"), (".schema", "takes a table")]:
        ran = run(str(place), text=f"select 1 as a;\n{command}\nselect 2 as b;")
        assert (ran.returncode, ran.stdout) == (2, "a\n1\n"), ran
        assert told in ran.stderr


def test_answers_of_a_transaction_are_printed_however_it_ends(place: Path) -> None:
    text = "begin; select 1 as x; delete from prices.AAPL; {}"
    for end in ("commit", "rollback"):
        ran = run(str(place), text.format(f"select 2 as y; {end};"), "-f", "csv")
        assert (ran.returncode, ran.stdout, ran.stderr.count("row")) == (0, "x\n1\ny\n2\n", 1)
    ran = run(str(place), text.format("delete from nope; commit"))
    assert (ran.returncode, ran.stdout) == (1, "x\n1\n")


def test_what_is_committed_before_a_failure_is_said(place: Path) -> None:
    ran = run(str(place), "insert into users values (1, 'a'); insert into users values (2, 'b'), (1, 'c')")
    assert ran.returncode == 1
    first, then, _ = ran.stderr.split("\n", 2)
    assert first == "drumlin: 1 row"
    assert then.startswith("drumlin: statement 2 of 2 failed; what those before it did is committed: ")
    with open("/dev/full", "w") as full:
        command = [COMMAND, "sql", place, "insert into users values (4, 'a'); select 1"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("what is committed stays\n")


def test_each_change_says_how_many_rows(place: Path) -> None:
    for statement in (
        "insert into prices.AAPL values (9, 9.5)",
        "update prices.AAPL set close = 1 where day = 9",
        "delete from prices.AAPL where day = 9",
        "insert into users values (9, 'i')",
        "merge into users using (select 9 as id, 'j' as name) s on users.id = s.id when matched then delete",
    ):
        assert run(str(place), statement).stderr == "drumlin: 1 row\n", statement


def test_input_that_is_no_text_is_refused_in_a_line(place: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", f"{COMMAND} sql {place} <&-"], capture_output=True, text=True, check=False, stdin=None
    )
    assert (ran.returncode, ran.stderr) == (
        1,
        "drumlin: standard input is closed; give the statements as an argument\n",
    )
    raw = subprocess.run([COMMAND, "sql", place], input=b"select 1;\n\xff\xfe", capture_output=True, check=False)
    assert (raw.returncode, raw.stdout, raw.stderr) == (2, b"", b"drumlin: line 2 is not valid UTF-8\n")


def test_what_other_shells_take_names_the_way(place: Path, tmp_path: Path) -> None:
    assert run(str(place), "-f", "csv", "select 1 as a").stdout == "a\n1\n"
    for arguments, told in [
        (["-"], "< x.sql"),
        (["x.sql"], "< x.sql"),
        (["-f", "x.sql"], "< x.sql"),
        (["-c", "select 1"], "drumlin sql STORE 'select 1'"),
        (["--json", "select 1"], "-f json"),
        (["-f", "json", "select 1 as a, 2 as a"], "by as"),
        (["commit"], "at the prompt of drumlin sql"),
        (["checkpoint"], "drumlin checkpoint STORE"),
    ]:
        ran = run(str(place), *arguments)
        assert (ran.returncode, ran.stdout) == (2, ""), (arguments, ran)
        assert told in ran.stderr, (arguments, ran.stderr)
    for store in (str(tmp_path / "nostore"), "select 1"):
        ran = run(store)
        assert ran.returncode == 1
        assert "does not exist" in ran.stderr


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
