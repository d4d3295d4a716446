//! Arithmetic, row by row: exact in 128 bits at a scale, or in floats. While results are known to fit into 64 bits, they are computed
//! there, by instructions for many rows at once.
//!
//! Invariants: nothing wraps (an exact result beyond 128 bits is an error naming the operation); a division or a remainder by
//! zero is null, and so is every operation with a null; values under a null are never read.

use std::cmp::Ordering;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Datum, Decimal64Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    Scalar,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType};

use super::column;
use super::kind::Kind;
use super::plan::{ScalarExpression, Test};
use super::text::number::{compare_int_float, compare_scaled, float_key, power_of_ten, to_float};
use super::text::syntax::{ArithmeticOp, CompareOp};
use super::truth::compare;
use crate::base::{Error, Result, TypeName};
use crate::segment::compare_floats;

/// The values of an expression: one per row, or one for all rows.
pub struct ColumnarValue {
    data: Data,
    nulls: Option<NullBuffer>,
    /// The distance between the values of neighbouring rows: 1, or 0 for a constant.
    stride: usize,
}

#[derive(Clone)]
enum Data {
    /// `value / 10^scale`.
    Narrow(Narrow, i32),
    /// The same.
    Exact(Vec<i128>, i32),
    Float(Vec<f64>),
}

/// Integers, none of which is further from zero than `most`.
#[derive(Clone)]
struct Narrow {
    values: ScalarBuffer<i64>,
    most: u64,
}

impl Narrow {
    fn new(values: ScalarBuffer<i64>) -> Self {
        // Without a comparison of 64 bits, which processors do one by one.
        let bits = values.iter().fold(0, |bits, value| bits | (value ^ (value >> 63)).cast_unsigned());
        // A negative number may be one further away.
        Self { values, most: u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0).saturating_add(1) }
    }

    fn array(&self) -> Int64Array {
        Int64Array::new(self.values.clone(), None)
    }

    /// What each leaves by a divisor that is not zero, with its own sign.
    fn remainders(&self, divisor: i64) -> Self {
        let (size, most) = (divisor.unsigned_abs(), self.most.min(divisor.unsigned_abs()));
        let values: ScalarBuffer<i64> = match i64::try_from(size) {
            // The product with the inverse is off by one at most, which takes a fifth of a division.
            Ok(size) if self.most < 1 << 52 => {
                let inverse = 1.0 / size as f64;
                let remainder = |value: &i64| {
                    let distance = value.abs();
                    let quotient = (distance as f64 * inverse) as i64;
                    let mut rest = distance.wrapping_sub(quotient.wrapping_mul(size));
                    rest = if rest < 0 { rest.wrapping_add(size) } else { rest };
                    rest = if rest >= size { rest.wrapping_sub(size) } else { rest };
                    if *value < 0 { -rest } else { rest }
                };
                self.values.iter().map(remainder).collect()
            }
            _ => self.values.iter().map(|value| value.wrapping_rem(divisor)).collect(),
        };
        Self { values, most }
    }

    /// All multiplied; `None` if that may not fit.
    fn times(self, factor: i128) -> Option<Self> {
        let (most, factor) = (i128::from(self.most).checked_mul(factor.abs())?, i64::try_from(factor).ok()?);
        let most = u64::try_from(most).ok().filter(|most| i64::try_from(*most).is_ok())?;
        if factor == 1 {
            return Some(self);
        }
        Some(Self { values: self.values.iter().map(|value| value.wrapping_mul(factor)).collect(), most })
    }
}

/// What comes of the values of two operands, row by row; a constant has one value.
fn zipped<T: Copy, U>(a: &[T], b: &[T], of: impl Fn(T, T) -> U) -> Vec<U> {
    match (a, b) {
        ([a], b) => b.iter().map(|b| of(*a, *b)).collect(),
        (a, [b]) => a.iter().map(|a| of(*a, *b)).collect(),
        (a, b) => a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect(),
    }
}

/// Computes a value for every row.
pub fn evaluate(value: &ScalarExpression, batch: &RecordBatch) -> Result<ColumnarValue> {
    match value {
        ScalarExpression::Column(column) => from_array(column::fetch(batch, column)?, column.kind),
        ScalarExpression::Number { value, scale } => {
            let data = match i64::try_from(*value) {
                Ok(value) => Data::Narrow(Narrow::new(vec![value].into()), *scale),
                Err(_) => Data::Exact(vec![*value], *scale),
            };
            Ok(ColumnarValue { data, nulls: None, stride: 0 })
        }
        ScalarExpression::Float(value) => Ok(ColumnarValue { data: Data::Float(vec![*value]), nulls: None, stride: 0 }),
        ScalarExpression::Negate(value) => evaluate(value, batch)?.negated(),
        ScalarExpression::Chain { first, rest } => {
            let mut answer = evaluate(first, batch)?;
            for (op, term) in rest {
                answer = apply(*op, &answer, &evaluate(term, batch)?)?;
            }
            Ok(answer)
        }
    }
}

/// The numbers of an array of a kind.
pub fn from_array(array: ArrayRef, kind: Option<Kind>) -> Result<ColumnarValue> {
    let array = column::plain(&array)?;
    let (scale, step) = match kind {
        Some(Kind::Number { scale } | Kind::Time { scale } | Kind::Duration { scale }) => (scale, 1),
        Some(Kind::Instant { scale, step, .. }) => (scale, i128::from(step)),
        _ => (0, 1),
    };
    let narrow = column::narrow_integers(&array).and_then(|values| Narrow::new(values).times(step));
    let data = match (narrow, column::floats(&array)) {
        (Some(narrow), _) => Data::Narrow(narrow, scale),
        (None, Some(values)) => Data::Float(values),
        (None, None) => {
            let mut values = column::integers(&array).ok_or_else(|| {
                Error::schema_mismatch(format!(
                    "the filter was bound to a column of another type than {}",
                    TypeName(array.data_type())
                ))
            })?;
            if step != 1 {
                values.iter_mut().for_each(|value| *value *= step);
            }
            Data::Exact(values, scale)
        }
    };
    Ok(ColumnarValue { data, nulls: array.nulls().cloned(), stride: 1 })
}

impl ColumnarValue {
    fn len(&self) -> usize {
        match &self.data {
            Data::Narrow(narrow, _) => narrow.values.len(),
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
            Data::Narrow(narrow, scale) => Some((i128::from(narrow.values[row * self.stride]), *scale)),
            Data::Exact(values, scale) => Some((values[row * self.stride], *scale)),
            Data::Float(_) => None,
        }
    }

    /// The value of a row as a float.
    pub fn float(&self, row: usize) -> f64 {
        match &self.data {
            Data::Narrow(narrow, scale) => to_float(i128::from(narrow.values[row * self.stride]), *scale),
            Data::Exact(values, scale) => to_float(values[row * self.stride], *scale),
            Data::Float(values) => values[row * self.stride],
        }
    }

    /// The exact values in 128 bits, and their scale; `None` if they are floats.
    fn wide(&self) -> Option<(Cow<'_, [i128]>, i32)> {
        match &self.data {
            Data::Narrow(narrow, scale) => {
                Some((narrow.values.iter().map(|value| i128::from(*value)).collect::<Vec<_>>().into(), *scale))
            }
            Data::Exact(values, scale) => Some((values.into(), *scale)),
            Data::Float(_) => None,
        }
    }

    fn floats(&self) -> Cow<'_, [f64]> {
        match &self.data {
            Data::Float(values) => values.into(),
            // Both are exact floats, so the division rounds only once.
            Data::Narrow(narrow, scale @ 0..=22) if narrow.most <= 1 << 53 => {
                let power = 10_f64.powi(*scale);
                narrow.values.iter().map(|value| *value as f64 / power).collect::<Vec<_>>().into()
            }
            _ => {
                let whole = ColumnarValue { data: self.data.clone(), nulls: None, stride: 1 };
                (0..self.len()).map(|at| whole.float(at)).collect::<Vec<_>>().into()
            }
        }
    }

    /// The values as an array of `rows` rows: doubles, or exact numbers in the type `wanted`, `Int64` or a decimal of their scale; but
    /// decimals are of 64 bits where those are enough.
    pub fn into_array(self, rows: usize, wanted: &DataType) -> Result<ArrayRef> {
        let (nulls, stride) = (self.spread_nulls(rows), self.stride);
        Ok(match (self.data, wanted) {
            (Data::Float(values), _) => {
                Arc::new(Float64Array::try_new((0..rows).map(|at| values[at * stride]).collect(), nulls)?)
            }
            (Data::Narrow(narrow, _), wanted) => {
                let values = if stride == 1 { narrow.values } else { vec![narrow.values[0]; rows].into() };
                match wanted {
                    DataType::Decimal128(_, scale) => {
                        let data_type = DataType::Decimal64(DECIMAL64_MAX_PRECISION, *scale);
                        Arc::new(Decimal64Array::try_new(values, nulls)?.with_data_type(data_type))
                    }
                    _ => Arc::new(Int64Array::try_new(values, nulls)?),
                }
            }
            (Data::Exact(values, _), DataType::Decimal128(digits, _)) => {
                let most = 10_u128.pow(u32::from(*digits)) - 1;
                let fit = |at: usize| match values[at * stride] {
                    value if value.unsigned_abs() <= most => Ok(value),
                    _ if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) => Ok(0),
                    value => Err(Error::invalid(format!(
                        "{value} (in units of the last decimal place) does not fit into {}",
                        TypeName(wanted)
                    ))),
                };
                let values = (0..rows).map(fit).collect::<Result<_>>()?;
                Arc::new(Decimal128Array::try_new(values, nulls)?.with_data_type(wanted.clone()))
            }
            (Data::Exact(values, _), _) => {
                let fit = |at: usize| match i64::try_from(values[at * stride]) {
                    Ok(value) => Ok(value),
                    Err(_) if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) => Ok(0),
                    Err(_) => Err(Error::invalid(format!(
                        "{} does not fit into {}; calculate with a decimal, such as `column * 1.0`",
                        values[at * stride],
                        TypeName(wanted)
                    ))),
                };
                let values = (0..rows).map(fit).collect::<Result<_>>()?;
                Arc::new(Int64Array::try_new(values, nulls)?)
            }
        })
    }

    fn negated(self) -> Result<ColumnarValue> {
        let data = match &self.data {
            Data::Float(values) => Data::Float(values.iter().map(|value| -value).collect()),
            Data::Narrow(narrow, scale) if let Some(negative) = narrow.clone().times(-1) => {
                Data::Narrow(negative, *scale)
            }
            _ => {
                let (values, scale) = self.wide().expect("floats were before");
                let negate = |(row, value): (usize, &i128)| match value.checked_neg() {
                    Some(value) => Ok(value),
                    None if !self.is_valid(row) => Ok(0),
                    None => Err(Error::invalid(format!("filter: the result of -({value}) does not fit into 128 bits"))),
                };
                Data::Exact(values.iter().enumerate().map(negate).collect::<Result<_>>()?, scale)
            }
        };
        Ok(ColumnarValue { data, ..self })
    }

    pub fn is_null(&self, rows: usize) -> BooleanArray {
        BooleanArray::new(BooleanBuffer::collect_bool(rows, |row| !self.is_valid(row)), None)
    }

    /// Tests each value; null where the value is.
    pub fn test(&self, test: &Test, rows: usize) -> Result<BooleanArray> {
        let values = match &self.data {
            Data::Narrow(narrow, _) if self.stride == 1 => column::test(&narrow.array(), test)?.values().clone(),
            Data::Narrow(narrow, _) => {
                BooleanBuffer::collect_bool(rows, |row| test.holds(i128::from(narrow.values[row * self.stride])))
            }
            Data::Exact(values, _) => BooleanBuffer::collect_bool(rows, |row| test.holds(values[row * self.stride])),
            Data::Float(values) => {
                BooleanBuffer::collect_bool(rows, |row| test.holds(i128::from(float_key(values[row * self.stride]))))
            }
        };
        Ok(BooleanArray::new(values, self.spread_nulls(rows)))
    }

    /// Compares row by row, by value.
    pub fn compare(left: &ColumnarValue, right: &ColumnarValue, op: CompareOp, rows: usize) -> Result<BooleanArray> {
        let order = |row: usize| -> Ordering {
            match (left.exact(row), right.exact(row)) {
                (Some((a, a_scale)), Some((b, b_scale))) => compare_scaled(a, a_scale, b, b_scale),
                (Some((a, 0)), None) => compare_int_float(a, right.float(row)),
                (None, Some((b, 0))) => compare_int_float(b, left.float(row)).reverse(),
                // A decimal compared with a float becomes its nearest float, as a literal would.
                _ => compare_floats(left.float(row), right.float(row)),
            }
        };
        let values = match Self::same_scale(left, right) {
            Some((a, b, _)) if left.stride + right.stride > 0 => {
                let [a, b] = [(a, left), (b, right)].map(|(narrow, side)| match side.stride {
                    0 => Box::new(Scalar::new(narrow.array())) as Box<dyn Datum>,
                    _ => Box::new(narrow.array()),
                });
                compare(op, &*a, &*b)?.values().clone()
            }
            _ => BooleanBuffer::collect_bool(rows, |row| op.holds(order(row))),
        };
        Ok(BooleanArray::new(
            values,
            NullBuffer::union(left.spread_nulls(rows).as_ref(), right.spread_nulls(rows).as_ref()),
        ))
    }

    /// Both as integers of one scale, if they fit, and that scale.
    fn same_scale(left: &ColumnarValue, right: &ColumnarValue) -> Option<(Narrow, Narrow, i32)> {
        let (Data::Narrow(a, a_scale), Data::Narrow(b, b_scale)) = (&left.data, &right.data) else { return None };
        let scale = *a_scale.max(b_scale);
        let raised = |narrow: &Narrow, from: i32| narrow.clone().times(power_of_ten(scale - from)?);
        Some((raised(a, *a_scale)?, raised(b, *b_scale)?, scale))
    }

    fn spread_nulls(&self, rows: usize) -> Option<NullBuffer> {
        match &self.nulls {
            Some(nulls) if self.stride == 0 && nulls.null_count() > 0 => Some(NullBuffer::new_null(rows)),
            Some(_) if self.stride == 0 => None,
            nulls => nulls.clone(),
        }
    }
}

fn apply(op: ArithmeticOp, left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue> {
    let stride = left.stride.max(right.stride);
    let rows = if left.stride == 1 { left.len() } else { right.len() };
    let mut nulls = NullBuffer::union(left.spread_nulls(rows).as_ref(), right.spread_nulls(rows).as_ref());
    if let Some((narrow, scale)) = apply_narrow(op, left, right) {
        return Ok(ColumnarValue { data: Data::Narrow(narrow, scale), nulls, stride });
    }
    let data = match (left.wide(), right.wide()) {
        (Some((a, a_scale)), Some((b, b_scale))) if op != ArithmeticOp::Divide => {
            let exact = Exact::new(op, a_scale, b_scale);
            let mut undefined = Vec::new();
            let mut values = Vec::with_capacity(rows);
            for row in 0..rows {
                let there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                let value = if there { exact.apply(a[row * left.stride], b[row * right.stride])? } else { None };
                if there && value.is_none() {
                    undefined.push(row);
                }
                values.push(value.unwrap_or(0));
            }
            nulls = without(nulls, &undefined, rows);
            Data::Exact(values, exact.scale)
        }
        _ => {
            let (a, b) = (left.floats(), right.floats());
            if matches!(op, ArithmeticOp::Divide | ArithmeticOp::Remainder) && b.contains(&0.0) {
                let zeros: Vec<usize> = (0..rows).filter(|row| b[row * right.stride] == 0.0).collect();
                nulls = without(nulls, &zeros, rows);
            }
            Data::Float(match op {
                ArithmeticOp::Add => zipped(&a, &b, |a, b| a + b),
                ArithmeticOp::Subtract => zipped(&a, &b, |a, b| a - b),
                ArithmeticOp::Multiply => zipped(&a, &b, |a, b| a * b),
                ArithmeticOp::Divide => zipped(&a, &b, |a, b| a / b),
                ArithmeticOp::Remainder => zipped(&a, &b, |a, b| a % b),
            })
        }
    };
    Ok(ColumnarValue { data, nulls, stride })
}

/// The same nulls, and some more.
fn without(nulls: Option<NullBuffer>, more: &[usize], rows: usize) -> Option<NullBuffer> {
    if more.is_empty() {
        return nulls;
    }
    let mut valid = vec![true; rows];
    more.iter().for_each(|row| valid[*row] = false);
    NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::from(valid)))
}

/// A sum, difference or product that is known to fit into 64 bits, or a remainder by a constant.
fn apply_narrow(op: ArithmeticOp, left: &ColumnarValue, right: &ColumnarValue) -> Option<(Narrow, i32)> {
    let fits = |most: Option<u64>| most.filter(|most| i64::try_from(*most).is_ok());
    if op == ArithmeticOp::Multiply {
        let (Data::Narrow(a, a_scale), Data::Narrow(b, b_scale)) = (&left.data, &right.data) else { return None };
        let most = fits(a.most.checked_mul(b.most))?;
        return Some((
            Narrow { values: zipped(&a.values, &b.values, i64::wrapping_mul).into(), most },
            a_scale + b_scale,
        ));
    }
    let (a, b, scale) = ColumnarValue::same_scale(left, right)?;
    let sum = || fits(a.most.checked_add(b.most));
    let narrow = match op {
        ArithmeticOp::Add => Narrow { most: sum()?, values: zipped(&a.values, &b.values, i64::wrapping_add).into() },
        ArithmeticOp::Subtract => {
            Narrow { most: sum()?, values: zipped(&a.values, &b.values, i64::wrapping_sub).into() }
        }
        ArithmeticOp::Remainder if right.stride == 0 && b.values[0] != 0 => a.remainders(b.values[0]),
        _ => return None,
    };
    Some((narrow, scale))
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
                let written = |value: i128, scale: i32| super::text::number::Number::scaled(value, scale);
                let (a, b) = (written(a, self.a_scale), written(b, self.b_scale));
                Err(Error::invalid(format!(
                    "filter: the result of {a} {} {b} does not fit into 128 bits",
                    self.op.symbol()
                )))
            }
        }
    }
}
