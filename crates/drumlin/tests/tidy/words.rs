//! Words that make a native reader stumble, refused in what users and newcomers read: the pages, the package, the command line.

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut read: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|page| root.join(page))
        .collect();
    read.extend(files(&root.join("docs"), &["md"]));
    read.extend(files(&root.join("python/drumlin"), &["py", "pyi"]));
    read.extend(files(&root.join("crates/drumlin-cli/src"), &["rs"]));
    read.extend(files(&root.join("crates/drumlin/examples"), &["rs"]));
    let mut wrong = Vec::new();
    for file in read {
        let text = std::fs::read_to_string(&file).unwrap();
        // Names of tests are not prose.
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.contains("](../")) {
            let line = line.to_lowercase();
            for (banned, instead) in BANNED.iter().filter(|(banned, _)| line.contains(banned)) {
                let place = file.strip_prefix(&root).unwrap_or(&file).display();
                wrong.push(format!("{place}:{}: '{}'; write: {instead}", number + 1, banned.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
