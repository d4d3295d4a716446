//! `follow`, `promote` and `clone`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::desk::Desk;

#[test]
fn a_replica_is_kept_read_and_promoted() {
    let desk = Desk::with_tables();
    let told = desk.ok(&["follow", "s", "r", "--once"]);
    assert!(told.starts_with("commit "), "{told}");
    assert_eq!(desk.ok(&["ls", "r"]), desk.ok(&["ls", "s"]));
    assert_eq!(desk.ok(&["cat", "r", "b"]), desk.ok(&["cat", "s", "b"]));
    let told = desk.ok(&["follow", "s", "r", "--once"]);
    assert!(told.ends_with(": 0 commits, 0 blocks, 0 B\n"), "{told}");
    desk.fails(1, &["put", "r", "note", "1"], &["replica of s", "drumlin promote"]);
    desk.fails(1, &["follow", "r", "s", "--once"], &["store of its own"]);
    desk.fails(1, &["promote", "s"], &["store of its own"]);
    desk.ok(&["put", "s", "note", "1"]);
    let told: Value = serde_json::from_str(&desk.ok(&["follow", "s", "r", "--once", "--json"])).unwrap();
    assert_eq!((told["commits"].as_u64(), told["whole"].as_u64()), (Some(1), Some(0)), "{told}");
    desk.ok(&["put", "s", "later", "2"]);
    let told = desk.ok(&["promote", "r"]);
    assert!(told.contains("s is ended, after commit ") && told.contains("r can be written now"), "{told}");
    assert_eq!(desk.ok(&["get", "r", "later"]).trim(), "2");
    desk.ok(&["put", "r", "own", "3"]);
    desk.fails(1, &["put", "s", "lost", "1"], &["was ended"]);
    // It is still read, and is a store again if it is promoted, too.
    assert_eq!(desk.ok(&["get", "s", "later"]).trim(), "2");
    let told: Value = serde_json::from_str(&desk.ok(&["promote", "s", "--json"])).unwrap();
    assert!(told["ended"].is_null() && told["store"].as_str().is_some_and(|id| id.len() == 32), "{told}");
    desk.ok(&["put", "s", "on", "1"]);
}

#[test]
fn what_cannot_be_reached_is_given_up_by_request_only() {
    let desk = Desk::with_tables();
    desk.ok(&["follow", "s", "r", "--once", "--no-lease"]);
    std::fs::rename(desk.path("s"), desk.path("moved")).unwrap();
    desk.fails(1, &["promote", "r"], &["cannot be ended", "lost"]);
    desk.fails(1, &["put", "r", "note", "1"], &["replica of s"]);
    desk.fails(2, &["promote", "r", "--lost", "--source", "moved"], &["cannot be used with"]);
    let told = desk.ok(&["promote", "r", "--source", "moved"]);
    assert!(told.contains("moved is ended"), "{told}");
    desk.ok(&["clone", "r", "c"]);
    desk.ok(&["follow", "c", "d", "--once"]);
    let told = desk.ok(&["promote", "d", "--lost"]);
    assert!(told.contains("may have later commits"), "{told}");
    desk.ok(&["put", "c", "note", "1"]);
}

#[test]
fn each_moment_that_is_kept_is_restored() {
    let desk = Desk::new();
    for n in 1..6 {
        desk.ok(&["put", "s", "note", &n.to_string()]);
        desk.ok(&["follow", "s", "r", "--once", "--keep-log", "30d"]);
    }
    desk.ok(&["checkpoint", "s"]);
    desk.ok(&["follow", "s", "r", "--once"]);
    desk.fails(1, &["clone", "s", "c", "--as-of", "2"], &["commit 2 can no longer be restored"]);
    assert!(!desk.path("c").exists() || std::fs::read_dir(desk.path("c")).unwrap().next().is_none());
    let told = desk.ok(&["restore-store", "r", "c", "--as-of", "2"]);
    assert!(told.contains("c ends with commit 2"), "{told}");
    assert_eq!(desk.ok(&["get", "c", "note"]).trim(), "2");
    desk.fails(1, &["clone", "r", "c", "--as-of", "3"], &["c is a store of its own"]);
    desk.fails(2, &["clone", "r", "e", "--as-of", "yesterday"], &["'yesterday' is not a commit", "2026-"]);
    desk.fails(1, &["clone", "r", "e", "--as-of", "1970-01-01"], &["can no longer be restored"]);
    desk.fails(1, &["clone", "r", "e", "--as-of", "99"], &["has no commit 99"]);
    let copy: Value = serde_json::from_str(&desk.ok(&["clone", "r", "e", "--json"])).unwrap();
    assert!(copy["commit"].as_u64().is_some_and(|seq| seq >= 5), "{copy}");
}

#[test]
fn it_goes_on_until_it_is_interrupted() {
    let desk = Desk::with_tables();
    let mut child = desk.command(&["follow", "s", "r", "--poll", "20ms", "--json"]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = 0;
    for n in 0..4 {
        let told: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let commit = told["commit"].as_u64().unwrap();
        assert!(commit > last, "{told}");
        last = commit;
        if n < 3 {
            desk.ok(&["put", "s", "note", &n.to_string()]);
        }
    }
    assert_eq!(desk.ok(&["get", "r", "note"]).trim(), "2");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(130) && said.contains("the same command continues"), "{said}");
    desk.ok(&["follow", "s", "r", "--once"]);
}
