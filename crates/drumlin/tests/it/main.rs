//! One binary of integration tests, a module a subject.
#![allow(clippy::disallowed_methods, reason = "tests wait for threads of the system")]
#![allow(clippy::type_complexity, reason = "tables of cases have closures in them")]

mod arrays;
mod arrow_types;
mod batch;
mod bucket_answers;
mod checkpoint;
mod clocks;
mod corruption;
mod crash;
mod episodes;
mod following;
mod golden;
mod hostile;
mod interleavings;
mod key_types;
mod keyed;
mod keyed_attacks;
mod keyed_model;
mod layout;
mod leftovers;
mod log_faults;
mod log_loss;
mod model;
mod purge;
mod random;
mod salvage;
mod shared;
mod shared_faults;
mod shared_fence;
mod shared_reads;
mod shared_support;
mod shared_turns;
mod sim_time;
mod storage;
mod store;
mod support;
mod time_travel;
mod transaction;
mod tree;
mod tree_model;
mod trigger;
mod turns;
mod vacuum;
