//! Rows by key that lie in memory: the memtable alone, and the store with Arrow out. Prints millions a second, the best of
//! some rounds; `bench/rocksdb` compares with RocksDB.
//!
//!     cargo bench --bench memory -- [million rows] [part of what is measured]

#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use drumlin::base::Seq;
use drumlin::memtable::{Keys, Memtable, RowBytes};
use drumlin::store::{AsOf, LookupOptions, Options, TableOptions, WriteOptions};
use drumlin::{Store, Tables};

const VALUE_BYTES: usize = 100;
const BATCH: usize = 1000;
const ROUNDS: usize = 5;
const ASKED: usize = 400_000;

type Row = ([u8; 16], [u8; VALUE_BYTES]);

fn rows(count: usize) -> Vec<Row> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut value = [0; VALUE_BYTES];
    let row = |_| {
        rng.fill(&mut value);
        (rng.u128(..).to_be_bytes(), value)
    };
    (0..count).map(row).collect()
}

fn report(what: &str, count: usize, work: impl FnMut()) {
    let wanted = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).nth(1);
    if wanted.is_some_and(|wanted| !what.contains(&wanted)) {
        return;
    }
    let mut work = work;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what}: {:.2}", count as f64 / best / 1e6);
}

fn encode(rows: &[Row]) -> (Keys, RowBytes) {
    let (mut keys, mut bytes) = (Keys::with_capacity(rows.len(), 16), RowBytes::default());
    for (key, value) in rows {
        keys.push(key);
        bytes.push_with(|out| out.extend_from_slice(value));
    }
    (keys, bytes)
}

fn memtable(rows: &[Row], asked: &[Row]) {
    let memtable: Memtable = Memtable::new();
    let start = Instant::now();
    for (at, batch) in rows.chunks(BATCH).enumerate() {
        let (keys, bytes) = encode(batch);
        memtable.insert(&keys, Some(&bytes), Seq(at as u64 + 1)).expect("room");
    }
    println!("memtable, insert: {:.2}", rows.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    println!("memtable, bytes a key: {:.0}", memtable.bytes() as f64 / rows.len() as f64);
    let seq = Seq(u64::MAX >> 1);
    let mut out = Vec::new();
    report("memtable, single", asked.len(), || {
        for (key, value) in asked {
            let mut keys = Keys::default();
            keys.push(key);
            out.clear();
            memtable.get(keys.get(0), seq).expect("there").copy_row(&mut out);
            assert_eq!(out[..8], value[..8]);
        }
    });
    for batch in [2, 8, 32, 64] {
        report(&format!("memtable, batch of {batch}"), asked.len(), || {
            for rows in asked.chunks(batch) {
                let mut keys = Keys::with_capacity(rows.len(), 16);
                rows.iter().for_each(|(key, _)| keys.push(key));
                out.clear();
                memtable.get_many(keys.iter(), seq, |_, record| record.copy_row(&mut out));
                assert_eq!(out.len(), rows.len() * VALUE_BYTES);
            }
        });
    }
    report("memtable, scan", rows.len(), || {
        let mut count = 0;
        for record in memtable.range(None, None, seq) {
            out.clear();
            record.copy_row(&mut out);
            count += 1;
        }
        assert_eq!(count, rows.len());
    });
}

fn keys_of(schema: &SchemaRef, rows: &[Row]) -> RecordBatch {
    let keys = BinaryArray::from_iter_values(rows.iter().map(|(key, _)| key));
    RecordBatch::try_new(schema.clone(), vec![Arc::new(keys)]).expect("one column")
}

fn store(rows: &[Row], asked: &[Row]) -> drumlin::Result<()> {
    const EVER: u64 = 1 << 40;
    let options = Options { memtable_bytes: 0, checkpoint_log_bytes: 0, row_write_bytes: EVER, ..Options::default() };
    let store = Store::open_with("memory://", options)?;
    let field = |name: &str| Field::new(name, DataType::Binary, false);
    let schema = Arc::new(Schema::new(vec![field("k"), field("v")]));
    let key_schema = Arc::new(Schema::new(vec![field("k")]));
    let table = store.table("t");
    table.create(schema.clone(), TableOptions { key: vec!["k".into()], ..TableOptions::default() })?;
    let start = Instant::now();
    for batch in rows.chunks(BATCH) {
        let values = BinaryArray::from_iter_values(batch.iter().map(|(_, value)| value));
        let columns: Vec<ArrayRef> = vec![keys_of(&key_schema, batch).column(0).clone(), Arc::new(values)];
        table.upsert(RecordBatch::try_new(schema.clone(), columns).expect("two"), &WriteOptions::default())?;
    }
    println!("store, upsert: {:.2}", rows.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    for batch in [1, 8, 32, 64] {
        report(&format!("store, Arrow out, batch of {batch}"), asked.len(), || {
            for rows in asked.chunks(batch) {
                let found = table.get_many(&keys_of(&key_schema, rows), &LookupOptions::default()).expect("reads");
                assert_eq!(found.rows.column(1).as_binary::<i32>().value_data().len(), rows.len() * VALUE_BYTES);
            }
        });
    }
    let view = table.view(&AsOf::Newest)?;
    report("store, a view held, as bytes, batch of 32", asked.len(), || {
        for rows in asked.chunks(32) {
            let mut out = RowBytes::default();
            let keys = view.encode_keys(&keys_of(&key_schema, rows)).expect("keys");
            assert_eq!(view.locate(&keys, &mut out).expect("reads").len(), rows.len());
        }
    });
    report("making arrays of keys, batch of 1", asked.len(), || {
        asked.chunks(1).for_each(|rows| assert_eq!(keys_of(&key_schema, rows).num_rows(), 1));
    });
    report("store, scan", rows.len(), || {
        let batches = table.collect(&Default::default()).expect("reads");
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows.len());
    });
    Ok(())
}

fn main() -> drumlin::Result<()> {
    let million: f64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(2.0);
    let rows = rows((million * 1e6) as usize);
    let mut rng = fastrand::Rng::with_seed(2);
    let asked: Vec<Row> = (0..ASKED).map(|_| rows[rng.usize(..rows.len())]).collect();
    memtable(&rows, &asked);
    store(&rows, &asked)
}
