//! One binary of integration tests, a module a subject.

mod batch;
mod checkpoint;
mod corruption;
mod crash;
mod episodes;
mod golden;
mod hostile;
mod interleavings;
mod keyed;
mod keyed_attacks;
mod keyed_model;
mod model;
mod random;
mod shared;
mod shared_faults;
mod shared_reads;
mod shared_support;
mod storage;
mod store;
mod support;
mod transaction;
mod tree;
mod tree_model;
mod trigger;
mod vacuum;
