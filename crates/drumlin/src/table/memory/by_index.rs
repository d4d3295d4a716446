//! The rows in memory that may pass a filter, as indexes say.

use super::overlay::{Overlay, SeenOverlay};
use super::part::MemRows;
use super::sorted_values::EncodedMemtable;
use crate::base::{ErrorKind, Result};
use crate::filter::Filter;
use crate::memtable::Keys;
use crate::table::ReadPoint;
use crate::table::index::choice::{IndexAccess, IndexTerm, accesses};
use crate::table::index::mask::Asked;

/// Of fewer rows in memory all are looked at.
const ROWS_MIN: u64 = 8;

/// Of rows of which one in this many may pass, all are looked at.
const SHARE: u64 = 4;

impl Asked<'_> {
    /// What a read sees of row writes: of those that indexes find out about, only the rows that may pass `filter`.
    pub fn in_memory(&self, read_point: ReadPoint, filter: Option<&Filter>) -> Result<Option<SeenOverlay>> {
        let Some(overlay) = Overlay::new(self.table, read_point) else { return Ok(None) };
        let keys = filter.map_or(Ok(None), |filter| self.keys_in_memory(&overlay, filter))?;
        Ok(Some(match keys {
            Some(keys) => SeenOverlay::part(overlay, &keys),
            None => SeenOverlay::whole(&overlay),
        }))
    }

    /// The keys of all rows in memory that may pass `filter`, each once and in order; `None` if indexes say nothing of them, or if it takes
    /// no more to look at all. O(hits) and a search of the values, for which the rows that came since they were asked for last are sorted.
    fn keys_in_memory(&self, overlay: &Overlay, filter: &Filter) -> Result<Option<Keys>> {
        let (indexes, rows) = (&self.table.indexes.list, overlay.keys_at_most());
        if indexes.is_empty() || rows < ROWS_MIN {
            return Ok(None);
        }
        let seen = self.table.schema_of(self.version)?;
        let mut best: Option<Keys> = None;
        for access in accesses(indexes, seen, self.read_as.schema(), filter)? {
            let found = self.keys_by(overlay, &access, rows / SHARE)?.filter(|keys| keys.len() as u64 <= rows / SHARE);
            if let Some(keys) = found
                && best.as_ref().is_none_or(|best| keys.len() < best.len())
            {
                best = Some(keys);
            }
        }
        Ok(best)
    }

    /// The keys that one way finds; `None` if it says nothing of them, or finds more records of a memtable than `most`: a row that is written
    /// again and again has many.
    fn keys_by(&self, overlay: &Overlay, access: &IndexAccess<'_>, most: u64) -> Result<Option<Keys>> {
        match access {
            IndexAccess::Any(ways) => {
                let mut all = Keys::default();
                for way in ways {
                    let Some(own) = self.keys_by(overlay, way, most)? else { return Ok(None) };
                    own.iter().for_each(|key| all.push_key(key));
                }
                Ok(Some(all.each_once()))
            }
            IndexAccess::Index(term) => overlay.keys_found(|rows, schema| {
                let found = self.records(term, rows, schema)?;
                Ok(found.filter(|found| found.len() as u64 <= most))
            }),
        }
    }

    /// The numbers of records that may pass; `None` if the rows have other types than are asked for, or the filter means nothing in them.
    fn records(&self, term: &IndexTerm<'_>, rows: &MemRows, schema: u32) -> Result<Option<Vec<u32>>> {
        let schema = &self.table.schemas[schema as usize];
        let Some((_, filter)) = self.in_schema(term, schema)? else { return Ok(None) };
        let Some(values) = rows.sorted_values(term.index, &self.table.indexes.list, schema)? else { return Ok(None) };
        let encoded = EncodedMemtable { memtable: &rows.memtable, codec: &rows.codec };
        match values.find(encoded, self.pool, &filter) {
            Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch) => Ok(None),
            found => found.map(Some),
        }
    }
}
