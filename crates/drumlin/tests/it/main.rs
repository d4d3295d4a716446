//! One binary of integration tests, with one module per subject.
#![allow(clippy::disallowed_methods, reason = "tests wait for threads of the system")]
#![allow(clippy::type_complexity, reason = "tables of cases have closures in them")]

mod arrays;
mod cells;
mod columns;
mod commits;
mod contracts;
mod expiry;
mod faults;
mod feeds;
mod indexes;
mod joins;
mod keys;
mod maintenance;
mod models;
mod nodes;
mod processes;
mod replicas;
mod rows;
mod seeds;
mod support;
mod views;
