//! Rows that expire.

pub mod ttl;
pub mod ttl_model;
