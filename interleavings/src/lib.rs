//! The memtable's sources, compiled with as little of the rest as they need, for a checker of interleavings:
//! `cargo test --release`.

#![allow(dead_code, reason = "only what is checked is used")]

#[path = "../../crates/drumlin/src/memtable/mod.rs"]
pub mod memtable;
#[cfg(test)]
mod orders;

pub use base::ErrorKind;

/// What the memtable uses of the layer below it.
pub mod base {
    pub type Result<T, E = Error> = std::result::Result<T, E>;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Seq(pub u64);

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        Corrupt,
        InvalidArgument,
        Unavailable,
    }

    #[derive(Debug)]
    pub struct Error(ErrorKind, String);

    impl std::fmt::Display for Error {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&self.1)
        }
    }

    impl Error {
        pub fn invalid(what: impl Into<String>) -> Self {
            Self(ErrorKind::InvalidArgument, what.into())
        }

        pub fn unavailable(what: impl Into<String>) -> Self {
            Self(ErrorKind::Unavailable, what.into())
        }

        pub fn corrupt(what: impl Into<String>) -> Self {
            Self(ErrorKind::Corrupt, what.into())
        }

        pub fn kind(&self) -> ErrorKind {
            self.0
        }

        pub fn message(&self) -> &str {
            &self.1
        }
    }

    pub fn checksum_append(sum: u32, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(sum, bytes)
    }
}
