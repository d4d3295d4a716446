//! What one caller sees of a storage.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use drumlin::base::{Clock, SystemClock};
use drumlin::storage::{Storage, Tag, WriteMode};
use drumlin::{ErrorKind, Result};
use fastrand::Rng;

pub fn put(storage: &dyn Storage, name: &str, bytes: impl AsRef<[u8]>) {
    storage.put(name, &[Bytes::copy_from_slice(bytes.as_ref())], WriteMode::Create).unwrap();
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Rng::with_seed(seed).fill(&mut noise);
    noise
}

pub fn refused<T: Debug>(answer: Result<T>, kind: ErrorKind, name: &str) {
    let e = answer.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    assert!(e.message().contains(name), "'{e}' does not name {name}");
}

pub fn comes_back(storage: &dyn Storage) {
    let cases: [(&str, Vec<&[u8]>); 6] = [
        ("back/no-parts", vec![]),
        ("back/empty-part", vec![b""]),
        ("back/byte", vec![b"\0"]),
        ("back/parts", vec![b"hello ", b"", b"world", b""]),
        ("back/a/b/c/d/e/f/g/deep", vec![b"deep"]),
        ("top-level", vec![b"top"]),
    ];
    for (name, parts) in cases {
        let whole = parts.concat();
        let parts: Vec<Bytes> = parts.into_iter().map(Bytes::copy_from_slice).collect();
        storage.put(name, &parts, WriteMode::Create).unwrap();
        assert_eq!(storage.get(name).unwrap(), whole, "{name}");
        assert_eq!(storage.get_tagged(name, None).unwrap().unwrap().0, whole, "{name}");
    }
    let parts: Vec<Bytes> = (0..3000_u32).map(|n| Bytes::copy_from_slice(&n.to_le_bytes())).collect();
    storage.put("back/many-parts", &parts, WriteMode::Create).unwrap();
    assert_eq!(storage.get("back/many-parts").unwrap(), parts.concat());
}

pub fn missing(storage: &dyn Storage) {
    put(storage, "missing/there", "x");
    for name in ["missing/x", "missing/ther", "missing/there2", "missing/folder/x", "no-such-folder/x/y"] {
        refused(storage.get(name), ErrorKind::NotFound, name);
        refused(storage.get_ranges(name, &cut(&[(0, 1)])), ErrorKind::NotFound, name);
        refused(storage.get_tagged(name, None), ErrorKind::NotFound, name);
        refused(storage.get_tagged(name, Some(&Tag("\"x\"\n".into()))), ErrorKind::NotFound, name);
        // A hint about nothing is none.
        storage.prefetch(name, &cut(&[(0, 1), (7, 3), (5, u64::MAX)]));
    }
}

pub fn create(storage: &dyn Storage) {
    let name = "create/a/object";
    put(storage, name, "first");
    for second in ["second and longer", "", "first"] {
        let parts = [Bytes::from(second)];
        refused(storage.put(name, &parts, WriteMode::Create), ErrorKind::AlreadyExists, name);
        assert_eq!(storage.get(name).unwrap(), "first");
    }
    // Names that begin alike are other names.
    put(storage, "create/a/objec", "1");
    put(storage, "create/a/object2", "2");
}

pub fn replace(storage: &dyn Storage) {
    for content in ["made", "replaced by what is longer", "short", "", "again"] {
        storage.put("replace/x", &[Bytes::from(content)], WriteMode::Replace).unwrap();
        assert_eq!(storage.get("replace/x").unwrap(), content);
    }
}

pub fn once(storage: &dyn Storage) {
    let parts = [Bytes::from_static(b"the same "), Bytes::from_static(b"bytes")];
    storage.put("once/x", &parts, WriteMode::Once).unwrap();
    // The second try of the same put may say that the first one was done.
    if let Err(e) = storage.put("once/x", &parts, WriteMode::Once) {
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
    }
    assert_eq!(storage.get("once/x").unwrap(), "the same bytes");
    // Other bytes are those of somebody else, which stay.
    for other in ["", "the same byte", "the same bytes!", "The same bytes"] {
        refused(storage.put("once/x", &[Bytes::from(other)], WriteMode::Once), ErrorKind::AlreadyExists, "once/x");
    }
    assert_eq!(storage.get("once/x").unwrap(), "the same bytes");
}

pub fn large(storage: &dyn Storage) {
    let bytes = Bytes::from(noise(1, (20 << 20) + 7));
    let parts = [bytes.slice(..1), bytes.slice(1..9 << 20), bytes.slice(9 << 20..)];
    storage.put("large/x", &parts, WriteMode::Create).unwrap();
    assert!(storage.get("large/x").unwrap() == bytes);
    // Far apart, so that they are requests of their own.
    let end = bytes.len() as u64;
    let ranges = cut(&[(end - 1, end), (0, 1), (9 << 20, (9 << 20) + 100), (15 << 20, 16 << 20), (0, end)]);
    let parts = storage.get_ranges("large/x", &ranges).unwrap();
    for (range, part) in ranges.iter().zip(parts) {
        assert!(part == bytes[range.start as usize..range.end as usize], "{range:?}");
    }
}

fn cut(ranges: &[(u64, u64)]) -> Vec<Range<u64>> {
    ranges.iter().map(|(start, end)| *start..*end).collect()
}

pub fn ranges(storage: &dyn Storage) {
    put(storage, "ranges/digits", "0123456789");
    let cases: [(&[(u64, u64)], &[&str]); 6] = [
        (&[], &[]),
        (&[(0, 10)], &["0123456789"]),
        (&[(2, 4), (0, 1), (9, 10)], &["23", "0", "9"]),
        (&[(0, 6), (3, 8), (3, 8), (4, 5), (0, 10)], &["012345", "34567", "34567", "4", "0123456789"]),
        (&[(0, 0), (5, 5), (10, 10)], &["", "", ""]),
        (&[(7, 7), (8, 9), (1, 1), (1, 2)], &["", "8", "", "1"]),
    ];
    for (asked, expected) in cases {
        assert_eq!(storage.get_ranges("ranges/digits", &cut(asked)).unwrap(), expected, "{asked:?}");
    }
    let bytes = noise(2, 3 << 20);
    put(storage, "ranges/noise", &bytes);
    let mut rng = Rng::with_seed(3);
    let start = |rng: &mut Rng| rng.u64(0..(3 << 20) - 5000);
    let many: Vec<Range<u64>> = (0..1500).map(|_| start(&mut rng)).map(|at| at..at + at % 5000).collect();
    let parts = storage.get_ranges("ranges/noise", &many).unwrap();
    assert_eq!(parts.len(), many.len());
    for (range, part) in many.iter().zip(parts) {
        assert!(part == bytes[range.start as usize..range.end as usize], "{range:?}");
    }
    storage.prefetch("ranges/noise", &cut(&[(0, 10), (5, 5), (7, 3), (1 << 40, u64::MAX)]));
}

pub fn ranges_beyond(storage: &dyn Storage) {
    put(storage, "beyond/digits", "0123456789");
    put(storage, "beyond/empty", "");
    let cases: [&[(u64, u64)]; 12] = [
        &[(9, 11)],
        &[(0, 11)],
        &[(10, 11)],
        &[(11, 12)],
        &[(0, 1), (20, 21)],
        &[(20, 21), (0, 1)],
        &[(5, 30), (25, 30)],
        &[(0, 10), (5 << 20, (5 << 20) + 1)],
        &[(0, u64::MAX)],
        &[(u64::MAX - 1, u64::MAX)],
        &[(7, 3)],
        &[(0, 2), (7, 3)],
    ];
    for asked in cases {
        refused(storage.get_ranges("beyond/digits", &cut(asked)), ErrorKind::Corrupt, "beyond/digits");
    }
    refused(storage.get_ranges("beyond/empty", &cut(&[(0, 1)])), ErrorKind::Corrupt, "beyond/empty");
}

pub fn ranges_of_many(storage: &dyn Storage) {
    put(storage, "several/a", "aaaaa");
    put(storage, "several/b", "bbbbb");
    let wanted: Vec<(String, Vec<Range<u64>>)> = [
        ("several/b", cut(&[(0, 2), (1, 4)])),
        ("several/none", cut(&[(0, 1)])),
        ("several/a", cut(&[(3, 9)])),
        ("several/a", cut(&[(0, 1), (40, 41)])),
        ("several/a", cut(&[])),
        ("several/a", cut(&[(4, 5)])),
    ]
    .map(|(name, ranges)| (name.to_owned(), ranges))
    .into();
    let mut answers = storage.get_ranges_of(&wanted).into_iter();
    let mut next = || answers.next().unwrap();
    assert_eq!(next().unwrap(), ["bb", "bbb"]);
    refused(next(), ErrorKind::NotFound, "several/none");
    refused(next(), ErrorKind::Corrupt, "several/a");
    refused(next(), ErrorKind::Corrupt, "several/a");
    assert_eq!(next().unwrap(), [] as [&str; 0]);
    assert_eq!(next().unwrap(), ["a"]);
    assert!(answers.next().is_none());
    assert!(storage.get_ranges_of(&[]).is_empty());
    // More than are on their way at a time.
    let many: Vec<_> = (0..100).map(|n| (["several/a", "several/b"][n % 2].to_owned(), cut(&[(0, 1)]))).collect();
    for (n, answer) in storage.get_ranges_of(&many).into_iter().enumerate() {
        assert_eq!(answer.unwrap(), [["a", "b"][n % 2]], "{n}");
    }
}

pub fn written_at(storage: &dyn Storage) {
    const HOUR: i64 = 3_600_000_000;
    put(storage, "written/x", "x");
    let Some(first) = storage.written_at("written/x").unwrap() else { return };
    assert!((first.0 - SystemClock.now().0).abs() < HOUR, "{first}");
    storage.put("written/x", &[Bytes::from_static(b"y")], WriteMode::Replace).unwrap();
    assert!(storage.written_at("written/x").unwrap().unwrap() >= first);
    refused(storage.written_at("written/y"), ErrorKind::NotFound, "written/y");
}

/// What a list says, which has no order; nothing comes twice.
fn listed(storage: &dyn Storage, folder: &str) -> BTreeMap<String, u64> {
    let list = storage.list(folder).unwrap();
    let found: BTreeMap<String, u64> = list.iter().map(|object| (object.name.clone(), object.bytes)).collect();
    assert_eq!(found.len(), list.len(), "{list:?}");
    found
}

fn folders(storage: &dyn Storage, folder: &str) -> BTreeSet<String> {
    let list = storage.list_folders(folder).unwrap();
    let found: BTreeSet<String> = list.iter().cloned().collect();
    assert_eq!(found.len(), list.len(), "{list:?}");
    found
}

fn sizes<const N: usize>(expected: [(&str, u64); N]) -> BTreeMap<String, u64> {
    expected.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

pub fn lists(storage: &dyn Storage) {
    assert_eq!(listed(storage, "list"), sizes([]));
    assert_eq!(folders(storage, "list"), [].into());
    for name in ["list/b", "list/a", "list/ab", "list/in/x", "list/in/y", "list/in/deep/x", "list/other/x", "list2/x"] {
        put(storage, name, name);
    }
    put(storage, "list/empty", "");
    assert_eq!(listed(storage, "list"), sizes([("list/a", 6), ("list/ab", 7), ("list/b", 6), ("list/empty", 0)]));
    assert_eq!(listed(storage, "list/in"), sizes([("list/in/x", 9), ("list/in/y", 9)]));
    // The beginning of a folder's name is another name.
    assert_eq!(listed(storage, "lis"), sizes([]));
    assert_eq!(listed(storage, "list/i"), sizes([]));
    assert_eq!(folders(storage, "list"), ["in".to_owned(), "other".to_owned()].into());
    assert_eq!(folders(storage, "list/in"), ["deep".to_owned()].into());
    assert_eq!(folders(storage, "list/other"), [].into());
    assert_eq!(folders(storage, "lis"), [].into());
    storage.put("list/a", &[Bytes::from_static(b"longer than it was")], WriteMode::Replace).unwrap();
    assert_eq!(listed(storage, "list")["list/a"], 18);
    // The top is a folder without a name.
    put(storage, "list-top", "top");
    let top = listed(storage, "");
    assert_eq!(top.get("list-top"), Some(&3), "{top:?}");
    for (name, bytes) in &top {
        assert!(!name.contains('/'), "{name} is not at the top");
        assert_eq!(storage.get(name).unwrap().len() as u64, *bytes, "{name}");
    }
    let below = folders(storage, "");
    assert!(["list", "list2"].iter().all(|name| below.contains(*name)) && !below.contains(""), "{below:?}");
    assert!(!below.contains("list-top"), "{below:?}");
}

fn delete(storage: &dyn Storage, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let answers = storage.delete_many(&names);
    assert_eq!(answers.len(), names.len());
    answers.into_iter().for_each(|answer| answer.unwrap());
}

pub fn deletes(storage: &dyn Storage) {
    for name in ["delete/a", "delete/ab", "delete/b", "delete/in/a", "delete/in/deep/a"] {
        put(storage, name, name);
    }
    delete(storage, &[]);
    delete(storage, &["delete/a", "delete/none", "no-folder/x", "delete/b", "delete/a", "delete/in/deep/a"]);
    for name in ["delete/a", "delete/b", "delete/in/deep/a"] {
        refused(storage.get(name), ErrorKind::NotFound, name);
    }
    for name in ["delete/ab", "delete/in/a"] {
        assert_eq!(storage.get(name).unwrap(), name);
    }
    delete(storage, &["delete/a"]);
    // A folder with something in it stays, an empty one goes, and either takes objects again.
    for folder in ["delete/in", "delete/in/deep"] {
        storage.remove_empty_folder(folder).unwrap();
    }
    assert_eq!(storage.get("delete/in/a").unwrap(), "delete/in/a");
    for name in ["delete/a", "delete/in/deep/a"] {
        put(storage, name, "back");
        assert_eq!(storage.get(name).unwrap(), "back");
    }
}

pub fn more_than_a_request(storage: &dyn Storage) {
    const MANY: usize = 1050;
    let object = |n: usize| format!("more/{n}");
    let inner = |n: usize| format!("more/folder-{n}/x");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(n) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < MANY) {
                    put(storage, &object(n), "x");
                    put(storage, &inner(n), "x");
                }
            });
        }
    });
    assert_eq!(listed(storage, "more"), (0..MANY).map(|n| (object(n), 1)).collect());
    assert_eq!(folders(storage, "more"), (0..MANY).map(|n| format!("folder-{n}")).collect());
    // All but the last, and names that are not there.
    let names: Vec<String> = (0..MANY - 1).flat_map(|n| [object(n), inner(n), object(n + MANY)]).collect();
    let answers = storage.delete_many(&names);
    assert_eq!(answers.len(), names.len());
    answers.into_iter().for_each(|answer| answer.unwrap());
    assert_eq!(listed(storage, "more"), [(object(MANY - 1), 1)].into());
    assert_eq!(storage.get(&inner(MANY - 1)).unwrap(), "x");
    refused(storage.get(&inner(0)), ErrorKind::NotFound, &inner(0));
}

pub fn names(storage: &dyn Storage) {
    // What a store calls its objects (names.rs), and what could be mistaken on the way to a server. Other characters than those of
    // ASCII are in no name.
    let long = "n".repeat(180);
    let last = [
        "00000000000000000012-0123456789abcdef.log",
        "7.blk.31-7.tmp",
        ".hidden",
        "...",
        "ends.",
        "-dash",
        "a b",
        "a+b",
        "a&b=c;d,e",
        "a'b(c)!",
        "a@b:c$",
        "a=b_c",
        "100",
        "Case",
        "case",
        &long,
    ];
    for folder in ["names", "names/a b+c&d/e"] {
        for name in last {
            put(storage, &format!("{folder}/{name}"), name);
        }
        let found = listed(storage, folder);
        for name in last {
            let name = format!("{folder}/{name}");
            assert!(found.contains_key(&name), "{name} is not among {found:?}");
            assert_eq!(found[&name], name.len() as u64 - folder.len() as u64 - 1);
            assert_eq!(storage.get(&name).unwrap(), name[folder.len() + 1..]);
            assert_eq!(
                storage.get_ranges(&name, &cut(&[(0, 1)])).unwrap(),
                [&name.as_bytes()[folder.len() + 1..][..1]]
            );
        }
    }
    assert_eq!(folders(storage, "names"), ["a b+c&d".to_owned()].into());
    assert_eq!(folders(storage, "names/a b+c&d"), ["e".to_owned()].into());
    let all: Vec<String> = listed(storage, "names/a b+c&d/e").into_keys().collect();
    assert_eq!(all.len(), last.len());
    storage.delete_many(&all).into_iter().for_each(|answer| answer.unwrap());
    assert_eq!(listed(storage, "names/a b+c&d/e"), sizes([]));
}

pub fn tags(storage: &dyn Storage) {
    let name = "tags/x";
    let look = |known: Option<&Tag>| storage.get_tagged(name, known).unwrap();
    put(storage, name, "one");
    let (bytes, one) = look(None).unwrap();
    assert_eq!(bytes, "one");
    assert_eq!(look(Some(&one)), None);
    put(storage, "tags/y", "another object changes nothing");
    assert_eq!(look(Some(&one)), None);
    let mut seen = vec![one];
    for content in ["two", "owt", "", "two, but longer"] {
        storage.put(name, &[Bytes::from(content)], WriteMode::Replace).unwrap();
        for old in &seen {
            let (bytes, tag) = look(Some(old)).unwrap();
            assert_eq!(bytes, content);
            assert!(!seen.contains(&tag), "{tag:?} was that of another content");
        }
        seen.push(look(None).unwrap().1);
    }
}

pub fn put_if_match(storage: &dyn Storage) {
    let name = "if/folder/x";
    let try_put = |content: &'static str, known: Option<&Tag>| {
        let (a, b) = content.split_at(content.len() / 2);
        storage.put_if_match(name, &[Bytes::from(a), Bytes::from(b)], known)
    };
    let there = || storage.get_tagged(name, None).unwrap().unwrap();
    let of_another = {
        put(storage, "if/other", "of another object");
        storage.get_tagged("if/other", None).unwrap().unwrap().1
    };
    refused(try_put("no", Some(&of_another)), ErrorKind::Conflict, name);
    refused(storage.get(name), ErrorKind::NotFound, name);
    let one = try_put("one", None).unwrap();
    assert_eq!(there(), (Bytes::from("one"), one.clone()));
    refused(try_put("no", None), ErrorKind::Conflict, name);
    refused(try_put("no", Some(&of_another)), ErrorKind::Conflict, name);
    assert_eq!(there(), (Bytes::from("one"), one.clone()));
    let two = try_put("", Some(&one)).unwrap();
    assert_eq!(there(), (Bytes::new(), two.clone()));
    refused(try_put("no", Some(&one)), ErrorKind::Conflict, name);
    // What a put without a condition wrote counts, too.
    storage.put(name, &[Bytes::from_static(b"three")], WriteMode::Replace).unwrap();
    refused(try_put("no", Some(&two)), ErrorKind::Conflict, name);
    let three = there().1;
    let four = try_put("four", Some(&three)).unwrap();
    delete(storage, &[name]);
    refused(try_put("no", Some(&four)), ErrorKind::Conflict, name);
    refused(storage.get(name), ErrorKind::NotFound, name);
    try_put("again", None).unwrap();
    assert_eq!(there().0, "again");
}

pub fn leaves_nothing(storage: &dyn Storage) {
    // A name that a store uses: of others nobody would say that their leftovers are a store's.
    let name = "left/7.blk";
    put(storage, name, "x");
    refused(storage.put(name, &[Bytes::from_static(b"y")], WriteMode::Create), ErrorKind::AlreadyExists, name);
    storage.put(name, &[Bytes::from_static(b"z")], WriteMode::Replace).unwrap();
    refused(storage.put_if_match(name, &[], None), ErrorKind::Conflict, name);
    for folder in ["left", ""] {
        assert_eq!(storage.unfinished(folder).unwrap(), []);
    }
    assert_eq!(listed(storage, "left"), sizes([(name, 1)]));
}
