//! Rows written by key: as Arrow streams in a commit, and the filter of a row group's keys.

use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use drumlin::Tables;
use drumlin::catalog::{Effect, TransactionRecord};
use drumlin::log::{CommitLog, Durable, Entry, FileLog};
use drumlin::memtable::Keys;
use drumlin::storage::SimDisk;
use drumlin::store::TableOptions;
use drumlin::table::RowsChange;

use crate::cursor::Cursor;
use crate::stores;

/// Rows of a table whose key is a number and a text, with columns of several kinds.
fn batch(rows: usize) -> RecordBatch {
    let types = [
        ("name", DataType::Utf8),
        ("x", DataType::Float64),
        ("flag", DataType::Boolean),
        ("word", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
        ("list", DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))),
        ("view", DataType::Utf8View),
    ];
    let mut rng = fastrand::Rng::with_seed(rows as u64);
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..rows as i64))];
    let mut fields = vec![Field::new("id", DataType::Int64, true)];
    for (name, data_type) in types {
        columns.push(super::arrays::array(&mut rng, &data_type, rows, name != "name"));
        fields.push(Field::new(name, data_type, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of a length")
}

const KEY: [&str; 2] = ["id", "name"];

fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref()).expect("a stream");
    stream.write(batch).expect("a batch");
    stream.into_inner().expect("a stream")
}

/// A store with an empty keyed table, killed, and the commit of one upsert to it.
fn base() -> &'static (SimDisk, Entry) {
    static BASE: OnceLock<(SimDisk, Entry)> = OnceLock::new();
    BASE.get_or_init(|| {
        let disk = SimDisk::new();
        let store = stores::open(&disk, 0).expect("a store");
        let key = TableOptions { key: KEY.map(str::to_owned).into(), ..TableOptions::default() };
        store.table("k").create(batch(0).schema(), key).expect("a table");
        let empty = disk.fork();
        store.table("k").upsert(batch(1), &Default::default()).expect("a row");
        let last = FileLog::read(&disk).expect("a sound log").entries.pop().expect("the row's commit");
        (empty, last)
    })
}

/// A commit with these bytes as the rows written, and those from the offset in the first two bytes on as the keys deleted.
pub fn rows(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let length = usize::from(cursor.short());
    let (puts, deletes) = (cursor.take(length), cursor.0);
    let change = postcard::to_stdvec(&(puts, deletes)).expect("bytes");
    let change: RowsChange = postcard::from_bytes(&change).expect("two lists of bytes");
    let (disk, entry) = base();
    let mut transactions = TransactionRecord::decode(&entry.payload).expect("a sound commit");
    for effect in transactions.iter_mut().flat_map(|transaction| &mut transaction.effects) {
        if let Effect::WriteRows { rows, .. } = effect {
            *rows = change.clone();
        }
    }
    let payload = TransactionRecord::encode(&transactions).expect("a commit").into();
    let disk = disk.fork();
    let (log, _) = FileLog::open(Arc::new(disk.clone()), Default::default(), Default::default()).expect("a sound log");
    log.append(&Entry { payload, ..entry.clone() }, Durable::Now).expect("an entry");
    drop(log);
    let Ok(store) = stores::open(&disk, 0) else { return };
    let Ok(batches) = store.table("k").collect(&Default::default()) else { return };
    for column in batches.iter().flat_map(|batch| batch.columns()) {
        column.to_data().validate_full().expect("a sound array");
    }
    let _ = store.table("k").get_many(&batch(9), &Default::default());
    let _ = store.table("k").upsert(batch(3), &Default::default());
    let _ = store.checkpoint(&Default::default());
    let _ = store.verify(&Default::default());
}

/// Rows, deletes, and both.
pub fn row_seeds() -> Vec<Vec<u8>> {
    let keys = |rows| batch(rows).project(&[0, 1]).expect("the key's columns");
    let both = |puts: &[u8], deletes: &[u8]| [&(puts.len() as u16).to_le_bytes()[..], puts, deletes].concat();
    let packed =
        IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).expect("compression");
    let mut packed = StreamWriter::try_new_with_options(Vec::new(), &batch(20).schema(), packed).expect("a stream");
    packed.write(&batch(20)).expect("a batch");
    let packed = packed.into_inner().expect("a stream");
    let (few, many) = (stream(&batch(3)), stream(&batch(20)));
    let deletes = stream(&keys(5));
    vec![
        both(&few, &[]),
        both(&many, &[]),
        both(&[], &deletes),
        both(&few, &deletes),
        both(&[], &[]),
        both(&deletes, &few),
        both(&packed, &[]),
    ]
}

fn some_keys(words: bool) -> Keys {
    let mut keys = Keys::default();
    for n in 0..1100_u64 {
        match words {
            true => keys.push_word(n * 3),
            false => keys.push(format!("key {n:05}\0").as_bytes()),
        }
    }
    keys
}

/// A filter of keys, queried with keys of two kinds. What is not a filter is recognised.
pub fn key_filter(bytes: &[u8]) {
    static KEYS: OnceLock<[Keys; 2]> = OnceLock::new();
    for keys in KEYS.get_or_init(|| [some_keys(true), some_keys(false)]) {
        for at in 0..40 {
            let _ = drumlin::table::may_have(bytes, std::iter::once(keys.get(at * 27)));
        }
    }
}

/// Filters of words and of longer keys.
pub fn key_filter_seeds() -> Vec<Vec<u8>> {
    [true, false].map(|words| drumlin::table::key_filter(&some_keys(words)).expect("enough keys")).into()
}
