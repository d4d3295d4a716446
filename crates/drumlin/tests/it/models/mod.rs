//! Random operations, and plain models that say what must come of them.

pub mod copy_op;
pub mod episodes;
pub mod met;
pub mod model;
pub mod pairs;
pub mod random;
pub mod swarm;
pub mod swarm_draw;
pub mod swarm_model;
pub mod swarm_op;
pub mod swarm_run;
pub mod verbs;
pub mod wide;
pub mod wide_op;
