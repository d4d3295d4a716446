//! Watching a store.

use drumlin::Tables;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::Desk;

/// A running `watch`, whose lines are awaited for a limited time.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn new(desk: &Desk, args: &[&str]) -> Self {
        let mut child = desk.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map(Result::unwrap).try_for_each(|line| sender.send(line)).unwrap_or_default();
        });
        Self { child, lines }
    }

    /// The next line, without commit and time.
    fn next(&self) -> String {
        let line = self.lines.recv_timeout(Duration::from_secs(30)).expect("a line is printed");
        let (seq, rest) = line.split_once('\t').unwrap();
        let (time, rest) = rest.split_once('\t').unwrap();
        assert!(seq.parse::<u64>().is_ok() && time.ends_with('Z'), "{line}");
        rest.to_owned()
    }

    /// Its exit code, and what it said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let said = std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.child.kill();
    }
}

#[test]
fn watch_prints_what_another_process_does() {
    let desk = Desk::with_tables();
    let seq = || desk.json(&["stat", "s", "--json"])["seq"].to_string();
    let watching = Watching::new(&desk, &["watch", "s", "--since", &seq()]);
    let steps: [(&[&str], &[&str]); 13] = [
        (&["put", "s", "c/n", "{\"x\": [1]}"], &["create\tc/n\t{\"x\":[1]}"]),
        (&["put", "s", "c/n", "2"], &["update\tc/n\t2"]),
        (&["put", "s", "c", "3"], &["update\tc\t3"]),
        (&["rm", "s", "c"], &["delete\tc", "delete\tc/n\t(a node above it was removed)"]),
        (&["import", "s", "x.csv", "--table", "t"], &["table-write\tt"]),
        (&["import", "s", "x.csv", "--table", "t", "-a"], &["table-append\tt"]),
        (&["delete", "s", "t", "-w", "n = 1"], &["table-delete\tt"]),
        (&["delete-versions", "s", "t", "0"], &["table-delete-versions\tt"]),
        (&["drop", "s", "t"], &["table-drop\tt"]),
        (&["undrop", "s", "t", "--to", "u"], &["table-undrop\tu"]),
        (&["copy", "s", "u", "v"], &["table-copy\tv"]),
        (&["move", "s", "v", "w"], &["table-move-away\tv", "table-move\tw"]),
        (&["restore", "s", "w", "1"], &["table-restore\tw"]),
    ];
    for (args, lines) in steps {
        desk.ok(args);
        lines.iter().for_each(|line| assert_eq!(watching.next(), *line, "{args:?}"));
    }
    assert!(Command::new("kill").args(["-INT", &watching.child.id().to_string()]).status().unwrap().success());
    let seq = seq();
    let (code, said) = watching.end();
    assert_eq!(code, Some(130));
    assert!(said.ends_with(&format!("drumlin: interrupted: --since {seq} continues from here\n")), "{said}");
}

#[test]
fn watch_goes_on_behind_a_checkpoint() {
    let desk = Desk::new();
    desk.ok(&["put", "s", "a", "1"]);
    let watching = Watching::new(&desk, &["watch", "s", "--since", "0"]);
    assert_eq!(watching.next(), "create\ta\t1");
    desk.ok(&["checkpoint", "s"]);
    desk.ok(&["put", "s", "a", "2"]);
    assert_eq!(watching.next(), "update\ta\t2");
    desk.fails(1, &["watch", "s", "--since", "0"], &["since commit 0", "no longer available"]);
}

#[test]
fn watch_goes_on_beside_a_writer_that_stays() {
    let desk = Desk::new();
    let uri = desk.path("s").to_str().unwrap().to_owned();
    let writer = drumlin::Store::open_with(&uri, Default::default()).unwrap();
    let watching = Watching::new(&desk, &["watch", "s", "--since", "0", "n/*", "--count", "200"]);
    for n in 0..200 {
        writer.tree().put(&format!("n/{n}"), n).unwrap();
        writer.tree().put("other", n).unwrap();
    }
    (0..200).for_each(|n| assert_eq!(watching.next(), format!("create\tn/{n}\t{n}")));
    assert_eq!(watching.end(), (Some(0), String::new()));
    writer.close().unwrap();
}

#[test]
fn watch_tells_what_was_meant_only() {
    let desk = Desk::with_tables();
    desk.file("raw", "ab");
    desk.ok(&["put", "s", "a/n", "--bytes", "raw"]);
    desk.ok(&["put", "s", "an", "1"]);
    desk.ok(&["rm", "s", "a/n"]);
    let paths = |args: &[&str]| {
        let lines = desk.ok(&[&["watch", "s", "--since", "0"], args].concat());
        lines.lines().map(|line| line.split('\t').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["-n", "6"]), ["a/x", "a/y", "b", "a/n", "an", "a/n"]);
    assert_eq!(paths(&["a", "-n", "4"]), ["a/x", "a/y", "a/n", "a/n"]);
    assert_eq!(paths(&["a*", "-n", "1"]), ["an"]);
    let lines = desk.ok(&["watch", "s", "a/?", "--since", "0", "-n", "4", "--json"]);
    let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        assert!(line.as_object_mut().unwrap().remove("time").is_some_and(|time| time.is_string()));
    }
    let node = json!({ "bytes": "6162", "payload_version": 1, "children": 0 });
    let seq = |at: usize| lines[at]["seq"].as_u64().unwrap();
    let (table, written) = (&lines[0]["table"], seq(0));
    let write =
        json!({ "seq": written, "messages": [], "kind": "table", "action": "write", "path": "a/x", "table": table });
    assert_eq!(lines[0], write);
    let created = json!({
        "seq": seq(2), "messages": [], "kind": "node", "action": "create", "cause": "asked", "path": "a/n", "before": null, "after": node,
    });
    let deleted = json!({
        "seq": seq(3), "messages": [], "kind": "node", "action": "delete", "cause": "asked", "path": "a/n", "before": node, "after": null,
    });
    assert_eq!((&lines[2], &lines[3]), (&created, &deleted));
    assert_eq!(seq(3), seq(2) + 2);
    desk.fails(1, &["watch", "s", "--since", "99"], &["since commit 99", "newest commit is"]);
    desk.fails(1, &["watch", "s", "a//b"], &["a//b"]);
    desk.fails(1, &["watch", "none"], &["none"]);
    desk.fails(2, &["watch", "s", "--count", "0"], &["0"]);
    desk.fails(2, &["watch", "s", "--since", "eod"], &["eod"]);
}
