//! Presences, and nodes that end with them or by themselves, against a model in plain maps: several processes on a bucket.

use std::collections::{BTreeMap, BTreeSet};

use drumlin::base::Clock;
use drumlin::catalog::Existing;
use drumlin::storage::SimBucket;
use drumlin::store::Missing;
use drumlin::{Condition, ErrorKind, Presence, PutOptions, Store, Tables};

use super::presences::{SECOND, begin, look};
use crate::processes::shared_support::{clock, open as open_bucket};
use crate::seeds;
use crate::support::{batch, numbered};

#[derive(Clone, Debug, Default, PartialEq)]
struct Life {
    on: Option<String>,
    presence: Option<u64>,
    until: Option<i64>,
}

/// What the tree must be: nodes that were put, by path, and tables.
#[derive(Clone, Debug, Default)]
struct Model {
    nodes: BTreeMap<String, (Option<i64>, Life)>,
    tables: BTreeSet<String>,
    presences: BTreeSet<u64>,
}

fn is_within(path: &str, above: &str) -> bool {
    path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

impl Model {
    fn exists(&self, path: &str) -> bool {
        self.nodes.keys().chain(&self.tables).any(|known| is_within(known, path))
    }

    fn has_table(&self, path: &str) -> bool {
        self.tables.iter().any(|table| is_within(table, path))
    }

    /// Removes a node that was asked for: refused if a table would go, here or with what depends on it.
    fn delete(&mut self, path: &str) -> bool {
        let before = self.clone();
        let allowed = self.exists(path) && !self.has_table(path);
        self.nodes.retain(|known, _| !is_within(known, path));
        if allowed && self.cascade(false) {
            return true;
        }
        *self = before;
        false
    }

    /// Ends nodes that have nothing to live on; where tables are, only payloads go.
    fn end(&mut self, path: &str) {
        match self.has_table(path) {
            true => drop(self.nodes.remove(path)),
            false => self.nodes.retain(|known, _| !is_within(known, path)),
        }
    }

    fn cascade(&mut self, in_any_case: bool) -> bool {
        let orphan = |model: &Self| {
            let lost = |(_, (_, life)): &(&String, &(_, Life))| life.on.as_ref().is_some_and(|on| !model.exists(on));
            model.nodes.iter().find(lost).map(|(path, _)| path.clone())
        };
        while let Some(path) = orphan(self) {
            if !in_any_case && self.has_table(&path) {
                return false;
            }
            self.end(&path);
        }
        true
    }

    fn end_all(&mut self, ends: impl Fn(&Life) -> bool) {
        let ended: Vec<String> =
            self.nodes.iter().filter(|(_, (_, life))| ends(life)).map(|(path, _)| path.clone()).collect();
        for path in ended {
            if self.nodes.get(&path).is_some_and(|(_, life)| ends(life)) {
                self.end(&path);
                self.cascade(true);
            }
        }
    }

    fn end_presence(&mut self, number: u64) {
        self.presences.remove(&number);
        self.end_all(|life| life.presence == Some(number));
    }

    fn expire(&mut self, now: i64) {
        self.end_all(|life| life.until.is_some_and(|until| until <= now));
    }

    fn compare(&self, store: &Store, what: &str) {
        store.refresh().unwrap();
        let found: BTreeMap<String, (Option<i64>, Option<u64>, Option<i64>)> = store
            .tree()
            .nodes("**")
            .unwrap()
            .into_iter()
            .filter(|(_, node)| node.payload.is_some())
            .map(|(path, node)| {
                let payload = node.payload.map(|payload| payload.to_json().unwrap().as_i64().unwrap());
                (path, (payload, node.presence, node.expires.map(|until| until.0)))
            })
            .collect();
        let expected: BTreeMap<_, _> = self
            .nodes
            .iter()
            .map(|(path, (payload, life))| (path.clone(), (*payload, life.presence, life.until)))
            .collect();
        assert_eq!(found, expected, "{what}");
        let open: BTreeSet<u64> = store.tree().presences().unwrap().iter().map(|presence| presence.number).collect();
        assert_eq!(open, self.presences, "{what}");
    }
}

const LIVES: [&str; 7] = ["n/a", "n/a/b", "n/a/b/c", "n/d", "n/t", "n/t/e", "n/f"];

/// Several processes on a bucket, each with presences of its own.
fn random_operations(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (bucket, clock) = (SimBucket::new(), clock());
    let mut stores: Vec<Store> = (0..2).map(|_| open_bucket(&bucket.client(), &clock).unwrap()).collect();
    let mut held: Vec<(usize, Presence)> = Vec::new();
    let (mut model, mut last) = (Model::default(), 0);
    for step in 0..60 {
        let at = rng.usize(..stores.len());
        let store = stores[at].clone();
        store.refresh().unwrap();
        let path = LIVES[rng.usize(..LIVES.len())];
        let base = format!("base/{}", rng.u32(..3));
        let what = format!("seed {seed}, step {step}");
        match rng.u32(..16) {
            0 | 1 => {
                let presence = begin(&store, 200).unwrap();
                assert!(presence.number() > last, "{what}: the numbers grow");
                last = presence.number();
                model.presences.insert(last);
                held.push((at, presence));
            }
            2 => {
                model.nodes.insert(base.clone(), (Some(step), Life::default()));
                store.tree().put(&base, step).unwrap();
            }
            3 => assert_eq!(store.tree().delete(&base, None).is_ok(), model.delete(&base), "{what}"),
            4..=7 => {
                let number = (last > 0 && rng.bool()).then(|| rng.u64(1..=last));
                let seconds = rng.bool().then(|| rng.i64(10..300));
                let on = rng.bool().then(|| base.clone());
                let life_is_given = number.is_some() || seconds.is_some() || on.is_some();
                let allowed = number.is_none_or(|number| model.presences.contains(&number))
                    && on.as_ref().is_none_or(|on| model.exists(on));
                let options = PutOptions {
                    keep_while: on.clone().map(|on| vec![(on, Condition::Exists(true))]),
                    presence: number,
                    ttl_micros: seconds.map(|seconds| (seconds * SECOND) as u64),
                    ..Default::default()
                };
                let put = match rng.bool() {
                    false => store.tree().put_with(path, step, options).map(drop),
                    // Others commit before it does.
                    true => store.transact(|transaction| {
                        transaction.tree().put_with(path, step, options.clone())?;
                        store.tree().put("others", step).map(drop)
                    }),
                };
                if let Some(others) = store.tree().get("others").unwrap() {
                    model.nodes.insert("others".into(), (others.to_json().unwrap().as_i64(), Life::default()));
                }
                if !allowed {
                    assert_eq!(put.unwrap_err().kind(), ErrorKind::ConditionFailed, "{what}");
                } else {
                    put.unwrap();
                    let node = store.tree().node(path).unwrap().unwrap();
                    let old = model.nodes.get(path).map(|(_, life)| life.clone()).unwrap_or_default();
                    let until = node.expires.map(|until| until.0);
                    if let Some(seconds) = seconds {
                        let least = clock.now().0 + seconds * SECOND;
                        assert!((least..least + SECOND).contains(&until.unwrap()), "{what}: {until:?} after {least}");
                    }
                    let new = Life { on, presence: number, until: until.filter(|_| seconds.is_some()) };
                    model.nodes.insert(path.to_owned(), (Some(step), if life_is_given { new } else { old }));
                }
            }
            8 => assert_eq!(store.tree().delete(path, None).is_ok(), model.delete(path), "{what}"),
            9 => match model.tables.contains("n/t") {
                true => {
                    store.table("n/t").drop(Missing::Refuse).unwrap();
                    model.tables.remove("n/t");
                    model.cascade(true);
                }
                false => {
                    store.write("n/t", batch(&numbered(0, 1)), &Default::default()).unwrap();
                    model.tables.insert("n/t".into());
                }
            },
            10 if !held.is_empty() => {
                let (_, presence) = held.swap_remove(rng.usize(..held.len()));
                presence.end().unwrap();
                presence.end().unwrap();
                assert_eq!(presence.beat().unwrap_err().kind(), ErrorKind::ConditionFailed, "{what}");
                model.end_presence(presence.number());
            }
            11 | 12 => {
                // Some owners fall silent, perhaps because their process is gone; the others go on.
                let mut silent = Vec::new();
                if rng.bool() {
                    let (gone, kept) = held.into_iter().partition(|(owner, _)| *owner == at);
                    silent = gone;
                    held = kept;
                    drop(store);
                } else if !held.is_empty() {
                    silent.push(held.swap_remove(rng.usize(..held.len())));
                }
                let numbers: Vec<u64> = silent.iter().map(|(_, presence)| presence.number()).collect();
                drop(silent);
                if rng.bool() {
                    stores[at] = open_bucket(&bucket.client(), &clock).unwrap();
                    // What the process had left is nobody's any more.
                    let (gone, kept): (Vec<_>, Vec<_>) = held.into_iter().partition(|(owner, _)| *owner == at);
                    held = kept;
                    for (_, presence) in gone {
                        presence.end().unwrap();
                        model.end_presence(presence.number());
                    }
                }
                for _ in 0..3 {
                    held.iter().for_each(|(_, presence)| presence.beat().unwrap());
                    stores.iter().for_each(look);
                    clock.advance(101 * SECOND);
                }
                held.iter().for_each(|(_, presence)| presence.beat().unwrap());
                look(&stores[1 - at]);
                numbers.iter().for_each(|number| model.end_presence(*number));
                model.expire(clock.now().0);
                model.compare(&stores[1 - at], &what);
            }
            13 => {
                clock.advance(rng.i64(1..50) * SECOND);
                held.iter().for_each(|(_, presence)| presence.beat().unwrap());
                look(&stores[at]);
                model.expire(clock.now().0);
            }
            14 => {
                stores[at].close().unwrap();
                let (gone, kept): (Vec<_>, Vec<_>) = held.into_iter().partition(|(owner, _)| *owner == at);
                held = kept;
                gone.iter().for_each(|(_, presence)| model.end_presence(presence.number()));
                drop(gone);
                stores[at] = open_bucket(&bucket.client(), &clock).unwrap();
            }
            _ => {
                // Moved and back. What depends on nodes outside of it is not moved.
                if store.relocate("n/a", "m/a", Existing::default()).is_ok() {
                    store.relocate("m/a", "n/a", Existing::default()).unwrap();
                }
            }
        }
        model.compare(&stores[rng.usize(..stores.len())], &what);
    }
}

#[test]
fn nodes_end_with_what_they_live_on() {
    seeds::each(0..20, 4, |seed| {
        random_operations(seed);
    });
}
