//! Filters: a row predicate parsed from text, typed against a schema, pruned by statistics and evaluated exactly.
//!
//! Text becomes a [`Filter`] (names, no types), [`Filter::bind`] makes it a [`BoundFilter`] (columns, kinds, and
//! literals converted to their column's own domain), which answers two questions: can this row group be skipped
//! ([`BoundFilter::verdict`]), and which rows of this batch match ([`BoundFilter::evaluate`]).
//!
//! Invariants:
//! - The answer is exact: no engine applies the filter again. Numbers and instants compare by value, whatever the widths
//!   and units; nothing is rounded except where the text itself says so (`/` and floats).
//! - SQL's three truth values. A row matches only if the predicate is true; null is "unknown".
//! - A verdict follows from the statistics alone and holds for every row; if in doubt, it is [`Verdict::Some`].
//! - Text of any length and nesting gives a filter or an error: nesting is limited before anything recurses.

mod arithmetic;
mod bind;
mod call;
mod clock;
mod column;
mod evaluate;
mod expression;
mod kind;
mod plan;
mod ranges;
mod signature;
#[cfg(test)]
mod tests;
mod text;
mod truth;
mod verdict;

pub use clock::ZoneClock;
pub use column::{narrow_integers, plain as plain_values};
pub use ranges::ValueRange;
pub use text::moment::time_of;
pub use text::names::{find as find_column, meant as column_meant};
pub use text::number::{float_key, key_float};
use text::{names, parse, syntax};
pub(crate) use truth::is_true;
pub use verdict::Verdict;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Schema};

use crate::base::Result;
use crate::segment::ColumnStats;

/// Whether filters compare the values of a type.
pub fn is_comparable(data_type: &DataType) -> bool {
    kind::Kind::of(data_type).is_some()
}

/// A row predicate in the language of SQL's `WHERE`, not yet tied to a schema.
///
/// Its [`Display`](fmt::Display) is canonical: equal filters print the same, and the text parses to an equal filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(syntax::Expr);

impl Filter {
    /// Parses one predicate.
    ///
    /// # Errors
    /// `InvalidArgument` naming what was found, where, and what was expected.
    pub fn parse(text: &str) -> Result<Filter> {
        parse::parse(text, "filter").map(Filter)
    }

    /// The filter that is true where this one and `other` are.
    #[must_use]
    pub fn and(self, other: Filter) -> Filter {
        let terms = |filter| match filter {
            syntax::Expr::And(terms) => terms,
            other => vec![other],
        };
        Filter(syntax::Expr::And([terms(self.0), terms(other.0)].concat()))
    }

    /// The filter that is true where this one or `other` is.
    #[must_use]
    pub fn or(self, other: Filter) -> Filter {
        Filter(syntax::Expr::Or(vec![self.0, other.0]))
    }

    /// The names of the columns referred to; for `a.b`, the name `a`.
    pub fn columns(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.0.collect_columns(&mut names);
        names
    }

    /// The names of the fields of the struct column `of` that it refers to.
    pub fn fields_of(&self, of: &str) -> BTreeSet<String> {
        self.0.fields_of(of)
    }

    /// Ties the filter to a schema.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that the schema lacks, or for operands of incompatible types.
    pub fn bind(&self, schema: &Schema) -> Result<BoundFilter> {
        let (root, calls) = bind::bind(&self.0, schema)
            .map_err(|error| error.context(format_args!("filter `{}`", names::clip(&self.to_string()))))?;
        let width = schema.fields().len();
        let (ranges, rest) = ranges::split(&root, width);
        let mut bound = BoundFilter::new(root, calls.clone(), width);
        // Those whose values do not matter are asked for, too.
        let named = bind::columns_of(&self.0, schema);
        bound.columns = bound.columns.into_iter().chain(named).collect::<BTreeSet<_>>().into_iter().collect();
        let rest = rest.filter(|_| !ranges.is_empty()).map(|root| Box::new(BoundFilter::new(root, calls, width)));
        Ok(BoundFilter { ranges, rest, ..bound })
    }
}

impl std::str::FromStr for Filter {
    type Err = crate::base::Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value computed from the columns of a row, in the language of filters: a literal, a column, arithmetic, or a predicate. Not
/// yet tied to a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(syntax::Expr);

impl Expression {
    /// Parses one expression.
    ///
    /// # Errors
    /// `InvalidArgument` naming what was found, where, and what was expected.
    pub fn parse(text: &str) -> Result<Expression> {
        parse::parse(text, "expression").map(Expression)
    }

    /// The name of the column that it is, if it is no more than one.
    pub fn as_column(&self) -> Option<&str> {
        match &self.0 {
            syntax::Expr::Column(path) if let [name] = &path[..] => Some(name),
            _ => None,
        }
    }

    /// The field called `name` of the struct column `of`.
    pub fn field(of: &str, name: &str) -> Expression {
        Expression(syntax::Expr::Column(vec![of.to_owned(), name.to_owned()]))
    }

    /// The names of the fields of the struct column `of` that it refers to.
    pub fn fields_of(&self, of: &str) -> BTreeSet<String> {
        self.0.fields_of(of)
    }

    /// Ties the expression to a schema, for values of type `wanted`.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that the schema lacks, for operands of incompatible types, and if its values are none of
    /// type `wanted`.
    pub fn bind(&self, schema: &Schema, wanted: &DataType) -> Result<BoundExpression> {
        let (source, calls) = bind::bind_value(&self.0, schema, wanted)
            .map_err(|error| error.context(format_args!("expression `{}`", names::clip(&self.0.to_string()))))?;
        let columns = bind::columns_of(&self.0, schema).into_iter().collect();
        Ok(BoundExpression { source, calls, wanted: wanted.clone(), columns })
    }
}

impl Expression {
    /// The type of its values, of a schema's columns: that of the column if it is one, `Int64` of a calculation with integers, `Decimal128(38, scale)`
    /// of one with decimals, too, or with a literal that has a point, `Float64` of others, `Boolean` of a predicate.
    ///
    /// # Errors
    /// As [`Expression::bind`].
    pub fn data_type(&self, schema: &Schema) -> Result<DataType> {
        bind::data_type(&self.0, schema)
    }
}

impl std::str::FromStr for Expression {
    type Err = crate::base::Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An [`Expression`] tied to a schema.
#[derive(Clone, Debug)]
pub struct BoundExpression {
    source: expression::ValueSource,
    calls: Vec<call::FunctionCall>,
    wanted: DataType,
    columns: Vec<usize>,
}

impl BoundExpression {
    /// Indexes, in the bound schema, of the columns that [`BoundExpression::compute`] needs; sorted, no duplicates.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The value of each row; null where it is unknown. The batch holds the columns needed by name, in
    /// the schema's types or physical variants of them (narrower integers and decimals, string views, dictionaries).
    ///
    /// # Errors
    /// `InvalidArgument` naming a value that the type does not hold, or a calculation that overflows.
    pub fn compute(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        expression::compute(&self.source, &*call::extended(batch, &self.calls)?, &self.wanted)
    }

    /// The same, but decimals are of 64 bits where those are enough.
    ///
    /// # Errors
    /// As [`BoundExpression::compute`].
    pub fn compute_native(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        expression::compute_native(&self.source, &*call::extended(batch, &self.calls)?, &self.wanted)
    }
}

/// A [`Filter`] tied to a schema.
#[derive(Clone, Debug)]
pub struct BoundFilter {
    root: plan::Predicate,
    /// What functions are called with, each behind those that it takes.
    calls: Vec<call::FunctionCall>,
    /// How many columns the bound schema has.
    width: usize,
    columns: Vec<usize>,
    ranges: Vec<ValueRange>,
    rest: Option<Box<BoundFilter>>,
}

impl BoundFilter {
    /// A filter without ranges, with those of `calls` that it takes.
    fn new(root: plan::Predicate, calls: Vec<call::FunctionCall>, width: usize) -> Self {
        let mut needed = ranges::columns(&root);
        let calls: Vec<call::FunctionCall> = match needed.last() {
            // A call takes earlier ones.
            Some(last) if *last >= width => calls.into_iter().take(last - width + 1).collect(),
            _ => Vec::new(),
        };
        needed.extend(calls.iter().flat_map(|call| &call.needs));
        let columns = needed.into_iter().filter(|index| *index < width).collect();
        Self { root, calls, width, columns, ranges: Vec::new(), rest: None }
    }

    /// Indexes, in the bound schema, of the columns that [`BoundFilter::evaluate`] needs; sorted, no duplicates.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Ranges of integers, one for each column, that all must hold for a row to be kept, and the filter that must hold beside, if
    /// there is one. No ranges if the filter is not of such a form.
    pub fn ranges(&self) -> (&[ValueRange], Option<&BoundFilter>) {
        (&self.ranges, self.rest.as_deref())
    }

    /// What follows for `rows` rows from the statistics of their columns; `stats` is called with an index in the bound
    /// schema.
    pub fn verdict(&self, rows: u64, stats: &dyn Fn(usize) -> Option<ColumnStats>) -> Verdict {
        verdict::verdict(&self.root, rows, &|index| call::stats_of(&self.calls, self.width, index, stats))
    }

    /// The same for rows whose columns have these statistics, with `stats` as for [`BoundFilter::verdict`]: of many literals that are looked
    /// for, only those that a row may have.
    #[must_use]
    pub fn narrowed(&self, rows: u64, stats: &dyn Fn(usize) -> Option<ColumnStats>) -> BoundFilter {
        let root = verdict::narrowed(&self.root, rows, &|index| call::stats_of(&self.calls, self.width, index, stats));
        let (calls, columns) = (self.calls.clone(), self.columns.clone());
        Self { root, calls, width: self.width, columns, ranges: Vec::new(), rest: None }
    }

    /// About which share of rows whose columns have these statistics it is true for, with `stats` as for [`BoundFilter::verdict`]: an
    /// estimate, 1 where nothing is known.
    pub fn share(&self, rows: u64, stats: &dyn Fn(usize) -> Option<ColumnStats>) -> f64 {
        verdict::share(&self.root, rows, &|index| call::stats_of(&self.calls, self.width, index, stats))
    }

    /// How many tests of a row look for its value among many, or for a pattern in it: these take several times as long as others.
    pub fn searches(&self) -> u64 {
        verdict::searches(&self.root)
    }

    /// The rows for which it is true, ascending, given the first column of the bound schema, whose values ascend, nulls first. `None` if it is
    /// about more than that column, or about no integers or times. O(literals x log rows + rows that are found).
    fn true_in_sorted(&self, column: &dyn Array) -> Option<Vec<u32>> {
        let only = self.columns == [0] && self.calls.is_empty();
        let ranges = if only { verdict::true_in_sorted(&self.root, column)? } else { return None };
        Some(ranges.into_iter().flatten().map(|row| row as u32).collect())
    }

    /// The rows for which it is true, given its columns, those at [`BoundFilter::columns`] of `schema`.
    ///
    /// # Errors
    /// As [`BoundFilter::evaluate`].
    pub fn truth(&self, schema: &Schema, rows: usize, columns: Vec<ArrayRef>) -> Result<BooleanBuffer> {
        let field =
            |(at, array): (&usize, &ArrayRef)| Field::new(schema.field(*at).name(), array.data_type().clone(), true);
        let fields: Vec<Field> = self.columns.iter().zip(&columns).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        Ok(is_true(&self.evaluate(&batch)?))
    }

    /// The entries of a page for which it is true, ascending, given its columns, of which the first ascends if it is the first of `schema`.
    ///
    /// # Errors
    /// As [`BoundFilter::evaluate`].
    pub fn hits(&self, schema: &Schema, rows: usize, columns: Vec<ArrayRef>) -> Result<Vec<u32>> {
        if let Some(hits) = columns.first().and_then(|first| self.true_in_sorted(first)) {
            return Ok(hits);
        }
        Ok(self.truth(schema, rows, columns)?.set_indices().map(|at| at as u32).collect())
    }

    /// The predicate of each row; null where it is unknown, so the caller keeps the rows that are `true`.
    ///
    /// The batch holds the columns needed by name, in the schema's types or physical variants of them (narrower
    /// integers and decimals, string views, dictionaries).
    ///
    /// # Errors
    /// `InvalidArgument` if an integer or decimal calculation overflows 128 bits, naming the operation, if a function or a cast
    /// does not take a value, naming it, or if the batch lacks a column; `SchemaMismatch` if a column has another type.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        evaluate::evaluate(&self.root, &*call::extended(batch, &self.calls)?)
    }
}
