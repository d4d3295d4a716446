//! Rows that expire.

pub mod attacks;
pub mod ttl;
pub mod ttl_model;
