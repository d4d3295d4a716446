//! What is looked at: first rows, facts about a table, rows by key, differences; and what shells complete.

use serde_json::json;

use crate::desk::Desk;

/// A store `s` with a keyed table `users`.
fn with_users() -> Desk {
    let desk = Desk::with_tables();
    desk.file("users.csv", "id,name\n1,ada\n-2,alan\n");
    desk.ok(&["import", "s", "users.csv", "--key", "id"]);
    desk
}

#[test]
fn the_first_rows_of_a_table() {
    let desk = Desk::with_tables();
    assert_eq!(desk.ok(&["head", "s", "a/x", "-n", "2"]), "n  name\n1  one\n2  two\n");
    assert_eq!(desk.ok(&["head", "s", "a/x", "-n", "1", "-c", "name", "-f", "json"]), "{\"name\":\"one\"}\n");
    desk.ok(&["delete", "s", "a/x", "--where", "n < 3"]);
    assert_eq!(desk.ok(&["head", "s", "a/x"]), "n  name\n3  three\n");
    assert_eq!(desk.ok(&["head", "s", "a/x", "--as-of", "-2", "-n", "1"]), "n  name\n1  one\n");
    desk.fails(1, &["head", "s", "a/z"], &["a/z"]);
}

#[test]
fn facts_about_a_table() {
    let desk = with_users();
    let text = desk.ok(&["info", "s", "users"]);
    for words in ["users\n2 rows", "key id", "column  type", "id      int64   no", "newest version"] {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
    desk.ok(&["alter", "s", "a/x", "--not-null", "n", "--check", "positive=n > 0"]);
    let text = desk.ok(&["info", "s", "a/x"]);
    assert!(text.contains("check positive: n > 0") && text.contains("n       int64   no"), "{text}");
    let facts = desk.json(&["info", "s", "a/x", "--json"]);
    assert_eq!((&facts["rows"], &facts["checks"]["positive"]), (&json!(3), &json!("n > 0")));
    assert_eq!(facts["columns"][1], json!({ "name": "name", "type": "string", "nullable": true, "default": null }));
    desk.fails(1, &["info", "s", "nothing"], &["nothing"]);
}

#[test]
fn a_row_by_its_key() {
    let desk = with_users();
    assert_eq!(desk.ok(&["get", "s", "users", "1"]), "{\"id\":1,\"name\":\"ada\"}\n");
    assert_eq!(desk.ok(&["get", "s", "users", "-2", "-f", "table"]), "id  name\n-2  alan\n");
    desk.fails(1, &["get", "s", "users", "3"], &["'users' has no row with the key 3"]);
    desk.fails(2, &["get", "s", "users", "x"], &["column 'id' of the key: 'x' is not a valid int64"]);
    desk.fails(2, &["get", "s", "users", "1", "2"], &["has 1 columns (id), not 2"]);
    desk.fails(1, &["get", "s", "a/x", "1"], &["a/x", "key"]);
    desk.fails(1, &["get", "s", "users"], &["drumlin get s users KEY"]);
}

#[test]
fn what_differs_between_versions() {
    let desk = with_users();
    desk.ok(&["update", "s", "users", "--set", "name='Ada'", "--where", "id = 1"]);
    let rows = desk.ok(&["diff", "s", "users", "-2", "-1", "-f", "json"]);
    let lines: Vec<serde_json::Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| (line["_change"].as_str().unwrap(), line["name"].as_str().unwrap())).collect();
    assert_eq!(told, [("update_before", "ada"), ("update_after", "Ada")]);
    assert_eq!(desk.ok(&["diff", "s", "users", "-1", "-f", "csv"]), "id,name,_change,_version\n");
    assert!(desk.ok(&["diff", "s", "users", "1"]).contains("update_after"));
    desk.fails(1, &["diff", "s", "users", "9"], &["version 9"]);
}

#[test]
fn functions_in_filters() {
    let desk = Desk::with_tables();
    assert_eq!(desk.ok(&["cat", "s", "a/x", "--where", "length(name) = 5"]), "n  name\n3  three\n");
    assert_eq!(desk.ok(&["cat", "s", "a/x", "--where", "`n`::text = '1'"]), "n  name\n1  one\n");
    desk.fails(1, &["cat", "s", "a/x", "--where", "lenght(name) = 5"], &["did you mean length?"]);
}

#[test]
fn words_are_completed() {
    let desk = with_users();
    let offered = |words: &[&str]| -> Vec<String> {
        let all: Vec<&str> = ["__complete", "--", "drumlin"].iter().chain(words).copied().collect();
        desk.ok(&all).lines().map(str::to_owned).collect()
    };
    let commands = offered(&[""]);
    assert!(commands.contains(&"head".to_owned()) && !commands.contains(&"__complete".to_owned()), "{commands:?}");
    assert_eq!(offered(&["ver"]), ["versions", "verify"]);
    assert_eq!(offered(&["snapshot", "cr"]), ["create"]);
    // The names of files are the shell's.
    assert!(offered(&["cat", ""]).is_empty());
    assert_eq!(offered(&["cat", "s", ""]), ["a/", "b", "users"]);
    assert_eq!(offered(&["cat", "s", "a/"]), ["a/x", "a/y"]);
    assert_eq!(offered(&["cat", "s", "a/x", "--col"]), ["--columns"]);
    assert_eq!(offered(&["cat", "s", "a/x", "--columns", ""]), ["n", "name"]);
    assert_eq!(offered(&["cat", "s", "a/x", "-c", "n,"]), ["n,name"]);
    assert_eq!(offered(&["cat", "s", "a/x", "--format", "c"]), ["csv"]);
    assert_eq!(offered(&["drop", "s", "a/x", "a/"]), ["a/x", "a/y"]);
    assert!(offered(&["cat", "nowhere", ""]).is_empty());
    assert!(offered(&["nonsense", ""]).is_empty());
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.ok(&["completions", shell]).contains("__complete"));
    }
    desk.fails(2, &["completions", "cmd"], &["bash"]);
    // In a shell that there is.
    let script = "eval \"$($D completions bash)\"; drumlin() { \"$D\" \"$@\"; }; COMP_WORDS=(drumlin head s a/); COMP_CWORD=3; \
                  _drumlin; echo \"${COMPREPLY[@]}\"";
    let ran = desk.shell(&format!("bash -c '{}'", script.replace('\'', "'\\''")));
    assert_eq!(ran.ok(), "a/x a/y\n");
}

#[test]
fn sql_names_the_package_that_has_it() {
    Desk::with_tables().fails(1, &["sql", "s", "select 1"], &["pip install 'drumlin[duckdb]'"]);
}

#[test]
fn output_that_cannot_be_written_fails() {
    let desk = Desk::with_tables();
    for command in ["cat s a/x", "ls s", "info s a/x", "get s a/x"] {
        let ran = desk.shell(&format!("$D {command} > /dev/full"));
        assert_eq!(ran.code, Some(1), "{command}: {}", ran.err);
        assert!(ran.err.starts_with("drumlin: "), "{command}: {}", ran.err);
    }
    let ran = desk.shell("$D cat s a/x >&-");
    assert_eq!((ran.code, ran.err.contains("standard output is closed")), (Some(1), true), "{}", ran.err);
    assert_eq!(desk.shell("$D cat s a/x > /dev/null").ok(), "");
}
