//! Reading of binary formats by libraries, which panic at some damaged bytes: that is an error of the data.

use drumlin::embedding::caught;
use drumlin::{Error, Result};

/// The error of data that a reader refuses, or at which it panics.
fn unreadable(kind: &str, error: &Error) -> Error {
    let message = error.message();
    let message = message.rsplit_once("please report it: ").map_or(message, |(_, panic)| panic);
    let message = ["Parser error: ", "Io error: ", "Ipc error: ", "Parquet error: ", "External: "]
        .iter()
        .fold(message, |message, prefix| message.strip_prefix(prefix).unwrap_or(message));
    Error::invalid(format!("the {kind} data cannot be read ({message}); if it is damaged, copy or make it again"))
}

/// What `read` reads with a library: its errors and panics are those of the data.
pub fn guarded<T, E: Into<Error>>(kind: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T> {
    caught(|| read().map_err(Into::into)).map_err(|error| unreadable(kind, &error))
}
