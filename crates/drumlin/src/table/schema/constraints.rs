//! Constraints of a table: what rows must be for it to take them. A version's schema carries them, so a restore, a copy
//! or a transaction needs nothing for them.
//!
//! A check is a predicate; it holds where it is true or unknown, as in SQL. That a column takes no nulls is part of its
//! field, and a default is part of its column (column.rs).
//!
//! Frames are tested where they are brought into the table's schema (conform.rs), whatever call brings them, also on
//! the workers of a job; new values of updates and merges when row groups get them. Before a constraint is put, one
//! search finds the rows that do not keep it; the commit then depends on all rows, and writes that were prepared before
//! depend on the schema.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema};
use serde::{Deserialize, Serialize};

use super::arrays::shown;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, clip};
use crate::filter::{BoundFilter, Filter};
use crate::table::write::generator::Generator;

/// A check as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::table) struct Check {
    /// Its name.
    pub name: String,
    /// The predicate, in the names of the schema that carries it.
    pub text: String,
}

impl Check {
    /// The predicate.
    pub fn filter(&self) -> Result<Filter> {
        Filter::parse(&self.text).map_err(|e| e.context(format!("check '{}'", self.name)))
    }

    /// What finds the rows for which it does not hold, and what says that there must be none.
    pub fn forbidden(&self) -> Result<(String, Filter)> {
        let Self { name, text } = self;
        Ok((format!("check '{name}' ({text})"), Filter::parse(&format!("not ({text})"))?))
    }

    /// The columns that it refers to.
    pub fn columns(&self) -> Result<BTreeSet<String>> {
        Ok(self.filter()?.columns())
    }
}

/// Constraints to be put on a table.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// Predicates that no row may make false, by name.
    pub checks: Vec<(String, Filter)>,
    /// Columns that take no nulls.
    pub not_null: Vec<String>,
    /// What later rows that lack a column have in it: arrays of one row. Rows that are there stay as they are.
    pub defaults: Vec<(String, ArrayRef)>,
    /// What makes the values of a column in later rows that lack it.
    pub generators: Vec<(String, Generator)>,
}

/// Constraints to be taken off a table: names of checks, and of columns.
#[derive(Clone, Debug, Default)]
pub struct ConstraintNames {
    /// The names of checks.
    pub checks: Vec<String>,
    /// Columns that take nulls again.
    pub not_null: Vec<String>,
    /// Columns that later rows have null in if they lack them, whether their default was a value or made.
    pub defaults: Vec<String>,
}

/// The constraints of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConstraintsInfo {
    /// Predicates by name.
    pub checks: Vec<(String, String)>,
    /// Columns that take no nulls.
    pub not_null: Vec<String>,
    /// What rows that lack a column have in it: arrays of one row.
    pub defaults: Vec<(String, ArrayRef)>,
    /// What makes the values of a column in rows that lack it.
    pub generators: Vec<(String, Generator)>,
}

/// The checks of a schema, tied to it.
#[derive(Clone, Debug, Default)]
pub struct Checks(Vec<(Check, BoundFilter)>);

impl Checks {
    /// `checks` of `schema`. `InvalidArgument` if one means nothing in it.
    pub(in crate::table) fn new(schema: &Schema, checks: &[Check]) -> Result<Self> {
        let bind = |check: &Check| {
            let bound = check.filter()?.bind(schema);
            Ok((check.clone(), bound.map_err(|e| e.context(format!("check '{}'", check.name)))?))
        };
        checks.iter().map(bind).collect::<Result<_>>().map(Self)
    }

    /// Whether they are these.
    pub(in crate::table) fn are(&self, checks: &[Check]) -> bool {
        self.0.iter().map(|(check, _)| check).eq(checks)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that refer to one of these columns.
    pub(in crate::table) fn about(&self, columns: &BTreeSet<usize>) -> Self {
        let about = |bound: &BoundFilter| bound.columns().iter().any(|column| columns.contains(column));
        Self(self.0.iter().filter(|(_, bound)| about(bound)).cloned().collect())
    }

    /// The columns that they refer to, by their places in the schema, ascending.
    pub(in crate::table) fn columns(&self) -> Vec<usize> {
        let all: BTreeSet<usize> = self.0.iter().flat_map(|(_, bound)| bound.columns()).copied().collect();
        all.into_iter().collect()
    }

    /// Fails if one does not hold for a row, naming it: `row` calls it by its place in the batch.
    pub fn test(&self, batch: &RecordBatch, row: impl Fn(usize) -> String) -> Result<()> {
        for (check, bound) in self.0.iter().filter(|_| !planted(Bug::SkipChecks)) {
            let truth = bound.evaluate(batch)?;
            if let Some(at) = (0..truth.len()).find(|at| truth.is_valid(*at) && !truth.value(*at)) {
                let Check { name, text } = check;
                let values = values_of(batch, at, &check.columns()?)?;
                return Err(Error::schema_mismatch(format!(
                    "check '{name}' ({text}) does not hold in {}: {values}",
                    row(at)
                )));
            }
        }
        Ok(())
    }
}

/// The values that a row has in some columns, for a message.
pub(in crate::table) fn values_of(batch: &RecordBatch, row: usize, columns: &BTreeSet<String>) -> Result<String> {
    let schema = batch.schema();
    let value = |(at, field): (usize, &FieldRef)| {
        Ok(format!("{} is {}", field.name(), clip(&shown(batch.column(at), row)?, 60)))
    };
    let named = schema.fields().iter().enumerate().filter(|(_, field)| columns.contains(field.name()));
    Ok(named.map(value).collect::<Result<Vec<_>>>()?.join(", "))
}
