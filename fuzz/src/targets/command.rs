//! The command line: its arguments, and the text files that it imports.

use arrow::datatypes::{DataType, Field, Schema};
use drumlin_cli::figures::{parse_json, parse_share, parse_span, span};
use drumlin_cli::source::{Format, TextForm, parse_column_type, parse_delimiter, rows_of_text};

use crate::cursor::{Cursor, data_type};

/// Arguments, one per line, as for a call, but without running the command; each argument also as every kind of value.
pub fn arguments(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = drumlin_cli::check(std::iter::once("drumlin").chain(text.split('\n')));
    for value in text.split('\n').take(8) {
        if let Ok(micros) = parse_span(value) {
            assert_eq!(parse_span(&span(micros)), Ok(micros));
        }
        let _ = drumlin::AsOf::parse(value);
        let _ = parse_share(value);
        let _ = parse_json(value);
        let _ = parse_column_type(value);
        let _ = parse_delimiter(value);
    }
}

/// Calls of every kind, and values.
pub fn argument_seeds() -> Vec<Vec<u8>> {
    let calls = [
        "import s a.csv b.json --under prices --type x=Decimal128(12,2) --delimiter tab --sample 0 --no-header",
        "export s prices/** out --format parquet --as-of 3",
        "ls s",
        "tree s n --depth 3",
        "cat s t --columns a,b --where a>1 --head 5 --as-of snapshot:x",
        "schema s t --json",
        "stat s",
        "versions s t --json",
        "delete s t --where id=3 --metadata {\"a\":1}",
        "delete-versions s t 1 2..5 7..",
        "drop s a b --missing ignore",
        "undrop s a",
        "trash s --purge",
        "snapshot create s x",
        "snapshot list s",
        "retention s a --keep-last 3",
        "retention s a --keep-for 30d",
        "checkpoint s",
        "vacuum s --dead 0.5 --small 0.1 --dry-run",
        "reclaim s --audit --rest 12h --fence-idle 90m",
        "verify s --deep",
        "salvage s new",
        "get s a/b",
        "put s a {\"x\":[1,2.5,null]} --if-version 3",
        "rm s a --recursive",
        "watch s a -n 3 --since 9",
        "doctor s3://b/p --storage-option endpoint=http://localhost:9000",
        "--help",
        "2024-02-29T16:00:00.123456+01:00",
        "1969-12-31T23:59:59.9999999Z",
        "0001-01-01 9999-12-31T23:59:59Z",
        "45s 90m 12h 30d 2w 99999999999w",
        "a=Struct(x Int64) b=List(Int64) c=Timestamp(ns,\"UTC\") d=Map(\"entries\",Utf8,Int64)",
    ];
    calls.map(|call| call.replace(' ', "\n").into_bytes()).into()
}

/// The first byte says how a text is read, the second the length of what precedes the text: types that are set, one per
/// line. If the first byte says so, the next four bytes give the types of a table to which the rows are added.
pub fn import(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let (how, length) = (cursor.byte(), cursor.byte() / 2);
    let types = String::from_utf8_lossy(cursor.take(length.into())).into_owned();
    let format = if how & 1 == 0 { Format::Csv } else { Format::Json };
    let form = TextForm {
        header: how & 2 == 0,
        delimiter: (how & 4 != 0).then_some(b';'),
        sample: [0, 1, 2, 1000][usize::from(how >> 4 & 3)],
        types: types.split('\n').filter_map(|text| parse_column_type(text).ok()).collect(),
    };
    let table: Option<Vec<DataType>> =
        (how & 8 != 0).then(|| (0..4).map(|_| data_type(cursor.byte().into())).collect());
    let Ok(batches) = rows_of_text(format, &form, cursor.0, None) else { return };
    for column in batches.iter().flat_map(|batch| batch.columns()) {
        column.to_data().validate_full().expect("a sound array");
    }
    let (Some(table), Some(first)) = (table, batches.first()) else { return };
    let schema = first.schema();
    let fields = schema.fields().iter().zip(table.iter().cycle());
    let fields: Vec<Field> =
        fields.map(|(field, data_type)| Field::new(field.name(), data_type.clone(), true)).collect();
    for batch in rows_of_text(format, &form, cursor.0, Some(&Schema::new(fields))).unwrap_or_default() {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().expect("a sound array"));
    }
}

/// Texts of both formats.
pub fn import_seeds() -> Vec<Vec<u8>> {
    let csv = "id,name,when,price\n1,a,2024-01-31T16:00:00Z,1.5\n2,\"quoted \"\"b\"\"\",,-3e4\n,,2024-02-01,\n";
    let plain = "1;x;true\n2;y;false\n";
    let json = "{\"id\":1,\"s\":\"text\",\"l\":[1,2],\"o\":{\"a\":null,\"b\":2.5}}\n\n{\"id\":18446744073709551615,\"new\":true}\n";
    let dates = "{\"d\":\"2024-02-29\",\"t\":\"2024-01-01T00:00:00.123456789\",\"n\":null}\r\n{\"d\":\"1969-12-31\"}";
    let types = "id=Int32\nname=Dictionary(Int8, Utf8)\nwhen=Timestamp(ms, \"UTC\")\nprice=Decimal128(12,2)";
    let mut seeds = Vec::new();
    for (how, text) in [(0_u8, csv), (0x30, csv), (6, plain), (1, json), (0x11, json), (1, dates), (0x21, dates)] {
        seeds.push([&[how, 0][..], text.as_bytes()].concat());
        for tables in [[0, 4, 8, 6], [12, 14, 17, 2], [4, 4, 4, 4], [9, 9, 18, 16]] {
            seeds.push([&[how | 8, 0][..], &tables, text.as_bytes()].concat());
        }
    }
    seeds.push([&[0x30, types.len() as u8 * 2][..], types.as_bytes(), csv.as_bytes()].concat());
    seeds.push(b"\x00\x00\xff\xfea,b".to_vec());
    seeds.push(b"\x01\x00\xef\xbb\xbf{\"a\":1}".to_vec());
    seeds
}
