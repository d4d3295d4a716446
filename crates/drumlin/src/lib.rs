//! Drumlin: an embedded, versioned table store.
//!
//! Tables live on a tree of paths; a commit is atomic over any number of tables; every past version can be read. See
//! [`Store`] for the public API and ARCHITECTURE.md for how it works.

#![deny(unsafe_code, missing_docs)]
#![warn(clippy::all)]

pub mod base;
pub mod storage;
pub mod segment;
pub mod filter;
pub mod block;
pub mod table;
pub mod catalog;
pub mod log;
pub mod store;

pub use base::{Error, ErrorKind, Result};
pub use store::Store;
