//! Rows that one call writes to a keyed table: in the form of a commit, and ready for a memtable.

use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::{Error, Result};
use crate::memtable::{Key, Keys, RowBytes};
use crate::segment::read_stream;
use crate::table::{IndexDefinition, TableCodec};

/// The hash of what each row has in a unique index; none of a row that is not compared.
pub(in crate::table) type RowHashes = Arc<[Option<u64>]>;

/// Rows written and keys deleted by one call, in the form of a commit.
#[derive(Clone, Debug, Default)]
pub struct RowsChange {
    /// Arrow IPC streams, empty if there is nothing: whole rows, and key columns.
    puts: Bytes,
    deletes: Bytes,
    prepared: OnceLock<Arc<PreparedRows>>,
}

/// The same, ready to be put in a memtable. No key occurs twice.
#[derive(Debug, Default)]
pub struct PreparedRows {
    /// The keys of rows written.
    pub puts: Keys,
    /// Those rows.
    pub rows: RowBytes,
    /// Keys deleted.
    pub deletes: Keys,
    /// Places of `puts` and `deletes` in the order of their keys, computed at the first search.
    order: OnceLock<(Vec<u32>, Vec<u32>)>,
    /// The hashes of what the rows have in unique indexes.
    hashes: Mutex<Vec<(IndexDefinition, RowHashes)>>,
}

impl PreparedRows {
    /// The hash of what each row has in an index, computed once.
    pub(in crate::table) fn hashes(
        &self,
        index: &IndexDefinition,
        compute: impl FnOnce() -> Vec<Option<u64>>,
    ) -> RowHashes {
        let mut known = self.hashes.lock();
        if let Some((_, hashes)) = known.iter().find(|(own, _)| own == index) {
            return hashes.clone();
        }
        let hashes: RowHashes = compute().into();
        known.push((index.clone(), hashes.clone()));
        hashes
    }

    /// What it says about a key: a row, or a delete.
    pub fn find(&self, key: Key<'_>) -> Option<Option<&[u8]>> {
        let (puts, deletes) = self.order.get_or_init(|| (self.puts.sorted_places(), self.deletes.sorted_places()));
        let at = |keys: &Keys, places: &[u32]| {
            places.binary_search_by(|at| keys.get(*at as usize).cmp(&key)).ok().map(|at| places[at] as usize)
        };
        match at(&self.puts, puts) {
            Some(put) => Some(Some(self.rows.get(put))),
            None => at(&self.deletes, deletes).map(|_| None),
        }
    }

    /// The maximum number of bytes that it takes in a memtable.
    pub(in crate::table) fn room_bytes(&self) -> u64 {
        /// The head of a record, and the nodes that a key may add.
        const EACH: u64 = 200;
        self.memory_bytes() + EACH * (self.puts.len() + self.deletes.len()) as u64
    }

    pub(in crate::table) fn memory_bytes(&self) -> u64 {
        self.puts.memory_bytes() + self.rows.memory_bytes() + self.deletes.memory_bytes()
    }
}

impl PartialEq for RowsChange {
    fn eq(&self, other: &Self) -> bool {
        (&self.puts, &self.deletes) == (&other.puts, &other.deletes)
    }
}

impl Serialize for RowsChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (serde_bytes(&self.puts), serde_bytes(&self.deletes)).serialize(serializer)
    }
}

/// Serialises bytes as bytes, not as a list of numbers.
struct AsBytes<'a>(&'a [u8]);

fn serde_bytes(bytes: &Bytes) -> AsBytes<'_> {
    AsBytes(bytes)
}

impl Serialize for AsBytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for RowsChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (puts, deletes) = <(Vec<u8>, Vec<u8>)>::deserialize(deserializer)?;
        Ok(Self { puts: puts.into(), deletes: deletes.into(), prepared: OnceLock::new() })
    }
}

fn to_ipc(batch: &RecordBatch) -> Result<Bytes> {
    if batch.num_rows() == 0 {
        return Ok(Bytes::new());
    }
    let mut stream = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    stream.write(batch)?;
    Ok(stream.into_inner()?.into())
}

fn from_ipc(bytes: &Bytes, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let read = || -> Result<RecordBatch> {
        let batch = read_stream(bytes)?;
        let types = |schema: &Schema| {
            schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect::<Vec<_>>()
        };
        if types(&batch.schema()) != types(schema) {
            return Err(Error::corrupt("the rows have another schema than the table"));
        }
        Ok(RecordBatch::try_new(schema.clone(), batch.columns().to_vec())?)
    };
    // Arrow panics on streams that are well-formed but make no sense.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    let read = read.unwrap_or_else(|_| Err(Error::corrupt("the Arrow stream is damaged")));
    read.map(Some).map_err(|e| Error::corrupt(format!("rows in a commit: {}", e.message())))
}

impl RowsChange {
    /// Writes `rows`, a batch of the codec's schema, and deletes `keys`, a batch of its key columns. No key may occur
    /// twice.
    pub fn new(codec: &TableCodec, rows: Option<&RecordBatch>, keys: Option<&RecordBatch>) -> Result<Self> {
        let (puts, row_bytes) = rows.map(|rows| codec.encode(rows)).transpose()?.unwrap_or_default();
        // Views and dictionaries may contain values that no row has; decoding the rows again drops them.
        let shares = |data_type: &DataType| !data_type.is_primitive() && *data_type != DataType::Boolean;
        let compact = match rows {
            Some(rows) if rows.schema().fields().iter().any(|field| shares(field.data_type())) => {
                let columns: Vec<usize> = (0..codec.schema().fields().len()).collect();
                let columns = codec.decode(&puts, &row_bytes, &columns)?;
                Some(RecordBatch::try_new(codec.schema().clone(), columns)?)
            }
            _ => None,
        };
        let rows = compact.as_ref().or(rows);
        let deletes = keys.map(|keys| codec.keys.encode(keys.columns())).transpose()?.unwrap_or_default();
        let prepared = PreparedRows { puts, rows: row_bytes, deletes, ..PreparedRows::default() };
        let ipc = |batch: Option<&RecordBatch>| batch.map_or(Ok(Bytes::new()), to_ipc);
        Ok(Self { puts: ipc(rows)?, deletes: ipc(keys)?, prepared: OnceLock::from(Arc::new(prepared)) })
    }

    /// Deletes keys.
    pub fn of_deletes(codec: &TableCodec, keys: &Keys) -> Result<Self> {
        let columns = codec.keys.decode(keys.iter())?;
        Self::new(codec, None, Some(&RecordBatch::try_new(codec.key_schema().clone(), columns)?))
    }

    /// Adds the keys that it writes or deletes to `keys`.
    pub fn copy_keys(&self, codec: &TableCodec, keys: &mut Keys) -> Result<()> {
        let prepared = self.prepared(codec)?;
        prepared.puts.iter().chain(prepared.deletes.iter()).for_each(|key| keys.push_key(key));
        Ok(())
    }

    /// Whether it writes rows.
    pub fn has_rows(&self) -> bool {
        !self.puts.is_empty()
    }

    /// Bytes that it takes in a commit.
    pub fn bytes(&self) -> u64 {
        (self.puts.len() + self.deletes.len()) as u64
    }

    /// The same, ready to be put in a memtable.
    pub(in crate::table) fn prepared(&self, codec: &TableCodec) -> Result<Arc<PreparedRows>> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(prepared.clone());
        }
        let puts = from_ipc(&self.puts, codec.schema())?;
        let deletes = from_ipc(&self.deletes, codec.key_schema())?;
        let made = Self::new(codec, puts.as_ref(), deletes.as_ref()).map_err(|e| Error::corrupt(e.message()))?;
        let prepared = made.prepared.get().expect("just made").clone();
        Ok(self.prepared.get_or_init(|| prepared).clone())
    }
}
