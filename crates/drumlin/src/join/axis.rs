//! Values that rows are ordered by, as integers in one unit, so that two columns can be compared: units of time are widened exactly.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, TimeUnit};

use crate::base::{Error, Result, TypeName};
use crate::filter::narrow_integers;

/// How far apart two values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Of integers; 0 of anything.
    Number(u64),
    /// Of times and dates, in nanoseconds.
    Nanos(u64),
}

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Integers,
    /// Times and dates, with a time zone or without.
    Times {
        zoned: bool,
    },
    TimesOfDay,
    Durations,
}

/// What values of a type are, and how many nanoseconds one is.
fn kind_of(data_type: &DataType) -> Option<(ValueKind, i64)> {
    const DAY: i64 = 86_400_000_000_000;
    let nanos = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    };
    Some(match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => (ValueKind::Integers, 1),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => (ValueKind::Integers, 1),
        DataType::Date32 => (ValueKind::Times { zoned: false }, DAY),
        DataType::Date64 => (ValueKind::Times { zoned: false }, 1_000_000),
        DataType::Timestamp(unit, zone) => (ValueKind::Times { zoned: zone.is_some() }, nanos(unit)),
        DataType::Time32(unit) | DataType::Time64(unit) => (ValueKind::TimesOfDay, nanos(unit)),
        DataType::Duration(unit) => (ValueKind::Durations, nanos(unit)),
        _ => return None,
    })
}

/// The values of two columns in one unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    kind: ValueKind,
    /// How many units a value of the left column and one of the right column are.
    factors: [i64; 2],
    /// Nanoseconds.
    unit: i64,
}

/// A column in the unit of an [`Axis`].
#[derive(Clone, Debug)]
pub(super) struct AxisValues {
    pub values: Vec<i64>,
    pub nulls: Option<NullBuffer>,
}

impl AxisValues {
    pub fn get(&self, row: usize) -> Option<i64> {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then(|| self.values[row])
    }

    /// The least and the greatest.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let mut values = (0..self.values.len()).filter_map(|row| self.get(row));
        let first = values.next()?;
        Some(values.fold((first, first), |(least, most), value| (least.min(value), most.max(value))))
    }
}

impl Axis {
    /// Of two columns, by their names and types.
    ///
    /// # Errors
    /// `InvalidArgument` if rows cannot be ordered in time by one of them, or if they do not compare.
    pub fn new(left: (&str, &DataType), right: (&str, &DataType)) -> Result<Self> {
        let known = |(name, data_type): (&str, &DataType)| {
            kind_of(data_type).ok_or_else(|| {
                Error::invalid(format!(
                    "rows are not joined by '{name}' of type {}; expected integers of at most 64 bits with a sign, \
                     times or dates",
                    TypeName(data_type)
                ))
            })
        };
        let (kind, left_nanos) = known(left)?;
        let (other, right_nanos) = known(right)?;
        if kind != other {
            let zones = match (kind, other) {
                (ValueKind::Times { .. }, ValueKind::Times { .. }) => {
                    ": one has a time zone and the other has none; give both a time zone, or neither"
                }
                _ => "",
            };
            return Err(Error::invalid(format!(
                "'{}' of type {} does not compare with '{}' of type {}{zones}",
                left.0,
                TypeName(left.1),
                right.0,
                TypeName(right.1)
            )));
        }
        // Each unit is a multiple of the shorter ones.
        let unit = left_nanos.min(right_nanos);
        Ok(Self { kind, factors: [left_nanos / unit, right_nanos / unit], unit })
    }

    /// A distance in its unit, rounded down; `what` is what it is called.
    ///
    /// # Errors
    /// `InvalidArgument` for a number between times, or a time between numbers.
    pub fn distance(&self, distance: Distance, what: &str) -> Result<i64> {
        let units = match (distance, self.kind) {
            (Distance::Number(number), ValueKind::Integers) => number,
            (Distance::Number(0), _) => 0,
            (Distance::Nanos(nanos), kind) if kind != ValueKind::Integers => nanos / self.unit as u64,
            (Distance::Number(number), _) => {
                return Err(Error::invalid(format!(
                    "{what} is {number}, but rows are joined by times; give a length of time such as '5s'"
                )));
            }
            (Distance::Nanos(_), _) => {
                return Err(Error::invalid(format!(
                    "{what} is a length of time, but rows are joined by integers; give a number"
                )));
            }
        };
        Ok(i64::try_from(units).unwrap_or(i64::MAX))
    }

    pub fn of_left(&self, column: &ArrayRef) -> Result<AxisValues> {
        self.values(column, self.factors[0])
    }

    pub fn of_right(&self, column: &ArrayRef) -> Result<AxisValues> {
        self.values(column, self.factors[1])
    }

    fn values(&self, column: &ArrayRef, factor: i64) -> Result<AxisValues> {
        let nulls = column.logical_nulls();
        let values = narrow_integers(&**column)
            .ok_or_else(|| Error::internal(format!("{} has no integers", TypeName(column.data_type()))))?;
        if factor == 1 {
            return Ok(AxisValues { values: values.to_vec(), nulls });
        }
        let widened = |(row, value): (usize, &i64)| {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let widened = if is_null { Some(0) } else { value.checked_mul(factor) };
            widened.ok_or_else(|| {
                Error::schema_mismatch(format!(
                    "a time of type {} does not fit into the unit of the other side, of {} ns; leave it out with a filter",
                    TypeName(column.data_type()),
                    self.unit
                ))
            })
        };
        let values = values.iter().enumerate().map(widened).collect::<Result<_>>()?;
        Ok(AxisValues { values, nulls })
    }
}
