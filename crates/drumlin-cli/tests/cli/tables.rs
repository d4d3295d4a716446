//! Tables: printed, listed, changed, dropped and tidied.

use serde_json::{Value, json};

use crate::desk::{Desk, odd_values};

#[test]
fn rows_are_printed_in_three_forms() {
    let desk = Desk::with_tables();
    let table = desk.ok(&["cat", "s", "a/x"]);
    assert_eq!(table, "n  name\n1  one\n2  two\n3  three\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x", "-c", "name", "-f", "csv", "--where", "n >= 2"]), "name\ntwo\nthree\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x", "-f", "json", "--limit", "1"]), "{\"n\":1,\"name\":\"one\"}\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x", "--where", "n > 5"]), "n  name\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x", "--where", "n > 5", "-f", "csv"]), "n,name\n");
    desk.fails(1, &["cat", "s", "a/x", "--where", "n >"], &["filter", "n >"]);
    desk.fails(1, &["cat", "s", "a/x", "--where", "m > 1"], &["column m", "n, name"]);
    desk.fails(1, &["cat", "s", "a/x", "--columns", "m"], &["'m'", "'n', 'name'"]);
    desk.fails(2, &["cat", "s", "a/x", "--head", "1", "--tail", "1"], &["--tail"]);
    // The table form stops by itself, and says so.
    desk.file(
        "many.csv",
        &std::iter::once("n\n".to_owned()).chain((0..150).map(|n| format!("{n}\n"))).collect::<String>(),
    );
    desk.ok(&["import", "s", "many.csv"]);
    let ran = desk.run(&["cat", "s", "many"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 101));
    assert!(ran.err.contains("first 100 rows"));
    assert_eq!(desk.ok(&["cat", "s", "many", "--head", "150"]).lines().count(), 151);
}

#[test]
fn odd_values_print_as_valid_text() {
    let desk = Desk::new();
    desk.parquet("odd.parquet", &odd_values());
    desk.ok(&["import", "s", "odd.parquet"]);
    let lines: Vec<Value> =
        desk.ok(&["cat", "s", "odd", "-f", "json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[1].as_object().unwrap().iter().all(|(name, value)| value.is_null() || name == "pair"));
    assert_eq!(lines[0]["int"], json!(i64::MIN));
    assert_eq!(lines[0]["unsigned"], json!(u64::MAX));
    assert_eq!((&lines[0]["float"], &lines[3]["float"]), (&Value::Null, &Value::Null));
    assert_eq!(lines[4]["float"], 0.1);
    assert_eq!(lines[0]["list"], json!([1, null]));
    assert_eq!(lines[1]["pair"], json!({ "in": null }));
    assert_eq!(lines[3]["zoned"], "2023-11-14T22:13:20.123456Z");
    assert_eq!(lines[3]["time"], "2023-11-14T22:13:20.123456789");
    assert_eq!(lines[0]["bytes"], "00ff");
    assert!(desk.ok(&["cat", "s", "odd", "-f", "json"]).contains("\"decimal\":123456789012345678.90,"));
    // One row per line, whatever the values contain.
    let table = desk.ok(&["cat", "s", "odd"]);
    assert_eq!(table.lines().count(), 6);
    assert!(table.contains("line\\nbreak"), "{table}");
    let flat = "text,view,int,unsigned,float,decimal,day,time,zoned,yes";
    desk.ok(&["cat", "s", "odd", "-f", "csv", "-c", flat]);
    desk.fails(1, &["export", "s", "odd", "odd.csv"], &["odd.csv", "CSV cannot hold"]);
    assert!(!desk.path("odd.csv").exists());
    desk.ok(&["export", "s", "odd", "odd.csv", "-c", flat]);
    desk.ok(&["import", "s", "odd.csv", "--table", "odd2", "--type", "decimal=Decimal128(30,2)"]);
    let decimals = |table: &str| desk.ok(&["cat", "s", table, "-c", "decimal,zoned", "-f", "csv"]);
    assert_eq!(decimals("odd").replace('Z', ""), decimals("odd2").replace('Z', ""));
}

#[test]
fn listings_show_tables_and_nodes() {
    let desk = Desk::with_tables();
    desk.ok(&["put", "s", "a/note", "{\"by\": \"me\"}"]);
    let rows =
        |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    assert_eq!(rows(&desk.ok(&["ls", "s"])), ["table rows versions row groups", "a/x 3 1 1", "a/y 2 1 1", "b 1 1 1"]);
    assert_eq!(rows(&desk.ok(&["ls", "s", "a"])).len(), 3);
    assert_eq!(rows(&desk.ok(&["ls", "s", "*/x"])).len(), 2);
    assert_eq!(desk.ok(&["ls", "s", "*/z"]), "");
    desk.fails(1, &["ls", "s", "z"], &["'z'"]);
    let exact = json!([{ "path": "b", "rows": 1, "versions": 1, "row_groups": 1 }]);
    assert_eq!(desk.json(&["ls", "s", "b", "--json"]), exact);
    let tree = "\
s
├── a
│   ├── note  [JSON]
│   ├── x  [table: 3 rows, 1 version]
│   └── y  [table: 2 rows, 1 version]
└── b  [table: 1 row, 1 version]
";
    assert_eq!(desk.ok(&["tree", "s"]), tree);
    assert_eq!(desk.ok(&["tree", "s", "a", "--depth", "0"]), "a\n");
    assert_eq!(desk.ok(&["schema", "s", "b"]), "column  type    nulls\nn       int64   yes\nname    string  yes\n");
    let stat = desk.json(&["stat", "s", "--json"]);
    assert_eq!((&stat["tables"], &stat["versions"]), (&json!(3), &json!(3)));
    assert!(desk.ok(&["stat", "s"]).contains("size in all"));
    assert!(desk.ok(&["stat", "s", "a/x"]).contains("rows"));
}

#[test]
fn indexes_are_made_listed_rebuilt_and_dropped() {
    let desk = Desk::with_tables();
    let made = desk.ok(&["index", "create", "s", "a/x", "by_n", "n", "lower(name)", "--where", "n > 1"]);
    assert!(made.starts_with("by_n: 2 entries, "), "{made}");
    desk.ok(&["index", "create", "s", "a/x", "later", "name", "--deferred"]);
    let indexes = desk.json(&["index", "list", "s", "a/x", "--json"]);
    assert_eq!(indexes[0]["columns"], json!(["n", "lower(name)"]));
    assert_eq!((&indexes[0]["where"], &indexes[0]["covered_row_groups"]), (&json!("n > 1"), &json!(1)));
    assert_eq!((&indexes[1]["entries"], &indexes[1]["covered_row_groups"]), (&json!(0), &json!(0)));
    assert!(desk.ok(&["index", "list", "s", "a/x"]).contains("1 of 1 row group"));
    assert!(desk.ok(&["stat", "s", "a/x"]).contains("indexes"));
    desk.ok(&["index", "create", "s", "a/x", "one", "n", "--unique"]);
    assert_eq!(desk.json(&["index", "list", "s", "a/x", "--json"])[2]["unique"], json!(true));
    assert!(desk.ok(&["index", "list", "s", "a/x"]).contains("yes"));
    desk.fails(1, &["import", "s", "x.csv", "--table", "a/x", "--append"], &["unique index 'one'"]);
    desk.ok(&["index", "drop", "s", "a/x", "one"]);
    assert_eq!(desk.ok(&["index", "rebuild", "s", "a/x", "later"]), "later rebuilt\n");
    assert_eq!(desk.ok(&["index", "drop", "s", "a/x", "by_n"]), "by_n dropped\n");
    desk.fails(1, &["index", "drop", "s", "a/x", "by_n"], &["no index 'by_n'", "'later'"]);
    desk.fails(1, &["index", "create", "s", "a/x", "i", "nowhere"], &["no column nowhere"]);
    desk.fails(2, &["index", "create", "s", "a/x", "i", "n >"], &["expression"]);
}

#[test]
fn versions_are_made_read_and_deleted() {
    let desk = Desk::with_tables();
    desk.ok(&["import", "s", "b.csv", "--table", "a/x", "--append", "--metadata", "{\"run\": 7}"]);
    assert_eq!(desk.ok(&["snapshot", "create", "s", "eod"]), "eod: 3 tables\n");
    assert_eq!(desk.ok(&["delete", "s", "a/x", "--where", "n <= 2"]), "2 rows deleted; version 2 has 2 rows\n");
    assert!(desk.ok(&["delete", "s", "a/x", "--where", "n <= 2"]).starts_with("no row matches; version 2"));
    let versions = desk.json(&["versions", "s", "a/x", "--json"]);
    let kinds: Vec<&str> = versions.as_array().unwrap().iter().map(|v| v["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["write", "append", "delete"]);
    assert_eq!(versions[1]["metadata"], json!({ "run": 7 }));
    assert_eq!(versions[1]["snapshots"], json!(["eod"]));
    assert!(desk.ok(&["versions", "s", "a/x"]).contains("append"));
    let rows = |as_of: &str| desk.ok(&["cat", "s", "a/x", "-f", "json", "--as-of", as_of]).lines().count();
    assert_eq!([rows("0"), rows("1"), rows("2"), rows("eod"), rows("snapshot:eod")], [3, 4, 2, 4, 4]);
    assert_eq!(rows(versions[1]["time"].as_str().unwrap()), 4);
    desk.fails(1, &["cat", "s", "a/x", "--as-of", "9"], &["no version 9", "newest is 2"]);
    desk.fails(1, &["cat", "s", "a/x", "--as-of", "1999-01-01"], &["no version existed at 1999-01-01"]);
    desk.fails(1, &["cat", "s", "a/x", "--as-of", "eon"], &["'eon'", "snapshot"]);
    desk.ok(&["schema", "s", "a/x", "--as-of", "0"]);
    desk.ok(&["export", "s", "a/x", "old.csv", "--as-of", "eod"]);
    assert_eq!(desk.text("old.csv").lines().count(), 5);

    assert_eq!(desk.ok(&["delete-versions", "s", "a/x", "0", "1-1"]), "a/x: 2 versions deleted, 1 left\n");
    assert_eq!(rows("eod"), 4);
    desk.fails(1, &["delete-versions", "s", "a/x", "0", "1"], &["version 0", "version 1"]);
    desk.fails(1, &["delete-versions", "s", "a/x", "5-9"], &["5 to 9"]);
    desk.fails(2, &["delete-versions", "s", "a/x", "9-5"], &["empty range"]);
    let snapshots = desk.json(&["snapshot", "list", "s", "--json"]);
    assert_eq!(snapshots[0]["versions"], json!({ "a/x": 1, "a/y": 0, "b": 0 }));
    assert!(desk.ok(&["snapshot", "list", "s"]).contains("eod"));
    assert_eq!(desk.ok(&["snapshot", "drop", "s", "eod"]), "eod dropped\n");
    desk.fails(1, &["snapshot", "drop", "s", "eod"], &["eod"]);

    assert_eq!(desk.ok(&["retention", "s", "a/x"]), "a/x keeps all versions\n");
    assert_eq!(desk.ok(&["retention", "s", "a/**", "--keep-last", "1"]), "a keeps the newest 1 version\n");
    assert_eq!(desk.ok(&["retention", "s", "a/x", "--keep-for", "90m"]), "a/x keeps versions of the last 90m\n");
    assert_eq!(desk.ok(&["retention", "s", "a/x", "--inherit"]), "a/x keeps the newest 1 version\n");
    desk.fails(2, &["retention", "s", "a", "--keep-last", "0"], &["0"]);
    desk.fails(2, &["retention", "s", "a", "--keep-all", "--inherit"], &["--inherit"]);
    desk.ok(&["import", "s", "x.csv", "--under", "a"]);
    assert_eq!(desk.json(&["versions", "s", "a/x", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn what_is_done_with_a_message_says_it() {
    let desk = Desk::with_tables();
    desk.ok(&["import", "s", "b.csv", "--table", "a/x", "--append", "-m", "more of b"]);
    desk.ok(&["delete", "s", "a/x", "--where", "n <= 2", "--message", "wrong ones"]);
    desk.ok(&["put", "s", "note", "1", "--message", "a node"]);
    let told = |versions: &serde_json::Value| -> Vec<String> {
        let of = |v: &serde_json::Value| {
            format!("{} +{} -{} {}", v["kind"], v["rows_added"], v["rows_removed"], v["message"]).replace('"', "")
        };
        versions.as_array().unwrap().iter().map(of).collect()
    };
    let expected = ["write +3 -0 null", "append +1 -0 more of b", "delete +0 -2 wrong ones"];
    assert_eq!(told(&desk.json(&["versions", "s", "a/x", "--json"])), expected);
    let history = desk.json(&["history", "s", "a/*", "-n", "3", "--json"]);
    assert_eq!(told(&history)[..2], [expected[2], expected[1]]);
    assert_eq!((&history[0]["path"], history[0]["seconds"].is_number()), (&json!("a/x"), true));
    let shown = desk.ok(&["history", "s"]);
    let first = shown.lines().nth(1).unwrap();
    assert!(first.contains("a/x") && first.contains("wrong ones"), "{shown}");
    assert_eq!(desk.ok(&["history", "s", "nothing"]), "");
    let watched = desk.ok(&["watch", "s", "--since", "0", "-n", "5", "--json"]);
    assert!(watched.lines().any(|line| line.contains("\"messages\":[\"more of b\"]")), "{watched}");
    desk.fails(1, &["put", "s", "note", "1", "--message", &"x".repeat(5000)], &["5000 bytes; expected at most 4096"]);
}

#[test]
fn rows_and_columns_are_changed() {
    let desk = Desk::with_tables();
    let rows = || desk.ok(&["cat", "s", "b", "-f", "csv"]);
    assert_eq!(rows(), "n,name\n6,six\n");
    assert_eq!(
        desk.ok(&["update", "s", "b", "--set", "n=n * 2 + 1", "--set", "name=null"]),
        "1 row updated, in version 1\n"
    );
    assert_eq!(rows(), "n,name\n13,\n");
    assert_eq!(
        desk.ok(&["update", "s", "b", "--set", "n=0", "--where", "n = 1"]),
        "no row matches; version 1 stays the newest\n"
    );
    desk.fails(2, &["update", "s", "b"], &["--set"]);
    desk.fails(2, &["update", "s", "b", "--set", "n"], &["COLUMN=EXPRESSION"]);
    desk.fails(1, &["update", "s", "b", "--set", "m=1"], &["m"]);
    let altered = desk.ok(&[
        "alter",
        "s",
        "b",
        "--add",
        "fee=double",
        "--fill",
        "fee=0.5",
        "--add",
        "twice=int64",
        "--fill",
        "twice=n * 2",
        "--add",
        "note=string",
        "--rename",
        "name=called",
    ]);
    assert_eq!(altered, "b: n int64, called string, fee double, twice int64, note string\n");
    assert_eq!(rows(), "n,called,fee,twice,note\n13,,0.5,26,\n");
    assert_eq!(desk.ok(&["cat", "s", "b", "-f", "csv", "--as-of", "0"]), "n,name\n6,six\n");
    desk.ok(&["alter", "s", "b", "--drop", "note", "--drop", "fee", "--widen", "n=float64"]);
    assert_eq!(rows(), "n,called,twice\n13.0,,26\n");
    desk.fails(2, &["alter", "s", "b"], &["--add"]);
    desk.fails(2, &["alter", "s", "b", "--add", "x=Int8", "--fill", "y=1"], &["--fill y"]);
    desk.fails(
        2,
        &["alter", "s", "b", "--add", "x=Int8", "--fill", "x=1", "--fill", "x=2"],
        &["--fill x is given twice"],
    );
    desk.fails(1, &["alter", "s", "b", "--add", "n=Int8"], &["'n' already exists"]);
    // Times to live.
    desk.fails(1, &["alter", "s", "b", "--ttl", "n"], &["'n' of type double", "timestamp"]);
    desk.fails(2, &["alter", "s", "b", "--ttl", "n=never"], &["never"]);
    desk.ok(&["alter", "s", "b", "--add", "until=timestamp", "--ttl", "until=30d"]);
    assert!(desk.ok(&["info", "s", "b"]).contains("rows expire 30d after until"));
    let fresh = desk.ok(&["alter", "s", "b", "--ttl", "until"]);
    assert!(fresh.ends_with("rows expire at until\n"), "{fresh}");
    desk.ok(&["alter", "s", "b", "--no-ttl"]);
    desk.ok(&["alter", "s", "b", "--drop", "until"]);
    desk.fails(1, &["alter", "s", "b", "--no-ttl"], &["do not expire"]);
    // Constraints.
    let put = ["alter", "s", "b", "--check", "some=n > 0", "--not-null", "n", "--default", "twice=2 * 21"];
    assert_eq!(desk.ok(&put), "b: n double, called string, twice int64\n  check some: n > 0\n");
    std::fs::write(desk.path("none.csv"), "n,called\n-1,x\n").unwrap();
    let import = ["import", "s", "none.csv", "--table", "b", "--append", "--evolve"];
    desk.fails(1, &import, &["check 'some' (n > 0) does not hold in row 0", "n is -1.0"]);
    desk.fails(1, &["alter", "s", "b", "--check", "more=n > 100"], &["1 of the existing rows", "n is 13.0"]);
    desk.fails(2, &["alter", "s", "b", "--check", "n > 100"], &["NAME=FILTER"]);
    desk.ok(&["alter", "s", "b", "--drop-check", "some", "--nullable", "n"]);
    desk.ok(&import);
    assert_eq!(rows(), "n,called,twice\n13.0,,26\n-1.0,x,42\n");
    desk.ok(&["alter", "s", "b", "--no-default", "twice"]);
    desk.ok(&["delete", "s", "b", "--where", "n < 0"]);
    desk.fails(1, &["alter", "s", "b", "--add", "x=Int8", "--fill", "x=missing + 1"], &["no column missing"]);
    // Files with other columns, and those that replace some rows.
    std::fs::write(desk.path("more.csv"), "n,venue\n1,X\n2,Y\n").unwrap();
    desk.fails(1, &["import", "s", "more.csv", "--table", "b", "--append"], &["venue"]);
    desk.ok(&["import", "s", "more.csv", "--table", "b", "--append", "--evolve"]);
    assert_eq!(rows(), "n,called,twice,venue\n13.0,,26,\n1.0,,,X\n2.0,,,Y\n");
    std::fs::write(desk.path("new.csv"), "n,called,twice,venue\n7,seven,14,Z\n").unwrap();
    desk.ok(&["import", "s", "new.csv", "--table", "b", "--where", "venue is not null"]);
    assert_eq!(rows(), "n,called,twice,venue\n13.0,,26,\n7.0,seven,14,Z\n");
    desk.fails(2, &["import", "s", "new.csv", "--table", "b", "--evolve"], &["--evolve needs"]);
    desk.fails(2, &["import", "s", "new.csv", "--where", "n = 1"], &["--table"]);
}

#[test]
fn tables_are_copied_to_another_store() {
    let desk = Desk::with_tables();
    desk.ok(&["import", "s", "b.csv", "--table", "a/x", "--append"]);
    assert!(
        desk.ok(&["copy-to", "s", "backup", "a/*", "-m", "nightly"]).starts_with("2 tables copied, 0 there already; ")
    );
    let versions = |store: &str| desk.json(&["versions", store, "a/x", "--json"]);
    let (here, there) = (versions("s"), versions("backup"));
    assert_eq!(there.as_array().unwrap().len(), 2);
    assert_eq!((&there[0]["time"], &there[1]["rows_added"]), (&here[0]["time"], &here[1]["rows_added"]));
    let again = desk.json(&["copy-to", "s", "backup", "--json"]);
    assert_eq!((&again["tables"], &again["present"]), (&json!(["b"]), &json!(["a/x", "a/y"])));
    desk.ok(&["delete", "s", "a/x", "--where", "n <= 2"]);
    desk.fails(1, &["copy-to", "s", "backup"], &["'a/x'", "already exists in"]);
    desk.ok(&["copy-to", "s", "backup", "--replace", "--newest"]);
    assert_eq!(desk.ok(&["cat", "backup", "a/x", "-f", "csv"]), desk.ok(&["cat", "s", "a/x", "-f", "csv"]));
    assert!(desk.ok(&["watch", "backup", "--since", "0", "-n", "1", "--json"]).contains("nightly"));
    desk.fails(1, &["copy-to", "nowhere", "backup"], &["nowhere"]);
}

#[test]
fn tables_are_dropped_taken_back_and_reclaimed() {
    let desk = Desk::with_tables();
    desk.fails(1, &["drop", "s", "a/**", "c"], &["'c'", "nothing was dropped"]);
    let dropped = desk.ok(&["drop", "s", "a/**", "c", "--missing-ok"]);
    assert!(dropped.starts_with("a/x\na/y\n2 tables dropped (2 versions, "), "{dropped}");
    desk.fails(1, &["cat", "s", "a/x"], &["no table at 'a/x'"]);
    assert_eq!(desk.json(&["trash", "s", "--json"])[0]["path"], "a/x");
    assert!(desk.ok(&["trash", "s"]).contains("a/y"));
    assert_eq!(desk.ok(&["undrop", "s", "a/x", "--to", "c"]), "c is back\n");
    desk.fails(1, &["undrop", "s", "a/y", "--to", "b"], &["b"]);
    desk.fails(1, &["undrop", "s", "a/z"], &["a/z"]);
    // Within its grace period, a table stays in the trash.
    assert!(desk.ok(&["reclaim", "s", "--grace", "1h"]).contains("grace"));
    desk.ok(&["undrop", "s", "a/y"]);
    desk.ok(&["drop", "s", "a/y"]);
    let report = desk.json(&["reclaim", "s", "--json"]);
    assert_eq!((&report["tables"], &report["failures"]), (&json!(1), &json!([])));
    desk.fails(1, &["undrop", "s", "a/y"], &["a/y"]);
    assert!(desk.ok(&["drop", "s", "b", "c", "--yes", "--reclaim"]).contains("freed"));
    assert_eq!(desk.ok(&["ls", "s"]), "");
    assert_eq!(desk.json(&["stat", "s", "--json"])["blocks"], 0);
    desk.fails(2, &["reclaim", "s", "--grace", "soon"], &["span of time"]);
}

#[test]
fn tables_are_restored_copied_and_moved() {
    let desk = Desk::with_tables();
    let before = desk.ok(&["cat", "s", "a/x"]);
    desk.ok(&["snapshot", "create", "s", "eod"]);
    desk.ok(&["import", "s", "x.csv", "--table", "a/x", "--append"]);
    assert_ne!(desk.ok(&["cat", "s", "a/x"]), before);
    assert_eq!(desk.ok(&["restore", "s", "a/*", "eod"]), "a/x\na/y\n2 tables restored\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x"]), before);
    assert_eq!(desk.json(&["versions", "s", "a/x", "--json"]).as_array().unwrap().len(), 3);
    assert_eq!(desk.ok(&["copy", "s", "a", "c"]), "a/x -> c/x\na/y -> c/y\n2 tables and 0 payloads copied\n");
    assert_eq!(desk.ok(&["copy", "s", "a/*", "d/*", "--as-of", "0"]).lines().count(), 3);
    assert_eq!(desk.json(&["versions", "s", "d/x", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(desk.ok(&["move", "s", "c", "e/f"]), "c/x -> e/f/x\nc/y -> e/f/y\n2 tables and 0 payloads moved\n");
    assert_eq!(desk.ok(&["cat", "s", "e/f/x"]), before);
    desk.fails(1, &["move", "s", "e/f/x", "a/x"], &["'a/x'", "nothing was done"]);
    desk.fails(1, &["copy", "s", "a/*", "g"], &["1 wildcard parts"]);
    assert_eq!(desk.ok(&["move", "s", "e/f/x", "a/x", "--replace"]), "e/f/x -> a/x\n1 table and 0 payloads moved\n");
    assert_eq!(desk.json(&["trash", "s", "--json"])[0]["path"], "e/f/x");
    desk.fails(1, &["restore", "s", "a/x", "9"], &["no version 9"]);
    desk.fails(1, &["restore", "s", "a/x", "soon"], &["'soon'"]);
}

#[test]
fn rows_are_purged_with_a_receipt() {
    let desk = Desk::with_tables();
    desk.ok(&["snapshot", "create", "s", "eod"]);
    let plan = desk.json(&["purge", "s", "a/**", "--where", "n = 1", "--explain"]);
    assert_eq!((&plan["rows"], &plan["tables"][0]["path"]), (&json!(1), &json!("a/x")));
    let receipt = desk.json(&["purge", "s", "a/**", "--where", "n = 1"]);
    assert_eq!((&receipt["erased"], &receipt["proof"]["matching"]), (&plan, &json!(0)));
    assert_eq!((&receipt["where"], &receipt["held"]), (&json!("n = 1"), &json!([])));
    assert!(!desk.ok(&["cat", "s", "a/x", "--as-of", "eod", "-f", "csv"]).contains("\n1,"));
    desk.fails(1, &["purge", "s", "none/*", "--where", "n = 1"], &["none/*"]);
    desk.fails(1, &["purge", "s", "a/x", "--where", "postcode = 1"], &["postcode"]);
    desk.fails(2, &["purge", "s", "a/x"], &["--where"]);
}

#[test]
fn upkeep_removes_what_was_deleted() {
    let desk = Desk::with_tables();
    for _ in 0..3 {
        desk.ok(&["import", "s", "x.csv", "--table", "a/x", "--append"]);
    }
    let plan = desk.ok(&["vacuum", "s", "--explain"]);
    assert!(plan.starts_with("a/x: 4 row groups") && plan.contains("2 tables stay"), "{plan}");
    assert_eq!(desk.json(&["stat", "s", "a/x", "--json"])["row_groups"], 4);
    assert!(desk.ok(&["vacuum", "s", "--budget", "0"]).starts_with("6 row groups -> 6; "));
    let report = desk.json(&["vacuum", "s", "--min-dead", "0.5", "--json"]);
    assert_eq!((&report["groups_before"], &report["groups_after"]), (&json!(6), &json!(3)));
    desk.fails(2, &["vacuum", "s", "--budget", "2"], &["from 0 to 1"]);
    desk.ok(&["delete", "s", "a/x", "-w", "n <= 2"]);
    desk.ok(&["delete-versions", "s", "a/x", "0-3"]);
    assert!(desk.ok(&["checkpoint", "s"]).contains("8 rows removed"));
    assert_eq!(desk.json(&["checkpoint", "s", "--json"])["rows_removed"], 0);
    assert_eq!(desk.json(&["cat", "s", "a/x", "-f", "json", "--head", "1"]), json!({ "n": 3, "name": "three" }));
    let report = desk.json(&["verify", "s", "--json"]);
    assert_eq!((&report["tables"], &report["faults"]), (&json!(3), &json!([])));
    assert!(desk.ok(&["verify", "s"]).contains("0 faults"));
}
