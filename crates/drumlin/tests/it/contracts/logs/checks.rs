//! What one writer of a log, and readers beside it, may rely on.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use drumlin::base::{EntryId, Seq, SessionId, Timestamp};
use drumlin::log::{Appended, Base, CommitLog, Durable, Entry, News, Opened, retry_while_moving};
use drumlin::{ErrorKind, Result};
use fastrand::Rng;

use super::place::{Place, last};
use crate::support::SetOnDrop;

/// The entry of this number, which is always the same.
pub fn entry(seq: u64, bytes: usize) -> Entry {
    let mut rng = Rng::with_seed(seq ^ (bytes as u64) << 32);
    let mut payload = vec![0; bytes];
    rng.fill(&mut payload);
    Entry {
        seq: Seq(seq),
        id: EntryId(rng.u128(..)),
        session: SessionId(rng.u64(..)),
        time: Timestamp(rng.i64(..)),
        // The bit that says whether it names the one before it is the log's own.
        features: rng.u64(..) & !(1 << 32),
        prev: (!seq.is_multiple_of(3)).then(|| EntryId(u128::from(seq))),
        payload: payload.into(),
    }
}

/// The snapshot of the state at `seq`, beside which entries from `from` on are needed.
pub fn snapshot(seq: u64, from: u64) -> Base {
    Base { seq: Seq(seq), from: Seq(from), offset: seq * 16, bytes: 77, checksum: !(seq as u32) }
}

pub fn add(log: &dyn CommitLog, entry: &Entry) {
    let done = log.append(entry, Durable::Now).unwrap();
    assert!(matches!(done, Appended::Done), "{done:?}");
}

/// Adds the entries of these numbers.
fn fill(log: &dyn CommitLog, seqs: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Entry> {
    let entries: Vec<Entry> = seqs.map(|seq| entry(seq, bytes)).collect();
    entries.iter().for_each(|entry| add(log, entry));
    entries
}

fn seqs(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.seq.0).collect()
}

/// Asserts equal entries; shows only their numbers, since payloads are long.
pub fn same(found: &[Entry], expected: &[Entry]) {
    assert_eq!(seqs(found), seqs(expected));
    for (found, expected) in found.iter().zip(expected) {
        assert!(found == expected, "entry {} is another", expected.seq);
    }
}

/// All readers see this snapshot and these entries: the handle itself, and one that opens the log.
fn holds(place: &Place, log: &dyn CommitLog, base: Option<Base>, entries: &[Entry]) {
    assert_eq!(log.base(), base);
    let read = log.read().unwrap();
    assert_eq!(read.base, base);
    same(&read.entries, entries);
    let (_, opened) = place.open().unwrap();
    assert_eq!(opened.base, base);
    same(&opened.entries, entries);
}

pub fn refused<T: Debug>(answer: Result<T>) {
    let e = answer.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Closed, "{e}");
}

pub fn come_back(place: &Place) {
    assert_eq!(place.open().err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    let log = place.create();
    holds(place, &*log, None, &[]);
    let mut entries: Vec<Entry> = (1..=20).map(|seq| entry(seq, seq as usize * 7 % 31)).collect();
    let extremes = [(0, 0, 0), (u128::MAX, u64::MAX, i64::MAX), (1 << 127, 1 << 63, i64::MIN), (1, 1, -1)];
    for (entry, (id, number, time)) in entries.iter_mut().zip(extremes) {
        entry.id = EntryId(id);
        (entry.session, entry.features, entry.time) = (SessionId(number), number & !(1 << 32), Timestamp(time));
    }
    for entry in &entries[..12] {
        add(&*log, entry);
        assert!(log.refresh().unwrap().is_none(), "its own entries are no news");
    }
    log.sync().unwrap();
    same(&log.read().unwrap().entries, &entries[..12]);
    log.close().unwrap();
    let (log, opened) = place.open().unwrap();
    same(&opened.entries, &entries[..12]);
    assert!(log.refresh().unwrap().is_none());
    entries[12..].iter().for_each(|entry| add(&*log, entry));
    log.close().unwrap();
    // Opened and closed without a change.
    for _ in 0..2 {
        let (log, opened) = place.open().unwrap();
        same(&opened.entries, &entries);
        assert_eq!(opened.base, None);
        log.close().unwrap();
    }
    holds(place, &*place.open().unwrap().0, None, &entries);
}

pub fn payloads(place: &Place) {
    let log = place.create();
    let k = 1 << 10;
    let around = [128 * k - 65, 128 * k - 64, 128 * k - 63, 128 * k, 128 * k + 1];
    let sizes = [0, 1, 2, 7, 8, 9, 39, 40, 41, 511, 513, 4 * k, 64 * k - 1].into_iter().chain(around);
    let mut entries: Vec<Entry> =
        sizes.chain([1 << 20, 5 << 20, 0]).zip(1..).map(|(bytes, seq)| entry(seq, bytes)).collect();
    entries.iter().for_each(|entry| add(&*log, entry));
    // Bytes that are a log themselves, and many empty entries.
    for content in place.content() {
        let whole = Entry { payload: content, ..entry(entries.len() as u64 + 1, 0) };
        add(&*log, &whole);
        entries.push(whole);
    }
    let next = entries.len() as u64 + 1;
    entries.extend(fill(&*log, next..=next + 200, 0));
    let last = Entry { payload: Bytes::from(vec![0; 300]), ..entry(entries.len() as u64 + 1, 0) };
    add(&*log, &last);
    entries.push(last);
    same(&log.read().unwrap().entries, &entries);
    log.close().unwrap();
    same(&place.open().unwrap().1.entries, &entries);
}

pub fn numbers(place: &Place) {
    let log = place.create();
    let wrong = |seq: u64| {
        let added = catch_unwind(AssertUnwindSafe(|| log.append(&entry(seq, 10), Durable::Now)));
        assert!(added.is_err(), "entry {seq} was taken: {added:?}");
    };
    [0, 2, u64::MAX >> 9].into_iter().for_each(wrong);
    let entries = fill(&*log, 1..=3, 10);
    [1, 3, 5, 7].into_iter().for_each(wrong);
    // It had no effect.
    same(&log.read().unwrap().entries, &entries);
    let entries = [entries, fill(&*log, 4..=5, 10)].concat();
    drop(log);
    same(&place.open().unwrap().1.entries, &entries);
}

pub fn not_closed(place: &Place) {
    let log = place.create();
    let mut entries = fill(&*log, 1..=3, 100);
    drop(log);
    // Each process adds one and dies.
    for seq in 4..10 {
        let (log, opened) = place.open().unwrap();
        same(&opened.entries, &entries);
        entries.extend(fill(&*log, seq..=seq, 50));
    }
    same(&place.open().unwrap().1.entries, &entries);
}

pub fn durable(place: &Place) {
    let log = place.create();
    let entries: Vec<Entry> = (1..=14).map(|seq| entry(seq, 700)).collect();
    let later = |entry: &Entry| assert!(matches!(log.append(entry, Durable::AfterSync).unwrap(), Appended::Done));
    let after_crash = |least: usize, seed: u64| {
        let after = place.crash(seed);
        let (log, opened) = after.open().unwrap();
        assert!(opened.entries.len() >= least, "{} entries, {least} were synced", opened.entries.len());
        same(&opened.entries, &entries[..opened.entries.len()]);
        // What is left is built upon. A place that cannot crash is the same one, which continues.
        if after.can_crash() {
            let next = opened.entries.len() as u64 + 1;
            add(&*log, &entry(next, 10));
            let (_, opened) = after.crash(seed).open().unwrap();
            assert_eq!(seqs(&opened.entries), (1..=next).collect::<Vec<_>>());
        }
    };
    entries[..4].iter().for_each(|entry| add(&*log, entry));
    (0..12).for_each(|seed| after_crash(4, seed));
    entries[4..8].iter().for_each(later);
    log.sync().unwrap();
    (0..12).for_each(|seed| after_crash(8, seed));
    entries[8..10].iter().for_each(later);
    (0..12).for_each(|seed| after_crash(8, seed));
    // One that is synced syncs those before it.
    add(&*log, &entries[10]);
    (0..12).for_each(|seed| after_crash(11, seed));
    entries[11..].iter().for_each(later);
    log.close().unwrap();
    (0..12).for_each(|seed| after_crash(14, seed));
}

/// Adds news to what is known.
pub fn learn(known: &mut Opened, news: News) {
    match news {
        News::Entries(entries) => {
            assert!(!entries.is_empty());
            let first = entries[0].seq;
            assert_eq!(first, last(known).next(), "news begin after what is known");
            assert!(entries.iter().zip(first.0..).all(|(entry, seq)| entry.seq.0 == seq));
            known.entries.extend(entries);
        }
        News::All(all) | News::Unproven(all) => *known = all,
    }
}

pub fn news(place: &Place) {
    let log = place.create();
    let mut known = Opened::default();
    let reader = place.follow(&known);
    assert!(reader.refresh().unwrap().is_none());
    let mut entries = Vec::new();
    for (from, to) in [(1, 1), (2, 4), (5, 12)] {
        entries.extend(fill(&*log, from..=to, 60));
        learn(&mut known, reader.refresh().unwrap().unwrap());
        same(&known.entries, &entries);
        assert!(reader.refresh().unwrap().is_none(), "news come once");
    }
    // A snapshot of what is known is no news, nor is what it cuts; entries after it are.
    assert!(log.rebase(None, snapshot(12, 13), log.bytes()).unwrap());
    assert!(reader.refresh().unwrap().is_none());
    entries.extend(fill(&*log, 13..=14, 60));
    learn(&mut known, reader.refresh().unwrap().unwrap());
    same(&known.entries, &entries);
    assert_eq!(reader.base(), Some(snapshot(12, 13)));
    // After a snapshot that holds unknown entries, everything is news.
    fill(&*log, 15..=17, 60);
    assert!(log.rebase(Some(snapshot(12, 13)), snapshot(16, 16), log.bytes()).unwrap());
    let after = fill(&*log, 18..=18, 60);
    let Some(News::All(all)) = reader.refresh().unwrap() else { panic!("the log does not reach back") };
    assert_eq!(all.base, Some(snapshot(16, 16)));
    assert_eq!(seqs(&all.entries), [16, 17, 18]);
    same(&all.entries[2..], &after);
    assert!(reader.refresh().unwrap().is_none());
    // A handle opened now gets only what it has not seen.
    let (_, opened) = place.open().unwrap();
    let late = place.follow(&opened);
    assert!(late.refresh().unwrap().is_none());
    let last = fill(&*log, 19..=19, 60);
    for reader in [reader, late] {
        let Some(News::Entries(found)) = reader.refresh().unwrap() else { panic!("one entry is news") };
        same(&found, &last);
    }
}

pub fn ends(place: &Place) {
    let log = place.create();
    let entries = fill(&*log, 1..=30, 9000);
    for after in 0..=30 {
        let end = log.read_after(Seq(after as u64)).unwrap();
        assert_eq!(end.base, None);
        let end: Vec<Entry> = end.entries.into_iter().filter(|entry| entry.seq.0 > after as u64).collect();
        same(&end, &entries[after..]);
    }
    assert!(log.rebase(None, snapshot(20, 18), log.bytes()).unwrap());
    for after in [20, 25] {
        let end = log.read_after(Seq(after as u64)).unwrap();
        assert_eq!(end.base, Some(snapshot(20, 18)));
        let end: Vec<Entry> = end.entries.into_iter().filter(|entry| entry.seq.0 > after as u64).collect();
        same(&end, &entries[after..]);
    }
}

pub fn cuts(place: &Place) {
    let log = place.create();
    let size = |place: &Place| place.content().iter().map(Bytes::len).sum::<usize>();
    let mut entries = fill(&*log, 1..=10, 50 << 10);
    // Entries after the snapshot stay, and those that it names.
    let steps = [(6, 7), (6 + 2, 8), (10, 9), (12, 13)];
    let mut before = None;
    for (seq, from) in steps {
        let base = snapshot(seq, from);
        if seq > 10 {
            entries.extend(fill(&*log, 11..=12, 50 << 10));
        }
        assert!(log.rebase(before, base, 0).unwrap());
        holds(place, &*log, Some(base), &entries[from as usize - 1..]);
        before = Some(base);
    }
    // Everything is in the snapshot: the log is only its frame.
    assert!(size(place) < 50 << 10, "{} bytes", size(place));
    // A log that is cut from time to time stays small.
    let mut largest = 0;
    for round in 0..12 {
        let last = 12 + round * 4;
        fill(&*log, last + 1..=last + 4, 20 << 10);
        let base = snapshot(last + 4, last + 4);
        assert!(log.rebase(before, base, log.bytes()).unwrap());
        before = Some(base);
        largest = largest.max(size(place));
    }
    assert!(largest < 150 << 10, "{largest} bytes");
    log.close().unwrap();
    let (log, opened) = place.open().unwrap();
    assert_eq!((opened.base, seqs(&opened.entries)), (before, vec![60]));
    let more = fill(&*log, 61..=61, 5);
    same(&log.read().unwrap().entries[1..], &more);
}

pub fn counts_bytes(place: &Place) {
    // The frame of an entry may count, too, and in a log of objects older entries in the same object.
    let counts = |log: &dyn CommitLog, entries: u64, bytes: u64| {
        let counted = log.bytes();
        let older = if log.is_shared() { 128 << 10 } else { 0 };
        let most = (bytes + 100) * entries + older;
        assert!(counted >= bytes * entries && counted <= most, "{counted} bytes for {entries} of {bytes}");
    };
    let log = place.create();
    assert_eq!(log.bytes(), 0);
    for seq in 1..=20 {
        fill(&*log, seq..=seq, 100_000);
        counts(&*log, seq, 100_000);
    }
    // It counts from the snapshot on, whose state may have been taken a while ago.
    let then = log.bytes();
    fill(&*log, 21..=26, 100_000);
    assert!(log.rebase(None, snapshot(20, 21), then).unwrap());
    counts(&*log, 6, 100_000);
    drop(log);
    let (log, _) = place.open().unwrap();
    counts(&*log, 6, 100_000);
    assert!(log.rebase(Some(snapshot(20, 21)), snapshot(26, 27), log.bytes()).unwrap());
    assert_eq!(log.bytes(), 0);
    fill(&*log, 27..=27, 3);
    counts(&*log, 1, 3);
    log.close().unwrap();
    counts(&*place.open().unwrap().0, 1, 3);
}

pub fn begins_with_snapshot(place: &Place) {
    let base = snapshot(41, 42);
    let log = place.create_after(base);
    assert_eq!(log.bytes(), 0);
    holds(place, &*log, Some(base), &[]);
    let entries = fill(&*log, 42..=45, 12);
    holds(place, &*log, Some(base), &entries);
    log.close().unwrap();
    let (log, _) = place.open().unwrap();
    let entries = [entries, fill(&*log, 46..=46, 12)].concat();
    holds(place, &*log, Some(base), &entries);
}

/// A log that has ended refuses changes, and can be read.
fn takes_nothing(place: &Place, log: &dyn CommitLog, entries: &[Entry]) {
    let next = entries.len() as u64 + 1;
    refused(log.append(&entry(next, 10), Durable::Now));
    refused(log.append(&entry(next, 10), Durable::AfterSync));
    refused(log.rebase(None, snapshot(2, 3), 0));
    same(&log.read().unwrap().entries, entries);
    let (log, opened) = place.open().unwrap();
    same(&opened.entries, entries);
    add(&*log, &entry(next, 10));
}

pub fn closed(place: &Place) {
    let log = place.create();
    let entries = fill(&*log, 1..=4, 100);
    log.close().unwrap();
    log.close().unwrap();
    takes_nothing(place, &*log, &entries);
    log.close().unwrap();
}

pub fn poisoned(place: &Place) {
    let log = place.create();
    let entries = fill(&*log, 1..=4, 100);
    log.poison();
    takes_nothing(place, &*log, &entries);
    log.close().unwrap();
    refused(log.append(&entry(6, 10), Durable::Now));
}

pub fn readers(place: &Place) {
    const LAST: u64 = 90;
    let bytes = |seq: u64| seq as usize * 797 % 5000;
    let whole = |opened: &Opened| {
        let from = opened.base.map_or(1, |base| base.from.0);
        for (found, seq) in opened.entries.iter().zip(from..) {
            assert!(*found == entry(seq, bytes(seq)), "entry {seq} is another");
        }
        opened.entries.last().map_or(from - 1, |entry| entry.seq.0)
    };
    let log = place.create();
    let (log, mut known) = (&*log, Opened::default());
    let follower = &*place.follow(&known);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = SetOnDrop(&done);
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::SeqCst) {
                let seen = whole(&retry_while_moving(|| log.read()).unwrap());
                assert!(seen >= last, "entry {last} was there before");
                last = seen;
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                if let Some(news) = follower.refresh().unwrap() {
                    learn(&mut known, news);
                    known.entries.iter().for_each(|found| assert!(*found == entry(found.seq.0, bytes(found.seq.0))));
                }
            }
        });
        for seq in 1..=LAST {
            add(log, &entry(seq, bytes(seq)));
            if seq % 30 == 0 {
                assert!(log.rebase(log.base(), snapshot(seq - 5, seq - 7), 0).unwrap());
            }
        }
    });
    if let Some(news) = follower.refresh().unwrap() {
        learn(&mut known, news);
    }
    assert_eq!(known.entries.last().unwrap().seq, Seq(LAST));
    assert_eq!(whole(&log.read().unwrap()), LAST);
}
