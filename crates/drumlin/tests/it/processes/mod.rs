//! Several processes on one store, and the jobs that they share.

pub mod beside_cuts;
pub mod following;
pub mod interleavings;
pub mod shared;
pub mod shared_faults;
pub mod shared_fence;
pub mod shared_reads;
pub mod shared_support;
pub mod shared_turns;
pub mod sharing;
pub mod sim_time;
pub mod splits;
pub mod staged;
pub mod waits;
