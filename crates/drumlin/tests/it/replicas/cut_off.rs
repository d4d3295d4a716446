//! A replica that is cut off at any moment: it shows some commit, whole, and the next call goes on.

use std::sync::Arc;

use drumlin::storage::{CrashPoint, DiskFault};
use drumlin::{ErrorKind, Tables};

use super::{Pair, Worked, same, sound};
use crate::faults::crash::workload;
use crate::processes::shared_fence::Hooked;
use crate::support::{Checked, batch, numbered, open_inline, open_shared, open_with};

#[test]
fn a_crash_at_each_change_leaves_a_whole_commit() {
    assert_eq!(crash_everywhere(), Ok(()));
}

/// A crash of the machine with the replica, before, during and after each change there.
pub fn crash_everywhere() -> Checked {
    (930..932).try_for_each(|seed| crash(seed, 0..2))?;
    crash(932, 0..1)?;
    crash_with_news()
}

/// The same, of a source that many processes write, once the replica has some commits.
pub fn crash_with_news() -> Checked {
    crash(932, 1..2)
}

fn crash(seed: u64, rounds: std::ops::Range<usize>) -> Checked {
    let made = Pair::new();
    let ops = workload(seed, 40);
    let mut worked = Worked::new(&made, [open_with, open_inline, open_shared][seed as usize % 3]);
    worked.work(&made, &ops[..20]);
    // The first time with nothing there, then with some commits.
    for round in 0..2 {
        let begun = made.target.counters().changes;
        let total = {
            let pair = Pair { target: made.target.fork(), source: made.source.clone(), ..Pair::new() };
            pair.follow().unwrap();
            pair.target.counters().changes
        };
        for at in if rounds.contains(&round) { begun..total } else { 0..0 } {
            for moment in [CrashPoint::Before, CrashPoint::During, CrashPoint::After] {
                let pair = Pair { target: made.target.fork(), source: made.source.clone(), ..Pair::new() };
                pair.target.plan(at, DiskFault::Crash(moment));
                let _ = pair.follow();
                let pair = Pair { target: pair.target.crash(at * 31 + seed), ..pair };
                match pair.read() {
                    Ok(reader) => {
                        let report = reader.verify(&Default::default()).unwrap();
                        if !report.faults.is_empty() {
                            return Err(format!("{seed} {at} {moment:?}: {:?}", report.faults));
                        }
                    }
                    Err(e) if round == 0 && e.kind() == ErrorKind::NotFound => {}
                    Err(e) => return Err(format!("{seed} {at} {moment:?}: {e}")),
                }
                pair.follow().map_err(|e| format!("{seed} {at} {moment:?}: {e}"))?;
                worked.store.refresh().unwrap();
                same(&pair.read().unwrap(), &worked.model.0, &worked.store);
            }
        }
        made.follow().unwrap();
        if round == 0 {
            worked.work(&made, &ops[20..]);
        }
    }
    Ok(())
}

#[test]
fn of_two_processes_the_later_one_goes_on() {
    assert_eq!(two_processes(), Ok(()));
}

/// Another process takes the replica over at each operation of a call.
pub fn two_processes() -> Checked {
    let mut taken = 0;
    for turn in 0..120 {
        let pair = Pair::new();
        let store = open_with(&pair.source, &pair.clock, 2).unwrap();
        store.table("t").write(batch(&numbered(0, 100)), &Default::default()).unwrap();
        pair.follow().unwrap();
        for more in 0..3 {
            store.table("t").append(batch(&numbered(more, 40)), &Default::default()).unwrap();
        }
        store.checkpoint(&Default::default()).unwrap();
        let other = Pair { source: pair.source.clone(), target: pair.target.clone(), ..Pair::new() };
        let (mut count, source) = (0, store.clone());
        let hooked = Hooked::new(&pair.target, move || {
            count += 1;
            if count == turn + 1 {
                source.table("u").write(batch(&numbered(0, 60)), &Default::default()).unwrap();
                source.checkpoint(&Default::default()).unwrap();
                source.reclaim(&Default::default()).unwrap();
                other.follow().unwrap();
            }
        });
        match pair.follow_through(Arc::new(pair.source.clone()), Arc::new(hooked), &pair.options()) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Conflict => taken += 1,
            Err(e) => return Err(format!("{turn}: {e}")),
        }
        let reader = pair.read().map_err(|e| e.to_string())?;
        let faults = reader.verify(&Default::default()).map_err(|e| e.to_string())?.faults;
        if !faults.is_empty() {
            return Err(format!("{turn}: {faults:?}"));
        }
        pair.follow().map_err(|e| format!("{turn}: {e}"))?;
        let reader = pair.read().unwrap();
        sound(&reader);
        assert_eq!(reader.seq().unwrap(), store.seq().unwrap());
    }
    if taken > 5 { Ok(()) } else { Err(format!("only {taken} calls noticed that another one came")) }
}
