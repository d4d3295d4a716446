//! One noun, one type: no two types of the core have one name, whatever modules they are in.
//!
//! Types are structs, enums, traits, unions and aliases, of files and of modules in them. Unit tests, and what is defined
//! within functions, do not count.

use std::collections::BTreeMap;
use std::path::Path;

use super::{core, sources};

/// Names that several types have nevertheless, and why each is the best for all of them.
const SHARED: [(&str, &str); 0] = [];

#[test]
fn no_two_types_have_one_name() {
    let core = core();
    let mut texts = Vec::new();
    for file in sources(&core) {
        let inside = file.strip_prefix(&core).unwrap();
        if !is_test(inside) {
            texts.push((inside.display().to_string(), std::fs::read_to_string(&file).unwrap()));
        }
    }
    let wrong = complaints(&texts, &SHARED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_test(file: &Path) -> bool {
    file.with_extension("").components().any(|part| part.as_os_str() == "tests")
}

/// What is wrong in files, which are given by name and text.
fn complaints(files: &[(String, String)], shared: &[(&str, &str)]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, text) in files {
        for (line, name) in types(text) {
            places.entry(name).or_default().push(format!("{file}:{line}"));
        }
    }
    places.retain(|_, places| places.len() > 1);
    let is_shared = |name: &str| shared.iter().any(|(known, _)| *known == name);
    let twice = places.iter().filter(|(name, _)| !is_shared(name));
    let twice = twice.map(|(name, places)| format!("{name} is the name of several types: {}", places.join(", ")));
    let stale = shared.iter().filter(|(name, _)| !places.contains_key(name));
    twice.chain(stale.map(|(name, _)| format!("{name} is in SHARED, but is not the name of several types"))).collect()
}

/// The types that a file defines, each with its line.
fn types(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut column) = (Vec::new(), 0);
    for (at, line) in text.lines().take_while(|line| *line != "mod tests {").enumerate() {
        let body = line.trim_start();
        // What a module defines stands four columns to the right of its name, and all below that further to the right.
        match line.len() - body.len() {
            indent if body == "}" && indent + 4 == column => column = indent,
            indent if indent == column => {}
            _ => continue,
        }
        let visibility = |word: &&str| word.starts_with("pub") || word.ends_with(')') || *word == "unsafe";
        let mut words = body.split_whitespace().skip_while(visibility);
        match (words.next(), words.next()) {
            (Some("mod"), Some(_)) if body.ends_with('{') => column += 4,
            (Some("struct" | "enum" | "trait" | "union" | "type"), Some(rest)) => {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                found.push((at + 1, name));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn types_of_one_name_are_noticed() {
    let a = "struct A<T>(T);\npub mod b {\n    pub(in crate::x) enum B {\n    }\n}\ntype C = u8;\nunion D {\n}";
    let found = |b: &str, shared: &[(&str, &str)]| {
        complaints(&[("a.rs".to_owned(), a.to_owned()), ("b.rs".to_owned(), b.to_owned())], shared)
    };
    for (b, name, line) in [
        ("\npub(crate) type A;", "A", 1),
        ("\npub trait B: C {", "B", 3),
        ("\npub(super) unsafe trait C {", "C", 6),
        ("mod c {\nstruct D;", "D", 7),
    ] {
        let b = b.replace("\nstruct", "\n    struct");
        assert_eq!(found(&b, &[]), [format!("{name} is the name of several types: a.rs:{line}, b.rs:2")], "{b}");
        assert_eq!(found(&b, &[(name, "a reason")]), [""; 0], "{b}");
    }
    for none in [
        "impl Iterator for X {\n    type A = u8;\n}",
        "fn f() {\n    struct A;\n}",
        "mod tests {\n    struct A;\n}",
        "use x::A;\n// struct A;\nmod b {\n    fn f() {\n        enum B {}\n    }\n}",
    ] {
        assert_eq!(found(none, &[]), [""; 0], "{none}");
    }
    assert_eq!(found("", &[("A", "a reason")]), ["A is in SHARED, but is not the name of several types"]);
}
