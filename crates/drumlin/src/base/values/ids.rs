//! Numbers with a meaning, as types of their own, so that one cannot be passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// The number of a commit in the log: 1, 2, 3 … without gaps; 0 is the empty store.
    Seq(u64)
}
id! {
    /// A table's name in everything durable. Never reused, so that a path may be dropped and created again.
    TableId(u64)
}
id! {
    /// The number of a state of one table: 0, 1, 2 …
    Version(u64)
}
id! {
    /// A process that writes blocks; numbered by the log, in order of registration.
    SessionId(u64)
}
id! {
    /// Random 128 bits that name one attempt at a log entry, so that a retry is recognised.
    EntryId(u128)
}
id! {
    /// Microseconds since the Unix epoch, UTC.
    Timestamp(i64)
}

impl Seq {
    /// The number after this one; of the last number, which only damaged bytes have, itself.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A block: the session that wrote it and its number there. Together they make the object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId {
    /// The session that wrote the block.
    pub session: SessionId,
    /// The block's number within its session, from 0.
    pub number: u64,
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.session, self.number)
    }
}
