//! Every command with absurd arguments, and with standard streams that are closed or full: it says what is wrong and
//! ends; it never panics.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::desk::{Desk, Watchdog};

/// The arguments of each command after the store. Watch ends by itself.
const COMMANDS: [(&str, &[&str]); 49] = [
    ("import", &["x.csv"]),
    ("export", &["b", "out.csv"]),
    ("ls", &["a"]),
    ("tree", &["a"]),
    ("cat", &["b"]),
    ("head", &["b"]),
    ("info", &["b"]),
    ("diff", &["b", "0"]),
    ("schema", &["b"]),
    ("stat", &["b"]),
    ("versions", &["b"]),
    ("history", &["b"]),
    ("delete", &["b", "--where=n = 7"]),
    ("update", &["b", "--set=n=n + 1"]),
    ("alter", &["b", "--add=z=Int8"]),
    ("delete-versions", &["b", "7"]),
    ("drop", &["zz"]),
    ("undrop", &["zz"]),
    ("restore", &["b", "0"]),
    ("copy", &["a", "zz"]),
    ("move", &["a", "zz"]),
    ("copy-to", &["new"]),
    ("purge", &["zz", "--where=n = 7"]),
    ("trash", &[]),
    ("snapshot create", &["eod"]),
    ("snapshot list", &[]),
    ("snapshot drop", &["eod"]),
    ("index create", &["b", "i", "n"]),
    ("index list", &["b"]),
    ("index rebuild", &["b", "i"]),
    ("index drop", &["b", "i"]),
    ("retention", &["a"]),
    ("checkpoint", &[]),
    ("vacuum", &[]),
    ("reclaim", &[]),
    ("verify", &[]),
    ("salvage", &["new"]),
    ("share", &[]),
    ("unshare", &[]),
    ("move-log", &["--back"]),
    ("follow", &["--once", "new"]),
    ("promote", &["--lost"]),
    ("clone", &["new"]),
    ("get", &["note"]),
    ("put", &["note", "1"]),
    ("rm", &["note"]),
    ("export-nodes", &["note"]),
    ("import-nodes", &["nodes"]),
    ("watch", &["--since=0", "--count=1"]),
];

/// The values given to every option.
const ODD: [&str; 10] =
    ["", "-1", "0", "NaN", "1e308", "18446744073709551615", "18446744073709551616", "=", "日本", "{"];

/// The values given in every other place too.
fn odd() -> Vec<Vec<u8>> {
    let more = ["-", "--", "/", "a//b", "**", "\n\u{1b}[31m\u{202e}", "s", "0-18446744073709551615", "n in ("];
    let mut odd: Vec<Vec<u8>> = ODD.iter().chain(&more).map(|text| text.as_bytes().to_vec()).collect();
    odd.extend([
        vec![b'x'; 100_000],
        "a/".repeat(1000).into_bytes(),
        "((".repeat(5000).into_bytes(),
        b"\xff\xfe".to_vec(),
    ]);
    odd
}

/// The options of a command that take a value.
fn options(desk: &Desk, command: &[&str]) -> Vec<String> {
    let help = desk.ok(&[command, &["--help"]].concat());
    let lines = help.lines().filter_map(|line| line.trim_start().split_once("--"));
    let named = lines.filter(|(before, rest)| (before.is_empty() || before.starts_with('-')) && rest.contains('<'));
    let options = named.map(|(_, rest)| format!("--{}", rest.split([' ', '=']).next().unwrap())).collect::<Vec<_>>();
    assert!(options.contains(&"--storage-option".to_owned()), "{options:?}");
    options
}

fn check(ended: &Output, what: &dyn std::fmt::Debug) {
    let said = String::from_utf8_lossy(&ended.stderr);
    let code = ended.status.code();
    assert!(code.is_some_and(|code| [0, 1, 2, 3].contains(&code)), "{what:?}: {code:?} {said}");
    assert!(!said.contains("panicked") && !said.contains("internal error"), "{what:?}: {said}");
    assert!(code == Some(0) || !said.is_empty() || !ended.stdout.is_empty(), "{what:?}: failed in silence");
}

#[test]
fn every_command_is_tried() {
    let desk = Desk::new();
    let help = desk.ok(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.map(|line| line.split_whitespace().next().unwrap()) {
        // One needs a bucket, one has no arguments, one is the Python package's, and one serves until it is interrupted.
        let known = COMMANDS.iter().any(|(name, _)| name.split(' ').next() == Some(command));
        assert!(known || ["completions", "doctor", "help", "migrate", "sql", "ui"].contains(&command), "{command}");
    }
}

#[test]
fn what_needs_python_says_so() {
    let desk = Desk::new();
    for args in [&["migrate"][..], &["migrate", "--help"], &["migrate", "arcticdb", "lmdb://a", "b", "c", "--no-such"]]
    {
        desk.fails(1, args, &["pip install drumlin"]);
    }
}

/// A store, and what every command needs to have something to do.
fn desk() -> Desk {
    let desk = Desk::with_tables();
    desk.file("nodes", "{\"path\": \"q\", \"payload\": 1}\n");
    desk.ok(&["put", "s", "note", "1"]);
    desk
}

fn run(desk: &Desk, command: &[&str], args: &[&OsStr]) {
    let mut piped = desk.command(command);
    let child = piped.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let watchdog = Watchdog::over(&child, Duration::from_secs(300));
    let output = child.wait_with_output().unwrap();
    let in_time = watchdog.ended_by_itself();
    let shown: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().chars().take(40).collect()).collect();
    assert!(in_time, "{command:?} {shown:?} does not end");
    check(&output, &(command, shown));
}

#[test]
fn odd_arguments_are_refused_without_a_panic() {
    let odd = odd();
    for (command, rest) in COMMANDS {
        let desk = desk();
        let command: Vec<&str> = command.split(' ').collect();
        let args: Vec<&OsStr> = ["s"].iter().chain(rest).map(OsStr::new).collect();
        // These would wait forever without their options.
        let waits = |at: usize| match command[..] {
            ["watch"] => at > 0,
            ["follow"] => at == 1,
            _ => false,
        };
        let places = (0..args.len()).filter(|at| !waits(*at));
        for (at, value) in places.flat_map(|at| odd.iter().map(move |value| (at, value))) {
            let mut args = args.clone();
            args[at] = OsStr::from_bytes(value);
            run(&desk, &command, &args);
        }
        run(&desk, &command, &[]);
        run(&desk, &command, &[&args[..], &args[..]].concat());
    }
}

#[test]
fn odd_options_are_refused_without_a_panic() {
    for (command, rest) in COMMANDS {
        let desk = desk();
        let command: Vec<&str> = command.split(' ').collect();
        for option in options(&desk, &command) {
            // A watch without an end would wait forever.
            for value in ODD.iter().filter(|_| option != "--count") {
                let given = format!("{option}={value}");
                let args = ["s"].iter().chain(rest).filter(|arg| !arg.starts_with(&option)).copied();
                let args: Vec<&OsStr> = args.chain([given.as_str()]).map(OsStr::new).collect();
                run(&desk, &command, &args);
            }
        }
    }
}

#[test]
fn standard_streams_may_be_closed_or_full() {
    for (command, rest) in COMMANDS {
        let desk = desk();
        for streams in
            ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full 2>/dev/full", "</", "2>&1 | true"]
        {
            for store in ["s", "none", "/dev/null"] {
                let quoted: Vec<String> = rest.iter().map(|arg| format!("'{arg}'")).collect();
                let script = format!("$D {command} {store} {} {streams}", quoted.join(" "));
                let ran = desk.shell(&script);
                assert!(ran.code.is_some_and(|code| code <= 3), "{script}: {:?} {}", ran.code, ran.err);
                assert!(!ran.err.contains("panicked") && !ran.err.contains("internal error"), "{script}: {}", ran.err);
            }
        }
    }
}

#[test]
fn an_answer_that_cannot_be_printed_is_a_failure() {
    let desk = Desk::with_tables();
    for command in ["ls s", "cat s b", "stat s", "export s b - -f csv", "get s '**'", "tree s"] {
        desk.ok(&["put", "s", "note", "1"]);
        let ran = desk.shell(&format!("$D {command} > /dev/full"));
        assert!(ran.code == Some(1) && ran.err.contains("standard output: "), "{command}: {:?} {}", ran.code, ran.err);
    }
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let desk = Desk::with_tables();
    desk.fails(1, &["import", "/proc/store", "x.csv"], &["/proc/store"]);
    desk.fails(1, &["import", "/dev/null", "x.csv"], &["/dev/null is not a folder"]);
    desk.fails(1, &["export", "s", "b", "/proc/b.csv"], &["/proc/b.csv"]);
    desk.fails(1, &["export-nodes", "s", "**", "/proc/nodes"], &["/proc/nodes"]);
    let full =
        desk.shell("TMPDIR=/proc/none; export TMPDIR; $D export s b - -f parquet | $D import t - -f parquet -t b");
    assert!(full.code == Some(1) && full.err.contains("/proc/none") && full.err.contains("TMPDIR"), "{}", full.err);
    assert!(!desk.path("t").exists());
}

#[test]
fn file_names_need_not_be_utf8() {
    let desk = Desk::with_tables();
    let odd = OsStr::from_bytes(b"caf\xe9.csv");
    std::fs::write(desk.0.path().join(odd), "n\n1\n").unwrap();
    let ended = desk.command(&["import", "s", "--table", "cafe"]).arg(odd).stdin(Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let ended = desk.command(&["import", "s"]).arg(odd).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("--table"));
    let ended = desk.command(&["export", "s", "cafe", "--force"]).arg(odd).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn words_of_other_programs_lead_to_the_command() {
    let desk = Desk::new();
    desk.file("c.csv", "id,l\n1,2\n");
    desk.ok(&["import", "s", "c.csv"]);
    for (args, words) in [
        (&["show", "s", "c"][..], &["here: drumlin cat STORE TABLE"][..]),
        (&["undelete", "s", "c"], &["here: drumlin undrop"]),
        (&["prune", "s"], &["here: drumlin delete-versions"]),
        (&["gc", "s"], &["here: drumlin reclaim"]),
        (&["tag", "s"], &["here: drumlin snapshot create"]),
        (&["s"], &["here: drumlin ls s, or drumlin sql s"]),
        (&["snapshot", "show", "s"], &["here: drumlin snapshot create STORE NAME, list STORE"]),
        (&["cat", "s", "c", "--json"], &["here: --format json"]),
        (&["cat", "s", "c", "--filter", "x"], &["here: --where"]),
        (&["import", "s", "c.csv", "--name", "x"], &["here: --table"]),
        (&["drop", "s", "c", "--if-exists"], &["here: --missing ignore"]),
    ] {
        let ran = desk.run(args);
        ran.fails(2, args, words);
        assert!(!ran.err.contains("purge") && !ran.err.contains("__"), "{}", ran.err);
    }
    // What only looks alike is still told, but not what is for the completion alone.
    let ran = desk.run(&["complet"]);
    ran.fails(2, &["complet"], &["completions"]);
    assert!(!ran.err.contains("__"), "{}", ran.err);
    desk.fails(1, &["import", "s", "c.csv", "foo/c4"], &["foo/c4", "--table"]);
    desk.fails(1, &["import", "c.csv", "s"], &["s is a folder", "the store first"]);
    desk.fails(1, &["copy-to", "s", "c", "t"], &["no table matches 't'", "STORE OTHER PATTERN"]);
    assert!(!desk.path("c").exists());
    let full = desk.command(&["--help"]).stdout(std::fs::File::create("/dev/full").unwrap()).status().unwrap();
    assert_eq!(full.code(), Some(1));
}
