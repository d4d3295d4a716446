//! The memtable against a map of versions, and under many threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<(u64, Option<Vec<u8>>)>>;

fn keys(list: &[Vec<u8>]) -> Keys {
    let mut keys = Keys::default();
    list.iter().for_each(|key| keys.push(key));
    keys
}

fn rows(list: &[Vec<u8>]) -> RowBytes {
    let mut rows = RowBytes::default();
    list.iter().for_each(|row| rows.push_with(|out| out.extend_from_slice(row)));
    rows
}

fn row<W: Word>(record: Record<'_, W>) -> Option<Vec<u8>> {
    let mut row = Vec::new();
    record.copy_row(&mut row);
    (!record.is_delete()).then_some(row)
}

fn as_of(versions: &[(u64, Option<Vec<u8>>)], seq: u64) -> Option<&Option<Vec<u8>>> {
    versions.iter().rev().find(|(at, _)| *at <= seq).map(|(_, row)| row)
}

/// Keys of many shapes, none a prefix of another: they end with a byte that occurs nowhere else in them.
fn shaped(rng: &mut fastrand::Rng, shape: usize) -> Vec<u8> {
    let mut key: Vec<u8> = match shape {
        0 => (rng.u32(..3000) as u64).to_be_bytes().iter().map(|byte| byte.wrapping_add(1)).collect(),
        1 => format!("path/to/a/rather/long/place/{}/{}", rng.u8(..30), rng.u8(..30)).into_bytes(),
        2 => (0..rng.usize(..12)).map(|_| rng.u8(1..3)).collect(),
        _ => (0..rng.usize(1..40)).map(|_| rng.u8(1..)).collect(),
    };
    key.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 1);
    key.push(0);
    key
}

/// What commits after `since` and up to `until` have written.
fn check_made(memtable: &Memtable, model: &Model, since: u64, until: u64) {
    let made = |versions: &[(u64, Option<Vec<u8>>)]| {
        versions.iter().filter(|(seq, _)| (since + 1..=until).contains(seq)).cloned().collect::<Vec<_>>()
    };
    let expected: Vec<_> =
        model.iter().filter_map(|(key, versions)| Some((key.clone(), made(versions).pop()?))).collect();
    let found = memtable.newest_between(Seq(since), Seq(until)).into_iter().map(|record| {
        let mut key = Keys::default();
        record.copy_key(&mut key);
        (key.get(0).to_vec(), (record.seq().0, row(record)))
    });
    assert_eq!(found.collect::<Vec<_>>(), expected, "after {since}, up to {until}");
    // As many as there are, unless several of one commit have the same key.
    if let Some(((_, (newest, _)), last)) = expected.last().zip(memtable.nth_after(Seq(since), 1)) {
        assert!((since + 1..=*newest).contains(&last.0), "the first after {since}: {}", last.0);
    }
    assert_eq!(memtable.nth_after(Seq(since), 1 << 30), None);
}

fn check(memtable: &Memtable, model: &Model, rng: &mut fastrand::Rng, last: u64) {
    let seq = rng.u64(..=last + 1);
    check_made(memtable, model, rng.u64(..=seq), seq);
    let shape = rng.usize(..4);
    let mut asked: Vec<Vec<u8>> = (0..rng.usize(1..150)).map(|_| shaped(rng, shape)).collect();
    asked.extend((0..20).filter_map(|_| model.keys().nth(rng.usize(..model.len().max(1))).cloned()));
    asked.extend(asked.first().cloned());
    asked.extend(model.first_key_value().map(|(key, _)| key.clone()));
    let asked = keys(&asked);
    let mut found = vec![None; asked.len()];
    memtable.get_many(asked.iter(), Seq(seq), |at, record| {
        assert!(found[at].replace(row(record)).is_none(), "told twice");
    });
    for (key, found) in asked.iter().zip(&found) {
        let expected = model.get(&key.to_vec()).and_then(|versions| as_of(versions, seq));
        assert_eq!(found.as_ref(), expected, "{key:?} at {seq}");
        assert_eq!(memtable.get(key, Seq(seq)).map(row).as_ref(), expected, "{key:?} at {seq}, alone");
    }
    let (low, high) = (asked.get(rng.usize(..asked.len())), asked.get(rng.usize(..asked.len())));
    let (low, high) = (rng.bool().then_some(low), rng.bool().then_some(high));
    let scanned: Vec<(Vec<u8>, Option<Vec<u8>>)> = memtable
        .range(low, high, Seq(seq))
        .map(|record| {
            let mut key = Keys::default();
            record.copy_key(&mut key);
            (key.get(0).to_vec(), row(record))
        })
        .collect();
    let (low, high) = (low.map(|key| key.to_vec()), high.map(|key| key.to_vec()));
    let within =
        |key: &&Vec<u8>| low.as_ref().is_none_or(|low| *key >= low) && high.as_ref().is_none_or(|high| *key < high);
    let expected: Vec<_> = model
        .iter()
        .filter(|(key, _)| within(key))
        .filter_map(|(key, versions)| Some((key.clone(), as_of(versions, seq)?.clone())))
        .collect();
    assert_eq!(scanned, expected, "{low:?} to {high:?} at {seq}");
}

#[test]
fn it_agrees_with_a_map_of_versions() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (memtable, mut model) = (Memtable::<AtomicU64>::new(), Model::new());
        for seq in 1..40 {
            let shape = if rng.u8(..4) == 0 { rng.usize(..4) } else { seed as usize % 4 };
            let n = [1, 3, 40, 300][rng.usize(..4)];
            let list: Vec<Vec<u8>> = (0..n).map(|_| shaped(&mut rng, shape)).collect();
            let delete = rng.u8(..4) == 0;
            let values: Vec<Vec<u8>> =
                list.iter().map(|_| (0..rng.usize(..30)).map(|_| rng.u8(..)).collect()).collect();
            memtable.insert(&keys(&list), (!delete).then(|| rows(&values)).as_ref(), Seq(seq)).unwrap();
            for (key, value) in list.into_iter().zip(values) {
                model.entry(key).or_default().push((seq, (!delete).then_some(value)));
            }
            check(&memtable, &model, &mut rng, seq);
        }
        assert_eq!(memtable.keys(), model.len() as u64);
        memtable.verify(Seq(100)).unwrap();
    }
}

#[test]
fn nodes_of_every_size_hold_all_their_children() {
    for children in [1, 2, 4, 5, 16, 17, 48, 49, 255, 256] {
        let memtable = Memtable::<AtomicU64>::new();
        let mut bytes: Vec<u8> = (0..children).map(|byte| (byte * 7) as u8).collect();
        bytes.dedup();
        for (seq, byte) in bytes.iter().enumerate() {
            let key = keys(&[vec![5, *byte, 9]]);
            memtable.insert(&key, Some(&rows(&[vec![*byte]])), Seq(seq as u64 + 1)).unwrap();
            // A zero byte is a byte like any other, and an absent one is not found in the unused rest of a node.
            for wanted in 0..=255 {
                let found = memtable.get(keys(&[vec![5, wanted, 9]]).get(0), Seq(1000)).map(row);
                assert_eq!(found, bytes[..=seq].contains(&wanted).then(|| Some(vec![wanted])), "{wanted} of {seq}");
            }
        }
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        let scanned: Vec<u8> = memtable.range(None, None, Seq(1000)).map(|record| row(record).unwrap()[0]).collect();
        assert_eq!(scanned, sorted);
    }
}

#[test]
fn a_key_that_begins_another_is_refused() {
    for (first, second) in [(vec![1, 2], vec![1, 2, 3]), (vec![1, 2, 3], vec![1, 2]), (vec![], vec![1])] {
        let memtable = Memtable::<AtomicU64>::new();
        memtable.insert(&keys(std::slice::from_ref(&first)), None, Seq(1)).unwrap();
        let error = memtable.insert(&keys(&[second]), None, Seq(2)).unwrap_err();
        assert!(error.message().contains("is the beginning of another"), "{error}");
        assert!(memtable.get(keys(&[first]).get(0), Seq(2)).is_some());
    }
    let long = keys(&[vec![1; KEY_BYTES_MAX + 1]]);
    assert!(Memtable::<AtomicU64>::new().insert(&long, None, Seq(1)).unwrap_err().message().contains("at most 32768"));
}

#[test]
fn a_flipped_byte_is_found() {
    let memtable = Memtable::<AtomicU64>::new();
    let list: Vec<Vec<u8>> = (0..200_u64).map(|n| (n * 77).to_be_bytes().to_vec()).collect();
    memtable.insert(&keys(&list), Some(&rows(&list)), Seq(1)).unwrap();
    memtable.verify(Seq(1)).unwrap();
    let record = memtable.get(keys(&[list[100].clone()]).get(0), Seq(1)).unwrap().addr();
    // Damage the key, then the row.
    for word in [record + 3, record + 4] {
        let was = memtable.arena.load(word, Relaxed);
        memtable.arena.store(word, was ^ 1 << 5, Relaxed);
        assert_eq!(memtable.verify(Seq(1)).unwrap_err().kind(), crate::ErrorKind::Corrupt);
        memtable.arena.store(word, was, Relaxed);
    }
    memtable.verify(Seq(1)).unwrap();
}

/// Each thread inserts keys of its own and at the same time looks up those that any thread has published.
#[test]
fn what_any_thread_has_inserted_the_next_look_up_finds() {
    const THREADS: usize = 4;
    const EACH: usize = 5000;
    let memtable = Memtable::<AtomicU64>::new();
    let done: [AtomicUsize; THREADS] = Default::default();
    let commits = Mutex::new(0);
    let name = |thread: usize, n: usize| format!("{:04}/{thread}/{n}\0", n * 7919 % 9973).into_bytes();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memtable, done, commits, name) = (&memtable, &done, &commits, &name);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread as u64);
                for n in 0..EACH {
                    let key = name(thread, n);
                    {
                        let mut seq = commits.lock();
                        *seq += 1;
                        let key = [key];
                        memtable.insert(&keys(&key), Some(&rows(&key)), Seq(*seq)).unwrap();
                    }
                    done[thread].store(n + 1, Ordering::Release);
                    if n % 16 > 0 {
                        continue;
                    }
                    // Old and recent keys of all threads, including those just inserted, and some that do not exist.
                    let mut asked = vec![name(thread, n)];
                    for (other, done) in done.iter().enumerate() {
                        let published = done.load(Ordering::Acquire);
                        asked.extend((0..20.min(published)).map(|_| name(other, rng.usize(..published))));
                        asked.extend(published.checked_sub(1).map(|last| name(other, last)));
                    }
                    let absent = asked.len();
                    asked.push(name(THREADS, n));
                    let mut found = vec![false; asked.len()];
                    let asked_keys = keys(&asked);
                    memtable.get_many(asked_keys.iter(), Seq(u64::MAX >> 1), |at, record| {
                        assert_eq!(row(record).as_ref(), Some(&asked[at]));
                        found[at] = true;
                    });
                    assert!(found[..absent].iter().all(|found| *found) && !found[absent], "{found:?}");
                }
            });
        }
    });
    assert_eq!(memtable.keys(), (THREADS * EACH) as u64);
    memtable.verify(Seq(u64::MAX >> 1)).unwrap();
}
