//! The lowest layer: errors, clock, entropy, CPU pool, checksums. Knows no type of the layers above.
//!
//! Everything that makes a run unrepeatable (time, randomness, threads) is passed in through [`Env`], so that a whole
//! store can be simulated, faulted and replayed from a seed. Clippy bans the direct calls elsewhere.

mod checksum;
mod clock;
mod digest;
mod entropy;
mod env;
mod error;
mod ids;
pub mod json_text;
mod memo;
mod metrics;
mod panic;
mod patience;
pub mod persistent;
pub mod planted;
mod pool;
mod progress;
mod span;
mod text;
mod threads;
mod type_name;
mod varint;
pub mod waiting;
mod warning;

pub use checksum::{checksum, checksum_append, checksum_at};
pub use clock::{Clock, ManualClock, SystemClock};
pub use digest::Digest;
pub use entropy::{Entropy, OsEntropy, SeededEntropy};
pub use env::Env;
pub use error::{Error, ErrorKind, Result};
pub use ids::{BlockId, EntryId, Seq, SessionId, TableId, Timestamp, Version};
pub use memo::Memo;
pub use metrics::{BUCKETS, Counter, Histogram, Metrics, Request};
pub use panic::caught;
pub use patience::Patience;
pub use pool::{Pool, THREADS_MAX, check_threads};
pub use progress::{Cancel, Meter, Progress, Task};
pub(crate) use span::span;
pub use text::{clip, from_hex, to_hex};
pub use threads::{OsThreads, Threads};
pub use type_name::TypeName;
pub use varint::{read_varint, write_varint};
pub use warning::{Warn, WarningKind};
