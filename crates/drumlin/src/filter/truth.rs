//! Columns of truth values: constants, and the outcome of a comparison or of a test for a truth value.

use arrow::array::{Array, AsArray, BooleanArray, Datum, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::text::syntax::CompareOp;

/// Arrow's comparison kernel for an operator.
pub fn compare(op: CompareOp, left: &dyn Datum, right: &dyn Datum) -> Result<BooleanArray, ArrowError> {
    match op {
        CompareOp::Eq => cmp::eq(left, right),
        CompareOp::Ne => cmp::neq(left, right),
        CompareOp::Lt => cmp::lt(left, right),
        CompareOp::Le => cmp::lt_eq(left, right),
        CompareOp::Gt => cmp::gt(left, right),
        CompareOp::Ge => cmp::gt_eq(left, right),
    }
}

/// `value` in every row.
pub fn constant(value: Option<bool>, rows: usize) -> BooleanArray {
    match value {
        Some(true) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        Some(false) => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
        None => new_null_array(&DataType::Boolean, rows).as_boolean().clone(),
    }
}

/// Which values are true: neither false nor unknown.
pub fn is_true(answer: &BooleanArray) -> BooleanBuffer {
    is_truth(answer, Some(true)).values().clone()
}

/// Whether each value is `truth`, `None` being unknown.
pub fn is_truth(answer: &BooleanArray, truth: Option<bool>) -> BooleanArray {
    let known = answer.nulls().map(NullBuffer::inner);
    let found = match truth {
        None => known.map_or_else(|| BooleanBuffer::new_unset(answer.len()), |known| !known),
        Some(truth) => {
            let values = if truth { answer.values().clone() } else { !answer.values() };
            known.map_or(values.clone(), |known| known & &values)
        }
    };
    BooleanArray::new(found, None)
}
