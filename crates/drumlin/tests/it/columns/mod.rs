//! Columns that change, constraints, Arrow types.

pub mod arrow_types;
pub mod constraints;
pub mod diff_columns;
pub mod evolve;
pub mod evolve_model;
pub mod evolve_run;
pub mod kinds;
pub mod partial;
