//! Arithmetic, row by row: exact in 128 bits at a scale, or in floats.
//!
//! Invariants: nothing wraps (an exact result beyond 128 bits is an error naming the operation); a division or a remainder by
//! zero is null, and so is every operation with a null; values under a null are never read.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::take;

use super::column;
use super::kind::Kind;
use super::number::{compare_int_float, compare_scaled, float_key, power_of_ten, to_float};
use super::plan::{Test, Value};
use super::syntax::{ArithmeticOp, CompareOp};
use crate::base::{Error, Result};
use crate::segment::compare_floats;

/// The values of an expression: one per row, or one for all rows.
pub struct Operand {
    data: Data,
    nulls: Option<NullBuffer>,
    /// The distance between the values of neighbouring rows: 1, or 0 for a constant.
    stride: usize,
}

enum Data {
    /// `value / 10^scale`.
    Exact(Vec<i128>, i32),
    Float(Vec<f64>),
}

/// Computes a value for every row.
pub fn evaluate(value: &Value, batch: &RecordBatch) -> Result<Operand> {
    match value {
        Value::Column(column) => from_array(column::fetch(batch, column)?, column.kind),
        Value::Number { value, scale } => {
            Ok(Operand { data: Data::Exact(vec![*value], *scale), nulls: None, stride: 0 })
        }
        Value::Float(value) => Ok(Operand { data: Data::Float(vec![*value]), nulls: None, stride: 0 }),
        Value::Negate(value) => evaluate(value, batch)?.negated(),
        Value::Chain { first, rest } => {
            let mut answer = evaluate(first, batch)?;
            for (op, term) in rest {
                answer = apply(*op, &answer, &evaluate(term, batch)?)?;
            }
            Ok(answer)
        }
    }
}

fn from_array(array: ArrayRef, kind: Option<Kind>) -> Result<Operand> {
    let array = match array.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None)?,
        None => array,
    };
    let (scale, step) = match kind {
        Some(Kind::Number { scale } | Kind::Time { scale } | Kind::Duration { scale }) => (scale, 1),
        Some(Kind::Instant { scale, step, .. }) => (scale, i128::from(step)),
        _ => (0, 1),
    };
    let data = match column::floats(&array) {
        Some(values) => Data::Float(values),
        None => {
            let mut values = column::integers(&array).ok_or_else(|| {
                Error::schema_mismatch(format!("the filter was bound to another type than {}", array.data_type()))
            })?;
            if step != 1 {
                values.iter_mut().for_each(|value| *value *= step);
            }
            Data::Exact(values, scale)
        }
    };
    Ok(Operand { data, nulls: array.nulls().cloned(), stride: 1 })
}

impl Operand {
    fn len(&self) -> usize {
        match &self.data {
            Data::Exact(values, _) => values.len(),
            Data::Float(values) => values.len(),
        }
    }

    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row * self.stride))
    }

    /// The exact value of a row and its scale; `None` if it is a float.
    pub fn exact(&self, row: usize) -> Option<(i128, i32)> {
        match &self.data {
            Data::Exact(values, scale) => Some((values[row * self.stride], *scale)),
            Data::Float(_) => None,
        }
    }

    /// The value of a row as a float.
    pub fn float(&self, row: usize) -> f64 {
        match &self.data {
            Data::Exact(values, scale) => to_float(values[row * self.stride], *scale),
            Data::Float(values) => values[row * self.stride],
        }
    }

    fn negated(self) -> Result<Operand> {
        let data = match &self.data {
            Data::Float(values) => Data::Float(values.iter().map(|value| -value).collect()),
            Data::Exact(values, scale) => {
                let negate = |(row, value): (usize, &i128)| match value.checked_neg() {
                    Some(value) => Ok(value),
                    None if !self.is_valid(row) => Ok(0),
                    None => Err(Error::invalid(format!("filter: -({value}) is beyond 128 bits"))),
                };
                Data::Exact(values.iter().enumerate().map(negate).collect::<Result<_>>()?, *scale)
            }
        };
        Ok(Operand { data, ..self })
    }

    pub fn is_null(&self, rows: usize) -> BooleanArray {
        BooleanArray::new(BooleanBuffer::collect_bool(rows, |row| !self.is_valid(row)), None)
    }

    /// Tests each value; null where the value is.
    pub fn test(&self, test: &Test, rows: usize) -> BooleanArray {
        let values = match &self.data {
            Data::Exact(values, _) => BooleanBuffer::collect_bool(rows, |row| test.holds(values[row * self.stride])),
            Data::Float(values) => {
                BooleanBuffer::collect_bool(rows, |row| test.holds(i128::from(float_key(values[row * self.stride]))))
            }
        };
        BooleanArray::new(values, self.spread_nulls(rows))
    }

    /// Compares row by row, by value.
    pub fn compare(left: &Operand, right: &Operand, op: CompareOp, rows: usize) -> BooleanArray {
        let order = |row: usize| -> Ordering {
            let (i, j) = (row * left.stride, row * right.stride);
            match (&left.data, &right.data) {
                (Data::Exact(a, a_scale), Data::Exact(b, b_scale)) => compare_scaled(a[i], *a_scale, b[j], *b_scale),
                (Data::Exact(a, 0), Data::Float(b)) => compare_int_float(a[i], b[j]),
                (Data::Float(a), Data::Exact(b, 0)) => compare_int_float(b[j], a[i]).reverse(),
                // A decimal compared with a float becomes its nearest float, as a literal would.
                _ => compare_floats(left.float(row), right.float(row)),
            }
        };
        let values = BooleanBuffer::collect_bool(rows, |row| op.holds(order(row)));
        BooleanArray::new(
            values,
            NullBuffer::union(left.spread_nulls(rows).as_ref(), right.spread_nulls(rows).as_ref()),
        )
    }

    fn spread_nulls(&self, rows: usize) -> Option<NullBuffer> {
        match &self.nulls {
            Some(nulls) if self.stride == 0 && nulls.null_count() > 0 => Some(NullBuffer::new_null(rows)),
            Some(_) if self.stride == 0 => None,
            nulls => nulls.clone(),
        }
    }
}

fn apply(op: ArithmeticOp, left: &Operand, right: &Operand) -> Result<Operand> {
    let stride = left.stride.max(right.stride);
    let rows = if left.stride == 1 { left.len() } else { right.len() };
    let mut nulls = Vec::new();
    let mut valid = |row: usize, found: bool| {
        if !found {
            nulls.resize(rows, true);
            nulls[row] = false;
        }
    };
    let data = match (&left.data, &right.data) {
        (Data::Exact(a, a_scale), Data::Exact(b, b_scale)) if op != ArithmeticOp::Divide => {
            let exact = Exact::new(op, *a_scale, *b_scale);
            let mut values = Vec::with_capacity(rows);
            for row in 0..rows {
                let found = left.is_valid(row) && right.is_valid(row);
                let (a, b) = (a[row * left.stride], b[row * right.stride]);
                let value = if found { exact.apply(a, b)? } else { None };
                valid(row, value.is_some());
                values.push(value.unwrap_or(0));
            }
            Data::Exact(values, exact.scale)
        }
        _ => Data::Float(
            (0..rows)
                .map(|row| {
                    let (a, b) = (left.float(row), right.float(row));
                    let divides = matches!(op, ArithmeticOp::Divide | ArithmeticOp::Remainder);
                    valid(row, left.is_valid(row) && right.is_valid(row) && !(divides && b == 0.0));
                    match op {
                        ArithmeticOp::Add => a + b,
                        ArithmeticOp::Subtract => a - b,
                        ArithmeticOp::Multiply => a * b,
                        ArithmeticOp::Divide => a / b,
                        ArithmeticOp::Remainder => a % b,
                    }
                })
                .collect(),
        ),
    };
    let nulls = (!nulls.is_empty()).then(|| NullBuffer::from(nulls));
    Ok(Operand { data, nulls, stride })
}

/// An exact operation, with the factors that bring its operands to one scale.
struct Exact {
    op: ArithmeticOp,
    a_scale: i32,
    b_scale: i32,
    scale: i32,
}

impl Exact {
    fn new(op: ArithmeticOp, a_scale: i32, b_scale: i32) -> Self {
        let scale = if op == ArithmeticOp::Multiply { a_scale + b_scale } else { a_scale.max(b_scale) };
        Self { op, a_scale, b_scale, scale }
    }

    /// The result; `None` for a remainder by zero.
    fn apply(&self, a: i128, b: i128) -> Result<Option<i128>> {
        if self.op == ArithmeticOp::Remainder && b == 0 {
            return Ok(None);
        }
        let raise = |value: i128, scale: i32| match self.scale - scale {
            0 => Some(value),
            _ if value == 0 => Some(0),
            power => value.checked_mul(power_of_ten(power)?),
        };
        let result = match self.op {
            ArithmeticOp::Multiply => a.checked_mul(b),
            op => raise(a, self.a_scale).zip(raise(b, self.b_scale)).and_then(|(a, b)| match op {
                ArithmeticOp::Add => a.checked_add(b),
                ArithmeticOp::Subtract => a.checked_sub(b),
                // The only remainder that overflows, that of the smallest value by -1, is zero.
                _ => Some(match (i64::try_from(a), i64::try_from(b)) {
                    // A division of 128 bits takes ten times as long.
                    (Ok(a), Ok(b)) => i128::from(a.wrapping_rem(b)),
                    _ => a.wrapping_rem(b),
                }),
            }),
        };
        // The smallest value represents literals below the domain.
        match result.filter(|value| *value != i128::MIN) {
            Some(value) => Ok(Some(value)),
            None => {
                let written = |value: i128, scale: i32| super::number::Number::scaled(value, scale);
                let (a, b) = (written(a, self.a_scale), written(b, self.b_scale));
                Err(Error::invalid(format!("filter: {a} {} {b} is beyond 128 bits", self.op.symbol())))
            }
        }
    }
}
