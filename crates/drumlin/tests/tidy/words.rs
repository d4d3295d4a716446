//! Words that make a native reader stumble, refused in what users and newcomers read (the pages, the package, the command
//! line), and in all comments.

use std::path::{Path, PathBuf};

use super::files;

/// What to write instead.
const BANNED: [(&str, &str); 9] = [
    (" anew", "again"),
    ("so many ", "the number, or `N`"),
    ("let go of", "released"),
    ("rests on", "depends on, is based on"),
    ("whoever", "the process, thread or caller that"),
    (" meanwhile", "in between, during the call"),
    ("behind the other", "after the other"),
    ("but for ", "except"),
    ("is told", "gets, is called, sees"),
];

#[test]
fn what_users_read_is_plain_english() {
    let root = root();
    let mut read: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|page| root.join(page))
        .collect();
    read.extend(files(&root.join("docs"), &["md"]));
    read.extend(files(&root.join("python/drumlin"), &["py", "pyi"]));
    read.extend(files(&root.join("crates/drumlin-cli/src"), &["rs"]));
    read.extend(files(&root.join("crates/drumlin/examples"), &["rs"]));
    // Names of tests are not prose.
    let prose = |line: &str| if line.contains("](../") { String::new() } else { text(line) };
    let wrong: Vec<String> = read.iter().flat_map(|file| complaints(file, prose)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comments_are_plain_english() {
    let root = root();
    let mut wrong = Vec::new();
    for folder in ["bench", "crates", "examples", "fuzz/src", "interleavings/src", "python"] {
        for file in files(&root.join(folder), &["rs", "py"]).iter().filter(|file| !is_built(file)) {
            match file.extension().is_some_and(|e| e == "rs") {
                true => wrong.extend(complaints(file, comment)),
                // All lines, for the docstrings.
                false => wrong.extend(complaints(file, text)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn identifiers_are_plain_english() {
    let root = root();
    let mut wrong = Vec::new();
    for folder in ["bench", "crates", "examples", "fuzz/src", "interleavings/src", "python"] {
        for file in files(&root.join(folder), &["rs", "py", "pyi"]) {
            // This file names the words.
            if !is_built(&file) && !file.ends_with("tidy/words.rs") {
                wrong.extend(complaints(&file, identifiers));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Whether a build made the file.
fn is_built(file: &Path) -> bool {
    let inside = file.strip_prefix(root()).unwrap_or(file);
    inside.components().any(|folder| folder.as_os_str() == "target")
}

/// The banned words of a file, in what `prose` makes of its lines.
fn complaints(file: &Path, prose: impl Fn(&str) -> String) -> Vec<String> {
    let place = file.strip_prefix(root()).unwrap_or(file).display();
    let found = banned_in(&std::fs::read_to_string(file).unwrap(), prose);
    found.iter().map(|(line, banned, instead)| format!("{place}:{line}: '{banned}'; write: {instead}")).collect()
}

/// The banned words in what `prose` makes of the lines of `text`, each with the number of its first line and what to write
/// instead. A line may end within them.
fn banned_in(text: &str, prose: impl Fn(&str) -> String) -> Vec<(usize, &'static str, &'static str)> {
    let lines: Vec<String> = text.lines().map(prose).chain([String::new()]).collect();
    let mut found = Vec::new();
    for (at, pair) in lines.windows(2).enumerate() {
        let (both, next) = (format!(" {} {} ", pair[0], pair[1]), format!(" {} ", pair[1]));
        // What is in the next line alone is found there.
        for (banned, instead) in BANNED.iter().filter(|(banned, _)| both.contains(banned) && !next.contains(banned)) {
            found.push((at + 1, banned.trim(), *instead));
        }
    }
    found
}

/// A line in lower case, without the marks of a comment.
fn text(line: &str) -> String {
    line.trim().trim_start_matches(['/', '!', '#']).trim_start().to_lowercase()
}

/// The comment in a line of Rust; empty if there is none.
fn comment(line: &str) -> String {
    let line = line.trim_start();
    match line.split_once(" // ") {
        _ if line.starts_with("//") => text(line),
        Some((_, comment)) => text(comment),
        None => String::new(),
    }
}

/// The words of the identifiers in a line, each identifier a phrase of its own.
fn identifiers(line: &str) -> String {
    let mut phrases = String::new();
    for identifier in line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
        let mut before = '_';
        for c in identifier.chars() {
            match c {
                '_' => phrases.push(' '),
                c if c.is_uppercase() && before.is_lowercase() => phrases.extend([' ', c]),
                c => phrases.push(c),
            }
            before = c;
        }
        phrases.push_str(" | ");
    }
    phrases.to_lowercase()
}

#[test]
fn banned_words_are_found_in_identifiers() {
    let found = |text: &str| !banned_in(text, identifiers).is_empty();
    assert!(found(concat!("fn let_", "go_of_inline(&self) {")) && found(concat!("Bug::Retry", "Anew")));
    assert!(found(concat!("what_", "rests_on(it)")) && !found("let rests = on;"));
}

#[test]
fn banned_words_are_found_in_comments_only() {
    let lines = |text: &str| banned_in(text, comment).iter().map(|(line, ..)| *line).collect::<Vec<usize>>();
    assert_eq!(lines(concat!("/// It rests\n/// on this.\nlet n = 1; //", " Whoever reads.")), [1, 3]);
    assert!(lines("let anew = open(\"memory://\");\n/// It rests\nlet on = 1;").is_empty());
}
