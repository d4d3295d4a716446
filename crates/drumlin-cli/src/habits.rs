//! Words of other programs, and what one types here: messages about commands and options that there are not have the line.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A line to type, and commands by which people know it.
const COMMANDS: &str = "
cat STORE TABLE: show view print dump select scan read peek type more less
cat STORE TABLE --tail 5: tail
cat STORE TABLE --head 5: take first
schema STORE TABLE: describe desc columns dtypes
stat STORE TABLE: count wc size du
ls STORE: tables list dir list_symbols show-tables keys lsl
history STORE: log commits reflog
sql STORE 'select * from table': query select-from execute exec shell repl psql console duckdb open connect grep
import STORE FILE --table PATH: add load read-csv create new init insert-file ingest write
import STORE FILE --append --table PATH: append
export STORE TABLE FILE: save backup-table download
sql STORE \"insert into table values (...)\": insert upsert merge
drop STORE TABLE: del remove unlink rmdir
put STORE PATH VALUE: set edit config
get STORE PATH: lookup find fetch
move STORE FROM TO: rename mv ren
copy STORE FROM TO: cp duplicate fork
copy-to STORE OTHER: backup sync push mirror rsync
restore STORE TABLE VERSION, which makes an old version the newest: checkout undo reset revert rollback
undrop STORE TABLE: undelete
snapshot create STORE NAME: tag label
verify STORE: check fsck validate
checkpoint STORE, which compacts, and reclaim STORE, which frees space: compact optimize defragment flush analyze
reclaim STORE, which frees the space of what is gone: gc cleanup expire
delete-versions STORE TABLE VERSIONS, or retention STORE PATTERN --keep-last 1: prune truncate-history delete-version
watch STORE: monitor subscribe events tail-log
drumlin --version: version ver
completions bash|zsh|fish: completion complete autocomplete
ui STORE: gui web serve browse dashboard
doctor STORE: diagnose test ping
update STORE TABLE --set COLUMN=VALUE: modify replace
alter STORE TABLE: rename-column add-column drop-column
";

/// The command, options as people know them, and what is typed here. A star stands for all commands.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("import", &["--to", "--name", "--as", "--into", "--target"], "--table PATH"),
    ("import", &["--primary-key", "--pk"], "--key COLUMN"),
    ("import", &["--recursive", "--glob"], "the files by name: DIR/*.csv"),
    ("*", &["--json", "--ndjson"], "--format json"),
    ("*", &["--csv"], "--format csv"),
    ("*", &["--output", "--out"], "> FILE"),
    ("*", &["--version", "--at", "--rev", "--snapshot"], "--as-of VERSION"),
    ("*", &["--filter", "--query", "--predicate"], "--where 'PREDICATE'"),
    ("*", &["--select", "--fields", "--cols"], "--columns a,b"),
    ("*", &["--order-by", "--sort", "--group-by", "--offset", "--count"], "drumlin sql STORE 'select ...'"),
    ("*", &["--limit", "--rows", "--lines"], "--head N"),
    ("*", &["--all", "--long", "--recursive", "--verbose", "--quiet", "--human-readable"], "nothing: leave it out"),
    ("drop", &["--if-exists", "--force", "--missing-ok"], "--missing ignore"),
    ("retention", &["--keep", "--last"], "--keep-last N"),
    ("delete-versions", &["--before", "--keep", "--older-than"], "versions as 1 2..5 7.., or drumlin retention"),
    ("diff", &["--from", "--to"], "the versions one after the other: diff STORE TABLE 3 5"),
    ("put", &["--file", "--stdin"], "the value as JSON; or import for files"),
    ("*", &["--store", "--database", "--db", "--path"], "the store directly after the command: cat STORE TABLE"),
];

/// What one types instead of what caused an error of arguments.
fn line(error: &clap::Error, command: &str) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand)?;
            if command == "snapshot" {
                return Some("drumlin snapshot create STORE NAME, list STORE, or drop STORE NAME".to_owned());
            }
            if Path::new(word).is_dir() {
                return Some(format!("drumlin ls {word}, or drumlin sql {word}"));
            }
            let mut lines = COMMANDS.lines().filter_map(|line| line.rsplit_once(": "));
            let known = |(_, words): &(&str, &str)| words.split(' ').any(|other| other.eq_ignore_ascii_case(word));
            let (line, _) = lines.find(known)?;
            Some(if line.starts_with("drumlin") { line.to_owned() } else { format!("drumlin {line}") })
        }
        ErrorKind::UnknownArgument => {
            let argument = text(ContextKind::InvalidArg)?.split('=').next()?;
            let known = |(of, options, _): &&(&str, &[&str], &str)| {
                (*of == "*" || *of == command) && options.contains(&argument)
            };
            Some(OPTIONS.iter().find(known)?.2.to_owned())
        }
        _ => None,
    }
}

/// The text of an error of the arguments of `command`, with the line to type where it is known.
pub fn explained(mut error: clap::Error, command: &str) -> String {
    let line = line(&error, command);
    if line.is_some() {
        // What only looks alike would lead elsewhere.
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
    }
    if let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand) {
        let shown: Vec<String> = similar.iter().filter(|name| !name.starts_with('_')).cloned().collect();
        match shown.is_empty() {
            true => error.remove(ContextKind::SuggestedSubcommand),
            false => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown)),
        };
    }
    // That a name may be a value, which it hardly ever is.
    error.remove(ContextKind::Suggested);
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    match (line, text.split_once("\n\n")) {
        (Some(line), Some((what, rest))) => format!("{what}; here: {line}\n\n{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use crate::Arguments;

    #[test]
    fn lines_name_commands_that_there_are_and_words_those_that_there_are_not() {
        let command = Arguments::command();
        let own: BTreeSet<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
        let mut seen = BTreeSet::new();
        for (line, words) in super::COMMANDS.lines().filter_map(|line| line.rsplit_once(": ")) {
            let first = line.split(' ').next().unwrap();
            assert!(own.contains(first) || first == "drumlin", "{line}");
            let options =
                line.split([' ', ',']).filter_map(|word| word.strip_prefix("--")).filter(|_| first != "drumlin");
            for option in options {
                let known = |name: &str| {
                    let command = command.find_subcommand(name);
                    command.is_some_and(|command| command.get_arguments().any(|one| one.get_long() == Some(option)))
                };
                // A second command of the line may have it.
                assert!(line.split(' ').any(known), "{line}: --{option}");
            }
            for word in words.split(' ') {
                assert!(!own.contains(word) && seen.insert(word), "{word}");
            }
        }
        for (of, ..) in super::OPTIONS {
            assert!(*of == "*" || own.contains(of), "{of}");
        }
    }
}
