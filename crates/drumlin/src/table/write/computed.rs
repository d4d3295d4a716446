//! New values for some columns of some rows: computes them, and makes the row groups that hold them. What does not change stays
//! where it is, or is copied as it is encoded.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use roaring::RoaringBitmap;

use crate::base::{Error, Pool, Result, Task, TypeName, Version};
use crate::block::{BlockReader, EncodedRowGroup};
use crate::filter::{BoundExpression, Expression, Filter};
use crate::segment::{Form, Proof, Scheme, Segment, encode_like, interleave};
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::{find, into_type};
use crate::table::schema::bounds_of_types::find_impossible;
use crate::table::schema::compression::compression_of;
use crate::table::schema::constraints::{Checks, values_of};
use crate::table::{Matches, NewPatch, ReadPoint, RowGroup, TableState, matching_rows};

/// A column, and what it is set to.
pub type Assignment = (String, Expression);

/// Ties values for columns of `schema` to `inputs`, the columns that they are computed from. `InvalidArgument` for a column that is
/// set twice, does not exist, or is `fixed`, and for values that are none of its type.
pub(in crate::table) fn check_set(
    table: &TableState,
    schema: &Schema,
    inputs: &Schema,
    set: &[Assignment],
    fixed: &[String],
) -> Result<Vec<(usize, BoundExpression)>> {
    if set.is_empty() {
        return Err(Error::invalid("no column is set; give at least one column and its value"));
    }
    let mut columns: Vec<(usize, BoundExpression)> = Vec::with_capacity(set.len());
    for (name, expression) in set {
        let at = find(schema, name)?;
        let field = schema.field(at);
        if fixed.contains(field.name()) {
            let what = if table.spec.keyed { "part of the key" } else { "a column that the table is sorted by" };
            return Err(Error::invalid(format!(
                "column '{name}' is {what}, so it cannot be set; delete the rows and write them again, in one \
                 transaction"
            )));
        }
        if columns.iter().any(|(known, _)| *known == at) {
            return Err(Error::invalid(format!("column '{name}' is set twice")));
        }
        let bound = expression.bind(inputs, field.data_type());
        columns.push((at, bound.map_err(|e| e.context(format!("column '{name}'")))?));
    }
    Ok(columns)
}

/// What columns of a table are set to.
pub struct Assignments {
    schema: SchemaRef,
    /// The columns by place, each with its values.
    columns: Vec<(usize, BoundExpression)>,
    /// The columns that these are computed from, by place.
    inputs: Vec<usize>,
}

impl Assignments {
    /// Ties expressions to the columns of the newest version. `InvalidArgument` for a column that is set twice, does not exist,
    /// or orders the rows, and for values that are none of its type.
    pub fn new(table: &TableState, set: &[Assignment]) -> Result<Self> {
        let own = table.schema().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        let columns = check_set(table, &own.0, &own.0, set, table.order())?;
        let mut inputs: Vec<usize> = columns.iter().flat_map(|(_, bound)| bound.columns()).copied().collect();
        inputs.sort_unstable();
        inputs.dedup();
        Ok(Self { schema: own.0.clone(), columns, inputs })
    }

    /// The columns that are set, by place.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|(at, _)| *at)
    }

    /// The columns that are read to write new values: those that these are computed from, and those that are set.
    pub fn reads(&self) -> Vec<usize> {
        self.inputs.iter().copied().chain(self.columns()).collect()
    }

    /// The new values of the rows `picked` of a row group, column by column.
    fn values(&self, reader: &GroupReader<'_>, picked: &RoaringBitmap) -> Result<Vec<ArrayRef>> {
        let inputs = reader.some_rows(&self.schema, &self.inputs, picked)?;
        let field = |(at, array): (&usize, &ArrayRef)| {
            Field::new(self.schema.field(*at).name(), array.data_type().clone(), true)
        };
        let fields: Vec<Field> = self.inputs.iter().zip(&inputs).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(picked.len() as usize));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), inputs, &options)?;
        self.columns.iter().map(|(at, bound)| value_of(self.schema.field(*at), bound, &batch)).collect()
    }

    /// What becomes of the rows `picked` of a row group.
    pub fn new_values(
        &self,
        blocks: &BlockReader,
        table: &TableState,
        version: Version,
        group: &RowGroup,
        picked: &RoaringBitmap,
    ) -> Result<Vec<NewValues>> {
        let values = self.values(&GroupReader::open(blocks, table, version, group)?, picked)?;
        let new = |((column, _), values): (&(usize, BoundExpression), ArrayRef)| NewValues {
            column: *column,
            rows: picked.clone(),
            values,
        };
        Ok(self.columns.iter().zip(values).map(new).collect())
    }
}

/// The values of a column, computed from a batch.
pub(in crate::table) fn value_of(field: &Field, bound: &BoundExpression, batch: &RecordBatch) -> Result<ArrayRef> {
    let array = bound.compute(batch).map_err(|e| e.context(format!("column '{}'", field.name())))?;
    if let Some((_, value, why)) = find_impossible(&array, None) {
        let (name, data_type) = (field.name(), field.data_type());
        return Err(Error::invalid(format!("column '{name}': {value} {why} its type {}", TypeName(data_type))));
    }
    not_null(field, array)
}

/// Fails if the column takes no nulls and there is one.
pub(in crate::table) fn not_null(field: &Field, array: ArrayRef) -> Result<ArrayRef> {
    match !field.is_nullable() && array.logical_null_count() > 0 {
        true => Err(Error::schema_mismatch(format!(
            "column '{}' takes no nulls, but would be null in {} rows",
            field.name(),
            array.logical_null_count()
        ))),
        false => Ok(array),
    }
}

/// New values of a column in some rows of a row group.
pub struct NewValues {
    /// The place of the column in the newest version's schema.
    pub column: usize,
    /// The rows; no others of the column have one of them.
    pub rows: RoaringBitmap,
    /// Their values, in the type of the column.
    pub values: ArrayRef,
}

/// The values `old` of the rows `rows`, with those of `changes` instead where they have one.
fn changed(old: ArrayRef, rows: impl Iterator<Item = u32>, changes: &[&NewValues]) -> Result<ArrayRef> {
    if let [only] = changes
        && only.rows.len() == old.len() as u64
    {
        return Ok(only.values.clone());
    }
    let mut next: Vec<_> = changes.iter().map(|new| new.rows.iter().zip(0..).peekable()).collect();
    let place = |(at, row): (usize, u32)| {
        let own = next.iter_mut().zip(1..).find_map(|(rows, new)| Some((new, rows.next_if(|(own, _)| *own == row)?.1)));
        own.unwrap_or((0, at))
    };
    let places: Vec<(usize, usize)> = rows.enumerate().map(place).collect();
    let sources: Vec<ArrayRef> = std::iter::once(old).chain(changes.iter().map(|new| new.values.clone())).collect();
    interleave(&sources, &places)
}

/// A row group like `group`, in the newest version's schema and with new values; or, if it may have and that pays, just the columns
/// that have any, and what makes them a patch. Columns without any are copied as they are encoded.
#[expect(clippy::too_many_arguments, reason = "what is changed, of which table, and how it is written")]
pub fn replace_group(
    blocks: &BlockReader,
    pool: &Pool,
    table: &TableState,
    version: Version,
    group: &RowGroup,
    changes: &[NewValues],
    may_patch: bool,
    proof: Proof,
) -> Result<(EncodedRowGroup, Option<NewPatch>)> {
    let (reader, schema) = (GroupReader::open(blocks, table, version, group)?, &table.schema_of(version)?.0);
    let columns: BTreeSet<u32> = changes.iter().map(|new| new.column as u32).collect();
    let patch = may_patch.then(|| reader.patch(schema, columns.into_iter().collect())).flatten();
    let compression = compression_of(schema)?.unwrap_or_default();
    let segment = |at: usize| -> Result<Segment> {
        let own: Vec<&NewValues> = changes.iter().filter(|new| new.column == at).collect();
        if own.is_empty()
            && let Some(segment) = reader.segment(schema, at)?
        {
            return Ok(segment);
        }
        let (new, scheme) = changed_column(&reader, schema, at, &own)?;
        let data_type = schema.field(at).data_type();
        let encode = || {
            let mut segment = encode_like(&new, data_type, &scheme.with_compression(compression))?.0;
            if proof == Proof::Decoded {
                segment.prove(&new, data_type)?;
            }
            Ok(segment)
        };
        encode().map_err(|e: Error| e.context(format!("column '{}'", schema.field(at).name())))
    };
    let columns = match &patch {
        Some(patch) => patch.columns.iter().map(|column| *column as usize).collect(),
        None => (0..schema.fields().len()).collect(),
    };
    let mut segments = pool.map(columns, segment)?;
    if patch.is_none() {
        segments.extend(reader.places_segment()?);
    }
    let filter = if patch.is_none() { reader.key_filter()?.map(|filter| filter.to_vec()) } else { None };
    Ok((EncodedRowGroup { rows: group.rows, segments, filter }, patch))
}

/// A column of a row group with new values, in its type or in that in which its decimals are stored if they all fit it; and how it
/// was encoded before.
fn changed_column(
    reader: &GroupReader<'_>,
    schema: &SchemaRef,
    at: usize,
    changes: &[&NewValues],
) -> Result<(ArrayRef, Scheme)> {
    let rows = 0..reader.group.rows;
    if schema.field(at).data_type().is_decimal() && !changes.is_empty() {
        let (old, scheme) = reader.decode_with_scheme(schema, at, Form::Native)?;
        let narrow = |new: &&NewValues| {
            let values = into_type(new.values.clone(), old.data_type()).ok()?;
            Some(NewValues { column: at, rows: new.rows.clone(), values })
        };
        if let Some(narrow) = changes.iter().map(narrow).collect::<Option<Vec<_>>>() {
            return Ok((changed(old, rows, &narrow.iter().collect::<Vec<_>>())?, scheme));
        }
    }
    let (old, scheme) = reader.decode_with_scheme(schema, at, Form::Exact)?;
    Ok((if changes.is_empty() { old } else { changed(old, rows, changes)? }, scheme))
}

/// The rows `picked` of a row group, with new values.
pub fn changed_rows(
    blocks: &BlockReader,
    table: &TableState,
    version: Version,
    group: &RowGroup,
    picked: &RoaringBitmap,
    changes: &[NewValues],
) -> Result<RecordBatch> {
    let all: Vec<usize> = (0..table.schema_of(version)?.0.fields().len()).collect();
    changed_columns(blocks, table, version, group, &all, picked, changes)
}

/// The same, of some columns by their places in the version's schema.
pub fn changed_columns(
    blocks: &BlockReader,
    table: &TableState,
    version: Version,
    group: &RowGroup,
    columns: &[usize],
    picked: &RoaringBitmap,
    changes: &[NewValues],
) -> Result<RecordBatch> {
    let (reader, schema) = (GroupReader::open(blocks, table, version, group)?, &table.schema_of(version)?.0);
    let column = |(old, at): (ArrayRef, &usize)| {
        let own: Vec<&NewValues> = changes.iter().filter(|new| new.column == *at).collect();
        if own.is_empty() { Ok(old) } else { changed(old, picked.iter(), &own) }
    };
    let values = reader.some_rows(schema, columns, picked)?.into_iter().zip(columns).map(column);
    let options = RecordBatchOptions::new().with_row_count(Some(picked.len() as usize));
    let schema = Arc::new(schema.project(columns)?);
    Ok(RecordBatch::try_new_with_options(schema, values.collect::<Result<_>>()?, &options)?)
}

/// Fails if one of `checks`, those of the newest version's schema, does not hold for a row with new values.
pub fn check_new_values(
    blocks: &BlockReader,
    table: &TableState,
    version: Version,
    group: &RowGroup,
    picked: &RoaringBitmap,
    changes: &[NewValues],
    checks: &Checks,
) -> Result<()> {
    let checks = checks.about(&changes.iter().map(|new| new.column).collect());
    if checks.is_empty() {
        return Ok(());
    }
    let batch = changed_columns(blocks, table, version, group, &checks.columns(), picked, changes)?;
    checks.test(&batch, |_| "a row that is changed".to_owned())
}

/// `SchemaMismatch`, saying `what` does not hold, if the newest version has a row for which a filter is true. The table has no
/// rows in memory.
pub fn refuse_matching(
    blocks: &BlockReader,
    pool: &Pool,
    table: &TableState,
    read_point: ReadPoint,
    (what, filter): (&str, &Filter),
    task: &Task,
) -> Result<()> {
    let found = matching_rows(blocks, pool, table, read_point, filter, &task.cancel)?;
    let rows: u64 = found.groups.iter().map(|matches| matches.rows.len()).sum();
    let Some(Matches { group, rows: first }) = found.groups.iter().find(|matches| !matches.rows.is_empty()) else {
        return Ok(());
    };
    let group = table.groups.iter().find(|own| own.id == *group).expect("it was just searched");
    let first: RoaringBitmap = first.iter().take(1).collect();
    let row = changed_rows(blocks, table, read_point.version, group, &first, &[])?;
    Err(Error::schema_mismatch(format!(
        "{what} does not hold for {rows} of the existing rows; in the first, {}",
        values_of(&row, 0, &filter.columns())?
    )))
}
