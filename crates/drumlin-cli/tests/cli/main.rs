//! The built command, run on temporary folders: what it prints, what it leaves behind, and its exit codes.

#![expect(clippy::disallowed_methods, reason = "the tests look at files as a user would")]

mod desk;
mod export;
mod import;
mod interrupts;
mod misuse;
mod nodes;
mod pipes;
mod replicas;
mod shown;
mod stores;
mod tables;
mod text;
mod watch;
