//! The stored parts of the catalog: commits, snapshots, directories, payloads, and the rules that are kept as JSON
//! text.

use bytes::Bytes;
use drumlin::Tables;
use drumlin::base::{Seq, Timestamp};
use drumlin::block::Directory;
use drumlin::catalog::{
    ChunkAddress, Condition, Content, Effect, Field, Glob, Index, Keep, Path, Pattern, Payload, Projection, State,
    TransactionRecord, TriggerFilter, pack_page, unpack_page,
};
use drumlin::log::FileLog;
use drumlin::storage::SimDisk;
use serde_json::json;

use crate::cursor::Cursor;
use crate::stores;

/// The payload of a log entry: any bytes are decoded or refused; what was decoded is applied or refused, and encoded again.
pub fn transactions(bytes: &[u8]) {
    let Ok(transactions) = TransactionRecord::decode(bytes) else { return };
    let encoded = TransactionRecord::encode(&transactions).expect("what was decoded");
    let again = TransactionRecord::decode(&encoded).expect("what was encoded");
    assert_eq!(again, transactions);
    let mut state = State::default();
    for (transaction, seq) in transactions.iter().zip(1..) {
        let _ = state.apply(transaction, Seq(seq), Timestamp(0));
    }
    let _ = state.check();
    state.catch_up(None);
}

fn disks() -> [SimDisk; 2] {
    [stores::folder(0, 0), stores::folder(1 << 16, 0)]
}

/// The commits of sound stores, individually and merged into one.
pub fn transaction_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for disk in disks() {
        let entries = FileLog::read(&disk).expect("a sound log").entries;
        seeds.extend(entries.iter().map(|entry| entry.payload.to_vec()));
    }
    let disk = SimDisk::new();
    let store = stores::open(&disk, 1 << 16).expect("a store");
    store.write("t", stores::rows(0, 3), &Default::default()).expect("rows");
    store.append("t", stores::rows(9, 3), &Default::default()).expect("rows");
    store.tree().put("n", Payload::bytes(&[7; 2000]).expect("few bytes")).expect("a node");
    store.drop("t").expect("a table");
    drop(store);
    let opened = FileLog::read(&disk).expect("a sound log");
    let all: Vec<TransactionRecord> =
        opened.entries.iter().flat_map(|entry| TransactionRecord::decode(&entry.payload).expect("a commit")).collect();
    seeds.extend(opened.entries.iter().map(|entry| entry.payload.to_vec()));
    seeds.push(TransactionRecord::encode(&all).expect("commits"));
    let rules = vec![
        Effect::PutProjection { name: "p".into(), projection: projection() },
        Effect::SetDefaultRetention { retention: None },
    ];
    seeds.push(TransactionRecord::encode(&[TransactionRecord { effects: rules }]).expect("a commit"));
    seeds
}

/// The index of a catalog snapshot and the chunks it names, each after its length in two bytes.
pub fn snapshot(bytes: &[u8]) {
    let mut cursor = Cursor(bytes);
    let part = |cursor: &mut Cursor<'_>| {
        let length = cursor.short();
        Bytes::copy_from_slice(cursor.take(length.into()))
    };
    let Ok(index) = Index::decode(&part(&mut cursor)) else { return };
    let _ = index.encode().expect("what was decoded");
    let mut chunks: Vec<Bytes> = index.places().take(1000).map(|_| part(&mut cursor)).collect();
    // The pages of tables come last. Compressed bytes would rarely be sound after a change.
    let plain = chunks.len().saturating_sub(index.page_places().count());
    for page in &mut chunks[plain..] {
        *page = pack_page(page).into();
    }
    let partly: Vec<Option<Bytes>> = chunks.iter().map(|chunk| (!chunk.is_empty()).then(|| chunk.clone())).collect();
    let _ = index.read_partly(&partly);
    if let Ok(mut state) = index.read(&chunks) {
        let _ = state.restore();
        if state.check().is_ok() {
            state.catch_up(None);
        }
        state.tables().for_each(drop);
    }
}

/// The snapshots of sound stores.
pub fn snapshot_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for disk in disks() {
        let base = FileLog::read(&disk).expect("a sound log").base.expect("a snapshot");
        let objects = stores::objects(&disk);
        let object = &objects[&drumlin::storage::names::catalog(base.seq)];
        let index = &object[base.offset as usize..];
        let decoded = Index::decode(index).expect("a sound index");
        let pages: Vec<u64> = decoded.page_places().map(|place| place.offset).collect();
        let chunk = |place: &ChunkAddress| {
            let stored = &object[place.offset as usize..(place.offset + place.bytes) as usize];
            match pages.contains(&place.offset) {
                true => unpack_page(stored).expect("a sound page"),
                false => stored.to_vec(),
            }
        };
        let parts = [index.to_vec()].into_iter().chain(decoded.places().map(chunk));
        seeds.push(parts.flat_map(|part| [&(part.len() as u16).to_le_bytes()[..], &part].concat()).collect());
    }
    seeds.push([&[1, 0][..], &[0]].concat());
    seeds
}

/// A row group's directory.
pub fn directory(bytes: &[u8]) {
    if let Ok(directory) = postcard::from_bytes::<Directory>(bytes) {
        let again: Directory = postcard::from_bytes(&directory.encode()).expect("what was encoded");
        // Statistics may hold floats that are not equal to themselves.
        assert_eq!(again.encode(), directory.encode());
    }
}

/// Directories of sound blocks: each ends where its row group does, before zeros or the end.
pub fn directory_seeds() -> Vec<Vec<u8>> {
    let array = |number: usize| {
        let mut rng = fastrand::Rng::with_seed(number as u64);
        let data_type = crate::cursor::data_type(number);
        super::arrays::array(&mut rng, &data_type, 20, true)
    };
    let columns = (0..crate::cursor::TYPES).filter_map(|number| drumlin::segment::encode(&array(number)).ok());
    let columns: Vec<drumlin::block::ColumnEntry> = columns
        .map(|segment| drumlin::block::ColumnEntry {
            offset: 64,
            bytes: segment.bytes.len() as u64,
            checksum: 7,
            stats: segment.stats,
            kept: segment.kept,
        })
        .collect();
    let filter = drumlin::block::KeyFilter { offset: 64, bytes: 1300, checksum: 9 };
    let of =
        |columns: &[drumlin::block::ColumnEntry], filter| Directory { rows: 20, columns: columns.to_vec(), filter };
    let mut seeds: Vec<Vec<u8>> = columns.chunks(4).map(|some| of(some, None).encode()).collect();
    seeds.push(of(&columns, Some(filter)).encode());
    seeds
}

/// A payload in stored form, and as JSON text.
pub fn payload(bytes: &[u8]) {
    if let Ok(payload) = Payload::from_stored(bytes) {
        assert_eq!(payload.stored(), bytes);
        if let Content::Json(value) = payload.content() {
            let json = value.to_json();
            assert_eq!(value.to_payload().expect("what was stored").to_json(), Some(json.clone()));
            let again = Payload::json(&json).expect("what was stored");
            assert_eq!(again.to_json(), Some(json));
        }
        for path in ["a", "1.b", "a.0.c"] {
            let names: Vec<String> = path.split('.').map(str::to_owned).collect();
            let _ = payload.field(&names);
        }
        let _ = format!("{payload:?}");
    }
    if let Ok(json) = serde_json::from_slice::<serde_json::Value>(bytes)
        && let Ok(payload) = Payload::json(&json)
    {
        assert_eq!(payload.to_json(), Some(json));
        assert_eq!(Payload::from_stored(payload.stored()).expect("what was made"), payload);
    }
}

/// Values of every kind, in stored form and as text.
pub fn payload_seeds() -> Vec<Vec<u8>> {
    let values = [
        json!(null),
        json!([1, -1, 300, -70_000, u64::MAX, i64::MIN, 1.5, 1e300]),
        json!({"a": {"b": [true, false, "text", ""]}, "c": "ü".repeat(40)}),
        json!((0..40).collect::<Vec<_>>()),
        json!([[[[[[[["deep"]]]]]]]]),
    ];
    let stored = values.iter().map(|value| Payload::json(value).expect("a value").stored().to_vec());
    let text = values.iter().map(|value| value.to_string().into_bytes());
    let bytes = Payload::bytes(b"bytes").expect("bytes").stored().to_vec();
    stored.chain(text).chain([bytes]).collect()
}

fn projection() -> Projection {
    let field = |text| Field::new(text).expect("a field");
    let pattern = Pattern::new("n/**").expect("a pattern");
    Projection {
        pattern,
        key: vec![field("name")],
        value: vec![field("payload.on"), field("payload.list.0"), field("path.-1")],
        bag: true,
    }
}

/// The texts of paths, patterns, fields, conditions, projections and triggers: each is parsed or refused, and what was
/// parsed prints as text that parses to the same.
pub fn rules(bytes: &[u8]) {
    fn through<T>(text: &str)
    where
        T: serde::de::DeserializeOwned + serde::Serialize + PartialEq + std::fmt::Debug,
    {
        if let Ok(rule) = serde_json::from_str::<T>(text) {
            let written = serde_json::to_string(&rule).expect("what was parsed");
            assert_eq!(serde_json::from_str::<T>(&written).expect("what was written"), rule);
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, second) = text.split_once('\n').unwrap_or((text, ""));
    if let Ok(pattern) = Pattern::new(first) {
        let _ = pattern.matches_path(second);
        let _ = pattern.prefix();
    }
    if let Ok(path) = Path::new(first) {
        assert!(Pattern::of_path(&path).matches_path(path.as_str()));
        assert!(path.ancestors().count() < 200);
    }
    if let Ok(glob) = Glob::new(first) {
        let _ = glob.matches(second);
    }
    let _ = Field::new(first);
    through::<Pattern>(text);
    through::<Condition>(text);
    through::<Keep>(text);
    through::<Projection>(text);
    through::<TriggerFilter>(text);
}

/// Texts of every kind.
pub fn rule_seeds() -> Vec<Vec<u8>> {
    let condition = Condition::field("a.b", drumlin::catalog::Compare::Less, Payload::from(3));
    let pattern = Pattern::new("a/*/b?/**").expect("a pattern");
    let both = pattern.clone().and(condition.clone()).expect("a pattern");
    let keep = Keep::new(&[("a/b".into(), condition.clone())]);
    let texts = [
        "a/*/b?/**\na/x/bc/d/e".to_owned(),
        "*a*b*c\naaabbbccc".to_owned(),
        "a/b/c".to_owned(),
        "payload.a.0".to_owned(),
        serde_json::to_string(&pattern).expect("text"),
        serde_json::to_string(&both).expect("text"),
        serde_json::to_string(&condition).expect("text"),
        serde_json::to_string(&keep.ok()).expect("text"),
        serde_json::to_string(&projection()).expect("text"),
        r#"{"conditions":[],"presence":3,"until":1700000000000000}"#.to_owned(),
        r#"{"pattern":"a/**","actions":["create","delete"],"priority":-1}"#.to_owned(),
    ];
    texts.map(String::into_bytes).into()
}
