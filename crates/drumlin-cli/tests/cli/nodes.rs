//! Nodes and their payloads.

use std::process::Stdio;

use serde_json::json;

use crate::desk::Desk;

#[test]
fn nodes_carry_json() {
    let desk = Desk::new();
    desk.ok(&["put", "s", "config/a", "{\"url\": \"x\", \"n\": [1, 2]}"]);
    assert_eq!(desk.json(&["get", "s", "config/a"]), json!({ "url": "x", "n": [1, 2] }));
    assert_eq!(desk.fed(&["put", "s", "config/b", "-"], "\"from a pipe\"").code, Some(0));
    assert_eq!(desk.ok(&["get", "s", "config/b"]), "\"from a pipe\"\n");
    desk.ok(&["put", "s", "config/b", "-7.5"]);
    assert_eq!(desk.ok(&["get", "s", "config/b"]), "-7.5\n");
    desk.fails(2, &["put", "s", "config/a", "nonsense"], &["not JSON"]);
    desk.fails(1, &["get", "s", "config"], &["no payload"]);
    desk.fails(1, &["get", "s", "nothing"], &["no node"]);
    desk.fails(1, &["put", "s", "a//b", "1"], &["path"]);
    desk.fails(1, &["put", "new", "a//b", "1"], &["path"]);
    assert!(!desk.path("new").exists(), "nothing is made for a path that is none");
}

#[test]
fn nodes_carry_bytes() {
    let desk = Desk::new();
    std::fs::write(desk.path("raw"), b"\0\xff\t\"").unwrap();
    desk.ok(&["put", "s", "raw", "--bytes", "raw"]);
    assert_eq!(desk.command(&["get", "s", "raw"]).output().unwrap().stdout, b"\0\xff\t\"");
    assert_eq!(desk.ok(&["get", "s", "r*"]), "raw\tb\"\\x00\\xff\\t\\\"\"\n");
    assert_eq!(desk.fed(&["put", "s", "fed", "--bytes", "-"], "not JSON").code, Some(0));
    assert_eq!(desk.ok(&["get", "s", "fed"]), "not JSON");
    assert_eq!(desk.ok(&["tree", "s"]), "s\n├── fed  [8 bytes]\n└── raw  [4 bytes]\n");
    desk.fails(1, &["put", "s", "raw", "--bytes", "missing"], &["missing"]);
    desk.fails(2, &["put", "s", "raw"], &["<JSON>"]);
    desk.fails(2, &["put", "s", "raw", "1", "--bytes", "raw"], &["--bytes"]);
    std::fs::write(desk.path("large"), vec![0; (1 << 20) + 1]).unwrap();
    desk.fails(1, &["put", "s", "raw", "--bytes", "large"], &["1048577 bytes", "at most 1048576"]);
}

#[test]
fn a_put_may_have_conditions() {
    let desk = Desk::new();
    desk.fails(1, &["put", "s", "a", "1", "--there"], &["s"]);
    desk.fails(1, &["put", "s", "a", "1", "--if", "0"], &["s"]);
    assert!(!desk.path("s").exists());
    desk.ok(&["put", "s", "a", "1", "--new"]);
    desk.fails(3, &["put", "s", "a", "2", "--new"], &["'a'"]);
    desk.fails(3, &["put", "s", "b", "2", "--there"], &["no node at 'b'"]);
    desk.fails(3, &["put", "s", "b", "2", "--if", "1"], &["no node at 'b'"]);
    desk.ok(&["put", "s", "a", "2", "--there"]);
    desk.fails(3, &["put", "s", "a", "3", "--if", "1"], &["'a'", "is 2"]);
    assert_eq!(desk.ok(&["get", "s", "a"]), "2\n");
    desk.ok(&["put", "s", "a", "{\"y\": 1, \"x\": [null]}", "--if", "2"]);
    desk.ok(&["put", "s", "a", "-1", "--there", "--if", "{\"x\": [null], \"y\": 1}"]);
    desk.ok(&["put", "s", "a", "null", "--if", "-1"]);
    desk.ok(&["put", "s", "a", "0", "--if", "null"]);
    desk.fails(2, &["put", "s", "a", "1", "--if", "x"], &["--if", "not JSON"]);
    desk.fails(2, &["put", "s", "a", "1", "--if", "1", "--new"], &["--new"]);
    desk.fails(2, &["put", "s", "a", "1", "--new", "--there"], &["--there"]);
}

#[test]
fn patterns_print_many_payloads_and_trees() {
    let desk = Desk::with_tables();
    desk.ok(&["put", "s", "a/note", "{\"by\": \"me\"}"]);
    desk.ok(&["put", "s", "c/d/note", &format!("\"line\\n{}\"", "x".repeat(200))]);
    desk.ok(&["put", "s", "note", "[1, 2]"]);
    let long = format!("c/d/note\t\"line\\n{}\"\n", "x".repeat(200));
    assert_eq!(desk.ok(&["get", "s", "**/note"]), format!("a/note\t{{\"by\":\"me\"}}\n{long}note\t[1,2]\n"));
    assert_eq!(desk.ok(&["get", "s", "z/*"]), "");
    desk.fails(1, &["get", "s", "a//*"], &["pattern"]);
    let tree = "\
s
├── a
│   └── note  [JSON]
├── c
│   └── d
│       └── note  [JSON]
└── note  [JSON]
";
    assert_eq!(desk.ok(&["tree", "s", "**/note"]), tree);
    assert_eq!(desk.ok(&["tree", "s", "**/note", "--depth", "1"]), "s\n├── a\n├── c\n└── note  [JSON]\n");
    let shown = format!("c/d\n└── note  \"line\\n{}…\n", "x".repeat(73));
    assert_eq!(desk.ok(&["tree", "s", "c/d", "--payloads"]), shown);
    assert_eq!(desk.ok(&["tree", "s", "a", "-p"]).lines().nth(1), Some("├── note  {\"by\":\"me\"}"));
    assert_eq!(desk.ok(&["tree", "s", "z*"]), "s\n");
    desk.fails(1, &["tree", "s", "z"], &["'z'"]);
}

#[test]
fn nodes_are_removed_with_what_depends_on_them() {
    let desk = Desk::with_tables();
    let lines = "\
{\"path\": \"c/x\", \"payload\": 1}
{\"path\": \"c/x/1\", \"payload\": 2}
{\"path\": \"c/y\", \"payload\": 3}
{\"path\": \"d\", \"payload\": 4, \"keep_while\": [[\"c/x/1\", {\"exists\": true}]]}
";
    desk.file("nodes", lines);
    desk.ok(&["import-nodes", "s", "nodes"]);
    let gone = "c/x\nc/x/1\ta node above it was removed\nd\tthe condition of its keep_while no longer holds\n";
    assert_eq!(desk.ok(&["rm", "s", "c/x", "--dry-run"]), gone);
    assert_eq!(desk.ok(&["export-nodes", "s", "**"]).lines().count(), 4);
    assert_eq!(desk.ok(&["rm", "s", "c/x"]), gone);
    desk.ok(&["import-nodes", "s", "nodes"]);
    let gone = format!("{}c/y\n", gone);
    assert_eq!(desk.ok(&["rm", "s", "c/*", "-n"]), gone);
    assert_eq!(desk.ok(&["rm", "s", "c/*", "--yes"]), gone);
    assert_eq!(desk.ok(&["get", "s", "**"]), "");
    assert_eq!(desk.ok(&["rm", "s", "c/*"]), "");
    desk.fails(1, &["rm", "s", "c/x"], &["no node at 'c/x'"]);
    desk.fails(1, &["rm", "s", "c/x", "--dry-run"], &["no node at 'c/x'"]);
    for path in ["a", "a/*", "**"] {
        desk.fails(1, &["rm", "s", path], &["'a/x' holds a table"]);
    }
    desk.fails(1, &["rm", "none", "x"], &["none"]);
    assert_eq!(desk.ok(&["ls", "s"]).lines().count(), 4);
}

#[test]
fn nodes_go_to_lines_and_back() {
    let desk = Desk::new();
    desk.file("raw", "ab");
    desk.ok(&["put", "s", "c/a", "{\"z\": 1.5, \"b\": null}"]);
    desk.ok(&["put", "s", "c/b", "--bytes", "raw"]);
    desk.ok(&["put", "s", "c", "\"top\""]);
    desk.ok(&["put", "s", "d", "0"]);
    let lines = "\
{\"path\":\"c\",\"payload\":\"top\"}
{\"path\":\"c/a\",\"payload\":{\"b\":null,\"z\":1.5}}
{\"bytes\":\"6162\",\"path\":\"c/b\"}
";
    assert_eq!(desk.ok(&["export-nodes", "s", "c"]), lines);
    assert_eq!(desk.ok(&["export-nodes", "s", "*"]).lines().count(), 2);
    assert_eq!(desk.ok(&["export-nodes", "s", "z*"]), "");
    assert!(desk.ok(&["export-nodes", "s", "c", "out"]).starts_with("out: 3 nodes, "));
    assert_eq!(desk.text("out"), lines);
    desk.fails(1, &["export-nodes", "s", "d", "out"], &["out", "--force"]);
    assert_eq!(desk.text("out"), lines);
    desk.fails(1, &["export-nodes", "s", "z"], &["nothing at 'z'"]);
    desk.fails(1, &["export-nodes", "s", "c", "none/out"], &["none"]);
    desk.fails(2, &["export-nodes", "s"], &["<PATTERN>"]);

    assert_eq!(desk.ok(&["import-nodes", "t", "out"]), "3 nodes: 3 made, 0 replaced\n");
    assert_eq!(desk.ok(&["export-nodes", "t", "**"]), lines);
    desk.ok(&["rm", "t", "c/a"]);
    assert_eq!(desk.ok(&["import-nodes", "t", "out"]), "3 nodes: 1 made, 2 replaced\n");
    let ran = desk.fed(&["import-nodes", "t", "--under", "x/y/"], lines);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "3 nodes: 3 made, 0 replaced\n"));
    assert_eq!(desk.ok(&["get", "t", "x/y/c/b"]), "ab");
    desk.ok(&["export-nodes", "s", "d", "out", "--force"]);
    assert_eq!(desk.text("out"), "{\"path\":\"d\",\"payload\":0}\n");

    let before = desk.ok(&["export-nodes", "t", "**"]);
    for (line, words) in [
        ("[1]", &["line 2"][..]),
        ("{\"path\": \"a\"}", &["line 2", "'a'", "'payload' or 'bytes'"]),
        ("{\"path\": \"a*\", \"payload\": 1}", &["line 2", "'a*'"]),
        ("{\"path\": \"a\", \"bytes\": \"6\"}", &["line 2", "hexadecimal"]),
        ("{\"path\": \"a\", \"payload\": 1, \"more\": 2}", &["line 2", "'more'"]),
    ] {
        desk.file("bad", &format!("{{\"path\": \"new\", \"payload\": 1}}\n{line}\n"));
        desk.fails(1, &["import-nodes", "t", "bad"], &[&["bad: "], words].concat());
    }
    desk.file("bad", "{\"path\": \"new\", \"payload\": 1, \"keep_while\": [[\"q\", {\"exists\": true}]]}\n");
    desk.fails(3, &["import-nodes", "t", "bad"], &["bad: ", "'new'", "'q'"]);
    desk.fails(1, &["import-nodes", "t", "missing"], &["missing"]);
    desk.fails(1, &["import-nodes", "new", "missing"], &["missing"]);
    desk.fails(1, &["import-nodes", "t", "out", "--under", "a//b"], &["a//b"]);
    assert!(!desk.path("new").exists());
    assert_eq!(desk.ok(&["export-nodes", "t", "**"]), before);
}

#[test]
fn a_reader_of_few_among_many_nodes_gets_them() {
    let desk = Desk::new();
    let line = |n: u32| format!("{{\"path\":\"n/{n}\",\"payload\":\"{}\"}}\n", "x".repeat(100));
    desk.file("many", &(0..20_000).map(line).collect::<String>());
    assert_eq!(desk.ok(&["import-nodes", "s", "many"]), "20,000 nodes: 20,000 made, 0 replaced\n");
    for args in [&["export-nodes", "s", "n"], &["get", "s", "n/*"], &["watch", "s", "--since=0"]] {
        let mut child = desk.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{args:?}");
    }
    assert_eq!(desk.ok(&["watch", "s", "--since", "0", "-n", "15000"]).lines().count(), 15_000);
}
