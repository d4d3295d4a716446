//! Calls of functions: each becomes a column of the batch, beside those that are there, before a predicate or an expression is
//! evaluated; so whatever takes a column takes a call.
//!
//! Invariants: a call refers to columns and to earlier calls. Bounds of its values follow from those of its column only where
//! the function never decreases.

mod cast;
mod number;
mod text;
mod time;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::kernels::{nullif::nullif, zip::zip};
use arrow::compute::{cast, is_not_null};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use self::time::TruncateUnit;
use super::clock::ZoneClock;
use super::column;
use super::expression::{self, ValueSource};
use super::kind::Kind;
use super::plan::ColumnRef;
use super::text::names;
use super::text::scalar::{ScalarFunction, TimePart};
use super::verdict::key;
use crate::base::{Error, Result};
use crate::segment::{ColumnStats, Stat};

/// What a call does.
#[derive(Clone, Debug)]
pub enum Operation {
    Function(ScalarFunction),
    Part(TimePart, Option<ZoneClock>),
    Truncate(TruncateUnit, ZoneClock),
    Cast { lenient: bool },
}

/// A value that a call takes.
#[derive(Clone, Debug)]
pub struct Argument {
    pub source: ValueSource,
    pub data_type: DataType,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub struct FunctionCall {
    pub operation: Operation,
    pub args: Vec<Argument>,
    pub data_type: DataType,
    /// For messages.
    pub text: String,
    /// The column that it becomes.
    pub column: ColumnRef,
    /// The columns of the schema that it needs.
    pub needs: BTreeSet<usize>,
}

/// The operation of a function whose first values are literals or of some type.
///
/// # Errors
/// `InvalidArgument` for an unknown time zone or length of time.
pub fn operation(function: ScalarFunction, unit: Option<&str>, of: &DataType) -> Result<Operation> {
    let clock = || {
        ZoneClock::new(of).transpose().map_err(|zone| {
            Error::invalid(format!("the time zone '{zone}' is not known, so what its clocks show is not known either"))
        })
    };
    Ok(match function {
        ScalarFunction::Part(part) => Operation::Part(part, clock()?),
        ScalarFunction::DateTrunc => {
            let clock = clock()?.ok_or_else(|| Error::invalid("date_trunc takes a date or timestamp"))?;
            Operation::Truncate(TruncateUnit::parse(unit.unwrap_or_default())?, clock)
        }
        other => Operation::Function(other),
    })
}

/// The batch with a column for each call: itself if there are none.
///
/// # Errors
/// `InvalidArgument` naming a value that a function does not take.
pub fn extended<'a>(batch: &'a RecordBatch, calls: &[FunctionCall]) -> Result<Cow<'a, RecordBatch>> {
    let mut batch = Cow::Borrowed(batch);
    for call in calls {
        let values = call.args.iter().map(|arg| argument(arg, &batch)).collect::<Result<Vec<_>>>()?;
        let computed = call
            .apply(&values, batch.num_rows())
            .map_err(|error| error.context(format_args!("`{}`", names::clip(&call.text))))?;
        let name = call.column.path.first().map_or("", |name| name);
        let field = Arc::new(Field::new(name, computed.data_type().clone(), true));
        let fields: Vec<_> = batch.schema_ref().fields().iter().cloned().chain([field]).collect();
        let columns = batch.columns().iter().cloned().chain([computed]).collect();
        batch = Cow::Owned(batch_of(fields, columns, batch.num_rows())?);
    }
    Ok(batch)
}

/// A batch with a number of rows, of which it may have no column.
fn batch_of(fields: Vec<FieldRef>, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let rows = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &rows)?)
}

/// The values of an argument: a column of strings as it is, others in the argument's type.
fn argument(arg: &Argument, batch: &RecordBatch) -> Result<ArrayRef> {
    match &arg.source {
        ValueSource::Column(column) if column.kind == Some(Kind::Text) => column::fetch(batch, column),
        source => expression::compute(source, batch, &arg.data_type),
    }
}

impl FunctionCall {
    /// The values for those of its arguments.
    fn apply(&self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let first = &values[0];
        match &self.operation {
            Operation::Part(part, clock) => time::part(*part, clock.as_ref(), first, &self.args[0].data_type),
            Operation::Truncate(length, clock) => time::truncate(*length, clock, &values[1], &self.data_type),
            Operation::Cast { lenient: false } => self::cast::cast(first, &self.args[0].data_type, &self.data_type),
            Operation::Cast { lenient: true } => self::cast::try_cast(first, &self.args[0].data_type, &self.data_type),
            Operation::Function(function) => match function {
                ScalarFunction::Lower
                | ScalarFunction::Upper
                | ScalarFunction::Trim
                | ScalarFunction::TrimStart
                | ScalarFunction::TrimEnd => text::mapped(first, *function),
                ScalarFunction::Length => text::length(first),
                ScalarFunction::Substring => text::substring(first, &values[1], values.get(2)),
                ScalarFunction::Replace => text::replace(values),
                ScalarFunction::Concat => text::concat(values, rows),
                ScalarFunction::Abs
                | ScalarFunction::Sign
                | ScalarFunction::Round
                | ScalarFunction::Floor
                | ScalarFunction::Ceil => {
                    let places = values.get(1).map(|places| places.as_primitive::<arrow::datatypes::Int64Type>());
                    let places = places.filter(|places| !places.is_empty()).map_or(0, |places| places.value(0));
                    number::computed(*function, first, places, &self.args[0].data_type, &self.data_type)
                }
                ScalarFunction::Coalesce => {
                    let wanted = |values| -> Result<ArrayRef> { Ok(cast(&column::plain(values)?, &self.data_type)?) };
                    let mut answer = wanted(first)?;
                    for next in &values[1..] {
                        if answer.null_count() == 0 {
                            break;
                        }
                        answer = zip(&is_not_null(&answer)?, &answer, &wanted(next)?)?;
                    }
                    Ok(answer)
                }
                ScalarFunction::NullIf => Ok(nullif(&column::plain(first)?, values[1].as_boolean())?),
                ScalarFunction::Part(_) | ScalarFunction::DateTrunc => unreachable!("operations of their own"),
            },
        }
    }

    /// What is known of its values in a row group; `stats` knows of the columns and of earlier calls.
    fn stats(&self, stats: &dyn Fn(usize) -> Option<ColumnStats>) -> Option<ColumnStats> {
        if let Operation::Function(ScalarFunction::Coalesce) = self.operation {
            let all = self.args.iter().map(|arg| self.of_argument(arg, stats)).collect::<Option<Vec<_>>>()?;
            let nulls = all.iter().map(|stats| stats.nulls).min()?;
            return Some(ColumnStats { nulls, ..all.into_iter().reduce(|a, b| a.union(&b))? });
        }
        let of = match &self.operation {
            Operation::Part(TimePart::Year, _) | Operation::Cast { lenient: false } => 0,
            Operation::Truncate(..) => 1,
            Operation::Function(ScalarFunction::Round | ScalarFunction::Floor | ScalarFunction::Ceil) => 0,
            // NaN is the greatest, and has no sign.
            Operation::Function(ScalarFunction::Sign) if Kind::of(&self.args[0].data_type) != Some(Kind::Float) => 0,
            _ => return None,
        };
        let zoned = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(_)));
        let known = self.of_argument(&self.args[of], stats)?;
        let own = &self.args[of].data_type;
        let (from, to) = (Kind::of(own)?, Kind::of(&self.data_type)?);
        let is_ordered = matches!(
            (from, to),
            (Kind::Number { .. } | Kind::Float, Kind::Number { .. } | Kind::Float)
                | (Kind::Instant { .. }, Kind::Instant { .. } | Kind::Number { .. })
        );
        if !is_ordered {
            return None;
        }
        let mut bounds = [key(known.min.as_ref()?, from)?, key(known.max.as_ref()?, from)?];
        if zoned(own) || zoned(&self.data_type) {
            // Clocks go back, by less than a day.
            let day = ZoneClock::new(own)?.ok()?.unit.map_or(1, |unit| 86_400_000_000_000 / unit);
            bounds = [bounds[0].checked_sub(day.into())?, bounds[1].checked_add(day.into())?];
        }
        let nothing = batch_of(Vec::new(), Vec::new(), 2).ok()?;
        let mut values = Vec::new();
        for (at, arg) in self.args.iter().enumerate() {
            values.push(match at == of {
                true => expression::of_keys(&bounds, own).ok()?,
                false => argument(arg, &nothing).ok()?,
            });
        }
        let computed = self.apply(&values, 2).ok()?;
        if computed.null_count() > 0 {
            return None;
        }
        // Calculations with doubles are exact except for their last digit.
        let bound = |row: usize| match of_row(&computed, to, row)? {
            Stat::Float(value) if row == 0 => Some(Stat::Float(value.next_down())),
            Stat::Float(value) => Some(Stat::Float(value.next_up())),
            other => Some(other),
        };
        Some(ColumnStats { nulls: known.nulls, min: Some(bound(0)?), max: Some(bound(1)?), exact: false })
    }

    /// What is known of an argument: of a column, or of a literal.
    fn of_argument(&self, arg: &Argument, stats: &dyn Fn(usize) -> Option<ColumnStats>) -> Option<ColumnStats> {
        match &arg.source {
            ValueSource::Column(column) => {
                let same = column.kind == Kind::of(&arg.data_type);
                if column.path.len() == 1 && same { stats(column.index) } else { None }
            }
            ValueSource::Literal(..) | ValueSource::Number(_) => {
                let one = batch_of(Vec::new(), Vec::new(), 1).ok()?;
                let value = expression::compute(&arg.source, &one, &arg.data_type).ok()?;
                if value.is_null(0) {
                    return None;
                }
                let bound = of_row(&value, Kind::of(&arg.data_type)?, 0)?;
                Some(ColumnStats { nulls: 0, min: Some(bound.clone()), max: Some(bound), exact: true })
            }
            _ => None,
        }
    }
}

/// Statistics of the column or call at `index`, of a schema with `columns` columns.
pub fn stats_of(
    calls: &[FunctionCall],
    columns: usize,
    index: usize,
    stats: &dyn Fn(usize) -> Option<ColumnStats>,
) -> Option<ColumnStats> {
    match index.checked_sub(columns) {
        None => stats(index),
        Some(nth) => {
            // A call refers to earlier ones.
            let earlier = calls.get(..nth)?;
            calls[nth].stats(&|index| stats_of(earlier, columns, index, stats))
        }
    }
}

fn of_row(array: &ArrayRef, kind: Kind, row: usize) -> Option<Stat> {
    let array = array.slice(row, 1);
    if kind == Kind::Float {
        return column::floats(&array)?.first().map(|value| Stat::Float(*value));
    }
    let value = *column::integers(&array)?.first()?;
    Some(i64::try_from(value).map_or(Stat::Decimal(value), Stat::Int))
}
