//! Values of CSV and JSON lines: the types they get, and those that do not fit.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, IntervalDayTimeArray, IntervalYearMonthArray, RecordBatch, StructArray};
use arrow::datatypes::{Field, IntervalDayTime};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use serde_json::Value;

use crate::desk::{Desk, odd_values};

#[test]
fn json_lines_come_back_as_they_went() {
    let desk = Desk::new();
    desk.parquet("odd.parquet", &odd_values());
    desk.ok(&["import", "s", "odd.parquet"]);
    let columns = "text,view,int,unsigned,decimal,day,time,zoned,yes,bytes,list,pair";
    assert!(desk.ok(&["export", "s", "odd", "odd.jsonl", "-c", columns]).starts_with("odd.jsonl: 5 rows, "));
    let lines = desk.text("odd.jsonl");
    assert_eq!(desk.ok(&["cat", "s", "odd", "-f", "json", "-c", columns]), lines);
    // The types are those of the table.
    desk.ok(&["export", "s", "odd", "types.arrow", "-c", columns, "--where", "int = 5"]);
    desk.ok(&["import", "s", "types.arrow", "--table", "back"]);
    desk.ok(&["import", "s", "odd.jsonl", "--table", "back", "--append"]);
    assert_eq!(desk.ok(&["export", "s", "back", "-", "-f", "json"]), lines);
}

#[test]
fn json_types_are_read_off_the_values() {
    let desk = Desk::new();
    let lines = "\
{\"z\": 1, \"a\": \"x\", \"f\": 1, \"mixed\": 1, \"none\": null}

{\"z\": null, \"f\": 1.5, \"list\": [1, null], \"mixed\": \"two\", \"ok\": true}
{\"pair\": {\"in\": [{\"deep\": 1.5}]}, \"list\": []}
";
    desk.file("j.jsonl", lines);
    assert_eq!(desk.ok(&["import", "s", "j.jsonl"]), "j: version 0, 3 rows\n");
    let schema = desk.json(&["schema", "s", "j", "--json"]);
    let column = |c: &Value| format!("{} {}", c["name"].as_str().unwrap(), c["type"].as_str().unwrap());
    let columns: Vec<String> = schema["columns"].as_array().unwrap().iter().map(column).collect();
    let expected = [
        "z int64",
        "a string",
        "f double",
        "mixed string",
        "none string",
        "list list<int64>",
        "ok bool",
        "pair struct<in: list<struct<deep: double>>>",
    ];
    assert_eq!(columns, expected);
    let rows: Vec<Value> =
        desk.ok(&["cat", "s", "j", "-f", "json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["mixed"], &rows[1]["mixed"]), (&"1".into(), &"two".into()));
    assert_eq!(rows[2]["pair"]["in"][0]["deep"], 1.5);
    // A byte order mark, line ends of another system, a last line without one.
    desk.file("bom.ndjson", "\u{feff}{\"n\": 1}\r\n{\"n\": 2}");
    assert_eq!(desk.ok(&["import", "s", "bom.ndjson"]), "bom: version 0, 2 rows\n");
    // Each file may lack members of others.
    desk.file("one.json", "{\"a\": 1}\n");
    desk.file("two.json", "{\"b\": \"x\", \"a\": 2.5}\n");
    desk.ok(&["import", "s", "one.json", "two.json", "--table", "both"]);
    assert_eq!(desk.ok(&["cat", "s", "both", "-f", "csv"]), "a,b\n1.0,\n2.5,x\n");
}

#[test]
fn a_json_line_that_does_not_fit_is_named() {
    let desk = Desk::new();
    desk.file("t.jsonl", "{\"n\": 1, \"t\": \"x\"}\n");
    desk.ok(&["import", "s", "t.jsonl"]);
    for (lines, more, words) in [
        (
            "{\"n\":1}\n\n{\"n\":1.5}\n",
            &["--sample=1"][..],
            &["line 3", "'n'", "'1.5'", "int64", "--type 'n=", "--sample 0"][..],
        ),
        ("{\"n\":1}\n{\"n\":[2]}\n", &["--sample=1"], &["line 2", "'n'", "'[2]'"]),
        ("{\"n\":1}\n{\"n\":true}\n", &["--sample=1"], &["line 2", "'n'", "'true'"]),
        ("{\"n\":1}\n{\"m\":1}\n", &["--sample=1"], &["line 2", "'m'", "'n'", "--sample 0"]),
        ("{\"n\":{\"a\":1}}\n{\"n\":{\"a\":1.5}}\n", &["--sample=1"], &["line 2", "'n'"]),
        ("{\"n\":1}\n{\"n\":{\"a\":1}}\n", &[], &["line 2", "make them agree"]),
        ("{\"n\":1.5}\n", &["-t", "t", "-a"], &["line 1", "'n'", "'1.5'", "int64", "the table"]),
        ("{\"n\":1}\n{\"q\":1}\n", &["-t", "t", "-a"], &["line 2", "'q'", "the table has no such column"]),
        (
            "{\"d\":1.255}\n",
            &["--type", "d=decimal128(5,2)"],
            &["line 1", "'d'", "'1.255'", "more fractional digits", "--type"],
        ),
        ("{\"d\":\"2024-01-01T00:00:00.5\"}\n", &["--type", "d=Timestamp(s)"], &["line 1", "more fractional digits"]),
        ("{\"n\":18446744073709551615}\n{\"n\":-1}", &[], &["line 2", "'-1'", "uint64", "--type"]),
        ("[{\"n\":1}]\n", &[], &["line 1", "array", "jq"]),
        ("[\n{\"n\":1}\n]\n", &[], &["line 1", "array", "jq"]),
        ("{\n\"n\": 1}\n", &[], &["line 1", "does not end on this line"]),
        ("{\"n\":1}\n{\"n\":\n2}\n", &["--sample=1"], &["line 2", "does not end on this line"]),
        ("{\"n\":1}\n{\"n\":2}{\"n\":3}\n", &["--sample=1"], &["line 2", "one JSON object per line"]),
        ("{\"n\":1}\n{\"n\":nan}\n", &["--sample=1"], &["line 2", "not valid JSON", "column 7"]),
        ("{\"n\":1}\n{\"n\":2", &["--sample=1"], &["line 2", "does not end on this line"]),
        ("5\n", &[], &["line 1", "not an object"]),
        ("{\"n\":1}\n", &["--type", "m=string"], &["'m'", "'n'"]),
    ] {
        desk.file("bad.jsonl", lines);
        let args = [&["import", "s", "bad.jsonl"], more].concat();
        desk.fails(1, &args, &[&["bad.jsonl: "], words].concat());
    }
    assert_eq!(desk.ok(&["cat", "s", "t", "-f", "csv"]), "n,t\n1,x\n");
    assert_eq!(desk.ok(&["ls", "s"]).lines().count(), 2);
    // The suggested fixes work.
    desk.file("late.jsonl", "{\"n\":1}\n{\"n\":1.5, \"m\": 2}\n");
    desk.ok(&["import", "s", "late.jsonl", "--sample", "0"]);
    assert_eq!(desk.ok(&["cat", "s", "late", "-f", "csv"]), "n,m\n1.0,\n1.5,2\n");
    for large in ["{\"n\":18446744073709551615}\n", "{\"n\":[18446744073709551615]}\n"] {
        desk.file("large.jsonl", large);
        desk.ok(&["import", "s", "large.jsonl"]);
        assert_eq!(desk.ok(&["cat", "s", "large", "-f", "json"]), large);
    }
}

#[test]
fn a_csv_line_that_does_not_fit_is_named() {
    let desk = Desk::new();
    desk.file("t.csv", "n,t\n1,x\n");
    desk.ok(&["import", "s", "t.csv"]);
    let seconds = "t\n2024-01-01T00:00:00\n2024-01-01T00:00:00.5\n";
    for (lines, more, words) in [
        (
            "n\n1\n2\nthree\n",
            &["--sample=2"][..],
            &["line 4", "'n'", "'three'", "int64", "--type 'n=", "--sample 0"][..],
        ),
        // Line numbers are those of the file, even if values contain line ends.
        ("n,t\r\n1,\"a\nb\"\r\n\r\n\r\nx,c\r\n", &["--sample=1"], &["line 6", "'n'", "'x'"]),
        ("d\n2024-01-01\n2024-01-01T10:00:00\n", &["--sample=1"], &["line 3", "'d'", "time of day"]),
        (seconds, &["--sample=1"], &["line 3", "'t'", "more fractional digits", "timestamp[s]"]),
        (
            "d\n1.25\n1.255\n",
            &["--type", "d=decimal128(5,2)"],
            &["line 3", "'1.255'", "more fractional digits", "--type"],
        ),
        ("n,t\ny,x\n", &["-t", "t", "-a"], &["line 2", "'n'", "'y'", "the table"]),
        ("n\n1\n2147483648\n", &["--type", "n=int32"], &["line 3", "'2147483648'", "int32", "--type"]),
        ("a,b\n1,2\n3\n", &[], &["line 3", "expected 2 values", "'a', 'b'", "got 1"]),
        ("a,b\n1,2\n3,4,5\n", &[], &["line 3", "expected 2 values", "got more than 2"]),
        ("a,b\n1,\"x\n2,y\n3,z\n", &[], &["line 2", "quote is never closed"]),
        ("a\n1\n\"2", &[], &["line 3", "quote is never closed"]),
        ("a,a\n1,2\n", &[], &["'a'", "rename"]),
    ] {
        desk.file("bad.csv", lines);
        let args = [&["import", "s", "bad.csv"], more].concat();
        desk.fails(1, &args, &[&["bad.csv: "], words].concat());
    }
    for sample in ["--sample=1", "--sample=0"] {
        // The second has half a character on each side of a delimiter, the third on each side of a line end.
        for line in [&b"caf\xe9,3\n"[..], b"caf\xc3,\xa9\n", b"3,caf\xc3\n\xa9,4\n"] {
            std::fs::write(desk.path("latin.csv"), [b"a,b\n1,2\n", line].concat()).unwrap();
            desk.fails(1, &["import", "s", "latin.csv", sample], &["latin.csv: line 3", "UTF-8", "iconv"]);
        }
    }
    assert_eq!(desk.ok(&["ls", "s"]).lines().count(), 2);
    // A value far after the sample, in a later batch than the first.
    let many: String = (0..40_000).map(|n| format!("{n},\"a\nb\"\n")).collect();
    desk.file("many.csv", &format!("n,t\n{many}x,y\n"));
    desk.fails(1, &["import", "s", "many.csv"], &["many.csv: line 80002", "'x'", "first 10000 rows"]);
    // A file that ends without a line end, or with too many, is complete.
    for text in ["n,t\n1,x\n2,\"y\"", "n,t\r\n1,x\r\n2,y\r\n\r\n", "n,t\n1,x\n2,\"y\"\n"] {
        desk.file("end.csv", text);
        assert!(desk.ok(&["import", "s", "end.csv"]).ends_with(", 2 rows\n"), "{text:?}");
        assert_eq!(desk.ok(&["cat", "s", "end", "-f", "csv"]), "n,t\n1,x\n2,y\n");
    }
}

#[test]
fn csv_values_print_as_they_were_or_are_text() {
    let desk = Desk::new();
    let text = "\
id,zip,long,mixed,utc,oslo,price,day
1,01234,123456789.123456789,2020-01-01T00:00:00+02:00,2020-01-01T00:00:00Z,2020-01-01T00:00:00+02:00,1.5,2024-02-30
2,90210,1.5,2020-01-01T00:00:00,2020-01-01T00:00:00Z,2020-06-01T00:00:00+02:00,2.25,2024-01-01
";
    desk.file("z.csv", text);
    desk.ok(&["import", "s", "z.csv"]);
    let schema = desk.json(&["schema", "s", "z", "--json"]);
    let types: Vec<&str> =
        schema["columns"].as_array().unwrap().iter().map(|column| column["type"].as_str().unwrap()).collect();
    let (utc, oslo) = ("timestamp[s, tz=UTC]", "timestamp[s, tz=+02:00]");
    assert_eq!(types, ["int64", "string", "string", "string", utc, oslo, "double", "string"]);
    assert_eq!(desk.ok(&["cat", "s", "z", "-f", "csv"]), text);
    // Onto a table they stop the import.
    desk.file("t.csv", "n,f,t\n1,1.5,2020-01-01T00:00:00\n");
    desk.ok(&["import", "s", "t.csv"]);
    for (row, words) in [
        ("007,1.5,2020-01-01T00:00:00", &["line 2, column 'n'", "'007'", "zeros"][..]),
        ("+7,1.5,2020-01-01T00:00:00", &["line 2, column 'n'", "'+7'"]),
        ("1,123456789.123456789,2020-01-01T00:00:00", &["line 2, column 'f'", "more digits"]),
        ("1,1e400,2020-01-01T00:00:00", &["line 2, column 'f'", "too large"]),
        ("1,1.5,2020-01-01T00:00:00+02:00", &["line 2, column 't'", "time zone"]),
        ("1,1.5,2020-01-01T24:00:00", &["line 2, column 't'"]),
    ] {
        desk.file("more.csv", &format!("n,f,t\n{row}\n"));
        desk.fails(1, &["import", "s", "more.csv", "--table", "t", "--append"], words);
    }
}

#[test]
fn times_without_a_zone_are_not_those_of_a_column_that_has_one() {
    let desk = Desk::new();
    desk.file("t.csv", "t\n2024-01-01 00:00:00Z\n2024-01-01 00:00:00\n");
    let sampled = ["import", "s", "t.csv", "--sample", "1"];
    desk.fails(1, &sampled, &["line 3, column 't'", "'2024-01-01 00:00:00' has no time zone", "--sample 0"]);
    // From all rows they are text; where the zone was told, or is the table's, they are in UTC.
    desk.ok(&["import", "s", "t.csv", "--table", "text"]);
    assert_eq!(desk.ok(&["cat", "s", "text", "-f", "csv"]), "t\n2024-01-01 00:00:00Z\n2024-01-01 00:00:00\n");
    desk.ok(&["import", "s", "t.csv", "--type", "t=Timestamp(s, \"UTC\")"]);
    desk.ok(&["import", "s", "t.csv", "--append"]);
    assert_eq!(desk.ok(&["cat", "s", "t", "-f", "csv"]), format!("t\n{}", "2024-01-01T00:00:00Z\n".repeat(4)));
    // A leap second is no second that Arrow has.
    desk.file("leap.csv", "t\n2016-12-31 23:59:60\n2016-12-31 23:59:59\n");
    desk.ok(&["import", "s", "leap.csv"]);
    assert_eq!(desk.ok(&["cat", "s", "leap", "-f", "csv"]), "t\n2016-12-31 23:59:60\n2016-12-31 23:59:59\n");
    let told = ["import", "s", "leap.csv", "--type", "t=Timestamp(s)"];
    desk.fails(1, &told, &["line 2, column 't'", "'2016-12-31 23:59:60' is not a valid"]);
}

#[test]
fn json_nulls_are_taken_and_texts_are_no_numbers() {
    let desk = Desk::new();
    let lines = "\
{\"a\":[[1],null],\"b\":[{\"c\":[null,1]},null],\"d\":null}
{\"a\":null,\"b\":[],\"d\":{\"e\":[[[1.5],null]]}}
";
    desk.file("n.jsonl", lines);
    desk.ok(&["import", "s", "n.jsonl"]);
    assert_eq!(desk.ok(&["cat", "s", "n", "-f", "json"]), lines);
    desk.file("t.jsonl", "{\"n\":1,\"f\":1.5,\"b\":true}\n");
    desk.ok(&["import", "s", "t.jsonl"]);
    for (line, words) in [
        ("{\"n\":\"007\"}", &["line 1, column 'n'", "'007'", "is a string"][..]),
        ("{\"f\":\"nan\"}", &["line 1, column 'f'", "'nan'", "is a string"]),
        ("{\"b\":\"true\"}", &["line 1, column 'b'", "'true'", "is a string"]),
        ("{\"f\":123456789.123456789}", &["line 1, column 'f'", "more digits"]),
        ("{\"f\":1e400}", &["line 1, column 'f'", "too large"]),
        ("{\"n\":1,\"n\":2}", &["line 1", "has the member 'n' twice"]),
    ] {
        desk.file("more.jsonl", &format!("{line}\n"));
        desk.fails(1, &["import", "s", "more.jsonl", "--table", "t", "--append"], words);
    }
}

#[test]
fn intervals_of_parquet_keep_their_months() {
    let desk = Desk::new();
    let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![Some(14), None]));
    let field = Arc::new(Field::new("in", months.data_type().clone(), true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, months.clone())]));
    let days: ArrayRef = Arc::new(IntervalDayTimeArray::from(vec![Some(IntervalDayTime::new(3, 4)), None]));
    let batch = RecordBatch::try_from_iter([("months", months), ("nested", nested), ("days", days)]).unwrap();
    // As others write them: without Arrow's schema.
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let file = std::fs::File::create(desk.path("iv.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    desk.ok(&["import", "s", "iv.parquet"]);
    let printed = desk.ok(&["cat", "s", "iv", "-f", "json"]);
    let first = "{\"months\":\"14 mons\",\"nested\":{\"in\":\"14 mons\"},\"days\":\"3 days 0.004000000 secs\"}";
    assert_eq!(printed.lines().next().unwrap(), first);
    assert_eq!(printed.lines().nth(1).unwrap(), "{\"months\":null,\"nested\":{\"in\":null},\"days\":null}");
}
