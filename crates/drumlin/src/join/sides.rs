//! What is read of the sides of a join.

use arrow::datatypes::SchemaRef;

use crate::base::{Error, Result};
use crate::table::find_column;

/// One side of a join.
#[derive(Clone, Debug)]
pub struct JoinSide<'a> {
    /// All its columns.
    pub schema: &'a SchemaRef,
    /// Those that are wanted in the result.
    pub columns: &'a [String],
    /// The column of times.
    pub on: &'a str,
}

/// What is read of a side.
#[derive(Clone, Debug)]
pub(super) struct BoundSide {
    /// The columns to read.
    pub columns: Vec<String>,
    /// The places of those that are in the result, or that a window computes with, among them.
    pub shown: Vec<usize>,
    /// The place of the column of times.
    pub on: usize,
    /// The places of the columns that must be equal.
    pub by: Vec<usize>,
}

impl BoundSide {
    fn place(&mut self, name: &str) -> usize {
        self.columns.iter().position(|there| there == name).unwrap_or_else(|| {
            self.columns.push(name.to_owned());
            self.columns.len() - 1
        })
    }

    pub fn new<'s>(side: &JoinSide<'_>, by: &[String], shown: impl Iterator<Item = &'s str>) -> Result<Self> {
        let mut bound = Self { columns: Vec::new(), shown: Vec::new(), on: 0, by: Vec::new() };
        let known = |name: &str| Ok::<_, Error>(side.schema.field(find_column(side.schema, name)?).name().clone());
        for name in shown {
            let name = known(name)?;
            let place = bound.place(&name);
            bound.shown.push(place);
        }
        bound.on = bound.place(&known(side.on)?);
        for name in by {
            let place = bound.place(&known(name)?);
            bound.by.push(place);
        }
        Ok(bound)
    }
}
