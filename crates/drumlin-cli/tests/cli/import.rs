//! What is imported, and what is not.

use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, RecordBatch};
use arrow::datatypes::Int32Type;
use serde_json::{Value, json};

use crate::desk::{Desk, odd_values};

#[test]
fn parquet_and_arrow_files_come_back_as_they_went() {
    let desk = Desk::new();
    let rows = odd_values();
    desk.parquet("odd.parquet", &rows);
    assert_eq!(desk.ok(&["import", "s", "odd.parquet"]), "odd: version 0, 5 rows\n");
    for (file, more) in [("zstd.parquet", None), ("snappy.pq", Some("--compression=snappy"))] {
        let args: Vec<&str> = ["export", "s", "odd", file].into_iter().chain(more).collect();
        assert!(desk.ok(&args).starts_with(&format!("{file}: 5 rows, ")));
        assert_eq!(desk.read_parquet(file), rows);
    }
    desk.ok(&["export", "s", "odd", "odd.arrow"]);
    desk.ok(&["import", "s", "odd.arrow", "--table", "from_arrow"]);
    desk.ok(&["export", "s", "from_arrow", "again.parquet"]);
    assert_eq!(desk.read_parquet("again.parquet"), rows);
}

#[test]
fn dictionaries_come_back_as_they_went() {
    let desk = Desk::new();
    let words = DictionaryArray::<Int32Type>::from_iter([Some("a"), None, Some("b"), Some("a")]);
    let rows = RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).unwrap();
    desk.parquet("words.parquet", &rows);
    desk.ok(&["import", "s", "words.parquet"]);
    desk.ok(&["export", "s", "words", "back.parquet"]);
    assert_eq!(desk.read_parquet("back.parquet"), rows);
    let lines = "{\"word\":\"a\"}\n{\"word\":null}\n{\"word\":\"b\"}\n{\"word\":\"a\"}\n";
    assert_eq!(desk.ok(&["cat", "s", "words", "--format", "json"]), lines);
    desk.file("more.csv", "word\nc\n");
    desk.ok(&["import", "s", "more.csv", "--table", "words", "--append"]);
    assert_eq!(desk.ok(&["cat", "s", "words", "--tail", "1", "--format", "csv"]), "word\nc\n");
}

#[test]
fn a_csv_file_comes_back_as_it_went() {
    let desk = Desk::new();
    let text = "\
id,who,price,at,day,ok,empty
1,\"Quote \"\"Q\"\", comma\",1.5,2024-01-01T00:00:00.123456,2024-02-29,true,
2,,-0.25,1969-12-31T23:59:59.999999,1969-12-31,false,
,\"two
lines\",,,,,
4,日本 🪨,1e300,2024-01-01T00:00:00.000001,0001-01-01,true,
";
    desk.file("odd.csv", text);
    desk.ok(&["import", "s", "odd.csv"]);
    let schema = desk.json(&["schema", "s", "odd", "--json"]);
    let types: Vec<&str> = schema["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["int64", "string", "double", "timestamp[us]", "date32[day]", "bool", "string"]);
    desk.ok(&["export", "s", "odd", "back.csv"]);
    desk.ok(&["import", "s", "back.csv"]);
    let rows = |table: &str| desk.ok(&["cat", "s", table, "--format", "json"]);
    assert_eq!(rows("odd"), rows("back"));
    let lines: Vec<Value> = rows("odd").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["who"], "Quote \"Q\", comma");
    assert_eq!(lines[1]["at"], "1969-12-31T23:59:59.999999");
    assert_eq!(lines[2]["who"], "two\nlines");
    assert_eq!(lines[2]["id"], Value::Null);
    assert_eq!(lines[3]["who"], "日本 🪨");
    assert_eq!(lines[3]["empty"], Value::Null);
    // And again, byte for byte.
    desk.ok(&["export", "s", "back", "back.csv", "--force"]);
    desk.ok(&["export", "s", "odd", "odd2.csv"]);
    assert_eq!(desk.text("back.csv"), desk.text("odd2.csv"));
}

#[test]
fn csv_takes_types_delimiters_and_headers_as_told() {
    let desk = Desk::new();
    desk.file("zip.tsv", "zip\tprice\n01234\t1.10\n99999\t-2.5\n");
    desk.ok(&["import", "s", "zip.tsv", "--type", "zip=string", "--type", "price=decimal128(10, 2)"]);
    assert_eq!(desk.ok(&["cat", "s", "zip", "--format", "csv"]), "zip,price\n01234,1.10\n99999,-2.50\n");
    // Appended rows get the types of the table, not those that they look like.
    desk.file("more.csv", "price;zip\n3;00001\n");
    desk.ok(&["import", "s", "more.csv", "--table", "zip", "--append", "--delimiter", ";"]);
    desk.file("bare.csv", "00002,4\n");
    desk.ok(&["import", "s", "bare.csv", "--table", "zip", "--append", "--no-header"]);
    let tail = desk.ok(&["cat", "s", "zip", "--tail", "2", "--format", "csv"]);
    assert_eq!(tail, "zip,price\n00001,3.00\n00002,4.00\n");
    // Several files for one table get common types.
    desk.file("one.csv", "n,t\n1,2024-01-01\n");
    desk.file("two.csv", "t,n\n2024-01-02T03:04:05,1.5\n");
    desk.ok(&["import", "s", "one.csv", "two.csv", "--table", "both"]);
    assert_eq!(desk.ok(&["cat", "s", "both", "-f", "csv"]), "n,t\n1.0,2024-01-01T00:00:00\n1.5,2024-01-02T03:04:05\n");
    // The error for what the sample did not show suggests a fix, which works.
    desk.file("late.csv", "n\n1\n2\nthree\n");
    desk.fails(1, &["import", "s", "late.csv", "--sample", "2"], &["late.csv", "three", "--sample 0"]);
    desk.ok(&["import", "s", "late.csv", "--sample", "0"]);
    // The byte order mark that some programs write is not part of a name.
    desk.file("bom.csv", "\u{feff}n\n1\n");
    desk.ok(&["import", "s", "bom.csv"]);
    assert_eq!(desk.ok(&["cat", "s", "bom", "-f", "csv"]), "n\n1\n");
    for (bad, word) in [("n", "NAME=TYPE"), ("n=Number", "is not a type"), ("x=Int64", "columns are 'n'")] {
        let ran = desk.run(&["import", "s", "bom.csv", "--type", bad]);
        assert!(ran.code != Some(0) && ran.err.contains(word), "{}", ran.err);
    }
    desk.fails(2, &["import", "s", "bom.csv", "--delimiter", "ab"], &["delimiter"]);
    desk.file("empty.csv", "");
    desk.fails(1, &["import", "s", "empty.csv"], &["empty.csv", "no columns"]);
    desk.file("ragged.csv", "a,b\n1,2\n3\n");
    desk.fails(1, &["import", "s", "ragged.csv"], &["ragged.csv"]);
    desk.file("header.csv", "a,b\n");
    assert_eq!(desk.ok(&["import", "s", "header.csv"]), "header: version 0, 0 rows\n");
    desk.ok(&["export", "s", "header", "header2.csv"]);
    assert_eq!(desk.text("header2.csv"), "a,b\n");
}

#[test]
fn large_files_are_streamed_whole() {
    let desk = Desk::new();
    let rows = 300_000;
    let text: String =
        std::iter::once("n,m\n".to_owned()).chain((0..rows).map(|n| format!("{n},{}\n", n % 7))).collect();
    desk.file("big.csv", &text);
    desk.ok(&["import", "s", "big.csv", "big.csv", "--table", "big", "--sort", "n"]);
    desk.ok(&["export", "s", "big", "big.parquet", "--where", "m = 3 and n < 1000"]);
    assert_eq!(desk.read_parquet("big.parquet").num_rows(), 286);
    let stat = desk.json(&["stat", "s", "big", "--json"]);
    assert_eq!((&stat["rows"], &stat["sort"]), (&json!(2 * rows), &json!(["n"])));
    assert_eq!(
        desk.ok(&["cat", "s", "big", "--tail", "1", "-f", "csv"]),
        format!("n,m\n{},{}\n", rows - 1, (rows - 1) % 7)
    );
    assert!(desk.ok(&["ls", "s"]).contains("600,000"));
    // A reader of only the beginning gets it, and there is no error.
    let mut child = desk.command(&["cat", "s", "big", "-f", "json"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn an_interrupted_import_changes_nothing() {
    let desk = Desk::with_tables();
    let text: String = std::iter::once("n\n".to_owned()).chain((0..500_000).map(|n| format!("{n}\n"))).collect();
    desk.file("big.csv", &text);
    let args: Vec<&str> = ["import", "s", "--table", "big"].into_iter().chain(["big.csv"; 200]).collect();
    let mut child = desk.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Blocks show that the import has begun: rows of small tables travel in the log.
    let begun = || std::fs::read_dir(desk.path("s/blocks")).is_ok_and(|sessions| sessions.count() > 0);
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(130), 0));
    assert!(String::from_utf8(ended.stderr).unwrap().ends_with("drumlin: interrupted: nothing was changed\n"));
    assert_eq!(desk.ok(&["ls", "s"]).lines().count(), 4);
    assert!(desk.ok(&["verify", "s"]).contains("0 faults, 0 orphans"));
}

#[test]
fn imports_are_all_or_nothing() {
    let desk = Desk::new();
    desk.file("good.csv", "n\n1\n");
    desk.file("bad.csv", "n\n1\nx\n");
    desk.fails(1, &["import", "s", "good.csv", "bad.csv", "--sample", "1"], &["bad.csv"]);
    assert_eq!(desk.ok(&["ls", "s"]), "");
    desk.fails(1, &["import", "new", "good.csv", "missing.csv"], &["missing.csv"]);
    assert!(!desk.path("new").exists(), "nothing is made before all files were looked at");
    desk.fails(1, &["import", "s", "good.csv", "--append"], &["no table at 'good'"]);
    desk.fails(1, &["import", "new", "good.csv", "--append"], &["new"]);
    std::fs::create_dir(desk.path("sub")).unwrap();
    desk.file("sub/good.csv", "n\n1\n");
    desk.fails(2, &["import", "s", "good.csv", "sub/good.csv"], &["same table"]);
    desk.fails(1, &["import", "s", "sub"], &["sub is a folder"]);
    desk.fails(1, &["import", "s", "sub", "--format", "csv"], &["folder"]);
    desk.file("other.csv", "m\n1\n");
    desk.ok(&["import", "s", "good.csv"]);
    desk.fails(1, &["import", "s", "other.csv", "--table", "good", "--append"], &["other.csv", "'n'", "'m'"]);
    desk.fails(1, &["import", "s", "good.csv", "--table", "g", "--sort", "z"], &["'z'", "'n'"]);
    desk.fails(1, &["import", "s", "good.csv", "--table", "a*b"], &["path"]);
    desk.fails(2, &["import", "s", "good.csv", "--metadata", "{"], &["JSON"]);
    desk.file("fake.parquet", "this is not Parquet at all");
    desk.fails(1, &["import", "s", "fake.parquet"], &["fake.parquet"]);
    desk.fails(1, &["import", "s", "fake.parquet", "--format", "arrow"], &["fake.parquet"]);
    assert_eq!(desk.ok(&["ls", "s"]).lines().count(), 2);
}

#[test]
fn tables_with_a_key_are_made_and_put_to() {
    let desk = Desk::with_tables();
    desk.file("more.csv", "n,name\n2,TWO\n9,nine\n9,NINE\n");
    desk.fails(1, &["import", "s", "more.csv", "--key", "n"], &["more than one row with the key 9"]);
    desk.fails(1, &["import", "s", "more.csv", "--key", "z"], &["'z'"]);
    desk.fails(2, &["import", "s", "x.csv", "--key", "n", "--sort", "n"], &["--sort"]);
    desk.fails(2, &["import", "s", "x.csv", "--upsert", "--append"], &["--append"]);
    desk.fails(1, &["import", "s", "x.csv", "--upsert"], &["no table at 'x'"]);
    desk.fails(1, &["import", "new", "x.csv", "--upsert"], &["new"]);
    desk.fails(1, &["import", "s", "b.csv", "--upsert"], &["'b'", "no key"]);
    desk.fails(1, &["import", "s", "b.csv", "--key", "n"], &["'b' already exists", "it has no key"]);
    assert_eq!(desk.ok(&["ls", "s", "--json"]).matches("\"x\"").count(), 0);

    assert_eq!(desk.ok(&["import", "s", "x.csv", "--key", "n"]), "x: version 1, 3 rows\n");
    desk.fails(1, &["import", "s", "x.csv", "--key", "name"], &["'x' already exists", "its key is n"]);
    desk.fails(1, &["import", "s", "x.csv", "--append"], &["the keys 1, 2, 3"]);
    assert_eq!(desk.ok(&["import", "s", "more.csv", "--table", "x", "--upsert"]), "x: 3 rows put\n");
    let rows = || desk.ok(&["cat", "s", "x", "--format", "csv"]);
    assert_eq!(rows(), "n,name\n1,one\n2,TWO\n3,three\n9,NINE\n");

    let stat = desk.json(&["stat", "s", "x", "--json"]);
    assert_eq!((&stat["key"], &stat["rows"], &stat["memory_keys"]), (&json!(["n"]), &json!(4), &json!(2)));
    assert_eq!(desk.json(&["stat", "s", "b", "--json"])["key"], json!([]));
    let printed = desk.ok(&["stat", "s", "x"]);
    assert!(printed.contains("key") && printed.contains("keys in memory") && !printed.contains("sorted"), "{printed}");
    assert!(desk.ok(&["schema", "s", "x"]).ends_with("\nkey n\n"));
    assert_eq!(desk.json(&["schema", "s", "x", "--json"])["key"], json!(["n"]));
    assert!(desk.json(&["stat", "s", "--json"])["memtable_bytes"].as_u64().unwrap() > 0);
    assert!(desk.ok(&["checkpoint", "s"]).contains("; 2 rows flushed, "));
    assert!(!desk.ok(&["checkpoint", "s"]).contains("flushed"));
    assert_eq!(desk.json(&["checkpoint", "s", "--json"])["rows_flushed"], 0);
    assert_eq!(desk.json(&["stat", "s", "x", "--json"])["memory_keys"], 0);
    assert_eq!(rows(), "n,name\n1,one\n2,TWO\n3,three\n9,NINE\n");

    // Metadata make a version; without --upsert, all rows are replaced; new tables are created.
    desk.ok(&["import", "s", "b.csv", "--table", "x", "--upsert", "--metadata", "7"]);
    assert_eq!(desk.json(&["versions", "s", "x", "--json"]).as_array().unwrap().last().unwrap()["metadata"], 7);
    desk.ok(&["import", "s", "b.csv", "--table", "x"]);
    assert_eq!(rows(), "n,name\n6,six\n");
    let both = ["import", "s", "x.csv", "y.csv", "--under", "k", "--key", "n", "--upsert"];
    assert_eq!(desk.ok(&both), "k/x: 3 rows put\nk/y: 2 rows put\n");
    assert_eq!(desk.ok(&both), "k/x: 3 rows put\nk/y: 2 rows put\n");
    assert_eq!(desk.json(&["stat", "s", "k/x", "--json"])["rows"], 3);
    desk.file("null.csv", "n,name\n,none\n");
    desk.fails(1, &["import", "s", "null.csv", "--table", "x", "--upsert", "--type", "n=Int64"], &["'n'", "no nulls"]);
    assert!(desk.ok(&["verify", "s"]).contains("0 faults"));
}
