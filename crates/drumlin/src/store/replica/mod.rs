//! Replicas: a second store that has every commit of a first one, in order; what takes its place; and whole copies.
//!
//! A replica is a store of the kind that many processes write, whose root says that only one does: the process that brings over
//! what is committed at the source (*bring.rs*). It has the source's id, and the source's entries as they are; its catalog
//! snapshots are its own. So a process that opens it reads a store like any other, some commits behind.
//!
//! - Commits come in batches. First the blocks that the state after a batch needs are put in place and read again there
//!   (*blocks.rs*), then one root names all its entries. So each state that the replica shows is whole.
//! - A block that is gone at the source was released there by a later commit. The batch is then continued to that one.
//! - Where the source's log no longer reaches back, the replica takes over the newest state as a whole: it writes a catalog
//!   snapshot of that, and copies the blocks that it lacks.
//! - A lease (*lease.rs*) keeps blocks and entries at the source that are not here yet, where the process may commit there.
//! - Nothing is done twice, and nothing is half done: a process that was killed leaves objects that nothing refers to, which
//!   the next one deletes. Two processes cannot write one replica (*log/object/replica.rs*).
//!
//! - What leaves the replica can be kept for some time (*archive.rs*), so that each commit of that time can be restored from it.
//! - Where rows are erased at the source, the replica forgets what it had of before as soon as it comes to that commit.
//!
//! A replica that is promoted (*promote.rs*) gets an id of its own; where the source can be reached, that one ends first. A copy
//! of a whole store is a replica that is promoted at once, at a commit of the caller's choice (*clone.rs*).

mod archive;
mod blocks;
mod bring;
pub(super) mod clone;
mod lease;
pub(super) mod options;
pub(super) mod place;
pub(super) mod promote;
pub(super) mod run;
mod target;
