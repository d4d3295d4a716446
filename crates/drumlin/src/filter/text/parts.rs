//! Filters taken apart and put together: the predicates that a filter consists of, and the same filter with other columns.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;

use super::moment::{Moment, MomentForm};
use super::names;
use super::number::Number;
use super::syntax::{CompareOp, Expr, Literal};
use crate::filter::column::integers;
use crate::filter::{Expression, Filter, plain_values};
use arrow::datatypes::{DataType, Schema};

impl Filter {
    /// The predicates that are all true where it is.
    pub fn terms(&self) -> Vec<Filter> {
        match &self.0 {
            Expr::And(terms) => terms.iter().cloned().map(Filter).collect(),
            other => vec![Filter(other.clone())],
        }
    }

    /// The predicates of which one is true where it is; one alone if it is not made of several.
    pub fn alternatives(&self) -> Vec<Filter> {
        match &self.0 {
            Expr::Or(terms) => terms.iter().cloned().map(Filter).collect(),
            other => vec![Filter(other.clone())],
        }
    }

    /// The filter that is true where all of `terms` are; `None` if there are none.
    pub fn all_of(terms: impl IntoIterator<Item = Filter>) -> Option<Filter> {
        terms.into_iter().reduce(Filter::and)
    }

    /// The same with other names of columns; `None` if `to` has none for one.
    pub fn renamed(&self, to: &dyn Fn(&str) -> Option<String>) -> Option<Filter> {
        renamed(&self.0, to).map(Filter)
    }

    /// The same with a column in place of each of these values.
    #[must_use]
    pub fn with_columns_for(&self, values: &[(Expression, String)]) -> Filter {
        let column = |expr: &Expr| {
            let (_, name) = values.iter().find(|(value, _)| value.0 == *expr)?;
            Some(Expr::Column(vec![name.clone()]))
        };
        Filter(self.0.mapped(&column))
    }

    /// The filter that is true for rows which have one of `values` in a column: see [`Expression::one_of`].
    pub fn one_of(column: &str, values: &ArrayRef) -> Option<Filter> {
        Expression(Expr::Column(vec![column.to_owned()])).one_of(values)
    }

    /// The filter that is true for rows which have an instant in a column that is not later than `micros` after 1970; `zoned` is whether the
    /// column has a time zone.
    pub fn not_later(column: &str, micros: i64, zoned: bool) -> Filter {
        let right = Moment { form: MomentForm::Timestamp, value: i128::from(micros), scale: 6, zoned };
        let left = Box::new(Expr::Column(vec![column.to_owned()]));
        Filter(Expr::Compare { op: CompareOp::Le, left, right: Box::new(Expr::Literal(Literal::Moment(right))) })
    }

    /// The filter that is true for rows with a time in a column, which is of type `data_type`, from the first of two on and not later than the other, in the units of the column;
    /// `None` if it has no times.
    pub fn within(column: &str, data_type: &DataType, (from, until): (i64, i64)) -> Option<Filter> {
        let compare = |op: CompareOp, value: i64| {
            let moment = Moment::of_stored(data_type, i128::from(value))?;
            let left = Box::new(Expr::Column(vec![column.to_owned()]));
            Some(Filter(Expr::Compare { op, left, right: Box::new(Expr::Literal(Literal::Moment(moment))) }))
        };
        Some(compare(CompareOp::Ge, from)?.and(compare(CompareOp::Le, until)?))
    }

    /// The names of the columns that it refers to beside these values.
    pub fn columns_beside(&self, values: &[Expression]) -> BTreeSet<String> {
        let nothing = |expr: &Expr| values.iter().any(|value| value.0 == *expr).then_some(Expr::Literal(Literal::Null));
        let mut names = BTreeSet::new();
        self.0.mapped(&nothing).collect_columns(&mut names);
        names
    }

    /// The same with the names that columns have in `schema` where others stand for them.
    #[must_use]
    pub fn as_meant(&self, schema: &Schema) -> Filter {
        Filter(as_meant(&self.0, schema))
    }
}

impl Expression {
    /// The filter that is true where it has one of `values`, nulls left out; `None` for values that are no numbers, times, texts or bytes,
    /// and for floats.
    pub fn one_of(&self, values: &ArrayRef) -> Option<Filter> {
        let plain = plain_values(values).ok()?;
        let valid = |at: &usize| plain.is_valid(*at);
        let numbers = |literal: &dyn Fn(i128) -> Option<Literal>| -> Option<Vec<Literal>> {
            let keys = integers(&*plain)?;
            (0..plain.len()).filter(valid).map(|at| literal(keys[at])).collect()
        };
        let list: Vec<Literal> = match plain.data_type() {
            data_type if data_type.is_integer() || matches!(data_type, DataType::Decimal128(..)) => {
                let scale = if let DataType::Decimal128(_, scale) = data_type { i32::from(*scale) } else { 0 };
                numbers(&|key| Some(Literal::Number(Number::scaled(key, scale))))?
            }
            DataType::Timestamp(..) | DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) => {
                numbers(&|key| Moment::of_stored(plain.data_type(), key).map(Literal::Moment))?
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(&plain, &DataType::Utf8).ok()?;
                texts.as_string::<i32>().iter().flatten().map(|text| Literal::Text(text.to_owned())).collect()
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                let bytes = cast(&plain, &DataType::Binary).ok()?;
                bytes.as_binary::<i32>().iter().flatten().map(|bytes| Literal::Binary(bytes.to_vec())).collect()
            }
            _ => return None,
        };
        Some(Filter(Expr::In { expr: Box::new(self.0.clone()), negated: false, list }))
    }

    /// The names of the columns referred to; for `a.b`, the name `a`.
    pub fn columns(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.0.collect_columns(&mut names);
        names
    }

    /// The same with other names of columns; `None` if `to` has none for one.
    pub fn renamed(&self, to: &dyn Fn(&str) -> Option<String>) -> Option<Expression> {
        renamed(&self.0, to).map(Expression)
    }

    /// The same with the names that columns have in `schema` where others stand for them.
    #[must_use]
    pub fn as_meant(&self, schema: &Schema) -> Expression {
        Expression(as_meant(&self.0, schema))
    }

    /// Whether it is a column, or a field of one.
    pub fn is_column(&self) -> bool {
        matches!(self.0, Expr::Column(_))
    }
}

fn renamed(expr: &Expr, to: &dyn Fn(&str) -> Option<String>) -> Option<Expr> {
    let mut names = BTreeSet::new();
    expr.collect_columns(&mut names);
    names.iter().all(|name| to(name).is_some()).then(|| with_roots(expr, to))
}

fn as_meant(expr: &Expr, schema: &Schema) -> Expr {
    with_roots(expr, &|name| Some(names::meant(name, schema).to_owned()))
}

/// The same with other names of columns, where `to` has one.
fn with_roots(expr: &Expr, to: &dyn Fn(&str) -> Option<String>) -> Expr {
    expr.mapped(&|expr| match expr {
        Expr::Column(path) => {
            let (root, fields) = path.split_first()?;
            Some(Expr::Column([to(root)?].into_iter().chain(fields.iter().cloned()).collect()))
        }
        _ => None,
    })
}

impl Expr {
    /// The same with what `replace` has for the parts of it; these are not looked into.
    fn mapped(&self, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
        if let Some(other) = replace(self) {
            return other;
        }
        let one = |expr: &Expr| Box::new(expr.mapped(replace));
        let all = |exprs: &[Expr]| exprs.iter().map(|expr| expr.mapped(replace)).collect();
        match self {
            Expr::Column(_) | Expr::Literal(_) => self.clone(),
            Expr::Not(expr) => Expr::Not(one(expr)),
            Expr::Negate(expr) => Expr::Negate(one(expr)),
            Expr::And(terms) => Expr::And(all(terms)),
            Expr::Or(terms) => Expr::Or(all(terms)),
            Expr::Compare { op, left, right } => Expr::Compare { op: *op, left: one(left), right: one(right) },
            Expr::Between { expr, negated, low, high } => {
                Expr::Between { expr: one(expr), negated: *negated, low: one(low), high: one(high) }
            }
            Expr::In { expr, negated, list } => Expr::In { expr: one(expr), negated: *negated, list: list.clone() },
            Expr::Like { expr, negated, insensitive, pattern, escape } => Expr::Like {
                expr: one(expr),
                negated: *negated,
                insensitive: *insensitive,
                pattern: pattern.clone(),
                escape: *escape,
            },
            Expr::IsNull { expr, negated } => Expr::IsNull { expr: one(expr), negated: *negated },
            Expr::IsTruth { expr, negated, truth } => {
                Expr::IsTruth { expr: one(expr), negated: *negated, truth: *truth }
            }
            Expr::Chain { first, rest } => Expr::Chain {
                first: one(first),
                rest: rest.iter().map(|(op, term)| (*op, term.mapped(replace))).collect(),
            },
            Expr::Call { function, args } => Expr::Call { function: *function, args: all(args) },
            Expr::Cast { expr, data_type, lenient } => {
                Expr::Cast { expr: one(expr), data_type: data_type.clone(), lenient: *lenient }
            }
        }
    }
}
