//! What is shown, and what is remembered between requests.

use drumlin::{Cancel, Store};

use super::listing::Listings;
use super::sorted::LastSorted;

/// What all requests use.
pub struct Context {
    pub store: Store,
    /// Whether the store may be changed.
    pub write: bool,
    /// Set when the server is closed.
    pub closing: Cancel,
    pub listings: Listings,
    pub sorted: LastSorted,
}

impl Context {
    /// For a server that shows `store`.
    pub fn new(store: Store, write: bool, closing: Cancel) -> Self {
        Self { store, write, closing, listings: Listings::default(), sorted: LastSorted::default() }
    }
}
