//! The commit log: one numbered order for everything. It frames entries and keeps them durable; what their payload
//! means is not its business.
//!
//! Invariants: an entry is durable when `append` returns; entries are numbered without gaps; the newest segment's
//! header names the newest catalog snapshot, and every entry after that snapshot is in the log.

mod entry;
mod file;
mod frame;

pub use entry::{Base, Entry};
pub use file::{FileLog, LogOptions, Opened};
