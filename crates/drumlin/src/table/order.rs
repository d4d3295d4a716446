//! The order of a table: which columns can be sorted by, sorting rows, and finding row groups that overlap.
//!
//! Ascending, nulls first. Rows that compare equal keep the order in which they were written.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result};
use crate::segment::{ColumnStats, Stat, changed, holds, take_batch};

/// What a table is created with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    /// The columns that rows are ordered by when read, as they were called then; empty for insertion order.
    pub sort: Vec<String>,
    /// Whether these columns are a key: no two rows are equal in them.
    pub keyed: bool,
}

/// Checks that `sort` names columns of `schema` that can be sorted by.
pub fn check_sort(sort: &[String], schema: &Schema) -> Result<()> {
    check_order(sort, schema, "sort column")
}

/// The same for columns that messages call `what`.
pub(super) fn check_order(names: &[String], schema: &Schema, what: &str) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        let field = schema.field_with_name(name).map_err(|_| {
            let there: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::invalid(format!("{what} '{name}' does not exist; the columns are '{}'", there.join("', '")))
        })?;
        if !sortable(field.data_type()) {
            let came = field.data_type();
            return Err(Error::invalid(format!(
                "column '{name}' of type {came} cannot carry a sort order; {SORTABLE} can"
            )));
        }
        if names[..at].contains(name) {
            return Err(Error::invalid(format!("{what} '{name}' is named twice")));
        }
    }
    Ok(())
}

/// `schema` as a sorted table keeps it: dictionaries, at any depth, with keys of at least 32 bits. Row groups that overlap
/// are joined when read, and so are their dictionaries. Readers get this type too.
pub fn sorted_schema(schema: &SchemaRef, sort: &[String]) -> SchemaRef {
    let is_narrow = |part: &DataType| matches!(part, DataType::Dictionary(key, _) if narrow(key));
    if sort.is_empty() || !schema.fields().iter().any(|field| holds(field.data_type(), &is_narrow)) {
        return schema.clone();
    }
    let wide = |field: &FieldRef| Field::clone(field).with_data_type(changed(field.data_type(), &widen));
    let fields: Vec<Field> = schema.fields().iter().map(wide).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn widen(data_type: DataType) -> DataType {
    match data_type {
        DataType::Dictionary(key, values) if narrow(&key) => DataType::Dictionary(Box::new(DataType::Int32), values),
        other => other,
    }
}

fn narrow(key: &DataType) -> bool {
    matches!(key, DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16)
}

/// What [`sortable`] says, for messages.
pub(super) const SORTABLE: &str = "booleans, integers, dates, times, timestamps, durations, strings, binary and decimals of up to 128 \
                        bits, and dictionaries of these,";

fn sortable(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => true,
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => true,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        Decimal32(..) | Decimal64(..) | Decimal128(..) => true,
        Dictionary(_, values) => sortable(values),
        _ => false,
    }
}

/// Rows of `columns` in comparable form.
fn comparable(columns: &[ArrayRef]) -> Result<Rows> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(columns)?)
}

/// The positions of `columns`' rows in order; `None` if they are already in order. O(n log n).
pub(super) fn sorted_positions(columns: &[ArrayRef]) -> Result<Option<UInt32Array>> {
    let rows = comparable(columns)?;
    let n = rows.num_rows();
    if (1..n).all(|i| rows.row(i - 1) <= rows.row(i)) {
        return Ok(None);
    }
    let n = u32::try_from(n).map_err(|_| Error::invalid("more than 2^32 rows overlap in the sort order"))?;
    let mut positions: Vec<u32> = (0..n).collect();
    positions.sort_by(|&a, &b| rows.row(a as usize).cmp(&rows.row(b as usize)));
    Ok(Some(UInt32Array::from(positions)))
}

/// `batch` in the order of the columns called `sort`.
pub(super) fn sorted(batch: RecordBatch, sort: &[String]) -> Result<RecordBatch> {
    let column = |name: &String| {
        let column = batch.column_by_name(name).cloned();
        column.ok_or_else(|| Error::invalid(format!("sort column '{name}' is not among the columns")))
    };
    let columns: Vec<ArrayRef> = sort.iter().map(column).collect::<Result<_>>()?;
    Ok(match sorted_positions(&columns)? {
        None => batch,
        Some(positions) => take_batch(&batch, positions.values().iter().copied())?,
    })
}

/// Groups items, given the statistics of their first sort column, into clusters: in the result, every row of a cluster
/// comes before every row of the next. Items of one cluster keep their order. `alone` says that there is no other sort column:
/// rows with the same value in it are equal.
pub(super) fn clusters(stats: &[ColumnStats], alone: bool) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..stats.len()).collect();
    // Nulls come first, so a group with nulls has no lower bound; nor has one without statistics.
    let min = |i: usize| stats[i].min.as_ref().filter(|_| stats[i].nulls == 0);
    order.sort_by(|&a, &b| compare(min(a), min(b)).then(a.cmp(&b)));
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    // The greatest value seen so far; `None` is unbounded.
    let mut reach: Option<Option<&Stat>> = None;
    for i in order {
        let max = stats[i].max.as_ref();
        let written_later = || clusters.last().is_some_and(|cluster| cluster.iter().all(|earlier| *earlier < i));
        let apart = match (reach, min(i)) {
            (Some(Some(reach)), Some(min)) => match reach.compare(min) {
                Some(Ordering::Less) => true,
                // Equal rows keep the order in which they were written.
                Some(Ordering::Equal) => alone && written_later(),
                _ => false,
            },
            _ => false,
        };
        match clusters.last_mut() {
            Some(cluster) if !apart => {
                cluster.push(i);
                let wider = match (reach.flatten(), max) {
                    (Some(a), Some(b)) => Some(if a.compare(b) == Some(Ordering::Less) { b } else { a }),
                    _ => None,
                };
                reach = Some(wider);
            }
            _ => {
                clusters.push(vec![i]);
                reach = Some(max);
            }
        }
    }
    clusters.iter_mut().for_each(|cluster| cluster.sort_unstable());
    clusters
}

fn compare(a: Option<&Stat>, b: Option<&Stat>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some(a), Some(b)) => a.compare(b).unwrap_or(Ordering::Equal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: i64, max: i64) -> ColumnStats {
        ColumnStats { nulls: 0, min: Some(Stat::Int(min)), max: Some(Stat::Int(max)), exact: true }
    }

    #[test]
    fn overlapping_groups_form_a_cluster() {
        let clusters = |stats: &[ColumnStats]| super::clusters(stats, true);
        assert_eq!(clusters(&[range(0, 9), range(10, 19), range(20, 29)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(20, 29), range(0, 9)]), [[1], [0]]);
        // Items that touch may hold equal rows: apart if they come in the order in which they were written.
        assert_eq!(clusters(&[range(0, 10), range(10, 19), range(20, 29)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(0, 5), range(5, 5), range(5, 9)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(10, 19), range(0, 10), range(20, 29)]), [vec![0, 1], vec![2]]);
        assert_eq!(clusters(&[range(0, 9), range(5, 6), range(9, 9)]), [vec![0, 1], vec![2]]);
        assert_eq!(clusters(&[range(5, 9), range(9, 12), range(0, 5)]), [[0, 1, 2]]);
        // Unless other columns decide.
        assert_eq!(super::clusters(&[range(0, 10), range(10, 19), range(20, 29)], false), [vec![0, 1], vec![2]]);
        // A wide group takes in everything that it spans.
        assert_eq!(clusters(&[range(5, 6), range(0, 100), range(7, 8), range(101, 101)]), [vec![0, 1, 2], vec![3]]);
        let nulls = ColumnStats { nulls: 1, ..range(50, 60) };
        assert_eq!(clusters(&[range(0, 9), nulls]), [[0, 1]]);
        assert_eq!(clusters(&[ColumnStats::default(), range(0, 9)]), [[0, 1]]);
    }
}
