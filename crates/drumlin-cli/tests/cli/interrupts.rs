//! Ctrl-C, once, ends a command whatever it waits for: input that does not come, a FIFO that nobody opens, a bucket that does not
//! answer. No test looks at a clock: what goes on is ended after a minute, and fails the test.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::desk::{Desk, Watchdog};

/// Presses Ctrl-C once, and waits for the end; returns the exit code, if it was not the signal itself that ended it.
fn interrupt(mut child: Child) -> (Option<i32>, String) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let watchdog = Watchdog::over(&child, Duration::from_secs(60));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(watchdog.ended_by_itself(), "it goes on after Ctrl-C: {said}");
    (status.code(), said)
}

/// Ctrl-C either ended the command by itself, or was noticed by it.
fn check((code, said): (Option<i32>, String)) {
    assert!(code.is_none() || code == Some(130), "{code:?} {said}");
    assert!(code.is_none() || said.contains("interrupted: "), "{said}");
}

fn spawn(desk: &Desk, args: &[&str], stdin: Stdio) -> Child {
    desk.command(args).stdin(stdin).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// More than a sample.
fn rows() -> String {
    std::iter::once("n\n".to_owned()).chain((0..100_000).map(|n| format!("{n}\n"))).collect()
}

#[test]
fn input_that_does_not_come() {
    let desk = Desk::new();
    let nodes: String = (0..20_000).map(|n| format!("{{\"path\": \"n/{n}\", \"payload\": 1}}\n")).collect();
    for (args, first) in [
        (&["import", "s", "-", "-t", "t", "-f", "csv", "--sample=10"][..], rows()),
        (&["import", "s", "-", "-t", "t", "-f", "json", "--sample=1"], "{\"n\": 1}\n".repeat(50_000)),
        (&["import-nodes", "s", "-"], nodes),
        (&["put", "s", "n", "-"], "1".to_owned()),
    ] {
        let mut child = spawn(&desk, args, Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        // All of it but what a pipe holds has been read.
        stdin.write_all(first.as_bytes()).unwrap();
        check(interrupt(child));
    }
    if desk.path("s").exists() {
        assert_eq!(desk.ok(&["ls", "s"]), "");
        desk.ok(&["verify", "s"]);
    }
}

#[test]
fn a_fifo_that_stands_still() {
    let desk = Desk::new();
    for args in [
        &["import", "s", "rows.csv", "--sample=10"][..],
        &["import-nodes", "s", "rows.csv"],
        &["put", "s", "n", "--bytes", "rows.csv"],
    ] {
        let _ = std::fs::remove_file(desk.path("rows.csv"));
        desk.fifo("rows.csv");
        let child = spawn(&desk, args, Stdio::null());
        // Opening it ends once the command has opened it.
        let mut fifo = std::fs::File::options().write(true).open(desk.path("rows.csv")).unwrap();
        if args[0] == "import" {
            fifo.write_all(rows().as_bytes()).unwrap();
        }
        check(interrupt(child));
    }
}

#[test]
fn a_fifo_that_nobody_opens() {
    let desk = Desk::with_tables();
    desk.fifo("out.csv");
    check(interrupt(spawn(&desk, &["export", "s", "b", "out.csv"], Stdio::null())));
    check(interrupt(spawn(&desk, &["export-nodes", "s", "**", "out.csv"], Stdio::null())));
}

#[test]
fn a_bucket_that_does_not_answer() {
    let desk = Desk::new();
    desk.file("rows.csv", &rows());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("endpoint=http://{}", silent.local_addr().unwrap());
    let options = ["region=us-east-1", "aws_access_key_id=a", "aws_secret_access_key=b", &endpoint];
    let options: Vec<&str> = options.iter().flat_map(|option| ["--storage-option", option]).collect();
    for args in [
        &["ls", "s3://test/s"][..],
        &["import", "s3://test/s", "rows.csv"],
        &["checkpoint", "s3://test/s"],
        &["verify", "s3://test/s"],
        &["put", "s3://test/s", "n", "1"],
        &["watch", "s3://test/s"],
        &["doctor", "s3://test/s"],
    ] {
        let child = spawn(&desk, &[args, &options].concat(), Stdio::null());
        let asked = silent.accept().unwrap();
        check(interrupt(child));
        drop(asked);
    }
}
