//! A column over another, as buckets: of each the number of values, the least, the greatest and the mean. The bounds are found by the
//! core's aggregates; then the rows are gone through once, without being kept, whatever their number.

use drumlin::arrow::array::{Array, AsArray, Float64Array, RecordBatch};
use drumlin::arrow::compute::cast;
use drumlin::arrow::datatypes::{DataType, Float64Type};
use drumlin::{
    Aggregate, AsOf, Cancel, Dataset, DatasetOptions, Error, Filter, Function, GroupBy, Path, Pattern, Result,
    ScanOptions, Tables, TypeName,
};
use serde_json::{Value, json};

use super::asked::{as_of, filter};
use super::context::Context;
use super::show::kind;
use crate::query::Query;
use crate::reply::Reply;

/// The buckets of one answer.
const BUCKETS_MAX: u64 = 2000;

/// What has been found in a bucket.
#[derive(Clone, Copy)]
struct Bucket {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
}

impl Bucket {
    const EMPTY: Bucket = Bucket { count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0 };

    fn add(&mut self, value: f64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += value;
    }
}

/// The chart of `y` over `x`, or over the number of the row without one.
pub fn chart(context: &Context, query: &Query, cancel: &Cancel) -> Result<Reply> {
    let (path, as_of) = (Path::new(query.need("path")?)?, as_of(query, "as_of")?);
    let (x, y) = (query.text("x"), query.need("y")?);
    let buckets = query.number("buckets", 600, BUCKETS_MAX)?.max(1) as usize;
    let options = DatasetOptions { as_of: AsOf::clone(&as_of), path_columns: Vec::new() };
    let dataset = context.store.scan(Pattern::of_path(&path), &options)?;
    let schema = dataset.schema();
    let kind_of = |name: &str| {
        let field = schema.field_with_name(name);
        let of = field.map_err(|_| Error::not_found(format!("column '{name}' does not exist")))?.data_type();
        match kind(of) {
            "number" | "time" => Ok(Axis { kind: kind(of), unit: micros_per_unit(of), zone: zone(of) }),
            _ => Err(Error::invalid(format!(
                "column '{name}' is of type {}, which cannot be drawn; choose a column of numbers or times",
                TypeName(of)
            ))),
        }
    };
    let (of_x, of_y) = (x.map_or(Ok(Axis { kind: "row", unit: 1.0, zone: None }), kind_of)?, kind_of(y)?);
    let filter = filter(query)?;
    let (low, high) = match x {
        Some(x) => bounds(&dataset, x, filter.as_ref(), cancel)?,
        None => {
            let scan = ScanOptions { filter: filter.clone(), cancel: cancel.clone(), ..ScanOptions::default() };
            (0.0, dataset.count_rows(&scan)?.saturating_sub(1) as f64)
        }
    };
    let mut found = vec![Bucket::EMPTY; buckets];
    let mut columns: Vec<String> = x.into_iter().map(str::to_owned).collect();
    if x != Some(y) {
        columns.push(y.to_owned());
    }
    let scan = ScanOptions { columns: Some(columns), filter, cancel: cancel.clone(), ..ScanOptions::default() };
    let (mut rows, mut left_out) = (0_u64, 0_u64);
    if low <= high {
        let width = if high > low { (high - low) / buckets as f64 } else { 1.0 };
        for batch in dataset.scan(&scan)? {
            let batch = batch?;
            let values = numbers(&batch, y)?;
            let places = x.map(|x| numbers(&batch, x)).transpose()?;
            for row in 0..batch.num_rows() {
                let place = match &places {
                    Some(places) if places.is_null(row) => f64::NAN,
                    Some(places) => places.value(row),
                    None => (rows + row as u64) as f64,
                };
                if values.is_null(row) || !values.value(row).is_finite() || !place.is_finite() {
                    left_out += 1;
                    continue;
                }
                let bucket = (((place - low) / width) as usize).min(buckets - 1);
                found[bucket].add(values.value(row));
            }
            rows += batch.num_rows() as u64;
        }
    }
    let step = (high - low) / buckets as f64;
    let drawn = found.iter().enumerate().filter(|(_, bucket)| bucket.count > 0).map(|(at, bucket)| {
        let Bucket { count, min, max, sum } = *bucket;
        json!([
            (low + step * (at as f64 + 0.5)) * of_x.unit,
            count,
            min * of_y.unit,
            max * of_y.unit,
            sum / count as f64 * of_y.unit
        ])
    });
    Ok(Reply::json(&json!({
        "x": {
            "kind": of_x.kind, "zone": of_x.zone, "low": number(low * of_x.unit), "high": number(high * of_x.unit),
        },
        "y": { "kind": of_y.kind, "zone": of_y.zone },
        "rows": rows, "left_out": left_out, "buckets": drawn.collect::<Vec<_>>(),
    })))
}

/// What is drawn along an axis.
struct Axis {
    kind: &'static str,
    /// See [`micros_per_unit`].
    unit: f64,
    zone: Option<String>,
}

/// The time zone of a type that has one.
fn zone(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.as_ref().map(|zone| zone.to_string()),
        _ => None,
    }
}

/// What one of the type's units is, in microseconds if it is a time.
fn micros_per_unit(data_type: &DataType) -> f64 {
    use drumlin::arrow::datatypes::TimeUnit::*;
    match data_type {
        DataType::Date32 => 86_400e6,
        DataType::Date64 | DataType::Timestamp(Millisecond, _) => 1e3,
        DataType::Timestamp(Second, _) => 1e6,
        DataType::Timestamp(Microsecond, _) => 1.0,
        DataType::Timestamp(Nanosecond, _) => 1e-3,
        _ => 1.0,
    }
}

/// A number as JSON has it.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// The least and the greatest value of a column that is finite.
fn bounds(dataset: &Dataset, column: &str, filter: Option<&Filter>, cancel: &Cancel) -> Result<(f64, f64)> {
    let quoted = format!("\"{}\"", column.replace('"', "\"\""));
    let of = |name: &str, function| Aggregate { name: name.into(), function, of: Some(column.into()) };
    let asked = GroupBy { aggregates: vec![of("low", Function::Min), of("high", Function::Max)], ..GroupBy::default() };
    let scan = ScanOptions { filter: filter.cloned(), cancel: cancel.clone(), ..ScanOptions::default() };
    let found = dataset.aggregate(&asked, &scan)?;
    let bound = |found: &RecordBatch, name: &str| {
        let values = numbers(found, name)?;
        Ok::<_, Error>(if values.is_empty() || values.is_null(0) { f64::NAN } else { values.value(0) })
    };
    let (low, high) = (bound(&found, "low")?, bound(&found, "high")?);
    if low.is_finite() && high.is_finite() {
        return Ok((low, high));
    }
    if low.is_nan() && high.is_nan() {
        return Ok((0.0, -1.0));
    }
    // Infinities and NaN have no place on an axis.
    let finite = Filter::parse(&format!("{quoted} between -1.7e308 and 1.7e308"))?;
    let scan = ScanOptions { filter: Some(filter.cloned().map_or(finite.clone(), |own| own.and(finite))), ..scan };
    let found = dataset.aggregate(&asked, &scan)?;
    let (low, high) = (bound(&found, "low")?, bound(&found, "high")?);
    Ok(if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, -1.0) })
}

/// A column as doubles; times in their own unit.
fn numbers(batch: &RecordBatch, name: &str) -> Result<Float64Array> {
    let column =
        batch.column_by_name(name).ok_or_else(|| Error::not_found(format!("column '{name}' does not exist")))?;
    let failed = |e: drumlin::arrow::error::ArrowError| Error::invalid(format!("column '{name}' cannot be drawn: {e}"));
    let whole = match column.data_type() {
        DataType::Date32 => cast(column, &DataType::Int32).map_err(failed)?,
        DataType::Date64 | DataType::Timestamp(..) => cast(column, &DataType::Int64).map_err(failed)?,
        _ => column.clone(),
    };
    Ok(cast(&whole, &DataType::Float64).map_err(failed)?.as_primitive::<Float64Type>().clone())
}
