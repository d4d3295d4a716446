//! Functions of numbers: exact for integers and decimals.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use crate::base::{Error, Result, TypeName};
use crate::filter::kind::Kind;
use crate::filter::text::number::{Number, power_of_ten};
use crate::filter::text::scalar::ScalarFunction;
use crate::filter::{column, expression};

/// From here on, all doubles are whole numbers.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The function of each number; `places` is how many decimal places [`ScalarFunction::Round`] keeps.
pub fn computed(
    function: ScalarFunction,
    values: &ArrayRef,
    places: i64,
    from: &DataType,
    to: &DataType,
) -> Result<ArrayRef> {
    let values = column::plain(values)?;
    if let Some(floats) = column::floats(&values) {
        let one = |(row, value): (usize, &f64)| values.is_valid(row).then(|| of_float(function, *value, places));
        let computed: Vec<Option<f64>> = floats.iter().enumerate().map(one).collect();
        if function == ScalarFunction::Sign {
            let signs = computed.iter().map(|sign| sign.map(|sign| sign as i128)).collect();
            return expression::integers(signs, to);
        }
        return expression::floats(computed, to);
    }
    let scale = match Kind::of(from) {
        Some(Kind::Number { scale }) => scale,
        _ => return Err(Error::schema_mismatch(format!("{} is no type of numbers", TypeName(from)))),
    };
    let integers = column::integers(&values)
        .ok_or_else(|| Error::schema_mismatch(format!("{} is no type of numbers", TypeName(from))))?;
    let one = |(row, value): (usize, &i128)| {
        if values.is_null(row) {
            return Ok(None);
        }
        of_exact(function, *value, scale, places)
            .and_then(|value| in_units_of(to, value, scale, function))
            .map(Some)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{}({}) does not fit into 128 bits",
                    function.name(),
                    Number::scaled(*value, scale)
                ))
            })
    };
    expression::integers(integers.iter().enumerate().map(one).collect::<Result<_>>()?, to)
}

fn of_float(function: ScalarFunction, value: f64, places: i64) -> f64 {
    match function {
        ScalarFunction::Abs => value.abs(),
        ScalarFunction::Floor => value.floor(),
        ScalarFunction::Ceil => value.ceil(),
        ScalarFunction::Sign if value.is_nan() || value == 0.0 => 0.0,
        ScalarFunction::Sign => value.signum(),
        _ if !value.is_finite() => value,
        _ => {
            // Powers of ten are exact up to 10^22.
            let power = 10_f64.powi(places.unsigned_abs().min(400) as i32);
            match places >= 0 {
                // What has no such places is as it is.
                true if !power.is_finite() || (value * power).abs() >= WHOLE_MAX => value,
                true => (value * power).round() / power,
                false if !power.is_finite() => 0.0,
                false => (value / power).round() * power,
            }
        }
    }
}

/// A rounded number in units of the scale of its type, which may have fewer places.
fn in_units_of(to: &DataType, value: i128, scale: i32, function: ScalarFunction) -> Option<i128> {
    match Kind::of(to) {
        Some(Kind::Number { scale: own }) if function == ScalarFunction::Round && own < scale => {
            Some(value / power_of_ten(scale - own)?)
        }
        _ => Some(value),
    }
}

/// The result in units of its own scale: that of whole numbers for floor, ceil and sign.
fn of_exact(function: ScalarFunction, value: i128, scale: i32, places: i64) -> Option<i128> {
    let cut = |up: bool| match scale {
        ..=0 => value.checked_mul(power_of_ten(-scale)?),
        _ => {
            let power = power_of_ten(scale)?;
            Some(value.div_euclid(power) + i128::from(up && value.rem_euclid(power) != 0))
        }
    };
    match function {
        ScalarFunction::Abs => value.checked_abs(),
        ScalarFunction::Sign => Some(value.signum()),
        ScalarFunction::Floor => cut(false),
        ScalarFunction::Ceil => cut(true),
        _ => {
            let dropped = i64::from(scale).saturating_sub(places);
            if dropped <= 0 {
                return Some(value);
            }
            let dropped = i32::try_from(dropped).ok();
            let Some((dropped, power)) = dropped.and_then(|places| Some((places, power_of_ten(places)?))) else {
                return Some(0);
            };
            expression::rescaled(value, dropped, 0, true)?.checked_mul(power)
        }
    }
}
