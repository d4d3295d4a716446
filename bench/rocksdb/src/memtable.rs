//! Level (a): Drumlin's memtable alone. Keys are encoded from the same byte strings that RocksDB gets, values copied out.

use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::base::Seq;
use drumlin::memtable::{Keys, Memtable, RowBytes};

use crate::Result;
use crate::data::{Packed, Scanned, Tally, VALUE_BYTES};
use crate::side::{Copied, Reader, Side, Sink, Writer};

/// A memtable, and the last commit that readers see.
#[derive(Default)]
pub struct MemtableSide {
    memtable: Memtable,
    committed: AtomicU64,
}

impl MemtableSide {
    fn seq(&self) -> Seq {
        Seq(self.committed.load(Ordering::Acquire))
    }
}

fn encode(keys: Packed<'_>) -> Keys {
    let mut encoded = Keys::with_capacity(keys.len(), keys.width());
    keys.iter().for_each(|key| encoded.push(key));
    encoded
}

impl Side for MemtableSide {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(MemtableWriter { side: self }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(MemtableReader { side: self, copied: Copied::default() }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        let mut sink = Sink::default();
        let rows = self.memtable.range(None, None, self.seq()).filter(|record| !record.is_delete());
        rows.for_each(|record| sink.put(|out| record.copy_row(out)));
        Ok(Some(sink.scanned()))
    }

    fn bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.memtable.bytes()))
    }
}

struct MemtableWriter<'a> {
    side: &'a MemtableSide,
}

impl Writer for MemtableWriter<'_> {
    fn write(&mut self, keys: Packed<'_>, values: Packed<'_>) -> Result<()> {
        let mut bytes = Vec::with_capacity(values.len() * VALUE_BYTES);
        values.iter().for_each(|value| bytes.extend_from_slice(value));
        let rows = RowBytes::new(bytes, (1..=values.len()).map(|rows| rows * VALUE_BYTES).collect());
        let seq = self.side.seq().0 + 1;
        self.side.memtable.insert(&encode(keys), Some(&rows), Seq(seq))?;
        self.side.committed.store(seq, Ordering::Release);
        Ok(())
    }
}

struct MemtableReader<'a> {
    side: &'a MemtableSide,
    copied: Copied,
}

impl Reader for MemtableReader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Tally> {
        let keys = encode(Packed::new(key, key.len()));
        self.copied.clear(1);
        if let Some(record) = self.side.memtable.get(keys.get(0), self.side.seq())
            && !record.is_delete()
        {
            self.copied.put(0, |out| record.copy_row(out));
        }
        Ok(self.copied.tally())
    }

    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally> {
        let encoded = encode(keys);
        let copied = &mut self.copied;
        copied.clear(keys.len());
        self.side.memtable.get_many(encoded.iter(), self.side.seq(), |at, record| {
            if !record.is_delete() {
                copied.put(at, |out| record.copy_row(out));
            }
        });
        Ok(copied.tally())
    }

    fn value(&self, at: usize) -> Option<&[u8]> {
        self.copied.value(at)
    }
}
