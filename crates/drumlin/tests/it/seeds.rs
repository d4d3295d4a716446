//! Seeds of random tests: some are fixed, so that what was found once stays found, and some are new in each run.
//!
//! `DRUMLIN_SEED` replaces both: the test then begins with that seed, and runs as many as `DRUMLIN_ROUNDS` says, or one. A
//! failure names its seed and the command that runs it again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: no number")))
}

/// The first of the new seeds of this run: the same for all tests.
fn fresh() -> u64 {
    static FIRST: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    // Beyond all fixed seeds, and short enough to type. Tests that use a seed's remainder get every value.
    *FIRST.get_or_init(|| {
        // The standard library's hashers are seeded by the system.
        let first = 1_000_000 + RandomState::new().build_hasher().finish() % 1_000_000_000;
        println!("new seeds from {first}");
        first
    })
}

/// The seeds of a test: those of `fixed`, then `new` ones. With `DRUMLIN_ROUNDS`, as many new ones as that says.
pub fn list(fixed: Range<u64>, new: u64) -> Vec<u64> {
    match (number("DRUMLIN_SEED"), number("DRUMLIN_ROUNDS")) {
        (Some(first), rounds) => (first..first + rounds.unwrap_or(1)).collect(),
        (None, rounds) => fixed.chain(fresh()..fresh() + rounds.unwrap_or(new)).collect(),
    }
}

/// Whether the seed was given, so that a test does less than usual.
pub fn given() -> bool {
    number("DRUMLIN_SEED").is_some()
}

/// Runs `work` for each seed of [`list`]. `work` must be a closure of the test itself, from which the test's name is
/// taken.
pub fn each<W: FnMut(u64)>(fixed: Range<u64>, new: u64, mut work: W) {
    let (binary, test) = std::any::type_name::<W>().split_once("::").expect("a closure has a path");
    let test = test.trim_end_matches("::{{closure}}");
    for seed in list(fixed, new) {
        if given() {
            // So that it is known even if the process ends.
            println!("seed {seed}");
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(seed))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            panic!("{text}\nseed {seed}; to run it again: {}", command(binary, test, seed));
        }
    }
}

/// The command that runs a seed of a test again.
pub fn command(binary: &str, test: &str, seed: u64) -> String {
    let build = "cargo test --release --workspace --features drumlin/planted-bugs";
    format!("DRUMLIN_SEED={seed} {build} --test {binary} -- --exact {test}")
}

#[test]
fn a_failure_names_its_seed_and_how_to_run_it_again() {
    if given() || number("DRUMLIN_ROUNDS").is_some() {
        return;
    }
    let failed = catch_unwind(|| each(0..10, 2, |seed| assert!(seed != 7, "seven is wrong"))).unwrap_err();
    let text = failed.downcast_ref::<String>().unwrap();
    for words in
        ["seven is wrong", "DRUMLIN_SEED=7 ", "--exact seeds::a_failure_names_its_seed_and_how_to_run_it_again"]
    {
        assert!(text.contains(words), "{text}");
    }
    let mut seen = Vec::new();
    each(3..5, 2, |seed| seen.push(seed));
    assert_eq!((seen.len(), &seen[..2]), (4, &[3, 4][..]));
    assert_eq!(seen[3], seen[2] + 1);
}

/// How many rounds a test with its own rounds runs: `default`, or the value of `DRUMLIN_ROUNDS` in the environment.
pub fn rounds(default: u64) -> u64 {
    number("DRUMLIN_ROUNDS").unwrap_or(default)
}
