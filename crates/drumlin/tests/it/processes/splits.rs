//! Splits and leases: what is read in parts elsewhere is what the data set shows, for as long as its lease lives, whatever others
//! do to the store; afterwards it is refused, never wrong.

use std::sync::Arc;

use arrow::array::RecordBatch;
use drumlin::base::ManualClock;
use drumlin::filter::Filter;
use drumlin::storage::SimBucket;
use drumlin::store::{
    CheckpointOptions, DatasetOptions, Options, Split, SplitOptions, SplitReader, Splits, Stage, StageOptions,
    TableOptions, Ticket,
};
use drumlin::table::{PlanOptions, ScanOptions};
use drumlin::{Dataset, ErrorKind, Store, Tables};

use crate::processes::shared_support::{clock, open, open_as, settled};
use crate::seeds;
use crate::support::{Checked, Row, batch, env, numbered, rows};

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn rewrite(store: &Store) {
    let plan = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
    store.checkpoint(&CheckpointOptions { plan, ..Default::default() }).unwrap();
    assert!(store.reclaim(&Default::default()).unwrap().failures.is_empty());
}

fn worker(bucket: &SimBucket, clock: &Arc<ManualClock>) -> SplitReader {
    SplitReader::on(Arc::new(bucket.client()), env(clock, 9, 2), 0)
}

fn read_split(reader: &SplitReader, split: &Split) -> drumlin::Result<Vec<RecordBatch>> {
    let carried = Split::from_bytes(&split.to_bytes()?)?;
    reader.scan(&carried, &ScanOptions::default())?.collect()
}

/// The rows of all splits, one after the other.
fn read_all(reader: &SplitReader, splits: &Splits) -> drumlin::Result<Vec<RecordBatch>> {
    let parts = splits.splits.iter().map(|split| read_split(reader, split));
    Ok(parts.collect::<drumlin::Result<Vec<_>>>()?.concat())
}

fn dataset(store: &Store, pattern: &str, path_columns: &[&str]) -> Dataset {
    let path_columns = path_columns.iter().map(|name| (*name).to_owned()).collect();
    store.scan(pattern, &DatasetOptions { path_columns, ..Default::default() }).unwrap()
}

fn small() -> SplitOptions {
    SplitOptions { bytes: 2000, ..SplitOptions::default() }
}

fn key() -> TableOptions {
    TableOptions { key: vec!["id".into()], ..TableOptions::default() }
}

/// What a lease keeps is read exactly, while another process rewrites and reclaims everything.
pub fn a_lease_keeps_what_it_shows() -> Checked {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    let other = open(&bucket.client(), &clock).unwrap();
    for n in 0..6 {
        driver.append_or_write("t", n);
    }
    let splits = dataset(&driver, "t", &[]).splits(&ScanOptions::default(), &small()).map_err(text)?;
    other.table("t").delete("id % 3 = 0", &Default::default()).unwrap();
    rewrite(&other);
    rewrite(&driver);
    other.drop("t").map_err(text)?;
    rewrite(&other);
    let found = rows(&read_all(&worker(&bucket, &clock), &splits).map_err(text)?);
    if found != numbered(0, 300) {
        return Err(format!("{} rows", found.len()));
    }
    splits.lease.end().map_err(text)?;
    rewrite(&other);
    match read_all(&worker(&bucket, &clock), &splits) {
        Err(e) if e.kind() == ErrorKind::SnapshotExpired => {}
        other => return Err(format!("after its end: {:?}", other.map(|batches| batches.len()))),
    }
    settled(&driver, &bucket)
}

trait Fill {
    fn append_or_write(&self, path: &str, n: i64);
}

impl Fill for Store {
    fn append_or_write(&self, path: &str, n: i64) {
        let frame = batch(&numbered(n * 50, 50));
        match n {
            0 => drop(self.write(path, frame, &Default::default()).unwrap()),
            _ => drop(self.append(path, frame, &Default::default()).unwrap()),
        }
    }
}

/// A lease lives as long as its driver beats, and ends when it has been silent for its life, by the clock of the process
/// that reclaims; also if the driver's clock is years ahead.
pub fn silence_ends_a_lease() -> Checked {
    for ahead in [0, 20 * 365 * 86_400_000_000_i64] {
        let (bucket, clock) = (SimBucket::new(), clock());
        let others = open(&bucket, &clock).unwrap();
        others.append_or_write("t", 0);
        // The storage reports no time, so the driver's commits cannot be set back.
        let fast = Arc::new(ManualClock::new(drumlin::Timestamp(1_000_000 + ahead)));
        let driver = open(&bucket.client(), &fast).unwrap();
        let options = SplitOptions { life_micros: 60_000_000, ..small() };
        let splits = dataset(&driver, "t", &[]).splits(&ScanOptions::default(), &options).map_err(text)?;
        let held = || others.stat().map(|stat| stat.holds).map_err(text);
        for _ in 0..5 {
            clock.advance(40_000_000);
            fast.advance(40_000_000);
            splits.lease.beat().map_err(text)?;
            others.reclaim(&Default::default()).map_err(text)?;
            if held()? != 1 {
                return Err(format!("ended although its driver beats (clock ahead by {ahead})"));
            }
        }
        for _ in 0..4 {
            clock.advance(40_000_000);
            others.reclaim(&Default::default()).map_err(text)?;
        }
        // A clock that is ahead is set back by at most a step a commit, so that its beats may lie hours ahead.
        if held()? != 0 {
            return Err(format!("a silent lease goes on (clock ahead by {ahead})"));
        }
        match splits.lease.beat() {
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => {}
            other => return Err(format!("a beat after the end: {other:?}")),
        }
    }
    Ok(())
}

// faults: reclaim beside a reader x read, reclaim
#[test]
fn a_lease_keeps_its_blocks() {
    a_lease_keeps_what_it_shows().unwrap();
}

// faults: wrong clock x reclaim
#[test]
fn a_silent_lease_ends() {
    silence_ends_a_lease().unwrap();
}

/// Tables of every kind: unsorted, sorted with row groups that overlap, with a key and rows in memory, small ones in commits.
fn fill(store: &Store, rng: &mut fastrand::Rng) {
    for table in 0..4 {
        let path = format!("t/p{table}");
        let sort = (table == 1).then(|| vec!["id".to_owned()]);
        if table == 2 {
            store.table(&path).create(batch(&[]).schema(), key()).unwrap();
        }
        for n in 0..rng.i64(1..8) {
            let options = drumlin::store::WriteOptions { sort: sort.clone(), ..Default::default() };
            let frame = batch(&numbered(rng.i64(0..40) + 10 * n, rng.usize(1..60)));
            match (table, n) {
                (2, _) => drop(store.table(&path).upsert(frame, &Default::default()).unwrap()),
                (_, 0) => drop(store.write(&path, frame, &options).unwrap()),
                _ => drop(store.append(&path, frame, &options).unwrap()),
            }
            if rng.u8(..4) == 0 {
                store.table(&path).delete(&format!("id % {} = 0", rng.u8(2..9)), &Default::default()).unwrap();
            }
            if rng.u8(..6) == 0 {
                store.checkpoint(&Default::default()).unwrap();
            }
        }
    }
}

fn with_paths(batches: &[RecordBatch]) -> Vec<(Row, String)> {
    use arrow::array::AsArray;
    let mut all = Vec::new();
    for part in batches {
        let names = part.column_by_name("p").unwrap().as_string::<i32>();
        let own = rows(&[part.project(&[0, 1]).unwrap()]);
        all.extend(own.into_iter().zip(names.iter().map(|name| name.unwrap().to_owned())));
    }
    all
}

#[test]
fn splits_of_any_size_one_after_the_other_are_the_data_set() {
    for seed in seeds::list(0..60, 20) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (bucket, clock) = (SimBucket::new(), clock());
        let inline_bytes = [0, 1 << 16][usize::from(rng.bool())];
        let driver = open_as(&bucket, &clock, Options { inline_bytes, ..Options::default() }).unwrap();
        fill(&driver, &mut rng);
        let filters = ["id > 30", "id % 7 = 3 and p != 'p1'", "p = 'p2'", "id < -5", "name is not null or id = 12"];
        let whole = dataset(&driver, "t/*", &["p"]);
        let other = open(&bucket.client(), &clock).unwrap();
        for _ in 0..6 {
            let filter = rng.bool().then(|| Filter::parse(filters[rng.usize(..filters.len())]).unwrap());
            let limit = rng.bool().then(|| rng.u64(0..150));
            let options = ScanOptions { filter, limit, ..ScanOptions::default() };
            let bytes = [1, 500, 3000, 1 << 20][rng.usize(..4)];
            let splits = whole.splits(&options, &SplitOptions { bytes, ..Default::default() }).unwrap();
            let expected = with_paths(&whole.collect(&options).unwrap());
            rewrite(&other);
            let found = with_paths(&read_all(&worker(&bucket, &clock), &splits).unwrap());
            assert_eq!(found, expected, "seed {seed}, {options:?}, {bytes} bytes");
            let counted: Option<u64> = splits.splits.iter().map(|split| split.rows).sum();
            assert!(counted.is_none_or(|counted| counted == expected.len() as u64), "seed {seed}: {counted:?}");
            assert!(splits.splits.iter().all(|split| split.to_bytes().unwrap().len() < 200));
            splits.lease.end().unwrap();
        }
        settled(&driver, &bucket).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

#[test]
fn splits_need_neither_the_log_nor_lists() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    for n in 0..20 {
        driver.append_or_write("t", n);
    }
    let splits = dataset(&driver, "t", &[]).splits(&ScanOptions::default(), &small()).unwrap();
    assert!(splits.splits.len() > 3, "{}", splits.splits.len());
    let client = bucket.client();
    let before = bucket.requests();
    let reader = SplitReader::on(Arc::new(client), env(&clock, 9, 1), 1 << 20);
    let split = &splits.splits[1];
    let found: usize = read_split(&reader, split).unwrap().iter().map(RecordBatch::num_rows).sum();
    let (after, groups) = (bucket.requests(), found as u64 / 50);
    assert_eq!(split.rows, Some(found as u64));
    assert_eq!(after.lists, before.lists);
    // The plan, and each row group with its directory.
    assert!(after.gets - before.gets <= 1 + groups, "{} requests for {groups} row groups", after.gets - before.gets);
}

#[test]
fn what_cannot_work_is_refused_when_it_is_planned() {
    let store = Store::open_with("memory://", Options::default()).unwrap();
    store.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    let data = dataset(&store, "t", &[]);
    let e = data.splits(&ScanOptions::default(), &small()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("memory://"), "{e}");
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.write("t", batch(&numbered(0, 5)), &Default::default()).unwrap();
    let data = dataset(&store, "t", &[]);
    let unknown = ScanOptions { columns: Some(vec!["nowhere".into()]), ..ScanOptions::default() };
    data.splits(&unknown, &small()).unwrap_err();
    assert_eq!(store.stat().unwrap().holds, 0, "nothing is held for what was refused");
    let tx = store.transaction().unwrap();
    let own = tx.scan("t", &DatasetOptions::default()).unwrap();
    assert_eq!(own.splits(&ScanOptions::default(), &small()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn damaged_and_foreign_splits_are_refused() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let driver = open(&bucket, &clock).unwrap();
    driver.append_or_write("t", 0);
    let splits = dataset(&driver, "t", &[]).splits(&ScanOptions::default(), &small()).unwrap();
    let reader = worker(&bucket, &clock);
    let mut bytes = splits.splits[0].to_bytes().unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 0x20;
        let e = Split::from_bytes(&bytes).unwrap_err();
        assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&e.kind()), "byte {at}: {e}");
        bytes[at] ^= 0x20;
    }
    // The plan is damaged.
    let (name, _) = bucket
        .objects()
        .into_iter()
        .find(|(name, _)| name.starts_with(&format!("blocks/{}/", splits.lease.hold())))
        .unwrap();
    let good = bucket.content(&name).unwrap().to_vec();
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        bucket.overwrite(&name, bad);
        assert_eq!(read_all(&reader, &splits).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
    }
    bucket.overwrite(&name, good);
    assert_eq!(rows(&read_all(&reader, &splits).unwrap()), numbered(0, 50));
}

#[test]
fn many_row_groups_are_planned_quickly() {
    let (bucket, clock) = (SimBucket::new(), clock());
    let options = Options { inline_bytes: 0, checkpoint_log_bytes: 0, ..Options::default() };
    let driver = open_as(&bucket, &clock, options).unwrap();
    let frame = batch(&numbered(0, 1));
    let schema = frame.schema();
    driver.table("t").create(schema, TableOptions::default()).unwrap();
    // One row group for each table of a write in a transaction would take long: the same few blocks serve all.
    for _ in 0..40 {
        let tx = driver.transaction().unwrap();
        for _ in 0..25 {
            tx.append("t", frame.clone(), &Default::default()).unwrap();
        }
        tx.commit().unwrap();
    }
    let data = dataset(&driver, "t", &[]);
    let options = SplitOptions { bytes: 200_000, ..SplitOptions::default() };
    let splits = data.splits(&ScanOptions::default(), &options).unwrap();
    assert_eq!(splits.splits.iter().map(|split| split.rows.unwrap()).sum::<u64>(), 1000);
    assert!(splits.splits.iter().all(|split| split.to_bytes().unwrap().len() < 2048));
}

#[test]
fn a_row_in_memory_hides_what_lies_on_both_sides_of_a_cut() {
    for deleted in [false, true] {
        let (bucket, clock) = (SimBucket::new(), clock());
        let options = Options { row_write_bytes: 0, inline_bytes: 0, ..Options::default() };
        let driver = open_as(&bucket, &clock, options).unwrap();
        driver.table("k").create(batch(&[]).schema(), key()).unwrap();
        for from in [1, 5] {
            driver.table("k").upsert(batch(&numbered(from, 5)), &Default::default()).unwrap();
        }
        // The last key of one row group is the first of the next.
        let small = open(&bucket.client(), &clock).unwrap();
        match deleted {
            false => drop(small.table("k").upsert(batch(&[(5, Some("new".into()))]), &Default::default()).unwrap()),
            true => {
                let keys = batch(&numbered(5, 1)).project(&[0]).unwrap();
                drop(small.table("k").delete_keys(keys, &Default::default()).unwrap());
            }
        }
        let data = dataset(&small, "k", &[]);
        let splits = data.splits(&ScanOptions::default(), &SplitOptions { bytes: 1, ..Default::default() }).unwrap();
        assert!(splits.splits.len() > 1);
        let found = rows(&read_all(&worker(&bucket, &clock), &splits).unwrap());
        assert_eq!(found, rows(&data.collect(&ScanOptions::default()).unwrap()));
        assert_eq!(found.len(), if deleted { 8 } else { 9 });
    }
}

/// Transactions that follow a lease in the same entry of the log release blocks that it keeps.
#[test]
fn a_lease_keeps_what_is_released_in_its_own_entry() {
    use drumlin::base::{BlockId, Seq, SessionId, TableId, Timestamp};
    use drumlin::block::Address;
    use drumlin::catalog::{Effect, HoldKind, Path, State, TransactionRecord};
    use drumlin::table::{NewGroup, StoredSchema, TableChange, TableSpec, VersionKind};
    let block = BlockId { session: SessionId(1), number: 0 };
    let address = Address { block, offset: 16, segment_bytes: 64, directory_bytes: 16, checksum: 0 };
    let change = TableChange {
        schema: Some(StoredSchema::new(batch(&[]).schema()).unwrap()),
        groups: vec![NewGroup { address, rows: 5, dead: None }],
        ..TableChange::new(VersionKind::Write)
    };
    let table = TableId(1);
    let spec = TableSpec { sort: Vec::new(), keyed: false };
    let mut state = State::default();
    let apply = |state: &mut State, seq: u64, effects: Vec<Effect>| {
        state.apply(&TransactionRecord { effects }, Seq(seq), Timestamp(seq as i64)).unwrap();
    };
    let made = vec![
        Effect::OpenSession { session: SessionId(1), fence: false },
        Effect::CreateTable { path: Path::new("t").unwrap(), table, spec },
        Effect::AddBlocks { blocks: vec![(block, 200)] },
        Effect::ChangeTable { table, change },
    ];
    apply(&mut state, 1, made);
    let kind = HoldKind::Lease { floor: Seq(0) };
    let hold = SessionId(2);
    apply(&mut state, 2, vec![Effect::OpenHold { hold, store: 1, kind, life_micros: 1, work_micros: 0 }]);
    apply(&mut state, 2, vec![Effect::DropTable { table }, Effect::Condemn { tables: vec![table] }]);
    let free = |state: &State| state.ledger.unneeded(state.holds.floor(), Timestamp(i64::MAX)).count();
    assert_eq!((state.ledger.condemned().count(), free(&state)), (1, 0));
    apply(&mut state, 3, vec![Effect::EndHolds { holds: vec![hold] }]);
    assert_eq!(free(&state), 1);
}

/// A purge ends the leases of states that had the rows, and the stages for the tables that it concerns; what they kept is gone, and the
/// receipt is complete.
pub fn a_purge_ends_what_others_have() -> Checked {
    let (bucket, clock) = (SimBucket::new(), clock());
    let store = open(&bucket, &clock).unwrap();
    store.table("k").create(batch(&[]).schema(), key()).unwrap();
    store.table("k").upsert(batch(&numbered(0, 20)), &Default::default()).unwrap();
    for path in ["t", "other"] {
        store.write(path, batch(&numbered(0, 500)), &Default::default()).unwrap();
    }
    let splits = dataset(&store, "*", &[]).splits(&ScanOptions::default(), &small()).map_err(text)?;
    let stage = |path: &str| {
        let schema = Some(batch(&[]).schema());
        Ticket::open(&store, &[(path.to_owned(), schema)], &StageOptions::default()).map_err(text)
    };
    let staging = Stage::on(Arc::new(bucket.client()), env(&clock, 5, 2), &Options::default());
    let (concerned, made, beside) = (stage("t")?, stage("new/t")?, stage("other")?);
    for (ticket, path) in [(&concerned, "t"), (&made, "new/t")] {
        staging.write(ticket, path, batch(&numbered(3, 1)).into(), None, &Default::default()).map_err(text)?;
    }
    for pattern in ["k", "**/t"] {
        let purge = store.purge(pattern, &Filter::parse("id = 3").unwrap()).map_err(text)?;
        let receipt = purge.execute(&Default::default()).map_err(text)?;
        if !receipt.is_complete() {
            return Err(format!("'{pattern}': {:?}", receipt.held));
        }
    }
    let open_ones = store.stat().map_err(text)?.holds;
    if open_ones != 1 {
        return Err(format!("{open_ones} holds are open, expected that of 'other' alone"));
    }
    let reader = worker(&bucket, &clock);
    match read_all(&reader, &splits) {
        Err(e) if [ErrorKind::SnapshotExpired, ErrorKind::NotFound].contains(&e.kind()) => {}
        other => return Err(format!("a lease that has ended is read: {:?}", other.map(|rows| rows.len()))),
    }
    drop(beside);
    // The plans and what was staged are gone as well.
    let folders = bucket.objects().into_iter().filter(|(name, _)| {
        let hold = splits.lease.hold();
        name.starts_with(&format!("blocks/{hold}/"))
    });
    let left: Vec<String> = folders.map(|(name, _)| name).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are left")) }
}

#[test]
fn holds_end_with_a_purge() {
    a_purge_ends_what_others_have().unwrap();
}
