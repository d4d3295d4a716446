//! Style as a test: the layers and their order, files that use each other, types of one name, a header in each file, file
//! sizes, meaningless names.

#[path = "tidy/api.rs"]
mod api;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/faults.rs"]
mod faults;
#[path = "tidy/pairs.rs"]
mod pairs;
#[path = "tidy/types.rs"]
mod types;
#[path = "tidy/words.rs"]
mod words;

use std::path::{Path, PathBuf};

/// From bottom to top. A layer uses only itself and those before it.
const LAYERS: [&str; 12] = [
    "base",
    "storage",
    "log",
    "segment",
    "filter",
    "aggregate",
    "block",
    "memtable",
    "table",
    "join",
    "catalog",
    "store",
];

/// The maximum length of a file, in Rust and Python, tests too.
const LINES_MAX: usize = 600;
/// Of the files of the core, at most one in as many is longer than `LONG_LINES`.
const LONG_SHARE: usize = 10;
const LONG_LINES: usize = 400;

const FUNCTION_LINES_MAX: usize = 90;
/// The maximum number of files in a folder of the core or of the Python package.
const FOLDER_FILES_MAX: usize = 15;
const EMPTY_NAMES: [&str; 5] = ["utils", "util", "common", "helpers", "manager"];

/// The files below `folder` with one of `extensions`, in order.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|known| e == *known)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    files(folder, &["rs"])
}

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    ["crates/drumlin", "crates/drumlin-c-data", "crates/drumlin-cli", "crates/drumlin-ui", "fuzz/src", "python/src"]
        .iter()
        .flat_map(|folder| sources(&root.join(folder)))
        .collect()
}

#[test]
fn what_the_compiler_cannot_check_is_in_one_file() {
    let allows = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains("allow(unsafe_code)");
    let files: Vec<PathBuf> = sources(&core()).into_iter().filter(allows).collect();
    assert_eq!(files, [core().join("memtable/raw.rs")]);
}

#[test]
fn layers_use_lower_layers_only() {
    let mut wrong = Vec::new();
    for file in sources(&core()) {
        let inside = file.strip_prefix(core()).unwrap();
        let layer = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let Some(level) = LAYERS.iter().position(|l| *l == layer) else {
            assert_eq!(layer, "lib", "{} is in no layer", inside.display());
            continue;
        };
        for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for used in code.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if LAYERS.iter().position(|l| *l == used).is_some_and(|used| used > level) {
                    wrong.push(format!("{}:{}: {layer} uses {used}", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_library_lists_every_layer() {
    let lib = std::fs::read_to_string(core().join("lib.rs")).unwrap();
    for layer in LAYERS {
        assert!(lib.contains(&format!("pub mod {layer};")), "lib.rs lacks {layer}");
    }
    // What the public API has beside the types at its root.
    let rooms = ["arrays", "payload", "embedding", "prelude"];
    assert!(rooms.iter().all(|room| lib.contains(&format!("pub mod {room} {{"))));
    let modules = lib.matches("\npub mod ").count();
    assert_eq!(modules, LAYERS.len() + rooms.len(), "lib.rs has a module that is no layer");
}

/// The layers are public for tests alone (feature `internals`); users have what the crate itself names.
#[test]
fn programs_use_the_public_api_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for folder in
        ["crates/drumlin/examples", "crates/drumlin-c-data", "crates/drumlin-cli", "crates/drumlin-ui", "python/src"]
    {
        for file in sources(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            // Builds with the tests open the layers; others refuse this anyway.
            let names = |layer: &&&str| [format!("drumlin::{layer}::"), format!("drumlin::{layer};")];
            let used = LAYERS.iter().find(|layer| names(layer).iter().any(|name| text.contains(name)));
            assert_eq!(used, None, "{} uses a layer; what it needs of it, other programs need too", file.display());
        }
    }
}

#[test]
fn folders_hold_what_one_can_look_over() {
    let mut counts = std::collections::BTreeMap::<PathBuf, usize>::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let tests = sources(&root.join("crates/drumlin/tests/it"));
    for file in sources(&core()).into_iter().chain(tests).chain(files(&root.join("python/drumlin"), &["py", "pyi"])) {
        *counts.entry(file.parent().unwrap().to_owned()).or_default() += 1;
    }
    let full: Vec<_> = counts.into_iter().filter(|(_, files)| *files > FOLDER_FILES_MAX).collect();
    assert_eq!(full, [], "give folders to what belongs together, and say in their mod.rs what lives there");
}

/// Functions that are tables of cases.
const CASES: [&str; 1] = ["apply_effect"];

/// `0..9` was meant by `..9` of a type with a sign, which begins at the type's minimum: rows that a filter never finds.
#[test]
fn random_numbers_with_a_sign_say_where_they_begin() {
    let mut wrong = Vec::new();
    for file in crates() {
        let text = std::fs::read_to_string(&file).unwrap();
        for kind in ["i8", "i16", "i32", "i64", "i128", "isize"] {
            let draw = format!(".{kind}(..");
            let draws = text.match_indices(&draw).map(|(at, found)| &text[at + found.len()..]);
            let ended = draws.filter(|rest| !rest.starts_with(')'));
            wrong.extend(ended.map(|rest| format!("{}: .{kind}(..{}", file.display(), &rest[..rest.len().min(9)])));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn functions_are_not_too_long() {
    let mut wrong = Vec::new();
    for file in crates()
        .into_iter()
        .filter(|file| !file.components().any(|c| c.as_os_str().to_str().unwrap().starts_with("tests")))
    {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let body = line.trim_start();
            let indent = &line[..line.len() - body.len()];
            let Some(name) = function(body) else { continue };
            let end = format!("{indent}}}");
            let Some(length) = lines[start..].iter().position(|line| *line == end) else { continue };
            if length >= FUNCTION_LINES_MAX && !CASES.contains(&name) {
                wrong.push(format!("{}:{}: {name} has {} lines", file.display(), start + 1, length + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "at most {FUNCTION_LINES_MAX} lines:\n{}", wrong.join("\n"));
}

/// The name of the function whose body begins after a line.
fn function(line: &str) -> Option<&str> {
    let words = ["pub ", "pub(super) ", "pub(crate) ", "const ", "async ", "unsafe "];
    let mut rest = line;
    while let Some(word) = words.iter().find(|word| rest.starts_with(**word)) {
        rest = &rest[word.len()..];
    }
    rest.strip_prefix("fn ").filter(|_| !line.ends_with(';'))?.split(['(', '<']).next()
}

#[test]
fn few_files_of_the_core_are_long() {
    let files = sources(&core());
    let is_long = |file: &&PathBuf| std::fs::read_to_string(file).unwrap().lines().count() > LONG_LINES;
    let long: Vec<&PathBuf> = files.iter().filter(is_long).collect();
    assert!(long.len() * LONG_SHARE <= files.len(), "{} of {} files are long: {long:#?}", long.len(), files.len());
}

#[test]
fn every_file_says_what_it_is_and_is_not_too_long() {
    let mut wrong = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = ["python/drumlin", "python/tests", "bench", "examples"];
    for file in crates().into_iter().chain(python.iter().flat_map(|folder| files(&root.join(folder), &["py", "pyi"]))) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines, at most {LINES_MAX}", file.display()));
        }
    }
    for file in crates() {
        let text = std::fs::read_to_string(&file).unwrap();
        if !text.starts_with("//!") {
            wrong.push(format!("{}: does not begin with '//!'", file.display()));
        }
        let stem = file.file_stem().unwrap().to_str().unwrap();
        if EMPTY_NAMES.contains(&stem) {
            wrong.push(format!("{}: a name that says nothing", file.display()));
        }
        for (number, line) in text.lines().enumerate() {
            let stub = ["todo!(", "unimplemented!(", "dbg!("].into_iter().find(|stub| line.contains(stub));
            if let Some(stub) = stub.filter(|_| stem != "tidy") {
                wrong.push(format!("{}:{}: {stub}", file.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
