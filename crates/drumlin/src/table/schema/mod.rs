//! The columns of a table: what it knows of each, which frames fit it, how it changes, and the checks of arrays where they enter.

pub(super) mod arrays;
pub(super) mod bounds_of_types;
pub(super) mod claims;
pub(super) mod column;
pub(super) mod compression;
pub(super) mod conform;
pub(super) mod constraints;
pub(super) mod evolution;
pub(super) mod extension;
pub(super) mod foreign;
pub(super) mod frame_metadata;
pub(super) mod read_as;
pub(super) mod stored;
pub(super) mod ttl;
