//! A panic is an error: nothing that unwinds leaves the task it happened in.
//!
//! Invariant: a caller that waits for a task gets a result, a value or an error, whatever the task did.
//!
//! Work is cut into such tasks where one failure should leave the rest alone: tasks of the pool, windows and parts of a
//! checkpoint (which reports what failed and goes on), and every call from Python.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::{Error, Result};

/// Runs `work`; a panic becomes an error of kind `Internal`. After a panic, what `work` was changing must not be used.
///
/// # Errors
/// Those of `work`; `Internal` if it panicked.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
}

impl Error {
    /// The error for a panic that was caught.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(message), _) => message,
            (_, Some(message)) => message.as_str(),
            _ => "no message",
        };
        // Arrow puts whole arrays into some messages.
        let message: String = message.chars().take(300).collect();
        Self::internal(format!("this is a bug in Drumlin; please report it: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        for what in ["text", "formatted"] {
            let error = caught(|| -> Result<()> {
                match what {
                    "text" => panic!("text"),
                    _ => panic!("{what}"),
                }
            });
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(error.message().ends_with(what), "{error}");
        }
        assert_eq!(caught(|| Ok(1)).unwrap(), 1);
    }
}
