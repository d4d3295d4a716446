//! Which rows have expired, of a version whose schema says when rows do, at the instant of a read.
//!
//! Whether a row has expired is no part of which rows a version has: positions, ranks and counts of versions are of all. It
//! is asked wherever rows are found, as a filter is, of row groups whose statistics do not decide it.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, SchemaRef, TimeUnit};
use roaring::RoaringBitmap;

use super::truth::matching;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Pool, Result, Timestamp, Version, caught};
use crate::block::BlockReader;
use crate::filter::{BoundFilter, Verdict};
use crate::memtable::{Keys, RowBytes};
use crate::segment::Stat;
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::read_as::{Constants, ReadAs};
use crate::table::{GroupId, Matches, ReadPoint, RowGroup, Rows, TableCodec, TableState};

/// Finds rows that have expired.
pub(in crate::table) struct Expiry {
    /// The columns of the version.
    read_as: ReadAs,
    /// True for rows that have expired.
    expired: BoundFilter,
    /// How many microseconds after its time a row expires.
    after: i64,
}

impl Expiry {
    /// Of what is read at `read_point`; `None` if nothing expires there.
    pub fn at(table: &TableState, read_point: ReadPoint) -> Result<Option<Self>> {
        let Some(instant) = read_point.instant else { return Ok(None) };
        let schema = table.schema_of(read_point.version)?;
        let Some((_, after)) = schema.ttl_place().filter(|_| !planted(Bug::ShowExpired)) else { return Ok(None) };
        let Some(expired) = schema.expired_at(instant) else { return Ok(None) };
        let read_as = ReadAs::new(schema.0.clone(), Constants::new());
        Ok(Some(Self { expired: expired.bind(read_as.schema())?, read_as, after }))
    }

    /// What statistics say of whether the rows of a row group have expired.
    pub fn verdict(&self, reader: &GroupReader<'_>) -> Verdict {
        self.expired.verdict(u64::from(reader.group.rows), &|index| reader.stats(self.read_as.schema(), index))
    }

    /// Those among `rows` of a row group that have not expired. Reads a column if statistics do not tell.
    pub fn alive(&self, reader: &GroupReader<'_>, rows: Rows) -> Result<Rows> {
        if rows == Rows::None {
            return Ok(rows);
        }
        match self.verdict(reader) {
            Verdict::None => Ok(rows),
            Verdict::All => Ok(Rows::None),
            Verdict::Some => {
                let expired = matching(reader, self.read_as.schema(), &rows, &self.expired)?;
                Ok(rows.without(&expired, reader.group.rows))
            }
        }
    }

    /// Which of these rows in memory have not expired.
    pub fn alive_in_memory(&self, codec: &TableCodec, keys: &Keys, rows: &RowBytes) -> Result<BooleanBuffer> {
        self.alive_of(self.read_as.decode_rows(codec, keys, rows, self.expired.columns())?, keys.len())
    }

    /// The same of `rows` rows, given the columns that it asks for.
    pub fn alive_of(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<BooleanBuffer> {
        Ok(!&self.expired.truth(self.read_as.schema(), rows, columns)?)
    }

    /// When the first of those rows expires that are `alive`, given the columns that it asks for.
    pub fn next(&self, columns: &[ArrayRef], alive: &BooleanBuffer) -> Result<Option<Timestamp>> {
        let Some(column) = columns.first() else { return Ok(None) };
        let DataType::Timestamp(unit, _) = column.data_type() else {
            return Err(Error::internal("rows expire by a column that is no timestamp"));
        };
        let values = cast(column, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        let first = alive.set_indices().filter(|at| values.is_valid(*at)).map(|at| values.value(at)).min();
        Ok(first.map(|first| self.deadline(first, *unit)))
    }

    /// When the first of the rows of a row group expires, as statistics tell, of which none has; or before that.
    pub fn next_of(&self, reader: &GroupReader<'_>) -> Option<Timestamp> {
        let column = *self.columns().first()?;
        let DataType::Timestamp(unit, _) = self.schema().field(column).data_type() else { return None };
        match reader.stats(self.schema(), column)?.min? {
            Stat::Int(first) => Some(self.deadline(first, *unit)),
            _ => None,
        }
    }

    /// Whether statistics tell that no row of these row groups has expired.
    pub fn spares_all<'g>(
        &self,
        reader: &BlockReader,
        table: &TableState,
        version: Version,
        mut groups: impl Iterator<Item = &'g RowGroup>,
    ) -> bool {
        // What is wrong with one shows when it is read.
        let spared = |group| Ok(self.verdict(&GroupReader::open(reader, table, version, group)?) == Verdict::None);
        groups.all(|group| caught(|| spared(group)).unwrap_or(false))
    }

    /// When a row expires, given its time, in microseconds.
    fn deadline(&self, time: i64, unit: TimeUnit) -> Timestamp {
        let micros = match unit {
            TimeUnit::Second => time.saturating_mul(1_000_000),
            TimeUnit::Millisecond => time.saturating_mul(1_000),
            TimeUnit::Microsecond => time,
            TimeUnit::Nanosecond => time.div_euclid(1_000).saturating_add(i64::from(time.rem_euclid(1_000) > 0)),
        };
        Timestamp(micros.saturating_add(self.after))
    }

    /// The columns of the version that it asks for.
    pub fn columns(&self) -> &[usize] {
        self.expired.columns()
    }

    /// The columns of the version.
    pub fn schema(&self) -> &SchemaRef {
        self.read_as.schema()
    }
}

/// When the first of the rows expires that are seen at `read_point`, of row groups alone, or of the rows `among`; `None` if none does. Reads
/// the column that tells for each row group.
///
/// # Errors
/// As reads.
pub fn next_expiry(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    read_point: ReadPoint,
    among: Option<&[Matches]>,
) -> Result<Option<Timestamp>> {
    let Some(expiry) = Expiry::at(table, read_point)? else { return Ok(None) };
    let version = read_point.version;
    let chosen: Option<HashMap<GroupId, &RoaringBitmap>> =
        among.map(|among| among.iter().map(|matches| (matches.group, &matches.rows)).collect());
    let next = pool.map(table.groups.iter().collect(), |group| {
        let rows = match &chosen {
            Some(chosen) => chosen.get(&group.id).map_or(Rows::None, |rows| Rows::of((*rows).clone(), group.rows)),
            None => table.visible(group, version),
        };
        if rows == Rows::None {
            return Ok(None);
        }
        let opened = GroupReader::open(reader, table, version, group)?;
        let alive = expiry.alive(&opened, rows)?.positions(group.rows);
        let picked: Vec<u32> = alive.iter().collect();
        let columns = opened.pick(expiry.schema(), expiry.columns(), &picked)?;
        expiry.next(&columns, &BooleanBuffer::new_set(picked.len()))
    })?;
    Ok(next.into_iter().flatten().min())
}
