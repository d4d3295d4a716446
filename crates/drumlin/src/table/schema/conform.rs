//! Makes incoming batches fit a table's schema, or says which column does not fit, what was expected and what was
//! found.
//!
//! Columns are matched by name. Only conversions that keep every value are made: between the layouts of strings, of binary,
//! of lists and of dictionaries, to wider integers, floats and decimals, and from columns of type null, all of them also within
//! nested types. Integers are converted to floats and to unsigned integers as wide, times to another unit, and decimals to another scale if every value of
//! the batch can be represented exactly; otherwise the first that cannot is named. Columns of an Arrow extension type
//! accept the same type and its plain storage type, but no other extension (extension.rs). Values that their type does not allow
//! are refused (bounds_of_types.rs): no reader could represent them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBufferBuilder, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    RecordBatch, RecordBatchOptions, StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;

use super::arrays::{cast_exactly, into_type};
use super::bounds_of_types::find_impossible;
use super::constraints::Checks;
use super::extension::check_extension;
use crate::base::{Error, Result, TypeName};
use crate::table::{Generators, StoredSchema};

/// Converts the batches of one frame to a schema.
pub struct Conform {
    schema: SchemaRef,
    /// The columns that frames may lack, and what makes values for them.
    fill: Option<(StoredSchema, Generators)>,
    /// What messages call the table.
    table: Option<String>,
    /// What each row must be.
    checks: Checks,
    /// Rows of the previous batches.
    seen: u64,
}

impl Conform {
    /// For batches that must have `schema`.
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, fill: None, table: None, checks: Checks::default(), seen: 0 }
    }

    /// The same; messages begin with `table`.
    #[must_use]
    pub fn named(self, table: impl Into<String>) -> Self {
        Self { table: Some(table.into()), ..self }
    }

    /// The same; columns that a batch lacks have the default that they have in the schema, or are null.
    #[must_use]
    pub fn filling(self, fill: Option<(StoredSchema, Generators)>) -> Self {
        Self { fill, ..self }
    }

    /// The same; fails at the first row for which a check does not hold.
    #[must_use]
    pub fn checking(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// What it tests.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// A batch with all columns.
    fn filled(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some((own, generators)) = &self.fill else { return Ok(batch.clone()) };
        let came = batch.schema();
        let lacking: Vec<&FieldRef> =
            own.0.fields().iter().filter(|field| came.index_of(field.name()).is_err()).collect();
        if lacking.is_empty() {
            return Ok(batch.clone());
        }
        let (mut fields, mut columns) = (came.fields().to_vec(), batch.columns().to_vec());
        for field in lacking {
            if !field.is_nullable() && !own.has_default(field.name()) {
                return Err(Error::schema_mismatch(format!(
                    "the data lacks column '{}', which takes no nulls and has no default; add it to the data",
                    field.name()
                )));
            }
            columns.push(generators.lacking(own, field, batch.num_rows())?);
            fields.push(field.clone());
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, came.metadata().clone()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Converts the next batch to the schema.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let conform = || {
            let conformed = conform_from(&self.filled(batch)?, &self.schema, self.seen)?;
            self.checks.test(&conformed, |row| format!("row {} of the data", self.seen + row as u64))?;
            Ok(conformed)
        };
        let conformed = conform().map_err(|e: Error| match &self.table {
            Some(table) => e.context(table),
            None => e,
        })?;
        self.seen += batch.num_rows() as u64;
        Ok(conformed)
    }
}

/// Converts `batch` to `schema`.
///
/// # Errors
/// `SchemaMismatch` if a column is missing, is none of the schema's, or has values that the wanted type does not hold.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    conform_from(batch, schema, 0)
}

/// The same; messages count rows from `first` on.
fn conform_from(batch: &RecordBatch, schema: &SchemaRef, first: u64) -> Result<RecordBatch> {
    let came = batch.schema();
    let same = Arc::ptr_eq(&came, schema);
    let in_order = same || came.fields().iter().map(|f| f.name()).eq(schema.fields().iter().map(|f| f.name()));
    if !in_order {
        check_names(&came, schema)?;
    }
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let at = if in_order { at } else { came.index_of(field.name())? };
        if !same {
            check_extension(came.field(at), field)?;
        }
        conform_column(batch.column(at), field, first)
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    if same {
        return Ok(batch.clone());
    }
    RecordBatch::try_new(schema.clone(), columns).map_err(|e| Error::schema_mismatch(e.to_string()))
}

fn check_names(came: &Schema, schema: &Schema) -> Result<()> {
    let list = |names: Vec<&str>| names.join("', '");
    let missing: Vec<&str> =
        schema.fields().iter().map(|f| f.name().as_str()).filter(|n| came.index_of(n).is_err()).collect();
    let extra: Vec<&str> =
        came.fields().iter().map(|f| f.name().as_str()).filter(|n| schema.index_of(n).is_err()).collect();
    if !missing.is_empty() || !extra.is_empty() {
        let mut what = Vec::new();
        if !missing.is_empty() {
            what.push(format!("the table has '{}', which the data lacks", list(missing)));
        }
        if !extra.is_empty() {
            what.push(format!("the data has '{}', which the table lacks", list(extra)));
        }
        let evolved =
            "with schema='evolve', what the table lacks is added, and what the data lacks is a default or null";
        return Err(Error::schema_mismatch(format!("{} ({evolved})", what.join("; "))));
    }
    if came.fields().len() != schema.fields().len() {
        return Err(Error::schema_mismatch("the data has two columns of the same name; rename one"));
    }
    Ok(())
}

/// A value, an array of one row, in the type of `field`.
pub(in crate::table) fn conform_value(value: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    match value.len() {
        1 => conform_column(value, field, 0),
        rows => Err(Error::invalid(format!("column '{}': expected one value, got {rows} values", field.name()))),
    }
}

/// The first value of `array` that is none of type `wanted`, as text.
pub(in crate::table) fn first_misfit(array: &ArrayRef, wanted: &DataType) -> Result<Option<String>> {
    let mismatch = || {
        Error::schema_mismatch(format!(
            "values of type {} cannot be converted to {}",
            TypeName(array.data_type()),
            TypeName(wanted)
        ))
    };
    match convert(array, wanted, None) {
        Ok(_) => Ok(None),
        Err(Misfit::Value(_, value)) => Ok(Some(value)),
        Err(Misfit::Type) => Err(mismatch()),
        Err(Misfit::Refused(e)) => Err(mismatch().with_source(e.to_string())),
    }
}

/// `array` as one of type `wanted`, in which it is read: an error if a value is none of that type.
pub(in crate::table) fn as_read(array: ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let own = array.data_type();
    let narrower = own.is_decimal() && wanted.is_decimal() && !keeps_values(own, wanted);
    if own == wanted || !narrower && !own.is_nested() {
        return into_type(array, wanted);
    }
    if let DataType::Dictionary(_, values) = own
        && !matches!(wanted, DataType::Dictionary(..))
    {
        return as_read(into_type(array.clone(), values)?, wanted);
    }
    convert(&array, wanted, None).map_err(|misfit| match misfit {
        Misfit::Type => Error::schema_mismatch(format!(
            "values of type {} cannot be converted to {}",
            TypeName(own),
            TypeName(wanted)
        )),
        Misfit::Value(_, value) => Error::schema_mismatch(format!("{value} is not a valid {}", TypeName(wanted))),
        Misfit::Refused(e) => e.into(),
    })
}

/// Why a column does not fit.
enum Misfit {
    /// Its type.
    Type,
    /// A value, in this row.
    Value(usize, String),
    /// Arrow's error.
    Refused(ArrowError),
}

impl From<ArrowError> for Misfit {
    fn from(error: ArrowError) -> Self {
        Misfit::Refused(error)
    }
}

impl Misfit {
    /// The same for the nested column above: `row` maps a row of its values to one of its own.
    fn above(self, row: impl Fn(usize) -> usize) -> Self {
        match self {
            Misfit::Value(below, value) => Misfit::Value(row(below), value),
            other => other,
        }
    }
}

fn conform_column(column: &ArrayRef, field: &Field, first: u64) -> Result<ArrayRef> {
    let (name, came, wanted) = (field.name(), column.data_type(), field.data_type());
    if let Some((row, value, why)) = find_impossible(column, None) {
        let row = first + row as u64;
        return Err(Error::invalid(format!("column '{name}': {value} in row {row} {why} its type {}", TypeName(came))));
    }
    let mismatch =
        || format!("column '{name}': the table has type {}, the data has {}", TypeName(wanted), TypeName(came));
    let column = convert(column, wanted, None).map_err(|misfit| match misfit {
        Misfit::Type => Error::schema_mismatch(mismatch()),
        Misfit::Refused(e) => Error::schema_mismatch(mismatch()).with_source(e.to_string()),
        Misfit::Value(row, value) => {
            let row = first + row as u64;
            Error::schema_mismatch(format!(
                "{}, and {value} in row {row} is not a valid {}",
                mismatch(),
                TypeName(wanted)
            ))
        }
    })?;
    if !field.is_nullable() && column.logical_null_count() > 0 {
        let nulls = column.logical_nulls();
        let row = nulls.and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row))).unwrap_or(0);
        return Err(Error::schema_mismatch(format!(
            "column '{name}' takes no nulls; the data has {}, the first in row {}",
            column.logical_null_count(),
            first + row as u64
        )));
    }
    Ok(column)
}

/// `array` as one of type `wanted`. Rows that are null in `hidden` do not count.
fn convert(array: &ArrayRef, wanted: &DataType, hidden: Option<&NullBuffer>) -> Result<ArrayRef, Misfit> {
    use DataType::*;
    let came = array.data_type();
    let nulls = array.nulls().cloned();
    if came == wanted {
        return Ok(array.clone());
    }
    Ok(match (came, wanted) {
        (Null, _) => new_null_array(wanted, array.len()),
        (Struct(from), Struct(to)) if from.len() == to.len() => {
            let array = array.as_struct();
            let hidden = NullBuffer::union(hidden, array.nulls());
            // Older tables may have two fields of one name.
            let in_order = from.iter().zip(to).all(|(from, to)| from.name() == to.name());
            let column = |(at, field): (usize, &FieldRef)| {
                let at = if in_order { at } else { from.find(field.name()).ok_or(Misfit::Type)?.0 };
                convert(array.column(at), field.data_type(), hidden.as_ref())
            };
            let columns = to.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(to.clone(), columns, nulls, array.len())?)
        }
        (List(_), List(field)) => convert_list::<i32>(array, field, hidden)?,
        (LargeList(_), LargeList(field)) => convert_list::<i64>(array, field, hidden)?,
        (Map(_, sorted), Map(field, to_sorted)) if sorted == to_sorted => {
            let map = array.as_map();
            let (offsets, entries) = used(map.offsets(), &(Arc::new(map.entries().clone()) as ArrayRef));
            let below = NullBuffer::union(hidden, map.nulls()).map(|maps| elements_of(&offsets, &maps));
            let entries = convert(&entries, field.data_type(), below.as_ref());
            let entries = entries.map_err(|e| e.above(|at| row_of(&offsets, at)))?;
            Arc::new(MapArray::try_new(field.clone(), offsets, entries.as_struct().clone(), nulls, *sorted)?)
        }
        (FixedSizeList(_, size), FixedSizeList(field, to_size)) if size == to_size => {
            let (list, width) = (array.as_fixed_size_list(), *size as usize);
            let values = list.values().slice(0, list.len() * width);
            let below = NullBuffer::union(hidden, list.nulls()).map(|nulls| nulls.expand(width));
            let values = convert(&values, field.data_type(), below.as_ref());
            let values = values.map_err(|e| e.above(|at| at / width.max(1)))?;
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, list.len())?)
        }
        _ if let Some((plain, converted)) = as_plain_lists(came, wanted) => {
            let exact = CastOptions { safe: false, ..CastOptions::default() };
            let lists = cast_with_options(array, &plain, &exact)?;
            cast_with_options(&convert(&lists, &converted, hidden)?, wanted, &exact)?
        }
        _ if keeps_values(came, wanted) => cast_exactly(array, wanted)?,
        _ if may_be_exact(came, wanted) => convert_exactly(array, wanted, hidden)?,
        _ => return Err(Misfit::Type),
    })
}

/// For lists of type `from` that are to be lists of type `to`, both with elements that lie one after the other, so that those which no
/// row has do not count: of the one elements, and of the other. `None` if they are no lists.
fn as_plain_lists(from: &DataType, to: &DataType) -> Option<(DataType, DataType)> {
    use DataType::*;
    let (List(element) | LargeList(element) | ListView(element) | LargeListView(element) | FixedSizeList(element, _)) =
        from
    else {
        return None;
    };
    let (List(wanted) | LargeList(wanted) | ListView(wanted) | LargeListView(wanted)) = to else { return None };
    Some(match from {
        LargeList(_) | LargeListView(_) => (LargeList(element.clone()), LargeList(wanted.clone())),
        _ => (List(element.clone()), List(wanted.clone())),
    })
}

/// The values used by lists with these offsets, and the offsets among them.
fn used<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> (OffsetBuffer<O>, ArrayRef) {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    if first == 0 {
        return (offsets.clone(), values.slice(0, last));
    }
    let from_zero = offsets.iter().map(|offset| *offset - offsets[0]).collect();
    (OffsetBuffer::new(from_zero), values.slice(first, last - first))
}

/// The list that an element belongs to.
fn row_of<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, element: usize) -> usize {
    offsets.partition_point(|offset| offset.as_usize() <= element).saturating_sub(1)
}

/// The elements that count: those of lists that are there.
fn elements_of<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, lists: &NullBuffer) -> NullBuffer {
    let mut elements = BooleanBufferBuilder::new(0);
    offsets.lengths().zip(lists).for_each(|(elements_in_it, there)| elements.append_n(elements_in_it, there));
    NullBuffer::new(elements.finish())
}

fn convert_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    field: &FieldRef,
    hidden: Option<&NullBuffer>,
) -> Result<ArrayRef, Misfit> {
    let list = array.as_list::<O>();
    let (offsets, values) = used(list.offsets(), list.values());
    let below = NullBuffer::union(hidden, list.nulls()).map(|lists| elements_of(&offsets, &lists));
    let values = convert(&values, field.data_type(), below.as_ref());
    let values = values.map_err(|e| e.above(|at| row_of(&offsets, at)))?;
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, list.nulls().cloned())?))
}

/// Whether some values of type `from` are values of type `to`.
pub(in crate::table) fn may_be_exact(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let time = |data_type: &DataType| matches!(data_type, Time32(_) | Time64(_));
    match (from, to) {
        (Int8, UInt8 | UInt16 | UInt32 | UInt64)
        | (Int16, UInt16 | UInt32 | UInt64)
        | (Int32, UInt32 | UInt64)
        | (Int64, UInt64) => true,
        (Timestamp(_, from), Timestamp(_, to)) => from == to,
        (Duration(_), Duration(_)) => true,
        _ => {
            (from.is_integer() && to.is_floating())
                || (time(from) && time(to))
                || (from.is_decimal() && to.is_decimal())
        }
    }
}

/// Casts there and back, and looks for a value that has changed.
fn convert_exactly(array: &ArrayRef, wanted: &DataType, hidden: Option<&NullBuffer>) -> Result<ArrayRef, Misfit> {
    let lossy = CastOptions { safe: true, ..CastOptions::default() };
    let there = cast_with_options(array, wanted, &lossy)?;
    let back = cast_with_options(&there, array.data_type(), &lossy)?;
    let differs = distinct(&back, array)?;
    let mut rows = differs.values().set_indices();
    match rows.find(|row| hidden.is_none_or(|hidden| hidden.is_valid(*row))) {
        Some(row) => Err(Misfit::Value(row, array_value_to_string(array, row)?)),
        None => Ok(there),
    }
}

/// Whether every value of type `from` is a value of type `to`.
pub(in crate::table) fn keeps_values(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let integer = |t: &DataType| match t {
        Int8 => Some((true, 8)),
        Int16 => Some((true, 16)),
        Int32 => Some((true, 32)),
        Int64 => Some((true, 64)),
        UInt8 => Some((false, 8)),
        UInt16 => Some((false, 16)),
        UInt32 => Some((false, 32)),
        UInt64 => Some((false, 64)),
        _ => None,
    };
    let text = |t: &DataType| matches!(t, Utf8 | LargeUtf8 | Utf8View);
    let binary = |t: &DataType| matches!(t, Binary | LargeBinary | BinaryView);
    let decimal = |t: &DataType| match t {
        Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) => Some((*p, *s)),
        _ => None,
    };
    if let (Some((from_signed, from_bits)), Some((to_signed, to_bits))) = (integer(from), integer(to)) {
        return match (from_signed, to_signed) {
            (false, true) => from_bits < to_bits,
            (true, false) => false,
            _ => from_bits <= to_bits,
        };
    }
    if let (Some((from_precision, from_scale)), Some((to_precision, to_scale))) = (decimal(from), decimal(to)) {
        let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
        return from_scale <= to_scale && whole(from_precision, from_scale) <= whole(to_precision, to_scale);
    }
    match (from, to) {
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Dictionary(_, values), Dictionary(_, to_values)) => values == to_values || keeps_values(values, to_values),
        (Dictionary(_, values), to) => **values == *to || keeps_values(values, to),
        (from, Dictionary(_, values)) => *from == **values || keeps_values(from, values),
        _ => (text(from) && text(to)) || (binary(from) && binary(to)),
    }
}

#[cfg(test)]
mod tests;
