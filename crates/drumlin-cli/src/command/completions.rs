//! `completions`: what makes a shell complete commands, options, tables and columns.
//!
//! The scripts ask this program itself, by a hidden command, so they never age. It answers from the declarations of the commands,
//! and from the store named on the line; what it cannot read has no completions.

use std::io::Write;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};
use drumlin::{Mode, Options, Store, Tables};

use crate::Arguments;
use crate::failure::Outcome;
use crate::output::Output;

/// The most names that are offered.
const OFFERED_MAX: usize = 500;

/// Shells that can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// For ~/.bashrc
    Bash,
    /// For ~/.zshrc, after compinit
    Zsh,
    /// For ~/.config/fish/completions/drumlin.fish
    Fish,
}

/// Print what makes a shell complete commands, options, tables and columns
#[derive(Args)]
#[command(after_help = "\
Example:
  source <(drumlin completions bash)
  drumlin completions fish > ~/.config/fish/completions/drumlin.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(self, out: &mut Output) -> Outcome {
        let script = match self.shell {
            Shell::Bash => {
                "_drumlin() {\n    local IFS=$'\\n'\n    COMPREPLY=($(drumlin __complete -- \
                 \"${COMP_WORDS[@]:0:COMP_CWORD+1}\" 2>/dev/null))\n}\ncomplete -o default -F _drumlin drumlin\n"
            }
            Shell::Zsh => {
                "_drumlin() {\n    local -a found\n    found=(\"${(@f)$(drumlin __complete -- \
                 \"${(@)words[1,CURRENT]}\" 2>/dev/null)}\")\n    found=(${found:#})\n    if (( $#found )); then compadd -- \
                 $found; else _files; fi\n}\ncompdef _drumlin drumlin\n"
            }
            Shell::Fish => {
                "complete -c drumlin -a '(drumlin __complete -- (commandline -opc) (commandline -ct) 2>/dev/null)'\n"
            }
        };
        Ok(out.write_all(script.as_bytes())?)
    }
}

/// Print the words that may stand in the place of the last of these
#[derive(Args)]
pub struct Complete {
    /// The words of the line so far, with that of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Complete {
    /// Prints one word a line.
    pub fn run(self, out: &mut Output) -> Outcome {
        for word in offered(&self.words) {
            // What would be two words, or two lines, is typed by hand.
            if !word.contains(|c: char| c.is_control() || c.is_whitespace()) {
                writeln!(out, "{word}")?;
            }
        }
        Ok(())
    }
}

fn offered(words: &[String]) -> Vec<String> {
    let Some((typed, before)) = words.get(1..).and_then(|words| words.split_last()) else { return Vec::new() };
    let mut command = Arguments::command();
    command.build();
    let mut before = before.iter();
    while command.has_subcommands() {
        let Some(word) = before.next() else {
            let names = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
            return beginning(typed, names.map(str::to_owned));
        };
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => return Vec::new(),
        }
    }
    // What has been given: positional words, and the option that waits for its value.
    let mut positional: Vec<&str> = Vec::new();
    let mut waits: Option<&Arg> = None;
    for word in before {
        match (waits.take(), option(&command, word)) {
            (Some(_), _) => {}
            (None, Some(found)) if found.get_action().takes_values() => waits = Some(found),
            (None, Some(_)) => {}
            (None, None) => positional.push(word),
        }
    }
    let store = positional.first().copied();
    if waits.is_none() && typed.starts_with('-') {
        let names = command.get_arguments().filter(|one| !one.is_hide_set()).filter_map(Arg::get_long);
        return beginning(typed, names.map(|name| format!("--{name}")));
    }
    let asked =
        waits.or_else(|| command.get_positionals().nth(positional.len()).or_else(|| command.get_positionals().last()));
    let Some(asked) = asked else { return Vec::new() };
    let values = asked.get_possible_values();
    if !values.is_empty() && asked.get_action().takes_values() {
        return beginning(typed, values.iter().map(|value| value.get_name().to_owned()));
    }
    match (asked.get_id().as_str(), store) {
        // The shell completes the names of files.
        ("uri", _) | (_, None) => Vec::new(),
        ("columns" | "column" | "sort" | "key", Some(store)) => columns(store, positional.get(1), typed),
        ("as_of" | "since" | "until", Some(store)) => snapshots(store, typed),
        (name, Some(store)) if is_path(name) => paths(store, typed),
        _ => Vec::new(),
    }
}

/// Names of arguments that take a table or a node.
fn is_path(name: &str) -> bool {
    ["table", "tables", "path", "paths", "pattern", "patterns", "node", "from", "under"].contains(&name)
}

/// The option of a command that a word is.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let of = |arg: &&Arg| {
        let long = word
            .strip_prefix("--")
            .is_some_and(|name| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name)));
        let short = word.strip_prefix('-').is_some_and(|name| {
            let mut letters = name.chars();
            letters.next().is_some_and(|letter| arg.get_short() == Some(letter)) && letters.next().is_none()
        });
        long || short
    };
    command.get_arguments().find(of)
}

fn beginning(typed: &str, words: impl Iterator<Item = String>) -> Vec<String> {
    words.filter(|word| word.starts_with(typed)).take(OFFERED_MAX).collect()
}

fn open(store: &str) -> Option<Store> {
    Store::open_with(store, Options { mode: Mode::Read, ..Options::default() }).ok()
}

/// Tables, and the folders of the tree, below what is typed: up to the next slash.
fn paths(store: &str, typed: &str) -> Vec<String> {
    let folder = typed.rfind('/').map_or("", |at| &typed[..=at]);
    if folder.contains(['*', '?']) {
        return Vec::new();
    }
    let Some(nodes) = open(store).and_then(|store| store.tree().list(format!("{folder}*").as_str()).ok()) else {
        return Vec::new();
    };
    let word = |node: drumlin::ListEntry| if node.table.is_some() { node.path } else { format!("{}/", node.path) };
    beginning(typed, nodes.into_iter().map(word))
}

/// Columns of a table, of which some may be typed already, with commas between them.
fn columns(store: &str, table: Option<&&str>, typed: &str) -> Vec<String> {
    let schema = table.and_then(|table| open(store)?.table(table).schema(&drumlin::AsOf::Newest).ok());
    let Some(schema) = schema else { return Vec::new() };
    let given = typed.rfind(',').map_or("", |at| &typed[..=at]);
    let names = schema.fields().iter().filter(|field| !given.split(',').any(|name| name == field.name()));
    beginning(typed, names.map(|field| format!("{given}{}", field.name())))
}

fn snapshots(store: &str, typed: &str) -> Vec<String> {
    let all = open(store).and_then(|store| store.snapshots().ok()).unwrap_or_default();
    beginning(typed, all.into_iter().map(|snapshot| snapshot.name))
}
