//! A filter in two parts: ranges of integers, which a reader can test while they are packed, and what else must hold.

use std::collections::BTreeSet;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;

use super::column;
use super::kind::Kind;
use super::plan::{ColumnRef, Predicate, ScalarExpression, Test};
use super::text::syntax::CompareOp;
use super::truth::is_true;
use crate::base::Result;

/// A range that the values of a column of integers must lie in: of integers, decimals by their digits, times by their units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The column, in the bound schema.
    pub column: usize,
    /// The smallest value.
    pub low: i128,
    /// The greatest value; less than `low` if there is none.
    pub high: i128,
}

impl ValueRange {
    /// The rows of an array of the column whose values are in the range; none that are null.
    ///
    /// # Errors
    /// `SchemaMismatch` if the array is not one of the column.
    pub fn holds(&self, array: &ArrayRef) -> Result<BooleanBuffer> {
        let array = column::narrowed_to_keys(array)?;
        let bound = |op, bound| -> Result<BooleanBuffer> { Ok(is_true(&column::test(&array, &Test::Key(op, bound))?)) };
        Ok(&bound(CompareOp::Ge, self.low)? & &bound(CompareOp::Le, self.high)?)
    }
}

/// The ranges, one for each column, that all must hold for a predicate to be true, and the predicate that must be true beside; `None`
/// if nothing else must. Ranges are of the first `columns` columns alone: what calls become is in no file.
pub fn split(root: &Predicate, columns: usize) -> (Vec<ValueRange>, Option<Predicate>) {
    let (mut ranges, mut rest) = (Vec::<ValueRange>::new(), Vec::new());
    let mut terms = vec![root];
    while let Some(term) = terms.pop() {
        match term {
            Predicate::And(all) => terms.extend(all),
            term => match range(term).filter(|range| range.column < columns) {
                Some(range) => match ranges.iter_mut().find(|known| known.column == range.column) {
                    Some(known) => {
                        (known.low, known.high) = (known.low.max(range.low), known.high.min(range.high));
                    }
                    None => ranges.push(range),
                },
                None => rest.push(term.clone()),
            },
        }
    }
    ranges.sort_unstable_by_key(|range| range.column);
    let rest = match rest.len() {
        0 => None,
        1 => rest.pop(),
        _ => Some(Predicate::And(rest)),
    };
    (ranges, rest)
}

fn range(term: &Predicate) -> Option<ValueRange> {
    let Predicate::Test(ScalarExpression::Column(column), Test::Key(op, bound)) = term else { return None };
    let integers = matches!(
        column.kind,
        Some(Kind::Number { .. } | Kind::Instant { .. } | Kind::Time { .. } | Kind::Duration { .. })
    );
    if !integers || column.path.len() != 1 {
        return None;
    }
    let (low, high) = match op {
        CompareOp::Eq => (*bound, *bound),
        CompareOp::Ne => return None,
        CompareOp::Lt => (i128::MIN, bound.checked_sub(1)?),
        CompareOp::Le => (i128::MIN, *bound),
        CompareOp::Gt => (bound.checked_add(1)?, i128::MAX),
        CompareOp::Ge => (*bound, i128::MAX),
    };
    Some(ValueRange { column: column.index, low, high })
}

/// The columns that a predicate needs, in the bound schema.
pub fn columns(root: &Predicate) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut column = |column: &ColumnRef| {
        found.insert(column.index);
    };
    of_predicate(root, &mut column);
    found
}

fn of_predicate(node: &Predicate, each: &mut impl FnMut(&ColumnRef)) {
    match node {
        Predicate::Constant(_) => {}
        Predicate::And(terms) | Predicate::Or(terms) => terms.iter().for_each(|term| of_predicate(term, each)),
        Predicate::Not(node) | Predicate::IsTruth(node, _) => of_predicate(node, each),
        Predicate::IsNull(value) | Predicate::Test(value, _) => of_value(value, each),
        Predicate::Flag(column) => each(column),
        Predicate::CompareValues { left, right, .. } => {
            of_value(left, each);
            of_value(right, each);
        }
        Predicate::CompareBytes { left, right, .. } => {
            each(left);
            each(right);
        }
        Predicate::CompareTruth { left, right, .. } => {
            of_predicate(left, each);
            of_predicate(right, each);
        }
    }
}

fn of_value(value: &ScalarExpression, each: &mut impl FnMut(&ColumnRef)) {
    match value {
        ScalarExpression::Column(column) => each(column),
        ScalarExpression::Number { .. } | ScalarExpression::Float(_) => {}
        ScalarExpression::Negate(value) => of_value(value, each),
        ScalarExpression::Chain { first, rest } => {
            of_value(first, each);
            rest.iter().for_each(|(_, value)| of_value(value, each));
        }
    }
}
