//! Arrow's C data interface: how arrays of other libraries come into a store.
//!
//! The core has no unsafe code; what follows another library's pointers is here. Invariants: before an array is followed, its
//! structs are checked as far as they can be (counts, null pointers, lengths that overflow, offsets below zero), so that a
//! malformed one is an error; and no panic and no message that is not UTF-8 gets through. What nobody can check is whether
//! memory is as long as its owner says. Values are not looked at here: [`drumlin::table::checked_rows`] does that.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod array;
mod schema;
mod stream;

pub use array::array;
pub use schema::field;
pub use stream::{Stream, schema_of};

use drumlin::Error;

fn malformed(what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the Arrow data is malformed: {what}"))
}
