//! Clocks that are years ahead or behind, in processes that commit: nothing is lost because of it, and times do not go
//! back.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::{Payload, Retention};
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{AsOf, Options, ReclaimOptions};
use drumlin::{Store, Tables};

use crate::processes::shared_support;
use crate::support::{batch, env, numbered, open_with, read};

const DAY: i64 = 86_400_000_000;
const YEAR: i64 = 365 * DAY;
const NOW: i64 = 56 * YEAR;

fn at(time: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(time)))
}

fn times(store: &Store) -> Vec<i64> {
    store.table("t").versions().unwrap().iter().map(|version| version.time.0).collect()
}

/// A process with a correct clock and one with a wrong clock, in one bucket, which reports the time if `told`.
pub fn beside_a_wrong_clock(ahead: i64, told: bool) -> Result<(), String> {
    let bucket = SimBucket::new();
    let (right, wrong) = (at(NOW), at(NOW + ahead));
    let pass = |micros: i64| {
        right.advance(micros);
        wrong.advance(micros);
        if told {
            bucket.set_time(Timestamp(drumlin::base::Clock::now(&*right).0 / 1_000_000 * 1_000_000));
        }
    };
    pass(0);
    let options = || Options { inline_bytes: 0, ..Options::default() };
    let open = |clock: &Arc<ManualClock>, seed| {
        drumlin::store::open_bucket(Arc::new(bucket.client()), env(clock, seed, 2), "b", options()).unwrap()
    };
    let (a, b) = (open(&right, 1), open(&wrong, 2));
    a.write("t", batch(&numbered(0, 2)), &Default::default()).unwrap();
    a.set_retention("t", Some(Retention::KeepMicros(30 * DAY as u64))).unwrap();
    for day in 1..10 {
        pass(DAY);
        a.append("t", batch(&numbered(day * 10, 2)), &Default::default()).unwrap();
    }
    let before = times(&a);
    b.append("t", batch(&numbered(500, 2)), &Default::default()).unwrap();
    b.checkpoint(&Default::default()).unwrap();
    a.refresh().unwrap();
    let after = times(&a);
    let fail = |what: &str| Err(format!("{what}, {} days ahead, told: {told}: {after:?}", ahead / DAY));
    if !after.starts_with(&before) || after.len() != before.len() + 1 {
        return fail("versions that were to be kept are gone");
    }
    if !after.is_sorted() {
        return fail("times go back");
    }
    let stamped = after[after.len() - 1] - drumlin::base::Clock::now(&*right).0;
    if stamped > if told { 10_000_000 } else { 3_600_000_000 } {
        return fail("the commit is of the future");
    }
    // What others commit from then on has the right time, and a read as of now shows the newest version.
    pass(2 * 3_600_000_000);
    a.append("t", batch(&numbered(600, 2)), &Default::default()).unwrap();
    let (now, last) = (drumlin::base::Clock::now(&*right).0, times(&a)[after.len()]);
    // If the bucket does not report the time, it may lag behind.
    if last > now || (told && last != now) {
        return fail("later commits are of another time");
    }
    let found = read(&a, "t", AsOf::Time(Timestamp(last - 1))).unwrap();
    if found.contains(&numbered(600, 1)[0]) || !found.contains(&numbered(500, 1)[0]) {
        return fail("as of a time another version is shown");
    }
    // Blocks are freed as usual.
    let (mut freed, weeks) = (0, 20);
    a.set_retention("t", Some(Retention::KeepLast(1))).unwrap();
    for week in 0..weeks {
        pass(7 * DAY);
        a.write("t", batch(&numbered(week, 2)), &Default::default()).unwrap();
        a.checkpoint(&Default::default()).unwrap();
        freed += a.reclaim(&ReclaimOptions::default()).unwrap().blocks;
    }
    match freed >= weeks as u64 - 1 {
        true => Ok(()),
        false => fail(&format!("{freed} blocks freed")),
    }
}

// faults: wrong clock x write, checkpoint, reclaim, read
#[test]
fn a_clock_that_is_years_off_costs_nobody_anything() {
    for ahead in [0, 20 * YEAR, DAY, -20 * YEAR] {
        for told in [true, false] {
            beside_a_wrong_clock(ahead, told).unwrap();
        }
    }
}

// faults: wrong clock x open
#[test]
fn a_store_that_was_idle_for_a_year_has_the_right_time_at_once() {
    let bucket = SimBucket::new();
    bucket.set_time(Timestamp(NOW));
    let open = |clock: i64| {
        drumlin::store::open_bucket(Arc::new(bucket.client()), env(&at(clock), 5, 2), "b", Options::default()).unwrap()
    };
    open(NOW).write("t", batch(&numbered(0, 1)), &Default::default()).unwrap();
    bucket.set_time(Timestamp(NOW + YEAR));
    let store = open(NOW + YEAR + 400_000);
    let before = bucket.requests();
    store.append("t", batch(&numbered(1, 1)), &Default::default()).unwrap();
    let expected = [NOW, NOW + YEAR + 400_000];
    assert!(times(&store).iter().zip(expected).all(|(time, expected)| (0..10).contains(&(time - expected))));
    assert!(bucket.requests().puts - before.puts <= 4, "asked once");
    // Nothing is left of it.
    assert!(bucket.objects().iter().all(|(name, _)| !name.starts_with("probe/")), "{:?}", bucket.objects());
    shared_support::settled(&store, &bucket).unwrap();
}

// faults: wrong clock x write, checkpoint, open
#[test]
fn a_lone_process_has_its_own_time_and_expires_by_what_has_passed() {
    let disk = SimDisk::new();
    let keep = Retention::KeepMicros(30 * DAY as u64);
    let store = open_with(&disk, &at(NOW), 2).unwrap();
    store.set_retention("t", Some(keep)).unwrap();
    for n in 0..4 {
        store.write("t", batch(&numbered(n, 2)), &Default::default()).unwrap();
    }
    let first = times(&store);
    assert!(first.len() == 4 && first.iter().all(|time| (0..10).contains(&(time - NOW))), "{first:?}");
    store.close().unwrap();
    // Its clock is years ahead for one run: nothing expires, then or when the clock is right again.
    let wrong = disk.fork();
    let store = open_with(&wrong, &at(NOW + 10 * YEAR), 2).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    store.write("t", batch(&numbered(7, 2)), &Default::default()).unwrap();
    assert_eq!(times(&store)[..4], first);
    store.close().unwrap();
    let store = open_with(&wrong, &at(NOW + DAY), 2).unwrap();
    store.write("t", batch(&numbered(8, 2)), &Default::default()).unwrap();
    store.checkpoint(&Default::default()).unwrap();
    assert_eq!(times(&store)[..4], first);
    assert!(times(&store).is_sorted());
    store.close().unwrap();
    // After a year without a commit: the right time at once, and what is old expires with the next commit.
    let clock = at(NOW + YEAR);
    let store = open_with(&disk, &clock, 2).unwrap();
    store.write("t", batch(&numbered(9, 2)), &Default::default()).unwrap();
    assert!(times(&store).last().is_some_and(|time| (0..10).contains(&(time - NOW - YEAR))));
    assert_eq!(times(&store).len(), 5);
    store.close().unwrap();
    let clock = at(NOW + YEAR + 31 * DAY);
    let store = open_with(&disk, &clock, 2).unwrap();
    store.write("t", batch(&numbered(10, 2)), &Default::default()).unwrap();
    assert_eq!(times(&store).len(), 3, "{:?}", times(&store));
    // In a process that keeps running, by its own clock.
    for n in 0..2 {
        clock.advance(31 * DAY);
        store.write("t", batch(&numbered(11 + n, 2)), &Default::default()).unwrap();
    }
    assert_eq!(times(&store).len(), 3, "{:?}", times(&store));
    store.tree().put("n", Payload::from(1)).unwrap();
}
