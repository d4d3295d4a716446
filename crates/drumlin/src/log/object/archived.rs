//! A root of a replica that was replaced by one with a newer catalog snapshot: what leads from the older one to that.
//!
//! ```text
//!   0  8  magic "DRUMARCH"
//!   8  4  format version (1)
//!  12  4  CRC32C, over the object's name and offset, of everything from 16 on
//!  16  8  length of the head
//!  24  -  head: what the root leads to, beside its chunks; padded to a multiple of 8
//!   -  -  the root, as it was
//! ```

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::super::Opened;
use super::super::root::{Chunk, Root};
use super::read::{damaged, entries_after};
use crate::base::{BlockId, Error, Pool, Result, Seq, checksum_at};
use crate::storage::{Storage, names};

const MAGIC: &[u8; 8] = b"DRUMARCH";
const VERSION: u32 = 1;
const FIXED_BYTES: usize = 24;

/// What a root that was replaced leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivedLog {
    head: ArchivedHead,
    root: Root,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ArchivedHead {
    /// The objects of its catalog snapshot.
    catalogs: Vec<Seq>,
    /// Blocks that some state which it leads to has, and the last one has no longer.
    left: Vec<BlockId>,
}

impl ArchivedLog {
    pub(super) fn new(root: Root, catalogs: Vec<Seq>, left: Vec<BlockId>) -> Self {
        Self { head: ArchivedHead { catalogs, left }, root }
    }

    /// The commit of the first state that it leads to.
    pub fn first(&self) -> Seq {
        self.root.base.map_or(Seq(0), |base| base.seq)
    }

    /// The commit of the last one.
    pub fn last(&self) -> Seq {
        self.root.seq
    }

    /// The objects that it leads to, beside the blocks of its last state.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let chunks = self.root.chunks.iter().map(Chunk::name);
        self.head.catalogs.iter().copied().map(names::catalog).chain(chunks)
    }

    /// Blocks that some state which it leads to has, and the last one has no longer.
    pub fn left(&self) -> &[BlockId] {
        &self.head.left
    }

    /// What the log held.
    pub fn opened(&self, storage: &dyn Storage, pool: &Pool) -> Result<Opened> {
        let entries = entries_after(storage, pool, &self.root, Seq(0)).map_err(damaged)?;
        Ok(Opened { base: self.root.base, entries, origin: self.root.origin, lossy: false })
    }

    /// Its bytes, as the object of this name.
    pub fn encode(&self, name: &str) -> Result<Vec<u8>> {
        let head = postcard::to_stdvec(&self.head)
            .map_err(|e| Error::invalid("a root could not be archived").with_source(e.to_string()))?;
        let mut out = Vec::with_capacity(FIXED_BYTES + head.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(head.len() as u64).to_le_bytes());
        out.extend_from_slice(&head);
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend_from_slice(&self.root.encode()?);
        let sum = checksum_at(&out[16..], name, 0);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }

    /// Reads and checks it.
    pub fn decode(name: &str, bytes: &Bytes) -> Result<Self> {
        let corrupt = |what: &str| Error::corrupt(format!("{name}: {what}"));
        let fixed = bytes.get(..FIXED_BYTES).ok_or_else(|| corrupt("it ends within its header"))?;
        if &fixed[..8] != MAGIC {
            return Err(corrupt("it does not begin like an archived root"));
        }
        let version = u32::from_le_bytes(fixed[8..12].try_into().expect("4 bytes"));
        if version != VERSION {
            return Err(Error::unsupported(format!(
                "{name}: it has format {version}, and this build reads format {VERSION}; use the version of drumlin that wrote it"
            )));
        }
        if checksum_at(&bytes[16..], name, 0).to_le_bytes() != fixed[12..16] {
            return Err(corrupt("the checksum does not match"));
        }
        let length = u64::from_le_bytes(fixed[16..24].try_into().expect("8 bytes"));
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(FIXED_BYTES));
        let head = end.and_then(|end| bytes.get(FIXED_BYTES..end)).ok_or_else(|| corrupt("it ends within its head"))?;
        let rest = (FIXED_BYTES + head.len()).next_multiple_of(8);
        let root = bytes.get(rest..).ok_or_else(|| corrupt("it ends before its root"))?;
        let root = Root::decode(&bytes.slice_ref(root)).map_err(|e| e.context(name))?;
        let head = postcard::from_bytes(head).map_err(|e| corrupt(&format!("its head cannot be decoded: {e}")))?;
        Ok(Self { head, root })
    }
}
