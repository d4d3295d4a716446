//! The two persistent maps: our own, which has the nodes of the tree, and that of `imbl`, which has all else of a state.
//!
//! `cargo bench --bench maps`. Names of nodes as keys, numbers as values; nanoseconds for each key, the median of five rounds.

#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

#[path = "../src/catalog/tree/map.rs"]
#[allow(dead_code, reason = "the tree uses more of it")]
mod map;

use std::hint::black_box;
use std::time::Instant;

use map::Map;

/// As long as the names of most nodes, which lie in the map.
type Name = [u8; 16];
type Own = Map<Name, u64>;
type Imbl = imbl::OrdMap<Name, u64>;

const KEYS: usize = 100_000;
const ROUNDS: usize = 5;
/// Keys that are changed between two copies that are compared.
const CHANGED: usize = 100;

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    let name = |n: usize| Name::try_from(format!("exchange-{n:07}").as_bytes()).unwrap();
    let keys: Vec<Name> = (0..KEYS).map(name).collect();
    let mut shuffled = keys.clone();
    rng.shuffle(&mut shuffled);
    let (own, imbl) = (built(&keys), keys.iter().map(|key| (*key, 1_u64)).collect::<Imbl>());
    println!("{:34} {:>10} {:>10}", "nanoseconds for a key", "own", "imbl");
    let row = |what: &str, per: usize, own: &dyn Fn(), imbl: &dyn Fn()| {
        println!("{what:34} {:>10.0} {:>10.0}", nanos(per, own), nanos(per, imbl));
    };
    row("inserted in order", KEYS, &|| drop(black_box(built(&keys))), &|| {
        let mut map = Imbl::new();
        keys.iter().for_each(|key| {
            map.insert(*key, 1);
        });
        black_box(map);
    });
    row("inserted in any order", KEYS, &|| drop(black_box(built(&shuffled))), &|| {
        let mut map = Imbl::new();
        shuffled.iter().for_each(|key| {
            map.insert(*key, 1);
        });
        black_box(map);
    });
    row(
        "looked up",
        KEYS,
        &|| {
            shuffled.iter().for_each(|key| {
                black_box(own.find(|other| other.cmp(key)));
            })
        },
        &|| {
            shuffled.iter().for_each(|key| {
                black_box(imbl.get(key));
            })
        },
    );
    row("inserted into a copy of its own", CHANGED, &|| own_changed(&own, &shuffled), &|| {
        for key in &shuffled[..CHANGED] {
            let mut copy = imbl.clone();
            copy.insert(*key, 2);
            black_box(copy);
        }
    });
    row(
        "all read in order",
        KEYS,
        &|| {
            black_box(own.iter().map(|(_, n)| *n).sum::<u64>());
        },
        &|| {
            black_box(imbl.iter().map(|(_, n)| *n).sum::<u64>());
        },
    );
    row("all removed in any order", KEYS, &|| own_emptied(own.clone(), &shuffled), &|| {
        let mut map = imbl.clone();
        shuffled.iter().for_each(|key| {
            map.remove(key);
        });
    });
    let (mut changed_own, mut changed_imbl) = (own.clone(), imbl.clone());
    for key in &shuffled[..CHANGED] {
        changed_own.insert(*key, 3);
        changed_imbl.insert(*key, 3);
    }
    row(
        "compared, 100 of 100,000 differ",
        CHANGED,
        &|| {
            let mut found = 0;
            own.diff(&changed_own, &mut |_, a, b| found += usize::from(a != b));
            assert_eq!(found, CHANGED);
        },
        &|| assert_eq!(imbl.diff(&changed_imbl).count(), CHANGED),
    );
}

fn built(keys: &[Name]) -> Own {
    let mut map = Own::default();
    keys.iter().for_each(|key| {
        map.insert(*key, 1);
    });
    map
}

fn own_changed(map: &Own, keys: &[Name]) {
    for key in &keys[..CHANGED] {
        let mut copy = map.clone();
        copy.insert(*key, 2);
        black_box(copy);
    }
}

fn own_emptied(mut map: Own, keys: &[Name]) {
    keys.iter().for_each(|key| {
        map.remove(|other| other.cmp(key));
    });
}

/// The median time of a round, for each of `keys`.
fn nanos(keys: usize, round: &dyn Fn()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            round();
            begun.elapsed().as_secs_f64() * 1e9 / keys as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}
