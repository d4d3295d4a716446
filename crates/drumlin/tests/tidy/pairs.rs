//! The part of `docs/faults.md` that a night's run makes: how often each operation followed each other, and its figures.
//!
//! `tests/it/models/swarm.rs` counts, `python/tests/nightly` adds up and writes the files that are read here. A pair that was never reached
//! fails this test: then the operations that `swarm` draws have a hole, or a verb is new and no night has passed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[path = "../it/models/verbs.rs"]
mod verbs;

use verbs::{KINDS, LIES, Needs, STORAGES, VERBS};

/// Where a night's run leaves what it counted, from the root.
pub const COUNTS: &str = "crates/drumlin/tests/nightly/pairs.txt";
/// Its other figures, a line each: what, a colon, and how much.
pub const FIGURES: &str = "crates/drumlin/tests/nightly/figures.txt";

/// Those after which there is no table at the path.
const ENDS: [&str; 2] = ["drop", "move"];

const COLUMNS: usize = KINDS.len() + LIES.len() + STORAGES.len();

/// What was counted of a pair.
#[derive(Clone, Debug, Default)]
struct Counts {
    done: u64,
    refused: u64,
    /// By kind, by where rows lay, and by storage.
    columns: Vec<u64>,
    /// How many operations were done after both.
    thirds: u64,
}

type Pairs = BTreeMap<(String, String), Counts>;

fn parsed(text: &str) -> Pairs {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.len(), 5 + COLUMNS, "{COUNTS}: '{line}'");
        let numbers: Vec<u64> = words[2..].iter().map(|word| word.parse().expect("a number")).collect();
        let columns = numbers[2..2 + COLUMNS].to_vec();
        let counts = Counts { done: numbers[0], refused: numbers[1], columns, thirds: numbers[2 + COLUMNS] };
        ((words[0].to_owned(), words[1].to_owned()), counts)
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

/// Whether `second` can be done to a table after `first`; else it can only be refused.
fn can_follow(first: &str, second: &str) -> bool {
    let needs = |verb: &str| VERBS.iter().find(|(known, _)| *known == verb).expect("a verb of the list").1;
    match needs(second) {
        Needs::Nothing => true,
        Needs::Table => !ENDS.contains(&first),
        // Nothing is left to be taken back.
        Needs::Absence if second == "undrop" && ["reclaim", "audit"].contains(&first) => false,
        // After what needs a table, it is there, unless that was its end.
        Needs::Absence => ENDS.contains(&first) || needs(first) == Needs::Nothing,
    }
}

/// A count in few characters.
fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// Whether an operation cannot meet what a column says.
fn cannot(verb: &str, needs: Needs, column: usize) -> bool {
    let by_key = ["upsert", "insert", "delete_keys", "increment", "compare_and_set"].contains(&verb);
    // Without a table there is no kind, and no row.
    let absent = needs == Needs::Absence && column < KINDS.len() + LIES.len();
    absent || by_key && column < 2 || verb == "replace" && column == 0
}

/// The part of the page, and what was not reached.
pub fn part(counts: &str, figures: &str) -> (String, Vec<String>) {
    let (pairs, none) = (parsed(counts), Counts { columns: vec![0; COLUMNS], ..Counts::default() });
    let of = |first: &str, second: &str| pairs.get(&(first.to_owned(), second.to_owned())).unwrap_or(&none);
    let mut missing = Vec::new();
    let mut page = String::from(
        "\n## Pairs\n\n\
         How often `tests/it/models/swarm.rs` did the operation of a column to a table right after that of a row, in the last night's run: \
         `make nightly`. In brackets where the table is gone then, and it can only be refused.\n\n| |",
    );
    VERBS.iter().for_each(|(verb, _)| write!(page, " {verb} |").unwrap());
    page.push_str("\n|---|");
    VERBS.iter().for_each(|_| page.push_str("---|"));
    for (first, _) in VERBS {
        write!(page, "\n| **{first}** |").unwrap();
        for (second, _) in VERBS {
            let (found, can) = (of(first, second), can_follow(first, second));
            let count = if can { found.done } else { found.done + found.refused };
            if count == 0 {
                missing.push(format!("{first}, then {second}"));
            }
            let shown = if can { short(count) } else { format!("({})", short(count)) };
            write!(page, " {shown} |").unwrap();
        }
    }
    page.push_str("\n\nBy the kind of the table before, by where its rows lay, and by storage:\n\n| |");
    let names = KINDS.iter().chain(&LIES).chain(&STORAGES);
    names.clone().for_each(|name| write!(page, " {name} |").unwrap());
    page.push_str(" refused |\n|---|");
    (0..=COLUMNS).for_each(|_| page.push_str("---|"));
    for (verb, needs) in VERBS {
        let all: Vec<&Counts> = VERBS.iter().map(|(first, _)| of(first, verb)).collect();
        write!(page, "\n| **{verb}** |").unwrap();
        for (column, name) in names.clone().enumerate() {
            let count: u64 = all.iter().map(|counts| counts.columns[column]).sum();
            if count == 0 && !cannot(verb, needs, column) {
                missing.push(format!("{verb}, {name}"));
            }
            write!(page, " {} |", if cannot(verb, needs, column) { "-".to_owned() } else { short(count) }).unwrap();
        }
        write!(page, " {} |", short(all.iter().map(|counts| counts.refused).sum())).unwrap();
    }
    let thirds: u64 = pairs.values().map(|counts| counts.thirds).sum();
    write!(page, "\n\nOf {} rows of three operations, {thirds} were reached.\n", VERBS.len().pow(3)).unwrap();
    page.push_str("\n## The last night\n\n`make nightly` runs what is random with new seeds, for hours, in two processes side by side.\n\n");
    for line in figures.lines() {
        let (what, much) = line.split_once(": ").unwrap_or_else(|| panic!("{FIGURES}: '{line}'"));
        writeln!(page, "- **{what}**: {much}").unwrap();
    }
    (page, missing)
}

/// The same, of the files of the last night.
pub fn of_last_night(root: &Path) -> (String, Vec<String>) {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    part(&read(COUNTS), &read(FIGURES))
}

#[test]
fn a_pair_that_was_never_reached_is_reported() {
    let line = |(first, second): (&str, &str)| format!("{first} {second} 7 1{}\n", " 1".repeat(COLUMNS + 1));
    let all = || VERBS.iter().flat_map(|(first, _)| VERBS.iter().map(move |(second, _)| (*first, *second)));
    let whole: String = all().map(line).collect();
    assert_eq!(part(&whole, "").1, Vec::<String>::new());
    let without: String = all().filter(|pair| *pair != ("upsert", "purging")).map(line).collect();
    assert_eq!(part(&without, "").1, ["upsert, then purging"]);
    // After a drop, a refusal is enough.
    let refused = |line: String| {
        line.replace("\ndrop append 7", "\ndrop append 0").replace("\nwrite append 7", "\nwrite append 0")
    };
    assert_eq!(part(&refused(whole), "").1, ["write, then append"]);
}
