//! Stores that are damaged, missing, or open elsewhere.

use std::path::PathBuf;

use serde_json::Value;

use crate::desk::Desk;

#[test]
fn damage_is_found_and_named() {
    let desk = Desk::with_tables();
    // Now the rows are in a block.
    desk.ok(&["checkpoint", "s"]);
    let folder = desk.path("s/blocks");
    let mut blocks: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|session| std::fs::read_dir(session.unwrap().path()).unwrap())
        .map(|block| block.unwrap().path())
        .collect();
    blocks.sort();
    let mut bytes = std::fs::read(&blocks[0]).unwrap();
    // The first byte of the first row group: in between there are gaps, which are never read.
    bytes[64] ^= 1;
    std::fs::write(&blocks[0], bytes).unwrap();
    let ran = desk.run(&["verify", "s"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    assert!(ran.out.contains("fault: a/"), "{}", ran.out);
    let ran = desk.run(&["verify", "s", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, report["faults"].as_array().unwrap().len()), (Some(1), 1));
    // An object that nothing refers to is listed, but is not a fault.
    let desk = Desk::with_tables();
    std::fs::create_dir_all(desk.path("s/blocks/1")).unwrap();
    std::fs::write(desk.path("s/blocks/1/999.blk"), "left behind").unwrap();
    assert!(desk.ok(&["verify", "s"]).contains("orphan: blocks/1/999.blk, 11 B"));
    // A file that claims to be another kind of store.
    desk.file("s/format", "something else\n");
    desk.fails(1, &["ls", "s"], &["format", "damaged"]);
}

#[test]
fn wrong_stores_and_wrong_usage_are_told_apart() {
    let desk = Desk::with_tables();
    for args in [&["ls", "none"][..], &["verify", "none"], &["drop", "none", "x"], &["cat", "none", "x"]] {
        desk.fails(1, args, &["none"]);
        assert!(!desk.path("none").exists(), "{args:?}");
    }
    std::fs::create_dir(desk.path("folder")).unwrap();
    desk.fails(1, &["ls", "folder"], &["no store"]);
    desk.fails(1, &["ls", "ftp://bucket/x"], &["ftp"]);
    desk.fails(2, &["cat", "s"], &["<TABLE>"]);
    desk.fails(2, &["dance", "s"], &["dance"]);
    desk.fails(2, &["cat", "s", "b", "--format", "xml"], &["xml"]);
    assert_eq!(desk.run(&[]).code, Some(2));
    assert!(desk.ok(&["--help"]).contains("Example:"));
    assert!(desk.ok(&["--version"]).starts_with("drumlin "));
    let commands = [
        "import",
        "export",
        "ls",
        "tree",
        "cat",
        "schema",
        "stat",
        "versions",
        "history",
        "delete",
        "update",
        "alter",
        "delete-versions",
        "drop",
        "undrop",
        "purge",
        "restore",
        "copy",
        "move",
        "copy-to",
        "trash",
        "snapshot",
        "index",
        "retention",
        "checkpoint",
        "vacuum",
        "reclaim",
        "verify",
        "get",
        "put",
        "rm",
        "export-nodes",
        "import-nodes",
        "watch",
    ];
    for command in commands {
        assert!(desk.ok(&[command, "--help"]).contains(&format!("Example:\n  drumlin {command} ")), "{command}");
    }
}

#[test]
fn reading_goes_on_beside_a_writer() {
    let desk = Desk::with_tables();
    let uri = desk.path("s").to_str().unwrap().to_owned();
    let writer = drumlin::Store::open_with(&uri, Default::default()).unwrap();
    assert_eq!(desk.ok(&["cat", "s", "b", "-f", "csv"]), "n,name\n6,six\n");
    desk.ok(&["ls", "s"]);
    desk.ok(&["verify", "s"]);
    desk.ok(&["vacuum", "s", "--explain"]);
    desk.ok(&["export", "s", "b", "beside.csv"]);
    desk.fails(1, &["drop", "s", "b"], &[&format!("process {}", std::process::id())]);
    writer.close().unwrap();
    desk.ok(&["drop", "s", "b"]);
}

#[test]
fn what_is_in_the_way_of_a_store_is_named() {
    let desk = Desk::with_tables();
    for (args, words) in [
        (&["ls", "x.csv"][..], &["x.csv is not a folder", "store"][..]),
        (&["import", "x.csv", "y.csv"], &["x.csv is not a folder", "store"]),
        (&["put", "x.csv", "a", "1"], &["x.csv is not a folder"]),
        (&["ls", "x.csv/s"], &["x.csv is not a folder"]),
        (&["ls", "~/s"], &["~/s", "shell"]),
        (&["import", "~/s", "x.csv"], &["~/s", "shell"]),
        (&["import", "~", "x.csv"], &["the folder ~", "shell"]),
        (&["import", "none/s", "x.csv"], &["none/s", "parent folder none does", "create it first"]),
        (&["import", "none/deep/s", "x.csv"], &["parent folder none/deep does"]),
        (&["import", "file://none/s", "x.csv"], &["parent folder none does"]),
        (&["ls", "none"], &["no store at none", "drumlin import"]),
        (&["ls", "file://none"], &["no store at file://none"]),
        (&["ls", ""], &["empty"]),
        (&["import", "", "x.csv"], &["empty"]),
        (&["ls", "s/log"], &["s/log", "no store"]),
        (&["cat", "s", "b", "--as-of", "yesterday"], &["'yesterday'", "snapshot", "2026-01-31T16:00:00Z"]),
        (&["cat", "s", "b", "--as-of", "99999999999999999999"], &["'99999999999999999999'", "snapshot"]),
    ] {
        desk.fails(1, args, words);
    }
    assert!(!desk.path("~").exists() && !desk.path("none").exists());
    assert_eq!(desk.text("x.csv").lines().count(), 4);
    // An existing folder named `~` is used.
    std::fs::create_dir(desk.path("~")).unwrap();
    desk.ok(&["import", "~/s", "b.csv"]);
    assert_eq!(desk.ok(&["ls", "~/s"]).lines().count(), 2);
    for time in ["2999-01-01", "2999-01-01T00:00:00Z", "2999-01-01 00:00:00+01:00"] {
        assert_eq!(desk.ok(&["cat", "s", "b", "--as-of", time, "-f", "csv"]), "n,name\n6,six\n");
    }
}

#[test]
fn listings_count_rows_in_memory() {
    let desk = Desk::with_tables();
    desk.ok(&["import", "s", "x.csv", "--table", "k", "--key", "n", "--upsert"]);
    desk.ok(&["import", "s", "b.csv", "--table", "k", "--upsert"]);
    assert_eq!(desk.json(&["stat", "s", "k", "--json"])["row_groups"], 0);
    assert_eq!(desk.json(&["ls", "s", "k", "--json"])[0]["rows"], 4);
    assert!(desk.ok(&["tree", "s", "k"]).starts_with("k  [table: 4 rows"));
    desk.ok(&["checkpoint", "s"]);
    assert_eq!(desk.json(&["ls", "s", "k", "--json"])[0]["rows"], 4);
}
