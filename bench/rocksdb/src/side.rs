//! The systems compared: something that rows are written to and read from.

use crate::Result;
use crate::data::{Packed, Scanned, Tally};

/// A store, or a layer of one. Any number of readers, each on its own thread, concurrent with one writer.
pub trait Side: Sync {
    /// Writes rows.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;
    /// Looks rows up.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;
    /// All values in the order of the keys, copied out; `None` if that is not possible.
    fn scan(&self) -> Result<Option<Scanned>>;
    /// Memory that it takes; `None` if that is reported for another level.
    fn bytes(&self) -> Result<Option<u64>>;
    /// An error if it has anything outside its write buffer, or fewer rows there than `_rows`.
    fn check_in_memory(&self, _rows: usize) -> Result<()> {
        Ok(())
    }
}

/// Writes rows, a batch at a time.
pub trait Writer {
    /// Writes a batch.
    fn write(&mut self, keys: Packed<'_>, values: Packed<'_>) -> Result<()>;
}

/// Looks rows up, and copies their values out.
pub trait Reader {
    /// Looks up one key.
    fn get(&mut self, key: &[u8]) -> Result<Tally> {
        self.get_many(Packed::new(key, key.len()))
    }

    /// Looks up a batch.
    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally>;

    /// The value found for the key at this place of the last look-up.
    fn value(&self, at: usize) -> Option<&[u8]>;
}

/// Values copied out, each with its place in the look-up.
#[derive(Default)]
pub struct Copied {
    bytes: Vec<u8>,
    spans: Vec<Option<(u32, u32)>>,
    tally: Tally,
}

impl Copied {
    /// Prepares for `keys` keys.
    pub fn clear(&mut self, keys: usize) {
        self.bytes.clear();
        self.spans.clear();
        self.spans.resize(keys, None);
        self.tally = Tally::default();
    }

    /// Sets the value of the key at a place, which `write` appends.
    #[inline]
    pub fn put(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.tally.add(&self.bytes[start..]);
        self.spans[at] = Some((start as u32, self.bytes.len() as u32));
    }

    /// The value of the key at a place.
    pub fn value(&self, at: usize) -> Option<&[u8]> {
        self.spans[at].map(|(start, end)| &self.bytes[start as usize..end as usize])
    }

    /// What was found.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// Collects what a scan copies out.
#[derive(Default)]
pub struct Sink {
    bytes: Vec<u8>,
    scanned: Scanned,
}

impl Sink {
    /// Adds the next value, which `write` appends.
    #[inline]
    pub fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        const BYTES: usize = 64 << 10;
        if self.bytes.len() > BYTES {
            self.bytes.clear();
        }
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.scanned.add(&self.bytes[start..]);
    }

    /// The result.
    pub fn scanned(&self) -> Scanned {
        self.scanned
    }
}
