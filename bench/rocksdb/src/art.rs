//! The crate `artmap`, a radix tree in an arena like Drumlin's memtable: without versions, and with them.

use artmap::{ArenaArtMap, ArenaVersionedArtMap};

use crate::Result;
use crate::data::{Packed, Scanned, Shape, Tally, VALUE_BYTES};
use crate::side::{Copied, Reader, Side, Writer};

const KEY_BYTES: usize = 16;
type Key = [u8; KEY_BYTES];
type Value = [u8; VALUE_BYTES];

/// An upper limit on the memory of a row, whatever its key.
const ROW_BYTES: usize = 512;

/// One of its maps, with keys of 16 bytes.
pub enum Art {
    Plain(ArenaArtMap<Key, Value>),
    Versioned(ArenaVersionedArtMap<Key, Value>),
}

impl Art {
    /// Whether its keys can have this shape.
    pub fn takes(shape: Shape) -> bool {
        shape.width() == KEY_BYTES
    }

    /// An empty map with room for `rows` rows.
    pub fn plain(rows: usize) -> Self {
        Art::Plain(ArenaArtMap::with_capacity(rows * ROW_BYTES))
    }

    /// An empty map with room for `rows` rows.
    pub fn versioned(rows: usize) -> Self {
        Art::Versioned(ArenaVersionedArtMap::with_capacity(rows * ROW_BYTES))
    }

    fn put(&self, key: Key, value: Value) -> Result<()> {
        let full = || "the arena is full".into();
        match self {
            Art::Plain(map) => map.try_insert(key, value).map(drop).map_err(|_| full()),
            Art::Versioned(map) => map.try_insert(key, 1, value).map_err(|_| full()),
        }
    }

    fn find(&self, key: &Key, copied: &mut Copied, at: usize) {
        match self {
            Art::Plain(map) => {
                if let Some(entry) = map.get_entry(key) {
                    copied.put(at, |out| out.extend_from_slice(entry.value()));
                }
            }
            Art::Versioned(map) => {
                let entry = map.get_entry(key);
                if let Some((_, value)) = entry.and_then(|entry| entry.get_version_le(u64::MAX >> 1)) {
                    copied.put(at, |out| out.extend_from_slice(value));
                }
            }
        }
    }
}

impl Side for Art {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(ArtWriter { art: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(ArtReader { art: self, copied: Copied::default() }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        Ok(None)
    }

    fn bytes(&self) -> Result<Option<u64>> {
        Ok(Some(match self {
            Art::Plain(map) => map.arena().size(),
            Art::Versioned(map) => map.arena().size(),
        } as u64))
    }
}

struct ArtWriter<'a> {
    art: &'a Art,
}

impl Writer for ArtWriter<'_> {
    fn write(&mut self, keys: Packed<'_>, values: Packed<'_>) -> Result<()> {
        for (key, value) in keys.iter().zip(values.iter()) {
            self.art.put(key.try_into()?, value.try_into()?)?;
        }
        Ok(())
    }
}

struct ArtReader<'a> {
    art: &'a Art,
    copied: Copied,
}

impl Reader for ArtReader<'_> {
    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally> {
        self.copied.clear(keys.len());
        for (at, key) in keys.iter().enumerate() {
            self.art.find(key.try_into()?, &mut self.copied, at);
        }
        Ok(self.copied.tally())
    }

    fn value(&self, at: usize) -> Option<&[u8]> {
        self.copied.value(at)
    }
}
