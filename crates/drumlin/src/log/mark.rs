//! The mark next to the log's segments: the last entry known to be synced.
//!
//! A log that lost its end looks like one that ends there, unless something else shows otherwise. The mark is written in
//! place after each sync, and is itself synced only when the log is closed, rolled, or synced by time. So it never claims
//! more than is true, and after a crash of the machine it may claim less. A mark that is missing or damaged claims nothing.
//!
//! ```text
//! 24 bytes, little-endian, within one sector
//!  0  8  magic "DRUMSYNC"
//!  8  4  format version (1)
//! 12  4  CRC32C of bytes 16..24, continued over the file's name and offset 0
//! 16  8  seq of the last entry known to be synced
//! ```

use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::planted::{Bug, planted};
use crate::base::{ErrorKind, Result, Seq, checksum_at};
use crate::storage::{Access, ClosedFile, Disk, DiskFile, Rename, names};

const MAGIC: &[u8; 8] = b"DRUMSYNC";
const VERSION: u32 = 1;
const BYTES: usize = 24;

/// The mark of a log that is open for writing.
pub(super) struct Mark(Mutex<Arc<dyn DiskFile>>);

/// How a mark was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkFound {
    Sound,
    Missing,
    Damaged,
}

impl MarkFound {
    /// What is wrong with it, in a store with this id: one that has none may have been made without a mark.
    pub fn fault(self, store: u128) -> Option<String> {
        match self {
            Self::Sound => None,
            Self::Missing if store == 0 => None,
            Self::Missing => Some(format!("{}: the file is missing", names::LOG_MARK)),
            Self::Damaged => Some(format!("{}: the checksum does not match", names::LOG_MARK)),
        }
    }
}

impl Mark {
    /// Opens or creates it, and sets it to `synced`. Also returns how it was found.
    pub fn open(disk: &dyn Disk, synced: Seq) -> Result<(Self, MarkFound)> {
        let found = Self::find(disk);
        let mark = match disk.open(names::LOG_MARK, Access::Write) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let made = Self(Mutex::new(disk.create(names::LOG_MARK)?.into()));
                made.say(synced);
                made.sync();
                disk.sync_dir(names::LOG)?;
                return Ok((made, found));
            }
            file => file?,
        };
        // A copy of the folder that shares its files must not hear of what is written here.
        let mark = match mark.links()? {
            0 | 1 => Self(Mutex::new(mark.into())),
            _ => {
                let temporary = names::temporary(names::LOG_MARK, std::process::id(), 0, disk.nonce());
                let made = Self(Mutex::new(disk.create(&temporary)?.into()));
                made.say(synced);
                made.sync();
                disk.rename(&temporary, names::LOG_MARK, Rename::Replace)?;
                disk.sync_dir(names::LOG)?;
                made
            }
        };
        mark.say(synced);
        Ok((mark, found))
    }

    /// How the mark on `disk` is.
    pub fn find(disk: &dyn Disk) -> MarkFound {
        match Self::look(disk) {
            Ok(Some(_)) => MarkFound::Sound,
            Ok(None) => MarkFound::Damaged,
            Err(e) if e.kind() == ErrorKind::NotFound => MarkFound::Missing,
            Err(_) => MarkFound::Damaged,
        }
    }

    /// The entry that the mark on `disk` names; `Seq(0)` if none.
    pub fn read(disk: &dyn Disk) -> Seq {
        Self::look(disk).ok().flatten().unwrap_or(Seq(0))
    }

    fn look(disk: &dyn Disk) -> Result<Option<Seq>> {
        let mut bytes = [0; BYTES];
        let n = disk.open(names::LOG_MARK, Access::Read)?.read_at(0, &mut bytes)?;
        Ok(decode(&bytes[..n]))
    }

    /// Records that all entries up to `synced` are durable. A mark that cannot be written keeps its earlier value.
    pub fn say(&self, synced: Seq) {
        if !planted(Bug::ForgetMark) {
            let _ = self.0.lock().write_at(0, &encode(synced));
        }
    }

    /// Makes its value durable.
    pub fn sync(&self) {
        let _ = self.0.lock().sync();
    }

    /// Records the final value durably, if there is one, and closes the file.
    pub fn close(&self, synced: Option<Seq>) {
        if let Some(synced) = synced {
            self.say(synced);
            self.sync();
        }
        *self.0.lock() = Arc::new(ClosedFile);
    }
}

fn encode(synced: Seq) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[16..].copy_from_slice(&synced.0.to_le_bytes());
    let sum = checksum_at(&out[16..], names::LOG_MARK, 0);
    out[12..16].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The value of a mark; `None` if its checksum does not match.
pub(super) fn decode(bytes: &[u8]) -> Option<Seq> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let sound =
        &bytes[..8] == MAGIC && number(8) == VERSION && number(12) == checksum_at(&bytes[16..], names::LOG_MARK, 0);
    sound.then(|| Seq(u64::from_le_bytes(bytes[16..].try_into().expect("8 bytes"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_one_that_is_damaged_says_nothing() {
        let bytes = encode(Seq(7_000_000_000));
        assert_eq!(decode(&bytes), Some(Seq(7_000_000_000)));
        for at in 0..BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
