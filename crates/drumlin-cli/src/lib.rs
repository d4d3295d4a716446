//! The command line of Drumlin: `drumlin COMMAND STORE …`.
//!
//! Every command takes the store directly after its name; a command that only reads opens it for reading, and so works
//! while another process writes. Answers go to standard output, everything else to standard error. Exit codes: 0 done;
//! 1 failed, or `verify` found faults; 2 wrong usage; 3 a node is not as the command asked; 130 interrupted. Only a
//! finished command changes a store or a file.

#![deny(unsafe_code)]
#![warn(clippy::all)]

mod as_of;
mod bar;
mod command;
mod failure;
pub mod figures;
mod files;
mod grid;
mod habits;
mod interrupt;
mod json_rows;
pub mod memory;
mod output;
mod patient;
mod payload_text;
mod place;
mod rows;
mod scope;
mod sink;
pub mod source;
mod text_form;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Mutex;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};
use drumlin::embedding::waiting;

use failure::Failure;
use output::{Output, say};

/// Drumlin: an embedded, versioned table store.
///
/// A store is a folder. Tables live in it on a tree of paths such as prices/us/AAPL; each write makes a new version, and
/// every version can be read until it is deleted. Nodes of the tree may also carry a payload: JSON, or bytes.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a node is not as the command asked, 130 interrupted.
#[derive(Parser)]
#[command(name = "drumlin", version, after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: command::Command,
}

const EXAMPLE: &str = "\
Example:
  drumlin import market.drumlin aapl.parquet msft.parquet --under prices/us
  drumlin ls market.drumlin
  drumlin cat market.drumlin prices/us/aapl --where 'close > 100' --head 5
  drumlin put market.drumlin config/feeds/a '{\"on\": true}'
  drumlin watch market.drumlin config";

/// Runs the command in `args`, of which the first is the program's name; returns the exit code.
pub fn main<T: Into<OsString> + Clone>(args: Vec<T>) -> i32 {
    memory::configure();
    let command = args.get(1).map(|word| word.clone().into()).unwrap_or_default();
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) => return explain(error, &command.to_string_lossy()),
    };
    if output::is_closed() {
        say("standard output is closed, so nothing was done; to throw results away, redirect them: > /dev/null");
        return Failure::Error(String::new()).code();
    }
    std::panic::set_hook(Box::new(note_panic));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut out = Output::new();
        let ended = waiting::with_stop(&interrupt::flag(), || arguments.command.run(&mut out));
        flushed(out, ended)
    }));
    let _ = std::panic::take_hook();
    match ended {
        Ok(ended) => exit_code(ended.map_err(|failure| match interrupt::flag().check() {
            Ok(()) => failure,
            Err(_) => failure.interrupted(),
        })),
        Err(_) => {
            let what = PANIC.lock().map_or(String::new(), |mut what| std::mem::take(&mut *what));
            say(format_args!("internal error: {what}"));
            Failure::INTERNAL
        }
    }
}

/// Prints rows in a form (`table`, `csv` or `json`), at most the number given of a table, with a hint what to do where there are more.
/// Returns the exit code; what goes wrong is said on standard error.
pub fn print_rows(
    form: &str,
    schema: &SchemaRef,
    batches: impl Iterator<Item = drumlin::Result<RecordBatch>>,
    limit: (u64, &str),
) -> i32 {
    let mut out = Output::new();
    let printed = match rows::Form::from_str(form, false) {
        Ok(form) => rows::print(form, schema, batches, limit, &mut out),
        Err(_) => Err(Failure::Usage(format!("'{form}' is no form of rows; expected table, csv or json"))),
    };
    exit_code(flushed(out, printed))
}

/// Prints what is still to be printed, after a failure too.
fn flushed(mut out: Output, ended: Result<(), Failure>) -> Result<(), Failure> {
    let flushed = out.flush().map_err(Failure::from);
    ended.and(flushed)
}

/// Says what went wrong, if anything; returns the exit code.
fn exit_code(ended: Result<(), Failure>) -> i32 {
    let Err(failure) = ended else { return 0 };
    failure.message().into_iter().for_each(say);
    failure.code()
}

/// Checks the arguments of a call, of which the first is the program's name, without running the command. The error is what
/// would be printed: what is wrong with them, or the requested help.
pub fn check<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> Result<(), String> {
    Arguments::try_parse_from(args).map(drop).map_err(|error| error.render().to_string())
}

/// The last panic, in one line.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Prints nothing yet: a panic that is caught on the way, such as one caused by damaged bytes, becomes an error with
/// its own message.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map_or(String::new(), |place| {
        let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
        format!(" ({file}, line {})", place.line())
    });
    if let Ok(mut last) = PANIC.lock() {
        *last = format!("{what}{place}");
    }
}

/// Prints help, or what is wrong with the arguments.
fn explain(error: clap::Error, command: &str) -> i32 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            exit_code(error.print().map_err(Failure::from).or_else(|failure| match failure {
                Failure::NobodyReads => Ok(()),
                other => Err(other),
            }))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Failure::USAGE
        }
        _ => {
            say(habits::explained(error, command));
            Failure::USAGE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// Clap itself checks this only in debug builds.
    #[test]
    fn no_option_has_two_meanings() {
        let mut waiting = vec![Arguments::command()];
        while let Some(mut command) = waiting.pop() {
            command.build();
            let name = command.get_name().to_owned();
            let mut seen = BTreeSet::new();
            for argument in command.get_arguments() {
                let short = argument.get_short_and_visible_aliases().unwrap_or_default();
                let long = argument.get_long_and_visible_aliases().unwrap_or_default();
                let names = short.into_iter().map(String::from).chain(long.into_iter().map(String::from));
                names.for_each(|option| assert!(seen.insert(option.clone()), "{name}: '{option}' is given twice"));
            }
            waiting.extend(command.get_subcommands().cloned());
        }
    }
}
