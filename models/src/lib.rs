//! Models of protocols between processes.

pub mod cell;
pub mod offers;
pub mod rows;
