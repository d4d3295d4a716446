//! The order of a table: which columns can be sorted by, and sorting rows.
//!
//! Ascending, nulls first. Rows that compare equal keep the order in which they were written.
//!
//! - A frame is sorted as a whole (*sorting.rs*): what does not fit into memory is written in runs (*runs.rs*), which
//!   are merged (*kway.rs*).
//! - A scan merges row groups whose key ranges overlap. Which do is found by statistics of the first sort column; where
//!   these do not tell, the first and last keys of row groups are read once and remembered (*clusters.rs*, *ends.rs*).
//!   Four and more are decoded one by one, as the result comes to where each begins (*interleaved.rs*).
//! - A vacuum merges what it rewrites. A checkpoint also merges where more than two row groups overlap
//!   (*order_plan.rs*, *merging.rs*, *in_order.rs*), and puts the results in their places (*reorder.rs*); positions
//!   that were found before are carried over (*merge_order.rs*).

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, TypeName};
use crate::segment::{changed, holds, take_batch};
use crate::table::memory::row_bytes::columns_at;

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

/// The same for columns by which row groups are laid out, which may also be floats: no version shows where NaN comes.
pub(in crate::table) fn check_layout(names: &[String], schema: &Schema) -> Result<()> {
    let plain = |field: &FieldRef| match field.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            Arc::new(Field::clone(field).with_data_type(DataType::Int64))
        }
        _ => field.clone(),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(plain).collect();
    check_order(names, &Schema::new(fields), "layout column")
}

/// The same for columns that messages call `what`.
pub(in crate::table) fn check_order(names: &[String], schema: &Schema, what: &str) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        let field = schema.field_with_name(name).map_err(|_| {
            let there: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::invalid(format!("{what} '{name}' does not exist; the columns are '{}'", there.join("', '")))
        })?;
        if !sortable(field.data_type()) {
            let came = TypeName(field.data_type());
            return Err(Error::invalid(format!(
                "rows cannot be sorted by column '{name}' of type {came}; expected {SORTABLE}"
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
pub(in crate::table) const SORTABLE: &str = "booleans, integers, dates, times, timestamps, durations, strings, binary, decimals \
of up to 128 bits, or dictionaries of these";

fn sortable(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => true,
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => true,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(1..) => true,
        Decimal32(..) | Decimal64(..) | Decimal128(..) => true,
        Dictionary(_, values) => sortable(values),
        _ => false,
    }
}

/// Rows of `columns` in comparable form.
pub(in crate::table) fn comparable(columns: &[ArrayRef]) -> Result<Rows> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(columns)?)
}

/// The positions of `columns`' rows in order; `None` if they are already in order. O(n log n).
pub(in crate::table) fn sorted_positions(columns: &[ArrayRef]) -> Result<Option<UInt32Array>> {
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
pub(in crate::table) fn sorted(batch: RecordBatch, sort: &[String]) -> Result<RecordBatch> {
    let columns = sort_columns(&batch.schema(), sort)?;
    Ok(match sorted_positions(&columns_at(&batch, &columns))? {
        None => batch,
        Some(positions) => take_batch(&batch, positions.values().iter().copied())?,
    })
}

/// The places of the columns called `sort`.
pub(in crate::table) fn sort_columns(schema: &Schema, sort: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        schema.index_of(name).map_err(|_| Error::invalid(format!("sort column '{name}' does not exist")))
    };
    sort.iter().map(place).collect()
}
