//! Rows by the range of their sort key: the rows that an update replaces.

use std::cmp::Ordering;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::matching::{Searched, search};
use crate::base::{Cancel, Error, Pool, Result};
use crate::block::BlockReader;
use crate::memtable::{Keys, RowBytes};
use crate::segment::{ColumnStats, Form, measure};
use crate::table::memory::overlay::{Overlay, SeenOverlay};
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::find;
use crate::table::{FoundRows, ReadPoint, Rows, TableCodec, TableState};

/// The smallest and the greatest sort key of some rows, both inclusive.
pub struct KeyRange {
    converter: RowConverter,
    low: OwnedRow,
    high: OwnedRow,
    /// Statistics of the first sort column, to skip row groups.
    first: ColumnStats,
}

impl KeyRange {
    /// The range that `batches` cover in the order of the columns called `sort`; `None` if they have no rows.
    pub fn of(batches: &[RecordBatch], sort: &[String]) -> Result<Option<Self>> {
        let mut range: Option<Self> = None;
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            let column = |name: &String| Ok(batch.column(find(&batch.schema(), name)?).clone());
            let columns: Vec<ArrayRef> = sort.iter().map(column).collect::<Result<_>>()?;
            let first = columns.first().ok_or_else(|| Error::invalid("the table has no sort order"))?;
            let stats = measure(first);
            let range = match &mut range {
                Some(range) => {
                    range.first = range.first.union(&stats);
                    range
                }
                None => {
                    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
                    let converter = RowConverter::new(fields)?;
                    let rows = converter.convert_columns(&columns)?;
                    let one = rows.row(0).owned();
                    range.insert(Self { converter, low: one.clone(), high: one, first: stats })
                }
            };
            let rows = range.converter.convert_columns(&columns)?;
            for row in &rows {
                if row < range.low.row() {
                    range.low = row.owned();
                } else if row > range.high.row() {
                    range.high = row.owned();
                }
            }
        }
        Ok(range)
    }

    /// Whether a row group with these statistics of its first sort column may hold a row in the range.
    pub(in crate::table) fn may_hold(&self, stats: &ColumnStats) -> bool {
        if stats.nulls > 0 || self.first.nulls > 0 {
            return true;
        }
        let below = |a: &Option<_>, b: &Option<_>| match (a, b) {
            (Some(a), Some(b)) => crate::segment::Stat::compare(a, b) == Some(Ordering::Less),
            _ => false,
        };
        !below(&stats.max, &self.first.min) && !below(&self.first.max, &stats.min)
    }

    /// The visible rows within the range, found in parallel.
    pub fn rows_of(
        &self,
        reader: &BlockReader,
        pool: &Pool,
        table: &TableState,
        read_point: ReadPoint,
        cancel: &Cancel,
    ) -> Result<FoundRows> {
        let version = read_point.version;
        let (schema, order) = (&table.schema_of(version)?.0, table.order_of(version)?);
        let columns = order.iter().map(|name| find(schema, name)).collect::<Result<Vec<_>>>()?;
        let find = |reader: &GroupReader<'_>, visible: &Rows| {
            if reader.column(&order[0]).is_some_and(|column| !self.may_hold(&column.stats)) {
                return Ok(Rows::None);
            }
            let within = self.within(&reader.decode(schema, &columns, Form::Exact)?)?;
            let total = reader.group.rows;
            let rows = visible.positions(total).into_iter().filter(|row| within.value(*row as usize)).collect();
            Ok(Rows::of(rows, total))
        };
        let keep = |codec: &TableCodec, keys: &Keys, rows: &RowBytes| self.within(&codec.decode(keys, rows, &columns)?);
        let overlay = Overlay::new(table, read_point).map(|overlay| SeenOverlay::whole(&overlay));
        let may_hold =
            |group: &GroupReader<'_>| group.column(&order[0]).is_none_or(|column| self.may_hold(&column.stats));
        let wanted = &may_hold as _;
        let columns = &columns[..];
        search(&Searched { reader, pool, table, read_point, mask: None, overlay, columns, wanted }, cancel, find, keep)
    }

    /// The rows within the range, given their sort columns.
    fn within(&self, columns: &[ArrayRef]) -> Result<BooleanBuffer> {
        let keys = self.converter.convert_columns(columns)?;
        Ok(BooleanBuffer::collect_bool(keys.num_rows(), |row| {
            let key = keys.row(row);
            self.low.row() <= key && key <= self.high.row()
        }))
    }
}
