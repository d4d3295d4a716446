//! The lowest layer: errors, clock, entropy, CPU pool, checksums. Knows no type of the layers above.
//!
//! Everything that makes a run unrepeatable (time, randomness, threads) is passed in through [`Env`], so that a whole
//! store can be simulated, faulted and replayed from a seed. Clippy bans the direct calls elsewhere.

mod clock;
mod entropy;
mod env;
mod error;
mod metrics;
mod near;
pub mod planted;
mod span;
mod text;
mod type_name;
mod type_text;
mod values;
pub mod waiting;
mod warning;
mod work;

pub use clock::{Clock, ManualClock, SystemClock};
pub use entropy::{Entropy, OsEntropy, SeededEntropy};
pub use env::Env;
pub use error::{Error, ErrorKind, Result};
pub use metrics::{BUCKETS, Counter, Histogram, Metrics, Request};
pub use near::nearest;
pub(crate) use span::span;
pub use text::{clip, from_hex, to_hex};
pub use type_name::TypeName;
pub use type_text::parse_type;
pub use values::checksum::{checksum, checksum_append, checksum_at};
pub use values::digest::Digest;
pub use values::ids::{BlockId, EntryId, Seq, SessionId, TableId, Timestamp, Version};
pub use values::memo::Memo;
pub use values::varint::{read_varint, write_varint};
pub use values::{json_text, persistent};
pub use warning::{Warn, WarningKind};
pub use work::panic::caught;
pub use work::patience::Patience;
pub use work::pool::{Pool, THREADS_MAX, check_threads};
pub use work::progress::{Cancel, Meter, Progress, Task};
pub use work::threads::{OsThreads, Threads};
