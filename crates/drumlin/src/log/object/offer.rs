//! Offers: entries that processes have handed in, so that others add them.
//!
//! ```text
//! offer, little-endian
//!   0   4  CRC32C of the rest
//!   4   4  length of the head
//!   8   -  head, postcard: the last commit of the state that the entry was made on, and the tables in which it has looked up rows
//!   -   -  the entry, as a record of a log segment
//! ```

use bytes::Bytes;

use crate::base::{Error, Result, Seq, TableId, checksum_at};
use crate::log::Entry;
use crate::log::root::{decode_entries, encode_entries};

/// What its checksums are bound to: another form gets another name, so that processes of other builds leave it alone.
const NAME: &str = "offer-1";
const FIXED_BYTES: usize = 8;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The last commit of the state that the entry was made on.
    pub base: Seq,
    /// The tables in which it has looked up rows.
    pub reads: Vec<TableId>,
    /// The entry, as if it were the next one.
    pub entry: Entry,
}

impl Offer {
    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bad = |e: postcard::Error| Error::invalid("an offer could not be encoded").with_source(e.to_string());
        let head = postcard::to_stdvec(&(self.base, &self.reads)).map_err(bad)?;
        let mut rest = (head.len() as u32).to_le_bytes().to_vec();
        rest.extend(head);
        let mut entry = Vec::new();
        encode_entries(std::slice::from_ref(&self.entry), NAME, &mut entry)?;
        rest.extend(entry);
        Ok([checksum_at(&rest, NAME, 0).to_le_bytes().to_vec(), rest].concat())
    }

    /// `None` if it is damaged, or of another build: then it is left alone.
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<4>()?;
        if checksum_at(rest, NAME, 0).to_le_bytes() != *sum {
            return None;
        }
        let length = u32::from_le_bytes(*rest.first_chunk::<4>()?) as usize;
        let end = FIXED_BYTES.checked_add(length)?;
        let (base, reads) = postcard::from_bytes(bytes.get(FIXED_BYTES..end)?).ok()?;
        let mut entries = decode_entries(&bytes.slice(end..), NAME, 0).ok()?;
        match (entries.pop(), entries.is_empty()) {
            (Some(entry), true) => Some(Self { base, reads, entry }),
            _ => None,
        }
    }
}

/// Whether an entry that depends on the rows of `reads`, and only writes rows itself, cannot be added as it is behind one that writes rows to
/// these tables, or, if there are none, does anything else.
pub(super) fn forbids(written: Option<&[TableId]>, reads: &[TableId]) -> bool {
    written.is_none_or(|tables| tables.iter().any(|table| reads.contains(table)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{EntryId, SessionId, Timestamp};

    #[test]
    fn offers_come_back_and_damaged_ones_are_left_alone() {
        let entry = Entry {
            seq: Seq(8),
            id: EntryId(77),
            prev: Some(EntryId(5)),
            session: SessionId(1),
            time: Timestamp(9),
            features: 0,
            payload: Bytes::from_static(b"rows"),
        };
        let offer = Offer { base: Seq(7), reads: vec![TableId(3), TableId(300)], entry };
        let bytes = Bytes::from(offer.encode().unwrap());
        assert_eq!(Offer::decode(&bytes), Some(offer));
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 4;
            assert_eq!(Offer::decode(&damaged.into()), None, "byte {at}");
            assert_eq!(Offer::decode(&bytes.slice(..at)), None, "cut at {at}");
        }
    }
}
