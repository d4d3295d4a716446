//! Parquet's own intervals: months, days and milliseconds, each without a sign. Arrow's reader gives either the months or the rest, so
//! both are read and joined to intervals that have all three.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, IntervalMonthDayNanoArray, LargeListArray, ListArray, MapArray,
    RecordBatch, StructArray,
};
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalDayTimeType, IntervalMonthDayNano, IntervalUnit, IntervalYearMonthType, Schema,
    SchemaRef,
};
use drumlin::{Error, Result, TypeName};

const NANOS: i64 = 1_000_000;

/// A type with what `other` gives in the place of some types, at every depth.
pub fn replaced(data_type: &DataType, other: &dyn Fn(&DataType) -> Option<DataType>) -> DataType {
    use DataType::*;
    let within = |field: &FieldRef| Arc::new(Field::clone(field).with_data_type(replaced(field.data_type(), other)));
    match data_type {
        found if let Some(instead) = other(found) => instead,
        List(field) => List(within(field)),
        LargeList(field) => LargeList(within(field)),
        FixedSizeList(field, size) => FixedSizeList(within(field), *size),
        Struct(fields) => Struct(fields.iter().map(within).collect()),
        Map(field, sorted) => Map(within(field), *sorted),
        same => same.clone(),
    }
}

/// A schema whose types are [`replaced`].
pub fn with(schema: &Schema, other: &dyn Fn(&DataType) -> Option<DataType>) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::clone(field).with_data_type(replaced(field.data_type(), other)));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// What is in the place of Parquet's intervals.
fn intervals_as(to: IntervalUnit) -> impl Fn(&DataType) -> Option<DataType> {
    move |data_type| (*data_type == DataType::Interval(IntervalUnit::DayTime)).then_some(DataType::Interval(to))
}

/// The columns that have intervals.
pub fn places(schema: &Schema) -> Vec<usize> {
    let has = |at: &usize| {
        let data_type = schema.field(*at).data_type();
        replaced(data_type, &intervals_as(IntervalUnit::YearMonth)) != *data_type
    };
    (0..schema.fields().len()).filter(has).collect()
}

/// The schema of the rows with whole intervals; `None` if there are none.
pub fn with_months(schema: &Schema) -> Option<SchemaRef> {
    (!places(schema).is_empty()).then(|| with(schema, &intervals_as(IntervalUnit::MonthDayNano)))
}

/// The schema by which the months are read.
pub fn months_alone(schema: &Schema) -> SchemaRef {
    with(schema, &intervals_as(IntervalUnit::YearMonth))
}

/// `batch`, whose intervals have days and milliseconds, with the months of `months`.
pub fn joined(batch: &RecordBatch, months: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    for (place, months) in places(&batch.schema()).into_iter().zip(months.columns()) {
        let field = schema.field(place);
        columns[place] = column(&columns[place], months, field.data_type())
            .map_err(|e| e.context(format!("column '{}'", field.name())))?;
    }
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

fn column(days: &ArrayRef, months: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    use DataType::*;
    let nulls = days.nulls().cloned();
    Ok(match wanted {
        _ if days.data_type() == wanted => days.clone(),
        Interval(_) => {
            let (days, months) =
                (days.as_primitive::<IntervalDayTimeType>(), months.as_primitive::<IntervalYearMonthType>());
            let whole = days.iter().zip(months.iter()).map(|pair| match pair {
                (Some(day), Some(months)) if months >= 0 && day.days >= 0 => {
                    let nanos = i64::from(day.milliseconds.cast_unsigned()) * NANOS;
                    Ok(Some(IntervalMonthDayNano::new(months, day.days, nanos)))
                }
                (Some(day), Some(months)) => Err(Error::invalid(format!(
                    "an interval of {} months and {} days is too long for Arrow",
                    months.cast_unsigned(),
                    day.days.cast_unsigned()
                ))),
                _ => Ok(None),
            });
            Arc::new(whole.collect::<Result<IntervalMonthDayNanoArray>>()?)
        }
        List(field) => {
            let (days, months) = (days.as_list::<i32>(), months.as_list::<i32>());
            let values = column(days.values(), months.values(), field.data_type())?;
            Arc::new(ListArray::try_new(field.clone(), days.offsets().clone(), values, nulls)?)
        }
        LargeList(field) => {
            let (days, months) = (days.as_list::<i64>(), months.as_list::<i64>());
            let values = column(days.values(), months.values(), field.data_type())?;
            Arc::new(LargeListArray::try_new(field.clone(), days.offsets().clone(), values, nulls)?)
        }
        FixedSizeList(field, size) => {
            let values = (days.as_fixed_size_list().values(), months.as_fixed_size_list().values());
            let values = column(values.0, values.1, field.data_type())?;
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, days.len())?)
        }
        Struct(fields) => {
            let parts = days.as_struct().columns().iter().zip(months.as_struct().columns()).zip(fields);
            let parts = parts.map(|((days, months), field)| column(days, months, field.data_type()));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), parts, nulls, days.len())?)
        }
        Map(field, sorted) => {
            let (map, other) = (days.as_map(), months.as_map());
            let entries: (ArrayRef, ArrayRef) = (Arc::new(map.entries().clone()), Arc::new(other.entries().clone()));
            let entries = column(&entries.0, &entries.1, field.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(field.clone(), map.offsets().clone(), entries, nulls, *sorted)?)
        }
        other => return Err(Error::invalid(format!("an interval within {} cannot be read", TypeName(other)))),
    })
}
