//! Truth values of a batch's rows.
//!
//! Invariant: null means unknown, and nothing else; the result has one value per row.

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::kernels::boolean;
use arrow::compute::{cast, is_null};
use arrow::datatypes::DataType;

use super::arithmetic::ColumnarValue;
use super::kind::Kind;
use super::plan::{Predicate, ScalarExpression};
use super::truth::{compare, constant, is_truth};
use super::{arithmetic, column};
use crate::base::Result;

/// Evaluates a predicate on every row.
pub fn evaluate(node: &Predicate, batch: &RecordBatch) -> Result<BooleanArray> {
    let rows = batch.num_rows();
    match node {
        Predicate::Constant(value) => Ok(constant(*value, rows)),
        Predicate::And(terms) => fold(terms, batch, true),
        Predicate::Or(terms) => fold(terms, batch, false),
        Predicate::Not(node) => Ok(boolean::not(&evaluate(node, batch)?)?),
        Predicate::IsTruth(node, truth) => Ok(is_truth(&evaluate(node, batch)?, *truth)),
        Predicate::IsNull(ScalarExpression::Column(column)) => Ok(is_null(&column::fetch(batch, column)?)?),
        Predicate::IsNull(value) => Ok(arithmetic::evaluate(value, batch)?.is_null(rows)),
        Predicate::Flag(column) => Ok(cast(&column::fetch(batch, column)?, &DataType::Boolean)?.as_boolean().clone()),
        Predicate::Test(ScalarExpression::Column(column), test) => column::test(&column::fetch(batch, column)?, test),
        Predicate::Test(value, test) => arithmetic::evaluate(value, batch)?.test(test, rows),
        Predicate::CompareValues { op, left, right } => {
            let (left, right) = (arithmetic::evaluate(left, batch)?, arithmetic::evaluate(right, batch)?);
            ColumnarValue::compare(&left, &right, *op, rows)
        }
        Predicate::CompareBytes { op, left, right } => {
            let wide = if left.kind == Some(Kind::Text) { DataType::LargeUtf8 } else { DataType::LargeBinary };
            let plain = |column| -> Result<ArrayRef> { Ok(cast(&column::fetch(batch, column)?, &wide)?) };
            Ok(compare(*op, &plain(left)?, &plain(right)?)?)
        }
        Predicate::CompareTruth { op, left, right } => {
            Ok(compare(*op, &evaluate(left, batch)?, &evaluate(right, batch)?)?)
        }
    }
}

/// `and` (if `all`) or `or` of terms; stops once every row is decided.
fn fold(terms: &[Predicate], batch: &RecordBatch, all: bool) -> Result<BooleanArray> {
    let mut answer = constant(Some(all), batch.num_rows());
    for term in terms {
        let next = evaluate(term, batch)?;
        answer = if all { boolean::and_kleene(&answer, &next)? } else { boolean::or_kleene(&answer, &next)? };
        let decided = if all { answer.false_count() } else { answer.true_count() };
        if decided == answer.len() {
            break;
        }
    }
    Ok(answer)
}
