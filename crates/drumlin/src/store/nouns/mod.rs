//! The nouns of the API that name operations: [`table::Table`], [`tables::Tables`], [`tree::Tree`], a transaction, and the *place* that
//! they are done in. Each operation is declared here once and carried out by the folder that it is about.

pub(super) mod export;
pub(super) mod key;
pub(super) mod layout;
pub(super) mod patterns;
pub(super) mod place;
pub(super) mod table;
pub(super) mod table_reads;
pub(super) mod tables;
pub(super) mod transaction;
pub(super) mod tree;
