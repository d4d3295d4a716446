//! What several writers of one log may count on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use drumlin::base::{EntryId, Seq};
use drumlin::log::{Appended, Durable, Entry, News};

use super::checks::{add, entry, same, snapshot};
use super::place::{Place, last};

/// Another entry of this number.
fn rival(seq: u64, bytes: usize) -> Entry {
    Entry { seq: Seq(seq), ..entry(seq + 1000, bytes) }
}

pub fn learns(place: &Place) {
    let a = place.create();
    let (b, _) = place.open().unwrap();
    assert!(a.is_shared() && b.is_shared());
    let mut entries: Vec<Entry> = (1..=3).map(|seq| entry(seq, 30)).collect();
    entries.iter().for_each(|entry| add(&*a, entry));
    // It is not added, also if its number is taken, and the handle learns of the others.
    let Appended::Behind(News::Entries(news)) = b.append(&rival(1, 30), Durable::Now).unwrap() else {
        panic!("three are news")
    };
    same(&news, &entries);
    same(&a.read().unwrap().entries, &entries);
    assert!(a.refresh().unwrap().is_none());
    entries.push(rival(4, 30));
    add(&*b, &entries[3]);
    let Some(News::Entries(news)) = a.refresh().unwrap() else { panic!("one is news") };
    same(&news, &entries[3..]);
    entries.push(entry(5, 30));
    add(&*a, &entries[4]);
    assert!(a.rebase(None, snapshot(5, 6), 0).unwrap());
    // Too late for single entries.
    let Appended::Behind(News::All(all)) = b.append(&rival(5, 30), Durable::Now).unwrap() else {
        panic!("all is news")
    };
    assert_eq!(all.base, Some(snapshot(5, 6)));
    same(&all.entries, &[]);
    add(&*b, &rival(6, 30));
    same(&a.read().unwrap().entries, &[rival(6, 30)]);
    // One that was closed keeps no other from going on.
    b.close().unwrap();
    assert!(a.refresh().unwrap().is_some());
    add(&*a, &entry(7, 30));
}

pub fn knows(place: &Place) {
    let a = place.create();
    let (b, _) = place.open().unwrap();
    let entries: Vec<Entry> = (1..=5).map(|seq| entry(seq, 30)).collect();
    entries.iter().for_each(|entry| add(&*a, entry));
    for last in [2, 4, 0] {
        b.knows(Seq(last as u64));
        let Some(News::Entries(news)) = b.refresh().unwrap() else { panic!("more is known than {last}") };
        same(&news, &entries[last..]);
    }
    // What its owner knows by other ways is no news.
    add(&*a, &entry(6, 30));
    b.knows(Seq(6));
    assert!(b.refresh().unwrap().is_none());
    add(&*b, &entry(7, 30));
    same(&b.read().unwrap().entries, &[entries, vec![entry(6, 30), entry(7, 30)]].concat());
}

pub fn snapshots_in_order(place: &Place) {
    let a = place.create();
    (1..=9).for_each(|seq| add(&*a, &entry(seq, 30)));
    let (b, _) = place.open().unwrap();
    assert!(a.rebase(None, snapshot(5, 6), 0).unwrap());
    let unchanged = |base| {
        assert_eq!(place.open().unwrap().1.base, Some(base));
        assert_eq!(a.read().unwrap().entries.last().unwrap().seq, Seq(9));
    };
    // Made from the state before that snapshot, or older than it.
    assert!(!b.rebase(None, snapshot(8, 9), 0).unwrap());
    unchanged(snapshot(5, 6));
    assert!(!b.rebase(Some(snapshot(4, 5)), snapshot(8, 9), 0).unwrap());
    assert!(!b.rebase(Some(snapshot(5, 6)), snapshot(5, 6), 0).unwrap());
    assert!(!b.rebase(Some(snapshot(5, 6)), snapshot(4, 5), 0).unwrap());
    // Of a state that the log has not led to.
    assert!(!b.rebase(Some(snapshot(5, 6)), snapshot(10, 11), 0).unwrap());
    unchanged(snapshot(5, 6));
    assert!(b.rebase(Some(snapshot(5, 6)), snapshot(8, 8), 0).unwrap());
    unchanged(snapshot(8, 8));
    assert_eq!(b.base(), Some(snapshot(8, 8)));
    // One that others have named is seen with the next look.
    assert!(a.refresh().unwrap().is_none());
    assert_eq!(a.base(), Some(snapshot(8, 8)));
}

pub fn needs(place: &Place) {
    let log = place.create();
    let chunks = || -> BTreeSet<String> { log.referred().unwrap().chunks.into_iter().collect() };
    assert!(chunks().is_empty());
    (1..=20).for_each(|seq| add(&*log, &entry(seq, 40 << 10)));
    assert!(chunks().len() > 1, "{:?}", chunks());
    assert_eq!(chunks(), place.names().into_iter().collect());
    assert_eq!(log.referred().map(|referred| (referred.last, referred.base)), Some((Seq(20), None)));
    let many = chunks().len();
    assert!(log.rebase(None, snapshot(18, 15), 0).unwrap());
    assert!(chunks().len() < many);
    assert_eq!(chunks(), place.names().into_iter().collect());
    assert_eq!(log.referred().map(|referred| (referred.last, referred.base)), Some((Seq(20), Some(snapshot(18, 15)))));
    assert!(log.rebase(Some(snapshot(18, 15)), snapshot(20, 21), 0).unwrap());
    assert_eq!(place.names(), [] as [&str; 0]);
    assert!(chunks().is_empty());
}

const HANDLES: u64 = 4;
const EACH: u64 = 15;

pub fn race(place: &Place) {
    drop(place.create());
    let barrier = Barrier::new(HANDLES as usize + 1);
    // Each handle adds its own entries, and says all that it has seen, its own among them.
    let work = |handle: u64| -> BTreeMap<Seq, EntryId> {
        let (log, opened) = place.open().unwrap();
        let mut seen = BTreeMap::new();
        let mut last = Seq(0);
        let mut learn = |last: &mut Seq, entries: Vec<Entry>| {
            for entry in entries {
                assert!(
                    seen.insert(entry.seq, entry.id).is_none_or(|id| id == entry.id),
                    "entry {} changed",
                    entry.seq
                );
                *last = entry.seq;
            }
        };
        learn(&mut last, opened.entries);
        barrier.wait();
        for n in 0..EACH {
            let bytes = if n % 5 == 0 { 40 << 10 } else { 100 };
            loop {
                let own = Entry { seq: last.next(), id: EntryId(u128::from(handle * EACH + n)), ..entry(n, bytes) };
                match log.append(&own, Durable::Now).unwrap() {
                    Appended::Done => {
                        learn(&mut last, vec![own]);
                        break;
                    }
                    Appended::Among(_, news) => panic!("{news:?} of an entry that nobody else may add"),
                    Appended::Behind(News::Entries(entries)) => learn(&mut last, entries),
                    Appended::Behind(News::All(all) | News::Unproven(all)) => {
                        last = last.max(all.base.unwrap().seq);
                        learn(&mut last, all.entries);
                    }
                }
            }
        }
        seen
    };
    // Another names snapshots, so that the log is cut beside them.
    let cut = || {
        let (log, _) = place.open().unwrap();
        barrier.wait();
        for _ in 0..EACH {
            let read = log.read().unwrap();
            if let Some(last) = read.entries.last().map(|entry| entry.seq.0) {
                log.rebase(read.base, snapshot(last, last + 1), 0).unwrap();
            }
            log.refresh().unwrap();
        }
    };
    let seen: Vec<BTreeMap<Seq, EntryId>> = std::thread::scope(|scope| {
        let cutting = scope.spawn(cut);
        let work = &work;
        let running: Vec<_> = (0..HANDLES).map(|handle| scope.spawn(move || work(handle))).collect();
        let seen = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        cutting.join().unwrap();
        seen
    });
    // All have seen one order, and in it each entry once.
    let mut order = BTreeMap::new();
    for (seq, id) in seen.into_iter().flatten() {
        assert_eq!(*order.entry(seq).or_insert(id), id, "entry {seq} is two");
    }
    assert_eq!(order.keys().map(|seq| seq.0).collect::<Vec<_>>(), (1..=HANDLES * EACH).collect::<Vec<_>>());
    let ids: BTreeSet<u128> = order.values().map(|id| id.0).collect();
    assert_eq!(ids, (0..u128::from(HANDLES * EACH)).collect());
    let (log, opened) = place.open().unwrap();
    assert_eq!(last(&opened), Seq(HANDLES * EACH));
    opened.entries.iter().for_each(|entry| assert_eq!(order[&entry.seq], entry.id));
    add(&*log, &entry(HANDLES * EACH + 1, 10));
}
