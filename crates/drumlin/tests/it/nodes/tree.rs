//! The tree against a plain dict: random operations alone and in transactions that commit, abort, nest, meet others, crash
//! and are reopened. After each commit, every node, every projection and every event is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::{
    Cause, Compare, Condition, Event, Field, Glob, NodeEvent, Part, Pattern, Payload, Projection, PutMode, PutOptions,
    TriggerFilter,
};
use drumlin::storage::SimDisk;
use drumlin::store::{ChangeFeed, TriggerEvent};
use drumlin::{ErrorKind, Store, Tables};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::nodes::tree_model::{Cond, ModelEvent, ModelTree, Piece, Refused, names};
use crate::support::open_with;

type Keep = Vec<(String, Cond)>;

#[derive(Clone, Debug)]
enum Op {
    Put(String, Value),
    PutWith(String, Value, Option<bool>, Option<Cond>, Option<Keep>),
    Clear(String),
    ClearMany(Vec<Piece>),
    Delete(String, Option<Cond>),
    DeleteMany(Vec<Piece>),
    PutMany(Vec<(String, Value)>),
    UpdateMany(Vec<Piece>, Value),
}

fn payload(value: &Value) -> Payload {
    Payload::json(value).unwrap()
}

fn condition(cond: &Cond) -> Condition {
    let all = |conds: &[Cond]| conds.iter().map(condition).collect();
    match cond {
        Cond::Exists(wanted) => Condition::Exists(*wanted),
        Cond::Name(glob) => Condition::Name(Glob::new(glob).unwrap()),
        Cond::HasPayload(wanted) => Condition::HasPayload(*wanted),
        Cond::Equals(value) => Condition::payload(payload(value)),
        Cond::FieldBelow(field, n) => Condition::field(field, Compare::Less, Payload::from(*n)),
        Cond::Contains(name) => {
            let value = payload(&json!(name));
            Condition::Payload { field: Vec::new(), compare: Compare::Contains, value }
        }
        Cond::Version(n) => Condition::PayloadVersion(Compare::Equal, *n),
        Cond::ChildrenAtLeast(n) => Condition::Children(Compare::GreaterOrEqual, *n),
        Cond::Not(cond) => Condition::Not(Box::new(condition(cond))),
        Cond::All(conds) => Condition::All(all(conds)),
        Cond::Any(conds) => Condition::Any(all(conds)),
    }
}

fn pattern(pieces: &[Piece]) -> Pattern {
    let part = |piece: &Piece| match piece {
        Piece::Deep => Part::Deep,
        Piece::Glob(text) if text.contains('*') => Part::Glob(Glob::new(text).unwrap()),
        Piece::Glob(text) => Part::Name(text.clone()),
        Piece::If(cond) => Part::If(condition(cond)),
    };
    Pattern::from_parts(pieces.iter().map(part).collect()).unwrap()
}

fn draw_path(rng: &mut fastrand::Rng) -> String {
    let depth = rng.usize(1..4);
    (0..depth).map(|_| ["a", "b", "ab", "c"][rng.usize(..4)]).collect::<Vec<_>>().join("/")
}

fn draw_value(rng: &mut fastrand::Rng) -> Value {
    match rng.u8(..4) {
        0 => json!(rng.i64(0..3)),
        1 => json!({"k": rng.i64(0..4)}),
        2 => json!({"k": rng.i64(0..4), "s": rng.choice(["x", "y"])}),
        _ => json!(rng.choice(["x", "y"])),
    }
}

fn draw_cond(rng: &mut fastrand::Rng, depth: u8) -> Cond {
    match rng.u8(..if depth == 0 { 8 } else { 11 }) {
        0 => Cond::Exists(rng.u8(..4) > 0),
        1 => Cond::Name(["a*", "*b", "*", "c"][rng.usize(..4)].to_owned()),
        2 => Cond::HasPayload(rng.u8(..3) > 0),
        3 => Cond::Equals(draw_value(rng)),
        4 => Cond::FieldBelow("k".to_owned(), rng.i64(0..4)),
        5 => Cond::Contains(["k", "s"][rng.usize(..2)].to_owned()),
        6 => Cond::Version(rng.u64(1..3)),
        7 => Cond::ChildrenAtLeast(rng.u64(..3)),
        8 => Cond::Not(Box::new(draw_cond(rng, depth - 1))),
        9 => Cond::All((0..rng.usize(..3)).map(|_| draw_cond(rng, depth - 1)).collect()),
        _ => Cond::Any((0..rng.usize(..3)).map(|_| draw_cond(rng, depth - 1)).collect()),
    }
}

fn draw_pattern(rng: &mut fastrand::Rng) -> Vec<Piece> {
    (0..rng.usize(1..4))
        .map(|_| match rng.u8(..6) {
            0 => Piece::Deep,
            1 => Piece::If(draw_cond(rng, 2)),
            2 | 3 => Piece::Glob(["*", "a*", "*b"][rng.usize(..3)].to_owned()),
            _ => Piece::Glob(["a", "b", "ab"][rng.usize(..3)].to_owned()),
        })
        .collect()
}

fn draw(rng: &mut fastrand::Rng) -> Op {
    let path = draw_path(rng);
    let maybe = |rng: &mut fastrand::Rng| rng.bool().then(|| draw_cond(rng, 1));
    match rng.u8(..20) {
        0..7 => Op::Put(path, draw_value(rng)),
        7..11 => {
            let only = [None, Some(true), Some(false)][rng.usize(..3)];
            let when = (rng.u8(..3) == 0).then(|| draw_cond(rng, 2));
            let keep =
                rng.bool().then(|| (0..rng.usize(..3)).map(|_| (draw_path(rng), draw_cond(rng, 1))).collect::<Keep>());
            Op::PutWith(path, draw_value(rng), only, when, keep)
        }
        11 => Op::Clear(path),
        12 => Op::ClearMany(draw_pattern(rng)),
        13..16 => Op::Delete(path, maybe(rng)),
        16 => Op::DeleteMany(draw_pattern(rng)),
        17 => Op::PutMany((0..rng.usize(..5)).map(|_| (draw_path(rng), draw_value(rng))).collect()),
        18 => Op::UpdateMany(draw_pattern(rng), draw_value(rng)),
        _ => Op::Put(path, draw_value(rng)),
    }
}

fn apply(model: &mut ModelTree, op: &Op, events: &mut Vec<ModelEvent>) -> Result<(), Refused> {
    match op {
        Op::Put(path, value) => model.put(path, value.clone(), None, None, None, events),
        Op::PutWith(path, value, only, when, keep) => {
            let keep = keep.as_ref().map(|keep| keep.iter().map(|(path, cond)| (names(path), cond.clone())).collect());
            model.put(path, value.clone(), *only, when.as_ref(), keep, events)
        }
        Op::Clear(path) => model.clear(path, events),
        Op::ClearMany(pieces) => {
            model.many(pieces, events, |model, path, events| model.clear(path, events).unwrap());
            Ok(())
        }
        Op::Delete(path, when) => model.delete(path, when.as_ref(), events),
        Op::DeleteMany(pieces) => {
            model.many(pieces, events, |model, path, events| model.delete(path, None, events).unwrap());
            Ok(())
        }
        Op::PutMany(payloads) => {
            let mut put = |(path, value): &(String, Value)| model.put(path, value.clone(), None, None, None, events);
            payloads.iter().try_for_each(&mut put)
        }
        Op::UpdateMany(pieces, value) => {
            model.many(pieces, events, |model, path, events| {
                model.put(path, value.clone(), None, None, None, events).unwrap();
            });
            Ok(())
        }
    }
}

fn options(only: Option<bool>, when: Option<&Cond>, keep: Option<&Keep>) -> PutOptions {
    PutOptions {
        mode: match only {
            None => PutMode::Put,
            Some(true) => PutMode::Create,
            Some(false) => PutMode::Update,
        },
        when: when.map(condition),
        keep_while: keep.map(|keep| keep.iter().map(|(path, cond)| (path.clone(), condition(cond))).collect()),
        ..PutOptions::default()
    }
}

/// Applies `op`. Returns how many nodes the result names.
fn run(place: &impl Tables, op: &Op) -> drumlin::Result<usize> {
    let (tree, one) =
        (place.tree(), |change: drumlin::Change| change.indirect.map_or(0, |indirect| indirect.len()) + 1);
    Ok(match op {
        Op::Put(path, value) => one(tree.put(path, payload(value))?),
        Op::PutWith(path, value, mode, when, keep) => {
            one(tree.put_with(path, payload(value), options(*mode, when.as_ref(), keep.as_ref()))?)
        }
        Op::Clear(path) => one(tree.clear_payload(path, None)?),
        Op::ClearMany(pieces) => tree.clear_payloads(pattern(pieces))?.len(),
        Op::Delete(path, when) => one(tree.delete(path, when.as_ref().map(condition))?),
        Op::DeleteMany(pieces) => tree.delete_many(pattern(pieces))?.len(),
        Op::PutMany(all) => {
            let all: Vec<_> = all.iter().map(|(path, value)| (path.clone(), payload(value))).collect();
            tree.put_many(&all)?.len()
        }
        Op::UpdateMany(pieces, value) => tree.update_many(pattern(pieces), &payload(value))?.len(),
    })
}

fn kind(refused: Refused) -> ErrorKind {
    match refused {
        Refused::There => ErrorKind::AlreadyExists,
        Refused::Missing => ErrorKind::NotFound,
        Refused::Condition => ErrorKind::ConditionFailed,
    }
}

/// Name, pattern, key, value, and whether it is a bag.
type Declared = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], bool);

const PROJECTIONS: [Declared; 3] = [
    ("by k", "**", &["payload.k"], &["path"], true),
    ("by name", "*/**", &["name"], &["payload"], false),
    ("by two", "**/a*", &["path.0", "payload.s"], &["name", "payload.k"], true),
];

fn declare(store: &Store) {
    let fields = |texts: &[&str]| texts.iter().map(|text| Field::new(text).unwrap()).collect();
    for (name, pattern, key, value, bag) in PROJECTIONS {
        let (key, value) = (fields(key), fields(value));
        let pattern = Pattern::new(pattern).unwrap();
        store.tree().put_projection(name, Projection { pattern, key, value, bag }).unwrap();
    }
}

fn project_by_function(store: &Store) {
    let double = |_: &str, payload: &Payload| {
        let k = payload.field(&["k".to_owned()]).and_then(|value| value.to_json().as_i64());
        k.map(|k| (vec![Payload::from(k * 2)], Payload::from(k))).into_iter().collect()
    };
    store.tree().put_projection_fn("by function", Pattern::new("**").unwrap(), true, Arc::new(double)).unwrap();
}

/// The value of a node's field, computed without the store.
fn field(text: &str, path: &[String], payload: &Value) -> Option<Value> {
    Some(match text {
        "path" => json!(path.join("/")),
        "name" => json!(path.last().unwrap()),
        "path.0" => json!(path[0]),
        "payload" => payload.clone(),
        _ => payload.get(text.strip_prefix("payload.").unwrap())?.clone(),
    })
}

fn expected_entries(model: &ModelTree, at: usize) -> Vec<(Vec<Value>, String, Value)> {
    let (_, text, key, value, bag) = PROJECTIONS[at];
    let pieces: Vec<Piece> =
        text.split('/').map(|part| if part == "**" { Piece::Deep } else { Piece::Glob(part.to_owned()) }).collect();
    let mut entries = Vec::new();
    for path in model.matching(&pieces) {
        let Some(payload) = &model.nodes[&path].payload else { continue };
        let of = |texts: &[&str]| texts.iter().map(|text| field(text, &path, payload)).collect::<Option<Vec<Value>>>();
        if let (Some(key), Some(mut value)) = (of(key), of(value)) {
            let value = if value.len() == 1 { value.remove(0) } else { Value::Array(value) };
            entries.push((key, path.clone(), value));
        }
    }
    // Keys here are numbers or texts, whose JSON text has the same order as long as numbers have one digit.
    entries.sort_by_key(|(key, path, _)| (key.iter().map(Value::to_string).collect::<Vec<_>>(), path.clone()));
    if !bag {
        entries.dedup_by(|a, b| a.0 == b.0);
    }
    entries.into_iter().map(|(key, path, value)| (key, path.join("/"), value)).collect()
}

fn check(store: &Store, model: &ModelTree, rng: &mut fastrand::Rng) {
    let found: BTreeMap<_, _> =
        store.tree().nodes("**").unwrap().into_iter().map(|(path, node)| (names(&path), node)).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), model.nodes.keys().collect::<Vec<_>>());
    for (path, node) in &model.nodes {
        let info = &found[path];
        let payload = info.payload.as_ref().map(|payload| payload.to_json().unwrap());
        let text = path.join("/");
        assert_eq!(payload, node.payload, "{text}");
        assert_eq!(info.payload_version, node.payload_version, "{text}");
        assert_eq!((info.children, info.children_version), (model.children(path), node.children_version), "{text}");
        assert_eq!(store.tree().has_payload(&text).unwrap(), node.payload.is_some());
    }
    for (at, (name, ..)) in PROJECTIONS.iter().enumerate() {
        let entries = store.tree().projection(name).unwrap();
        let entries = entries.entries().map(|entry| {
            let key = entry.key.iter().map(|key| key.to_json().unwrap()).collect();
            (key, entry.path, entry.value.to_json().unwrap())
        });
        assert_eq!(entries.collect::<Vec<_>>(), expected_entries(model, at), "{name}");
    }
    let by_function = store.tree().projection("by function").unwrap();
    let expected = expected_entries(model, 0);
    assert_eq!(by_function.count(), expected.len());
    for (key, ..) in &expected {
        let doubled = key[0].as_i64().unwrap() * 2;
        assert!(by_function.get(&[Payload::from(doubled)]).unwrap().is_some());
    }
    let pieces = draw_pattern(rng);
    let matching: Vec<String> = model.matching(&pieces).iter().map(|path| path.join("/")).collect();
    let pattern = pattern(&pieces);
    let found = store.tree().map(&pattern, |path, _| path.to_owned()).unwrap();
    assert_eq!(found, matching, "{pattern}");
    assert_eq!(store.tree().count(&pattern).unwrap(), matching.len() as u64);
    let payloads = model.matching(&pieces).into_iter().filter_map(|path| model.nodes[&path].payload.clone());
    let found = store.tree().get_many(&pattern).unwrap().into_iter().map(|(_, payload)| payload.to_json().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), payloads.collect::<Vec<_>>());
}

fn told(event: &NodeEvent) -> ModelEvent {
    let value = |node: &Option<drumlin::catalog::NodeInfo>| Some(node.as_ref()?.payload.as_ref()?.to_json().unwrap());
    ModelEvent {
        path: event.path.clone(),
        action: match event.action {
            drumlin::catalog::Action::Create => "create",
            drumlin::catalog::Action::Update => "update",
            drumlin::catalog::Action::Delete => "delete",
        },
        before: value(&event.before),
        after: value(&event.after),
        cause: match event.cause {
            Cause::Asked => "asked",
            Cause::Above => "above",
            Cause::KeepWhile => "keep_while",
            Cause::Ended => "ended",
        },
    }
}

/// Sorts runs of nodes that were deleted because of others: their order is not guaranteed.
fn in_order(mut events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut start = 0;
    while start < events.len() {
        let run = events[start..].iter().take_while(|event| event.cause != "asked").count();
        let mut sorted: Vec<ModelEvent> = events[start..start + run].to_vec();
        for event in &mut sorted {
            // Which of two reasons comes first is not guaranteed either.
            event.cause = "along";
        }
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        events.splice(start..start + run, sorted);
        start += run + 1;
    }
    events
}

fn drain(feed: &mut ChangeFeed) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    while let Some(commit) = feed.next(Some(std::time::Duration::ZERO)).unwrap() {
        for event in commit.events().unwrap() {
            if let Event::Node(event) = event {
                events.push(told(&event));
            }
        }
    }
    events
}

type Heard = Arc<Mutex<Vec<ModelEvent>>>;

fn listen(store: &Store) -> Heard {
    let heard = Heard::default();
    let hear = heard.clone();
    let filter = TriggerFilter { pattern: Pattern::new("**").unwrap(), actions: Vec::new(), priority: 0 };
    store
        .tree()
        .on(
            filter,
            Arc::new(move |call| {
                if let TriggerEvent::Node(event) = &call.event {
                    hear.lock().push(told(event));
                }
                Ok(())
            }),
        )
        .unwrap();
    heard
}

// faults: one thread x nodes, transaction, feed
#[test]
fn random_operations_agree_with_a_plain_dict() {
    crate::seeds::each(0..400, 40, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::in_memory();
        let clock = Arc::new(ManualClock::new(Timestamp(0)));
        let mut store = open_with(&disk, &clock, 1).unwrap();
        declare(&store);
        project_by_function(&store);
        let mut model = ModelTree::default();
        let (mut heard, mut feed) = (listen(&store), store.changes(store.seq().unwrap()).unwrap());
        let mut begin = store.seq().unwrap();
        let mut history: Vec<ModelEvent> = Vec::new();
        for step in 0..60 {
            let mut events = Vec::new();
            let context = |op: &dyn std::fmt::Debug| format!("seed {seed} step {step}: {op:?}");
            match rng.u8(..10) {
                0..5 => {
                    let op = draw(&mut rng);
                    let expected = apply(&mut model, &op, &mut events);
                    let answer = run(&store, &op);
                    match (&expected, &answer) {
                        (Ok(()), Ok(told)) => {
                            let single = matches!(op, Op::Put(..) | Op::PutWith(..) | Op::Clear(..) | Op::Delete(..));
                            assert_eq!(
                                *told,
                                if single { events.len().max(1) } else { events.len() },
                                "{}",
                                context(&op)
                            );
                        }
                        (Err(refused), Err(e)) => assert_eq!(e.kind(), kind(*refused), "{}: {e}", context(&op)),
                        _ => panic!("{}: {answer:?}, expected {expected:?}", context(&op)),
                    }
                }
                5..9 => {
                    let abort = rng.u8(..4) == 0;
                    let ops: Vec<Op> = (0..rng.usize(..12)).map(|_| draw(&mut rng)).collect();
                    let mut next = model.clone();
                    let mut inner = Vec::new();
                    let mut meet = rng.u8(..4) == 0;
                    let done = store.transact(|tx| {
                        next = model.clone();
                        inner.clear();
                        if std::mem::take(&mut meet) {
                            // Somebody else commits during the transaction; what was done here is repeated on top of
                            // that.
                            let _ = tx.tree().nodes("**").unwrap();
                            let op = Op::Put("c/meet".into(), json!(1));
                            run(&store, &op).unwrap();
                            apply(&mut model, &op, &mut events).unwrap();
                            ops.iter().for_each(|op| drop(run(tx, op)));
                            // Without a write of its own, it need not be repeated.
                            next = model.clone();
                            return if abort { Err(drumlin::Error::closed("abort")) } else { Ok(()) };
                        }
                        for op in &ops {
                            let (expected, answer) = (apply(&mut next, op, &mut inner), run(tx, op).map(drop));
                            assert_eq!(expected.map_err(kind), answer.map_err(|e| e.kind()), "{}", context(&ops));
                            let paths = next.nodes.keys().map(|path| path.join("/")).collect::<Vec<_>>();
                            let seen = tx.tree().fold("**", Vec::new(), |mut seen, path, _| {
                                seen.push(path.to_owned());
                                seen
                            });
                            assert_eq!(seen.unwrap(), paths, "{}", context(&ops));
                        }
                        let by_k = tx.tree().projection("by k").unwrap().count();
                        assert_eq!(by_k, expected_entries(&next, 0).len(), "{}", context(&ops));
                        if abort { Err(drumlin::Error::closed("abort")) } else { Ok(()) }
                    });
                    assert_eq!(done.is_err(), abort);
                    if !abort {
                        model = next;
                        events.extend(inner);
                    }
                }
                _ => {
                    store.tree().wait_for_triggers(None).unwrap();
                    if rng.bool() {
                        store.checkpoint(&Default::default()).unwrap();
                        begin = store.seq().unwrap();
                        history.clear();
                    }
                    store.close().unwrap();
                    store = open_with(&disk, &clock, 1).unwrap();
                    project_by_function(&store);
                    (heard, feed) = (listen(&store), store.changes(store.seq().unwrap()).unwrap());
                }
            }
            check(&store, &model, &mut rng);
            let events = in_order(events);
            assert_eq!(in_order(drain(&mut feed)), events, "seed {seed} step {step}: the feed");
            store.tree().wait_for_triggers(None).unwrap();
            assert_eq!(in_order(std::mem::take(&mut heard.lock())), events, "seed {seed} step {step}: the trigger");
            history.extend(events);
        }
        // The whole history again, from the log.
        assert_eq!(in_order(drain(&mut store.changes(begin).unwrap())), in_order(history), "seed {seed}: the log");
        assert!(store.tree().trigger_failures().unwrap().is_empty());
    });
}
