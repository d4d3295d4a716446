//! How the columns of a table change: what may be asked, each change checked, types that hold the values of two, and the schema that comes out.

pub mod alter;
pub mod columns;
pub mod common_type;
pub mod evolve;
