//! Imports from inputs that can be read only once, and from compressed bytes: every row arrives, or none.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;

use crate::desk::Desk;

const ROWS: i64 = 100_000;

/// The numbers from 0 in each format.
fn formats() -> Vec<(&'static str, Vec<u8>)> {
    let csv: String = std::iter::once("n\n".to_owned()).chain((0..ROWS).map(|n| format!("{n}\n"))).collect();
    let json: String = (0..ROWS).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    let rows = Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    let rows = RecordBatch::try_from_iter([("n", rows)]).unwrap();
    let batches = || (0..10).map(|at| rows.slice(at * ROWS as usize / 10, ROWS as usize / 10));
    let (mut parquet, mut file, mut stream) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer = ArrowWriter::try_new(&mut parquet, rows.schema(), None).unwrap();
    batches().for_each(|batch| writer.write(&batch).unwrap());
    writer.close().unwrap();
    let mut writer = FileWriter::try_new(&mut file, &rows.schema()).unwrap();
    batches().for_each(|batch| writer.write(&batch).unwrap());
    writer.finish().unwrap();
    let mut writer = StreamWriter::try_new(&mut stream, &rows.schema()).unwrap();
    batches().for_each(|batch| writer.write(&batch).unwrap());
    writer.finish().unwrap();
    vec![
        ("csv", csv.into_bytes()),
        ("json", json.into_bytes()),
        ("parquet", parquet),
        ("arrow", file),
        ("arrow", stream),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    // As the zstd command does.
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Checks that the table holds the numbers from 0.
fn check(desk: &Desk, table: &str) {
    let sum: i64 = desk.ok(&["cat", "s", table, "-f", "csv"]).lines().skip(1).map(|n| n.parse::<i64>().unwrap()).sum();
    assert_eq!(sum, ROWS * (ROWS - 1) / 2, "{table}");
}

#[test]
fn a_pipe_gives_all_its_rows() {
    let desk = Desk::new();
    for (format, bytes) in formats() {
        for (compressed, bytes) in [("no", bytes.clone()), ("gzip", gzip(&bytes)), ("zstd", zstd(&bytes))] {
            for more in [&["-"][..], &["/dev/stdin"], &["-", "--sample=0"], &["-", "--sample=1"]] {
                let args = [&["import", "s", "-f", format, "--table", "t"], more].concat();
                let said = desk.fed(&args, &bytes).ok();
                assert!(said.ends_with(", 100,000 rows\n"), "{args:?}, {compressed}: {said}");
            }
            check(&desk, "t");
        }
    }
}

#[test]
fn files_tell_by_their_first_bytes_how_they_are_compressed() {
    let desk = Desk::new();
    for (at, (format, bytes)) in formats().into_iter().enumerate() {
        for (name, bytes) in [
            (format!("gz{at}.{format}.gz"), gzip(&bytes)),
            (format!("zst{at}.{format}.zst"), zstd(&bytes)),
            // Its name does not show the compression.
            (format!("plain{at}.{format}"), zstd(&bytes)),
            // Separately compressed parts make one file.
            (format!("parts{at}.{format}.gz"), [gzip(&bytes[..1000]), gzip(&[]), gzip(&bytes[1000..])].concat()),
        ] {
            std::fs::write(desk.path(&name), bytes).unwrap();
            let table = name.split('.').next().unwrap();
            assert_eq!(desk.ok(&["import", "s", &name]), format!("{table}: version 0, 100,000 rows\n"));
            check(&desk, table);
        }
    }
}

#[test]
fn a_fifo_gives_all_its_rows() {
    let desk = Desk::new();
    desk.fifo("rows.csv");
    let said = desk.shell("(echo n; seq 0 99999) > rows.csv & $D import s rows.csv").ok();
    assert_eq!(said, "rows: version 0, 100,000 rows\n");
    check(&desk, "rows");
    // Two of them, and a file, go to one table.
    desk.fifo("more.csv");
    desk.file("file.csv", "n\n7\n");
    let script =
        "(echo n; seq 1 5) > rows.csv & (echo n; seq 6 9) > more.csv & $D import s rows.csv file.csv more.csv -t two";
    assert_eq!(desk.shell(script).ok(), "two: version 0, 10 rows\n");
}

#[test]
fn bytes_that_are_cut_off_import_nothing() {
    let desk = Desk::new();
    desk.ok(&["put", "s", "a", "1"]);
    for (format, bytes) in formats() {
        for (by, compressed) in [("gzip", gzip(&bytes)), ("zstd", zstd(&bytes))] {
            for share in [1, 2, 5, 9, 10] {
                let cut = &compressed[..compressed.len() * share / 10 - 1];
                let args = ["import", "s", "-", "-f", format, "-t", "t"];
                desk.fed(&args, cut).fails(1, &args, &["standard input: ", by, "truncated"]);
                std::fs::write(desk.path("cut"), cut).unwrap();
                desk.fails(1, &["import", "s", "cut", "-f", format], &["cut: ", by, "truncated"]);
            }
            let mut damaged = compressed.clone();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 40].fill(0x55);
            let args = ["import", "s", "-", "-f", format, "-t", "t"];
            // Without a checksum, the damage may show only in the values.
            desk.fed(&args, damaged).fails(1, &args, &["standard input: "]);
        }
    }
    assert_eq!(desk.ok(&["ls", "s"]), "");
}

#[test]
fn formats_that_know_their_end_import_nothing_without_it() {
    let desk = Desk::new();
    desk.ok(&["put", "s", "a", "1"]);
    for (format, bytes) in formats().into_iter().skip(2) {
        for lost in [1, 8, 9, 5000, bytes.len() / 2, bytes.len() - 20] {
            let args = ["import", "s", "-", "-f", format, "-t", "t"];
            desk.fed(&args, &bytes[..bytes.len() - lost]).fails(1, &args, &["standard input: "]);
        }
    }
    // What follows the end of a stream would be ignored.
    let (format, stream) = formats().pop().unwrap();
    let args = ["import", "s", "-", "-f", format, "-t", "t"];
    desk.fed(&args, [&stream[..], &stream].concat()).fails(1, &args, &["after the end of the stream"]);
    assert_eq!(desk.ok(&["ls", "s"]), "");
}

#[test]
fn what_is_no_rows_is_refused_with_a_way_out() {
    let desk = Desk::new();
    let table = |format: &'static str| ["import", "s", "-", "-t", "t", "-f", format];
    for (args, input, words) in [
        (&table("csv")[..], &b"BZh91AY&SY\0\0"[..], &["bzip2 -dc", "standard input"][..]),
        (&table("csv"), b"\xfd7zXZ\0\0\0", &["xz -dc"]),
        (&table("csv"), b"PK\x03\x04....", &["unzip"]),
        (&table("csv"), b"\xff\xfen\0", &["UTF-16", "iconv"]),
        (&table("json"), b"\xff\xfe{\0", &["UTF-16", "iconv"]),
        (&table("csv"), b"\0n\0\n", &["UTF-16BE", "iconv"]),
        (&table("csv"), b"PAR1....", &["another format", "--format parquet"]),
        (&table("parquet"), b"ARROW1....", &["another format", "--format arrow"]),
        (&table("csv"), b"", &["empty"]),
        (&table("json"), b"", &["empty"]),
        (&table("arrow"), b"", &["not an Arrow file or stream"]),
        (&table("arrow"), b"FEA1....", &["version 1"]),
        (&table("parquet"), b"PAR1", &["Parquet"]),
        (&["import", "s", "-", "-t", "t"], b"n\n1\n", &["standard input", "--format"]),
    ] {
        desk.fed(args, input).fails(1, args, words);
    }
    desk.fails(2, &["import", "s", "-", "-f", "csv"], &["standard input", "--table"]);
    desk.fails(2, &["import", "s", "/dev/fd/0", "-f", "csv"], &["--table"]);
    desk.fails(2, &["import", "s", "-", "/dev/stdin", "-f", "csv", "-t", "t"], &["twice"]);
    assert!(!desk.path("s").exists());
}

/// Bytes of each binary format with one of them changed: rows, or an error that names the file; the reader's panics are no bugs of
/// the command.
#[test]
fn damaged_files_are_named() {
    let desk = Desk::new();
    for (format, bytes) in formats().into_iter().filter(|(format, _)| !matches!(*format, "csv" | "json")) {
        // Where the file tells of itself.
        let places = (0..600).step_by(13).chain((bytes.len() - 1500..bytes.len()).step_by(19));
        for (at, bit) in places.zip([0x01_u8, 0x80, 0x20].into_iter().cycle()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            std::fs::write(desk.path("damaged"), &damaged).unwrap();
            let ran = desk.run(&["import", "s", "damaged", "-f", format, "-t", "t"]);
            let said = ran.err;
            assert!(!said.contains("internal error"), "{format}, byte {at}: {said}");
            assert!(ran.code == Some(0) || said.contains("damaged: "), "{format}, byte {at}: {said}");
        }
    }
}
