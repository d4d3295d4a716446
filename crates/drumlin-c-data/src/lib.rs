//! Arrow's C data interface: how arrays of other libraries enter a store.
//!
//! The core has no unsafe code; the code that follows another library's pointers is here. Invariants: before the pointers of
//! an array are followed, its structs are checked as far as possible (counts, null pointers, lengths that overflow, negative
//! offsets), so that a malformed one is an error; and no panic and no message that is not UTF-8 gets through. It cannot be
//! checked whether memory is as long as its owner says. Values are not checked here: [`drumlin::arrays::checked_rows`] does
//! that.

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
