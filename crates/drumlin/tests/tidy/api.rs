//! Counts the public API: few methods on a store, and few places in which an operation is declared.
//!
//! An operation is declared in the core (`crates/drumlin/src/store`), in the binding (`python/src`), in its stub
//! (`python/drumlin/_drumlin/__init__.pyi`) and in the Python package: once in each, for both the store and the transaction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{core, sources};

/// The maximum number of methods of a store, in Rust and in Python, including those shared with a transaction.
const STORE_METHODS_MAX: usize = 45;
/// The number of layers in which an operation is declared.
const DECLARATIONS_MAX: usize = 4;
/// The nouns of the API.
const NOUNS: [&str; 5] = ["Store", "Tables", "Table", "Tree", "Transaction"];

fn python(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python").join(folder)
}

/// The public functions within blocks that begin with one of `heads`, such as `impl Store {`.
fn functions(files: &[PathBuf], heads: &[String], begins: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let mut inside = false;
        for line in text.lines() {
            if heads.iter().any(|head| line.starts_with(head.as_str())) {
                inside = true;
            } else if inside && !line.is_empty() && !line.starts_with([' ', ')']) {
                inside = false;
            }
            let name = begins.iter().find_map(|begin| line.strip_prefix(begin)).filter(|_| inside);
            let name =
                name.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>());
            found.extend(name);
        }
    }
    found
}

fn core_functions(noun: &str) -> Vec<String> {
    let files = sources(&core().join("store"));
    match noun {
        "Tables" => functions(&files, &["pub trait Tables".to_owned()], &["    fn "]),
        _ => functions(&files, &[format!("impl {noun} {{")], &["    pub fn "]),
    }
}

/// The properties of Python classes, which are no methods.
fn properties(files: &[PathBuf]) -> Vec<String> {
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].trim() == "@property");
    pairs.filter_map(|pair| Some(pair[1].trim().strip_prefix("def ")?.split('(').next()?.to_owned())).collect()
}

/// Methods and properties of a Python class; overloads count once.
fn class_methods(files: &[PathBuf], noun: &str) -> Vec<String> {
    let heads = [format!("class {noun}("), format!("class {noun}:")];
    let mut found = functions(files, &heads, &["    def "]);
    found.retain(|name| !name.starts_with('_'));
    found.sort();
    found.dedup();
    found
}

fn package() -> Vec<PathBuf> {
    ["store.py", "tables.py", "table.py", "tree.py", "transaction.py"]
        .iter()
        .map(|file| python("drumlin/_nouns").join(file))
        .collect()
}

#[test]
fn a_store_has_few_methods() {
    let hidden = ["place", "numbered"];
    // What makes a store is no method of one.
    let makes = ["open", "open_with", "memory"];
    let rust = core_functions("Store").iter().filter(|name| !makes.contains(&name.as_str())).count()
        + core_functions("Tables").iter().filter(|name| !hidden.contains(&name.as_str())).count();
    assert!(rust <= STORE_METHODS_MAX, "Store has {rust} public functions in Rust, at most {STORE_METHODS_MAX}");
    let attributes = properties(&package());
    let names = ["Store", "Tables"].into_iter().flat_map(|noun| class_methods(&package(), noun));
    let in_python = names.filter(|name| !attributes.contains(name)).count();
    assert!(in_python > 20 && in_python <= STORE_METHODS_MAX, "Store has {in_python} public methods in Python");
}

#[test]
fn an_operation_is_declared_four_times_at_most() {
    let stub = [python("drumlin/_drumlin/__init__.pyi")];
    let binding = sources(&python("src"));
    let mut wrong = Vec::new();
    let mut operations = 0;
    for noun in NOUNS {
        let declared = class_methods(&stub, noun);
        let mut counts: BTreeMap<&str, usize> = declared.iter().map(|name| (name.as_str(), 0)).collect();
        let bound = functions(&binding, &[format!("impl {noun} {{")], &["    fn ", "    pub fn "]);
        for floor in [core_functions(noun), bound, declared.clone(), class_methods(&package(), noun)] {
            for name in &floor {
                // Python needs the name `import_`, Rust uses `import`.
                let name = if name == "import" { "import_" } else { name.as_str() };
                if let Some(count) = counts.get_mut(name) {
                    *count += 1;
                }
            }
        }
        operations += counts.len();
        let too_often = counts.into_iter().filter(|(_, count)| *count > DECLARATIONS_MAX);
        wrong.extend(too_often.map(|(name, count)| format!("{noun}.{name} is declared {count} times")));
    }
    assert!(operations > 80, "only {operations} operations were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
