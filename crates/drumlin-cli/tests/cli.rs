//! The built command, run on temporary folders: what it prints, what it leaves, and its exit codes.

#![expect(clippy::disallowed_methods, reason = "the tests look at files as a user would")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int64Array,
    ListArray, RecordBatch, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

/// A folder with a store in it.
struct Desk(tempfile::TempDir);

/// What a run of the command gave.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), out: text(stdout), err: text(stderr) }
    }
}

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs with `input` on standard input.
    fn fed(&self, args: &[&str], input: &str) -> Ran {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs what must succeed and say nothing on standard error.
    fn ok(&self, args: &[&str]) -> String {
        let Ran { code, out, err } = self.run(args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    }

    /// Runs what must succeed and print JSON.
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// Runs what must fail with `code`, print nothing, and say all of `words`.
    fn fails(&self, code: i32, args: &[&str], words: &[&str]) {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with("drumlin: ") && !ran.err.contains("panic"), "{args:?}: {}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{args:?}: no '{word}' in: {}", ran.err);
        }
    }

    /// A store `s` with the tables a/x (3 rows), a/y (2 rows) and b (1 row).
    fn with_tables() -> Self {
        let desk = Self::new();
        desk.file("x.csv", "n,name\n1,one\n2,two\n3,three\n");
        desk.file("y.csv", "n,name\n4,four\n5,five\n");
        desk.file("b.csv", "n,name\n6,six\n");
        desk.ok(&["import", "s", "x.csv", "y.csv", "--under", "a"]);
        desk.ok(&["import", "s", "b.csv"]);
        desk
    }

    fn parquet(&self, name: &str, batch: &RecordBatch) {
        let file = std::fs::File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    }

    fn read_parquet(&self, name: &str) -> RecordBatch {
        let file = std::fs::File::open(self.path(name)).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let schema = builder.schema().clone();
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
        arrow::compute::concat_batches(&schema, &batches).unwrap()
    }
}

/// One column of each kind that has bitten somebody.
fn odd_values() -> RecordBatch {
    let text = vec![Some(""), None, Some("he said \"no\", twice"), Some("line\nbreak\r\n"), Some("日本 🪨 é")];
    let zoned = TimestampMicrosecondArray::from(vec![Some(0), None, Some(-1), Some(1_700_000_000_123_456), Some(1)]);
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(2)]),
        Some(vec![Some(3), Some(4)]),
    ]);
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from(text.clone()))),
        ("view", Arc::new(StringViewArray::from(text))),
        ("int", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX), Some(0), Some(-7)]))),
        ("unsigned", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0), Some(1), Some(2)]))),
        ("float", Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(-0.0), Some(f64::INFINITY), Some(0.1)]))),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from(vec![Some(-5), None, Some(12_345_678_901_234_567_890), Some(0), Some(100)])
                    .with_precision_and_scale(30, 2)
                    .unwrap(),
            ),
        ),
        ("day", Arc::new(Date32Array::from(vec![Some(0), None, Some(-1), Some(20_000), Some(1)]))),
        (
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![
                Some(1),
                None,
                Some(-1),
                Some(1_700_000_000_123_456_789),
                Some(0),
            ])),
        ),
        ("zoned", Arc::new(zoned.with_timezone("America/New_York"))),
        ("yes", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true)]))),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&b"\0\xff"[..]), None, Some(b""), Some(b"x"), Some(b"y")]))),
        ("list", Arc::new(numbers)),
        ("pair", Arc::new(StructArray::from(vec![(Arc::new(Field::new("in", DataType::Int64, true)), inner)]))),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, column)| column).collect())
        .unwrap()
}

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
    assert_eq!(types, ["Int64", "Utf8", "Float64", "Timestamp(µs)", "Date32", "Boolean", "Utf8"]);
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
    // And once more, byte for byte.
    desk.ok(&["export", "s", "back", "back.csv", "--force"]);
    desk.ok(&["export", "s", "odd", "odd2.csv"]);
    assert_eq!(desk.text("back.csv"), desk.text("odd2.csv"));
}

#[test]
fn csv_takes_types_delimiters_and_headers_as_told() {
    let desk = Desk::new();
    desk.file("zip.tsv", "zip\tprice\n01234\t1.10\n99999\t-2.5\n");
    desk.ok(&["import", "s", "zip.tsv", "--type", "zip=Utf8", "--type", "price=Decimal128(10, 2)"]);
    assert_eq!(desk.ok(&["cat", "s", "zip", "--format", "csv"]), "zip,price\n01234,1.10\n99999,-2.50\n");
    // Appended rows take the types of the table, not those they look like.
    desk.file("more.csv", "price;zip\n3;00001\n");
    desk.ok(&["import", "s", "more.csv", "--table", "zip", "--append", "--delimiter", ";"]);
    desk.file("bare.csv", "00002,4\n");
    desk.ok(&["import", "s", "bare.csv", "--table", "zip", "--append", "--no-header"]);
    let tail = desk.ok(&["cat", "s", "zip", "--tail", "2", "--format", "csv"]);
    assert_eq!(tail, "zip,price\n00001,3.00\n00002,4.00\n");
    // Several files to one table agree on their types.
    desk.file("one.csv", "n,t\n1,2024-01-01\n");
    desk.file("two.csv", "t,n\n2024-01-02T03:04:05,1.5\n");
    desk.ok(&["import", "s", "one.csv", "two.csv", "--table", "both"]);
    assert_eq!(desk.ok(&["cat", "s", "both", "-f", "csv"]), "n,t\n1.0,2024-01-01T00:00:00\n1.5,2024-01-02T03:04:05\n");
    // What the sample did not show is told with a way out, which works.
    desk.file("late.csv", "n\n1\n2\nthree\n");
    desk.fails(1, &["import", "s", "late.csv", "--sample", "2"], &["late.csv", "three", "--sample 0"]);
    desk.ok(&["import", "s", "late.csv", "--sample", "0"]);
    // The mark that some programs begin their files with is no part of a name.
    desk.file("bom.csv", "\u{feff}n\n1\n");
    desk.ok(&["import", "s", "bom.csv"]);
    assert_eq!(desk.ok(&["cat", "s", "bom", "-f", "csv"]), "n\n1\n");
    for (bad, word) in [("n", "NAME=TYPE"), ("n=Number", "Arrow type"), ("x=Int64", "columns are 'n'")] {
        let ran = desk.run(&["import", "s", "bom.csv", "--type", bad]);
        assert!(ran.code != Some(0) && ran.err.contains(word), "{}", ran.err);
    }
    desk.fails(2, &["import", "s", "bom.csv", "--delimiter", "ab"], &["delimiter"]);
    desk.file("empty.csv", "");
    desk.fails(1, &["import", "s", "empty.csv"], &["empty.csv", "no column"]);
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
    // Whoever reads only the beginning gets it, and nobody complains.
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
    // Blocks show that rows are on their way: those of small tables travel in the log.
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
    // A row a line, whatever the values hold.
    let table = desk.ok(&["cat", "s", "odd"]);
    assert_eq!(table.lines().count(), 6);
    assert!(table.contains("line\\nbreak"), "{table}");
    let flat = "text,view,int,unsigned,float,decimal,day,time,zoned,yes";
    desk.ok(&["cat", "s", "odd", "-f", "csv", "-c", flat]);
    desk.fails(1, &["export", "s", "odd", "odd.csv"], &["odd.csv", "Nested"]);
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
    assert_eq!(desk.ok(&["schema", "s", "b"]), "column  type   nulls\nn       Int64  yes\nname    Utf8   yes\n");
    let stat = desk.json(&["stat", "s", "--json"]);
    assert_eq!((&stat["tables"], &stat["versions"]), (&json!(3), &json!(3)));
    assert!(desk.ok(&["stat", "s"]).contains("size in all"));
    assert!(desk.ok(&["stat", "s", "a/x"]).contains("rows"));
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
    desk.fails(1, &["cat", "s", "a/x", "--as-of", "1999-01-01"], &["as old as that"]);
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
    desk.fails(1, &["import", "s", "b.csv", "--key", "n"], &["'b' is there", "it has no key"]);
    assert_eq!(desk.ok(&["ls", "s", "--json"]).matches("\"x\"").count(), 0);

    assert_eq!(desk.ok(&["import", "s", "x.csv", "--key", "n"]), "x: version 1, 3 rows\n");
    desk.fails(1, &["import", "s", "x.csv", "--key", "name"], &["'x' is there", "its key is n"]);
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

    // A note makes a version; without --upsert all rows are replaced; new tables are made.
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
    // Within its grace a table stays in the trash.
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
fn nodes_are_removed_with_what_rests_on_them() {
    let desk = Desk::with_tables();
    let lines = "\
{\"path\": \"c/x\", \"payload\": 1}
{\"path\": \"c/x/1\", \"payload\": 2}
{\"path\": \"c/y\", \"payload\": 3}
{\"path\": \"d\", \"payload\": 4, \"keep_while\": [[\"c/x/1\", {\"exists\": true}]]}
";
    desk.file("nodes", lines);
    desk.ok(&["import-nodes", "s", "nodes"]);
    let gone = "c/x\nc/x/1\ta node above it was removed\nd\twhat it lived on no longer holds\n";
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
fn whoever_reads_few_of_many_nodes_gets_them() {
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

/// A `watch` under way, whose lines are waited for only so long.
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
        // One that has ended is none to kill.
        let _ = self.child.kill();
    }
}

#[test]
fn watch_prints_what_another_process_does() {
    let desk = Desk::with_tables();
    let seq = || desk.json(&["stat", "s", "--json"])["seq"].to_string();
    let watching = Watching::new(&desk, &["watch", "s", "--since", &seq()]);
    let steps: [(&[&str], &[&str]); 10] = [
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
    ];
    for (args, lines) in steps {
        desk.ok(args);
        lines.iter().for_each(|line| assert_eq!(watching.next(), *line, "{args:?}"));
    }
    assert!(Command::new("kill").args(["-INT", &watching.child.id().to_string()]).status().unwrap().success());
    let seq = seq();
    let (code, said) = watching.end();
    assert_eq!(code, Some(130));
    assert!(said.ends_with(&format!("drumlin: interrupted: --since {seq} goes on from here\n")), "{said}");
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
    desk.fails(1, &["watch", "s", "--since", "0"], &["since commit 0", "no longer there"]);
}

#[test]
fn watch_goes_on_beside_a_writer_that_stays() {
    let desk = Desk::new();
    let uri = desk.path("s").to_str().unwrap().to_owned();
    let writer = drumlin::Store::open(&uri, Default::default()).unwrap();
    let watching = Watching::new(&desk, &["watch", "s", "--since", "0", "n/*", "--count", "200"]);
    for n in 0..200 {
        writer.put(&format!("n/{n}"), n.into()).unwrap();
        writer.put("other", n.into()).unwrap();
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
    let write = json!({ "seq": written, "kind": "table", "action": "write", "path": "a/x", "table": table });
    assert_eq!(lines[0], write);
    let created = json!({
        "seq": seq(2), "kind": "node", "action": "create", "cause": "asked", "path": "a/n", "before": null, "after": node,
    });
    let deleted = json!({
        "seq": seq(3), "kind": "node", "action": "delete", "cause": "asked", "path": "a/n", "before": node, "after": null,
    });
    assert_eq!((&lines[2], &lines[3]), (&created, &deleted));
    assert_eq!(seq(3), seq(2) + 2);
    desk.fails(1, &["watch", "s", "--since", "99"], &["since commit 99", "newest is"]);
    desk.fails(1, &["watch", "s", "a//b"], &["a//b"]);
    desk.fails(1, &["watch", "none"], &["none"]);
    desk.fails(2, &["watch", "s", "--count", "0"], &["0"]);
    desk.fails(2, &["watch", "s", "--since", "eod"], &["eod"]);
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
    desk.fails(1, &["import", "s", "sub"], &["format"]);
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
fn exports_never_replace_unasked_nor_leave_halves() {
    let desk = Desk::with_tables();
    desk.file("out.csv", "mine");
    desk.fails(1, &["export", "s", "b", "out.csv"], &["out.csv", "--force"]);
    assert_eq!(desk.text("out.csv"), "mine");
    desk.ok(&["export", "s", "b", "out.csv", "--force"]);
    assert_eq!(desk.text("out.csv"), "n,name\n6,six\n");
    desk.ok(&["export", "s", "b", "out.tsv"]);
    assert_eq!(desk.text("out.tsv"), "n\tname\n6\tsix\n");
    desk.fails(1, &["export", "s", "b", "out"], &["--format"]);
    desk.fails(1, &["export", "s", "b", "none/out.csv"], &["none"]);
    desk.fails(1, &["export", "s", "z", "z.csv"], &["no table at 'z'"]);
    desk.fails(1, &["export", "s", "b", "z.csv", "--where", "q = 1"], &["column q"]);
    let left: Vec<_> = std::fs::read_dir(desk.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
    assert!(!desk.path("z.csv").exists());
}

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
    // The first byte of the first row group: in between there are gaps, which nobody reads.
    bytes[64] ^= 1;
    std::fs::write(&blocks[0], bytes).unwrap();
    let ran = desk.run(&["verify", "s"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    assert!(ran.out.contains("fault: a/"), "{}", ran.out);
    let ran = desk.run(&["verify", "s", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, report["faults"].as_array().unwrap().len()), (Some(1), 1));
    // An object that nothing refers to is named, and no fault.
    let desk = Desk::with_tables();
    std::fs::create_dir_all(desk.path("s/blocks/1")).unwrap();
    std::fs::write(desk.path("s/blocks/1/999.blk"), "left behind").unwrap();
    assert!(desk.ok(&["verify", "s"]).contains("orphan: blocks/1/999.blk, 11 B"));
    // A file that says it is another kind of store.
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
        "delete",
        "delete-versions",
        "drop",
        "undrop",
        "trash",
        "snapshot",
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
    let writer = drumlin::Store::open(&uri, Default::default()).unwrap();
    assert_eq!(desk.ok(&["cat", "s", "b", "-f", "csv"]), "n,name\n6,six\n");
    desk.ok(&["ls", "s"]);
    desk.ok(&["verify", "s"]);
    desk.ok(&["vacuum", "s", "--explain"]);
    desk.ok(&["export", "s", "b", "beside.csv"]);
    desk.fails(1, &["drop", "s", "b"], &[&format!("process {}", std::process::id())]);
    writer.close().unwrap();
    desk.ok(&["drop", "s", "b"]);
}
