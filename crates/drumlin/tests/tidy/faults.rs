//! The table of faults by operations, `docs/faults.md`, made from the comments above the tests.
//!
//! A line `// faults: crash, full disk x write, upsert` (in Python `# faults:`) above a test says that the test shows these
//! faults to do no harm to these operations. This makes the table of those lines and compares it with the page; a cell
//! without a test needs a reason in [`NONE`]. `DRUMLIN_WRITE_DOCS=1` in the environment rewrites the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::{files, pairs};

/// The columns: an operation, and what it means.
const OPERATIONS: [(&str, &str); 16] = [
    ("write", "`write`, `append`, `replace`, also of many tables"),
    ("upsert", "`upsert`, `insert`, `delete_keys`"),
    ("delete", "`Table.delete`, `delete_versions`"),
    ("drop", "`drop`, `drop_and_reclaim`"),
    ("undrop", "`undrop`"),
    ("snapshot", "`snapshot`, `drop_snapshot`"),
    ("checkpoint", "`checkpoint`: flush, vacuum, repack, catalog, cut of the log"),
    ("reclaim", "`reclaim`, sweeps and audits"),
    ("open", "`open` and recovery, `close`, following another process"),
    ("read", "`read`, also as of versions, times and snapshots"),
    ("look-up", "`Table.get`, `Table.get_many`"),
    ("nodes", "`put`, `delete` and the rest of the tree, projections"),
    ("transaction", "transactions over nodes, tables and rows"),
    ("feed", "change feeds and triggers"),
    ("verify", "`verify`"),
    ("salvage", "`salvage`"),
];

/// The rows: a fault, and what it is.
const FAULTS: [(&str, &str); 28] = [
    ("crash", "the process or the machine stops between two storage operations, or within one"),
    ("lost answer", "a request has no answer: it was not done, was done, or will be done late"),
    ("paused process", "a process sleeps while others commit, cut the log and reclaim, or is taken for dead"),
    ("stale list", "a list of objects is old, incomplete or in another order"),
    ("reclaim beside a writer", "blocks are collected while another process writes"),
    ("reclaim beside a reader", "blocks are rewritten and deleted while somebody reads them"),
    ("partial deletion", "a bulk deletion deletes some of its keys"),
    ("torn log tail", "the last record of the log is written in part"),
    ("lost log", "the log lost records that were synced: cut, zeroed, shifted, an older copy"),
    ("bit rot", "an object is damaged, missing, another or an older one"),
    ("wrong clock", "a clock is years off, stands still or goes back"),
    ("full disk", "there is no space"),
    ("failed sync", "storage fails, also when asked to make durable what it took"),
    ("one thread", "pools have one thread each"),
    ("hostile sizes", "input or a stored length asks for more memory than there is"),
    ("second process", "another process opens a store that one process writes"),
    ("fork", "the process forks"),
    ("other format", "the store was written by an earlier or a later version"),
    ("odd name", "a name is made to be taken for a path, or has any characters"),
    ("hostile arrays", "arrays of another library are malformed"),
    ("hostile bytes", "stored bytes are made to deceive, with right checksums"),
    ("secrets", "credentials are given"),
    ("stopped call", "a call is cancelled, or interrupted by Ctrl-C"),
    ("weak bucket", "a bucket does not look at conditions"),
    ("concurrent change", "threads or processes change the same things"),
    ("throttling", "a bucket refuses requests that come too fast"),
    ("stuck rewrite", "a table or row group cannot be rewritten"),
    ("interpreter lock", "Python holds its lock while the store waits"),
];

/// Names for several operations.
const GROUPS: [(&str, &str); 3] = [
    // What `tests/it/models/random.rs` and `wide.rs` choose, and read again after each.
    (
        "random operations",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes, transaction",
    ),
    // What `tests/it/faults/hostile.rs` does to a store.
    (
        "hostile operations",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes, transaction, feed, \
         verify",
    ),
    (
        "all",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, look-up, nodes, transaction, feed, \
         verify, salvage",
    ),
];

/// Faults that cannot meet operations, or not in a specific way, and why. A cell that has a test needs no reason.
const NONE: &[(&str, &str, &str)] = &[
    (
        "stale list",
        "write, upsert, delete, drop, undrop, snapshot, open, read, look-up, nodes, transaction, feed",
        "it lists nothing: only sweeps, audits, `verify`, `salvage` and the removal of old catalog snapshots do",
    ),
    (
        "lost answer",
        "salvage",
        "it reads what is there, and names what it could not read; the new store is opened by none before",
    ),
    ("reclaim beside a writer", "salvage", "it is for a store that nobody writes; its new store has no other process"),
    ("reclaim beside a reader", "write, drop, undrop, snapshot, nodes", "it reads no block"),
    (
        "partial deletion",
        "delete, undrop, snapshot, open, read, look-up, nodes, feed, verify, salvage",
        "it deletes no object",
    ),
    (
        "lost log",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, look-up, nodes, transaction, feed",
        "a store whose log lost records does not open, unless the loss is accepted, and then is as one that never had them",
    ),
    ("full disk", "feed", "it writes nothing but the place of a durable trigger, a commit that is tried again"),
    ("failed sync", "feed", "it writes nothing but the place of a durable trigger, a commit that is tried again"),
    ("wrong clock", "feed", "it goes by the numbers of commits"),
    ("wrong clock", "salvage", "it copies times and looks at none"),
    (
        "hostile sizes",
        "salvage",
        "it decodes by the same functions as `open` and `read`, which check each size before it is asked for",
    ),
    (
        "second process",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up, nodes, transaction, feed, verify, \
         salvage",
        "the lock is taken when the store is opened and held until it is closed, so a second process never gets so far",
    ),
    (
        "other format",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up, nodes, transaction, feed, verify, \
         salvage",
        "an unknown format is refused when the store is opened, before anything is done to it",
    ),
    (
        "hostile arrays",
        "delete, drop, undrop, snapshot, checkpoint, reclaim, open, read, nodes, feed, verify, salvage",
        "it takes no arrays",
    ),
    ("hostile arrays", "transaction", "it takes arrays through the same check as a call outside a transaction"),
    ("hostile bytes", "salvage", "it trusts checksums as `open` does, and decodes by the same functions"),
    (
        "secrets",
        "delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up, feed, verify, salvage",
        "credentials are handed to the bucket's client when a store is opened, whose errors are put in words in one place; no \
         operation sees them",
    ),
    (
        "weak bucket",
        "write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up, nodes, transaction, feed, verify, \
         salvage",
        "no store is made in such a bucket",
    ),
    ("concurrent change", "salvage", "it is for a store that nobody writes"),
    (
        "throttling",
        "open, read, look-up, feed, verify",
        "it puts no root, and other requests are repeated by the bucket's client",
    ),
    (
        "throttling",
        "salvage",
        "the bucket's client repeats what is no put of the log's root, and the new root is put as any other",
    ),
    (
        "stuck rewrite",
        "write, delete, drop, undrop, snapshot, reclaim, open, look-up, nodes, transaction, feed, verify, salvage",
        "only a checkpoint rewrites",
    ),
    ("fork", "salvage", "it uses no store that was opened before"),
    ("interpreter lock", "open, salvage", "it calls no Python function but a progress callback, outside of locks"),
];

/// The tests of a cell, by fault and operation.
type Cells = BTreeMap<(&'static str, &'static str), BTreeSet<String>>;

fn fault(name: &str, place: &str) -> &'static str {
    let known = FAULTS.iter().find(|(fault, _)| *fault == name);
    known.unwrap_or_else(|| panic!("{place}: '{name}' is no fault of the table")).0
}

fn operations(names: &str, place: &str) -> Vec<&'static str> {
    let one = |name: &str| -> Vec<&'static str> {
        if let Some((_, members)) = GROUPS.iter().find(|(group, _)| *group == name) {
            return operations(members, place);
        }
        let known = OPERATIONS.iter().find(|(operation, _)| *operation == name);
        vec![known.unwrap_or_else(|| panic!("{place}: '{name}' is no operation of the table")).0]
    };
    names.split(", ").flat_map(|name| one(name.trim())).collect()
}

/// The files with tests, as paths from the root.
fn tests(root: &Path) -> Vec<String> {
    let mut tests: Vec<String> = ["crates", "interleavings/src", "python/tests"]
        .iter()
        .flat_map(|folder| files(&root.join(folder), &["rs", "py"]))
        .map(|file| file.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .filter(|file| !file.contains("/tests/tidy") && !file.contains("/target/"))
        .collect();
    tests.sort();
    tests
}

/// Reads the lines of all files.
fn read(root: &Path) -> Cells {
    let mut cells = Cells::new();
    for file in tests(root) {
        let text = std::fs::read_to_string(root.join(&file)).unwrap();
        let (comment, function) = if file.ends_with(".py") { ("# faults: ", "def ") } else { ("// faults: ", "fn ") };
        let mut waiting: Vec<(&str, &str)> = Vec::new();
        let mut is_test = false;
        for (number, line) in text.lines().enumerate() {
            let (line, place) = (line.trim(), format!("{file}:{}", number + 1));
            if let Some(said) = line.strip_prefix(comment) {
                waiting.push(said.split_once(" x ").unwrap_or_else(|| panic!("{place}: no ' x '")));
            }
            is_test |= line == "#[test]";
            let begins = line.strip_prefix("pub ").unwrap_or(line).strip_prefix(function);
            let Some(name) = begins.map(|rest| rest.split(['(', '<']).next().unwrap_or_default()) else { continue };
            let test = match function {
                "def " => name.starts_with("test_"),
                _ => is_test,
            };
            assert!(test || waiting.is_empty(), "{place}: '{name}' says which faults it is about, but is no test");
            for (faults, names) in waiting.drain(..) {
                for (name_of_fault, operation) in faults
                    .split(", ")
                    .flat_map(|name| operations(names, &place).into_iter().map(move |operation| (name, operation)))
                {
                    cells
                        .entry((fault(name_of_fault.trim(), &place), operation))
                        .or_default()
                        .insert(format!("{file} {name}"));
                }
            }
            is_test = false;
        }
        assert!(waiting.is_empty(), "{file}: a line about faults is above no test");
    }
    cells
}

/// The page, and the cells that are empty.
fn page(cells: &Cells) -> (String, Vec<String>) {
    let tests: BTreeSet<&String> = cells.values().flatten().collect();
    let number: BTreeMap<&String, usize> = tests.iter().copied().zip(1..).collect();
    let mut page = String::from(
        "# Faults by operations\n\n\
         What can go wrong, and what shows that it does no harm: no answer is wrong, what was acknowledged stays, what failed was \
         done whole or not at all, and the store goes on.\n\n\
         Each cell names, by numbers, the tests that meet a fault before, during or after an operation. A letter says why there is \
         nothing to test. This page is made from the lines `faults:` above the tests by `crates/drumlin/tests/tidy/faults.rs`, \
         which fails if a cell is empty; `DRUMLIN_WRITE_DOCS=1` in the environment of that test rewrites it.\n\n",
    );
    page.push_str("| |");
    OPERATIONS.iter().for_each(|(operation, _)| write!(page, " {operation} |").unwrap());
    page.push_str("\n|---|");
    OPERATIONS.iter().for_each(|_| page.push_str("---|"));
    page.push('\n');
    let (mut empty, mut reasons): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for (fault, _) in FAULTS {
        write!(page, "| **{fault}** |").unwrap();
        for (operation, _) in OPERATIONS {
            let mut shown = match cells.get(&(fault, operation)) {
                Some(tests) => tests.iter().map(|test| number[test].to_string()).collect::<Vec<_>>().join(" "),
                None => {
                    let is_it = |(of, names, _): &&(&str, &str, &'static str)| {
                        *of == fault && operations(names, "NONE").contains(&operation)
                    };
                    match NONE.iter().find(is_it) {
                        Some((_, _, why)) => {
                            let at = reasons.iter().position(|known| known == why).unwrap_or_else(|| {
                                reasons.push(why);
                                reasons.len() - 1
                            });
                            letter(at)
                        }
                        None => String::new(),
                    }
                }
            };
            if shown.is_empty() {
                empty.push(format!("{fault} x {operation}"));
                shown.push('?');
            }
            write!(page, " {shown} |").unwrap();
        }
        page.push('\n');
    }
    let unused = NONE.iter().find(|(_, _, why)| !reasons.contains(why));
    assert!(unused.is_none(), "no cell needs the reason any more: {unused:?}");
    page.push_str("\n## Faults\n\n");
    FAULTS.iter().for_each(|(fault, what)| writeln!(page, "- **{fault}**: {what}.").unwrap());
    page.push_str("\n## Operations\n\n");
    OPERATIONS.iter().for_each(|(operation, what)| writeln!(page, "- **{operation}**: {what}.").unwrap());
    page.push_str("\n## None\n\n");
    reasons.iter().enumerate().for_each(|(at, why)| writeln!(page, "- {}: {why}.", letter(at)).unwrap());
    page.push_str("\n## Tests\n\n");
    for test in tests {
        let (file, name) = test.split_once(' ').unwrap();
        writeln!(page, "{}. [`{name}`](../{file})", number[test]).unwrap();
    }
    (page, empty)
}

fn letter(at: usize) -> String {
    char::from(b'a' + at as u8).to_string()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "what is written is a page, not a store")]
fn every_fault_meets_every_operation_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (made, empty) = page(&read(&root));
    let (night, missing) = pairs::of_last_night(&root);
    let made = made + &night;
    let file = root.join("docs/faults.md");
    if std::env::var_os("DRUMLIN_WRITE_DOCS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    assert!(empty.is_empty(), "neither a test nor a reason for: {empty:#?}");
    assert!(missing.is_empty(), "never reached in the last night's run ('make nightly', for longer): {missing:#?}");
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == made, "docs/faults.md is not what the tests say: run this test with DRUMLIN_WRITE_DOCS=1");
}
