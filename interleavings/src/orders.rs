//! One writer and a reader under a checker that tries every order of their loads and stores that the memory model allows.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;

use crate::base::Seq;
use crate::memtable::{Keys, Memtable, RowBytes, Word};

/// A word of the checker's.
struct Checked(AtomicU64);

impl Word for Checked {
    /// Few, because each is followed through every order.
    const FIRST: u64 = 32;

    fn zeroed(words: usize) -> Box<[Self]> {
        (0..words).map(|_| Self(AtomicU64::new(0))).collect()
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn prefetch(&self) {}
}

fn insert(memtable: &Memtable<Checked>, bytes: &[u8], seq: u64) {
    for byte in bytes {
        let (mut keys, mut rows) = (Keys::default(), RowBytes::default());
        keys.push(&[*byte, 0]);
        rows.push_with(|out| out.extend_from_slice(&[*byte, seq as u8]));
        memtable.insert(&keys, Some(&rows), Seq(seq)).unwrap();
    }
}

/// The keys `fresh` are written while a reader looks up; `there` were written before. It always finds the latter, and of
/// the former, either nothing or a whole row.
fn check(there: &'static [u8], fresh: &'static [u8]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let memtable = Arc::new(Memtable::<Checked>::new());
        insert(&memtable, there, 1);
        let own = memtable.clone();
        let reader = loom::thread::spawn(move || {
            let mut keys = Keys::default();
            let asked: Vec<u8> = there.iter().take(1).chain(fresh).copied().collect();
            asked.iter().for_each(|byte| keys.push(&[*byte, 0]));
            let mut found = vec![None; asked.len()];
            own.get_many(keys.iter(), Seq(2), |at, record| {
                let mut row = Vec::new();
                record.copy_row(&mut row);
                found[at] = Some(row);
            });
            for (byte, found) in asked.iter().zip(found) {
                let old = there.contains(byte);
                let rows = [vec![*byte, 1], vec![*byte, 2]];
                match found {
                    None => assert!(!old, "a key that is there is not found"),
                    Some(row) => assert!(row == rows[1] || (old && row == rows[0]), "{row:?}"),
                }
            }
            let as_it_was = own.get(keys.get(0), Seq(1)).map(|record| record.seq());
            assert_eq!(as_it_was, there.first().map(|_| Seq(1)));
        });
        insert(&memtable, fresh, 2);
        reader.join().unwrap();
    });
}

#[test]
fn the_first_key_appears_whole() {
    check(&[], &[7]);
}

#[test]
fn a_leaf_becomes_a_node() {
    check(&[7], &[9]);
}

#[test]
fn a_new_version_takes_the_place_of_the_old() {
    check(&[7], &[7]);
}

#[test]
fn a_node_takes_in_a_child_and_then_gives_way_to_a_larger_one() {
    check(&[1, 2, 3], &[9, 4]);
}

#[test]
fn a_node_of_sixteen_takes_in_a_child() {
    check(&[1, 2, 3, 4, 5, 6], &[9]);
}
