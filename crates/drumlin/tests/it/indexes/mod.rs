//! Secondary indexes: what they find is what a scan finds.

pub mod basics;
pub mod in_memory;
pub mod index_model;
pub mod kept;
pub mod looked_up;
pub mod unique;
pub mod unique_model;
