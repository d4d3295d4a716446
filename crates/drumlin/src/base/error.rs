//! One public error. Its kind says what the caller can do; its message names what was wrong and what was expected.
//!
//! Invariant: no message, Debug print or source ever holds a credential.

use std::fmt;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A path, version, snapshot or column does not exist.
    NotFound,
    /// Something already has the name of what was to be created.
    AlreadyExists,
    /// The call is wrong, whatever the store holds. Nothing was changed.
    InvalidArgument,
    /// The data's schema does not fit the table's. Nothing was changed.
    SchemaMismatch,
    /// The condition given with the operation does not hold. Nothing was changed.
    ConditionFailed,
    /// Another commit changed what this one depends on: run it again.
    Conflict,
    /// Storage did not do it (disk full, no permission, I/O error). Nothing was applied.
    Unavailable,
    /// The commit was requested, and it is not yet known whether it was applied; the message carries its id.
    InDoubt,
    /// Bytes read are not the bytes written. The message names object and offset.
    Corrupt,
    /// Another process has the store open for writing; the message names it.
    Locked,
    /// The version read from is gone.
    SnapshotExpired,
    /// The store was made by a newer format, or asks for a feature that this build does not know.
    Unsupported,
    /// The store handle was closed, or poisoned by an earlier failure: open the store again.
    Closed,
    /// The caller's own cancel flag stopped the call. Nothing was changed.
    Cancelled,
    /// A bug in this crate or below it; what the call was to change was not changed. Report it.
    Internal,
}

impl ErrorKind {
    /// Whether it is about one item of a call, such as a table, not about storage, the store or the whole call.
    pub fn is_of_item(self) -> bool {
        use ErrorKind::*;
        match self {
            NotFound | AlreadyExists | InvalidArgument | SchemaMismatch | ConditionFailed | Conflict | Corrupt
            | SnapshotExpired | Internal => true,
            Unavailable | InDoubt | Locked | Unsupported | Closed | Cancelled => false,
        }
    }

    /// Whether maintenance that meets it at one table or block continues with the others: it is about that item, and would
    /// occur again.
    pub fn leaves_others(self) -> bool {
        (self.is_of_item() || self == ErrorKind::Unsupported) && self != ErrorKind::SnapshotExpired
    }
}

/// The error of every fallible call of this crate.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// Storage asked for fewer requests: the same one may succeed later.
    throttled: bool,
    /// What lies in the store's place does not continue what was there.
    other_history: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        $(
            #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            }
        )*
    };
}

impl Error {
    /// An error of `kind` with the evidence in `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), throttled: false, other_history: false, source: None }
    }

    constructors! {
        not_found => NotFound,
        already_exists => AlreadyExists,
        invalid => InvalidArgument,
        schema_mismatch => SchemaMismatch,
        condition_failed => ConditionFailed,
        conflict => Conflict,
        unavailable => Unavailable,
        in_doubt => InDoubt,
        corrupt => Corrupt,
        locked => Locked,
        snapshot_expired => SnapshotExpired,
        unsupported => Unsupported,
        closed => Closed,
        cancelled => Cancelled,
        internal => Internal,
    }

    /// `Unavailable`: storage refused the request because there were too many. It was not executed, and may be repeated
    /// later.
    pub fn throttled(message: impl Into<String>) -> Self {
        Self { throttled: true, ..Self::unavailable(message) }
    }

    /// Whether storage refused the request because there were too many.
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// What lies in the store's place is not a continuation of what was there when it was opened. Nothing may be read, changed or
    /// deleted there any more by the handle that gets it.
    pub fn other_history(kind: ErrorKind, what: impl fmt::Display) -> Self {
        let message = format!("the store here has another history: {what}");
        Self { other_history: true, ..Self::new(kind, message) }
    }

    /// What leads on from here is elsewhere now. Nothing may be read, changed or deleted any more by the handle that gets it.
    pub fn moved(what: impl Into<String>) -> Self {
        Self { other_history: true, ..Self::closed(what) }
    }

    /// Whether it says that another history lies here, or that the store is elsewhere.
    pub fn is_other_history(&self) -> bool {
        self.other_history
    }

    /// The same, of another kind.
    #[must_use]
    pub fn as_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Puts `context` and a colon before the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The kind: what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message alone, without its source.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What never happens.
impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// Arrow refuses bad input; data read from storage is checked before Arrow sees it, and mapped to `Corrupt` there.
impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::OffsetOverflowError(_) => Error::invalid(
                "the strings or lists of one column take more than 2 GiB, the most that an Arrow batch can hold; use \
                 fewer rows at a time",
            ),
            error => Error::invalid(error.to_string()),
        }
    }
}
