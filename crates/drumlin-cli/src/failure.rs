//! How a command fails: the message and the exit code.

use std::io;

use arrow::error::ArrowError;
use drumlin::{Error, ErrorKind};
use parquet::errors::ParquetError;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// It could not do what was requested.
    Error(String),
    /// The request makes no sense.
    Usage(String),
    /// A node does not meet the condition given for a change.
    Unmet(String),
    /// Ctrl-C, with the state in which it left things.
    Interrupted(String),
    /// The reader of standard output has gone.
    NobodyReads,
    /// It ran completely, but the printed result is bad news.
    Told,
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Exit code of wrong usage.
    pub const USAGE: i32 = 2;
    /// Exit code of a bug.
    pub const INTERNAL: i32 = 1;

    /// The exit code.
    pub fn code(&self) -> i32 {
        match self {
            Failure::Error(_) | Failure::Told => 1,
            Failure::Usage(_) => Self::USAGE,
            Failure::Unmet(_) => 3,
            Failure::Interrupted(_) => 130,
            Failure::NobodyReads => 0,
        }
    }

    /// What to print on standard error.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Error(message) | Failure::Usage(message) | Failure::Unmet(message) => Some(message.clone()),
            Failure::Interrupted(state) => Some(format!("interrupted: {state}")),
            Failure::NobodyReads | Failure::Told => None,
        }
    }

    /// The failure after Ctrl-C was pressed: what fails then does so because of it.
    #[must_use]
    pub fn interrupted(self) -> Self {
        match self {
            Failure::Error(message) => Failure::Interrupted(message),
            other => other,
        }
    }

    /// If this was an interruption, makes `state` its message.
    #[must_use]
    pub fn or_interrupted(self, state: &str) -> Self {
        match self {
            Failure::Interrupted(_) => Failure::Interrupted(state.to_owned()),
            other => other,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Cancelled => Failure::Interrupted("nothing was changed".into()),
            ErrorKind::ConditionFailed => Failure::Unmet(error.to_string()),
            _ => Failure::Error(error.to_string()),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Failure::Error(error.to_string())
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Failure::Error(error.to_string())
    }
}

/// Only for standard output: every other I/O error first gets the name of its file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => Failure::Error(format!("standard output: {error}")),
        }
    }
}
