//! A folder to run the command in, and rows that have caused bugs.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// Kills a command that has not ended in time, so that it fails its test instead of the whole run.
pub struct Watchdog {
    ended: Sender<()>,
    watches: JoinHandle<bool>,
}

impl Watchdog {
    pub fn over(child: &Child, limit: Duration) -> Self {
        let (pid, (ended, end)) = (child.id().to_string(), channel());
        let watches = std::thread::spawn(move || {
            let in_time = end.recv_timeout(limit) != Err(RecvTimeoutError::Timeout);
            if !in_time {
                Command::new("kill").args(["-KILL", &pid]).status().unwrap();
            }
            in_time
        });
        Self { ended, watches }
    }

    /// The command has ended: whether it did so in time.
    pub fn ended_by_itself(self) -> bool {
        drop(self.ended);
        self.watches.join().unwrap()
    }
}

/// A folder with a store in it.
pub struct Desk(pub tempfile::TempDir);

/// The result of a run of the command.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), out: text(stdout), err: text(stderr) }
    }
}

impl Ran {
    /// Checks that it failed with `code`, printed nothing, and said each of `words`.
    pub fn fails(&self, code: i32, args: &[&str], words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{args:?}: {}", self.err);
        assert!(self.err.starts_with("drumlin: ") && !self.err.contains("panic"), "{args:?}: {}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{args:?}: no '{word}' in: {}", self.err);
        }
    }

    /// Checks that it succeeded and said nothing on standard error; returns what it printed.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }
}

impl Desk {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs with `input` on standard input, which it need not read to the end.
    pub fn fed(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let written = child.stdin.take().unwrap().write_all(input.as_ref());
        assert!(written.is_ok() || written.is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe));
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs `script` in a shell, in which $D is the command.
    pub fn shell(&self, script: &str) -> Ran {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", script])
            .env("D", env!("CARGO_BIN_EXE_drumlin"))
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        Ran::of(shell.output().unwrap())
    }

    /// Makes a FIFO.
    pub fn fifo(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
    }

    /// Runs what must succeed and say nothing on standard error.
    pub fn ok(&self, args: &[&str]) -> String {
        let Ran { code, out, err } = self.run(args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    }

    /// Runs what must succeed and print JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// Runs what must fail with `code`, print nothing, and say each of `words`.
    pub fn fails(&self, code: i32, args: &[&str], words: &[&str]) {
        self.run(args).fails(code, args, words);
    }

    /// A store `s` with the tables a/x (3 rows), a/y (2 rows) and b (1 row).
    pub fn with_tables() -> Self {
        let desk = Self::new();
        desk.file("x.csv", "n,name\n1,one\n2,two\n3,three\n");
        desk.file("y.csv", "n,name\n4,four\n5,five\n");
        desk.file("b.csv", "n,name\n6,six\n");
        desk.ok(&["import", "s", "x.csv", "y.csv", "--under", "a"]);
        desk.ok(&["import", "s", "b.csv"]);
        desk
    }

    pub fn parquet(&self, name: &str, batch: &RecordBatch) {
        let file = std::fs::File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    }

    pub fn read_parquet(&self, name: &str) -> RecordBatch {
        let file = std::fs::File::open(self.path(name)).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let schema = builder.schema().clone();
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
        arrow::compute::concat_batches(&schema, &batches).unwrap()
    }
}

/// One column of each kind that has caused bugs.
pub fn odd_values() -> RecordBatch {
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
