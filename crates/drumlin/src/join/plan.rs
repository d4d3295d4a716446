//! A join, tied to the columns of both sides.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::asof::{AsofJoin, BoundAsof};
use super::axis::{Axis, AxisValues};
use super::right::RightRows;
use super::sides::{BoundSide, JoinSide};
use super::window::{BoundWindow, WindowJoin};
use crate::base::{Error, Result};
use crate::table::{find_column, into_type, union};

/// What rows of the right side become of a row of the left.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinKind {
    /// The nearest one.
    Asof(AsofJoin),
    /// What is computed of those in a window.
    Window(WindowJoin),
}

#[derive(Clone, Debug)]
enum BoundKind {
    Asof(BoundAsof),
    Window(BoundWindow),
}

/// A join, tied to the columns of both sides.
#[derive(Clone, Debug)]
pub struct JoinPlan {
    pub(super) axis: Axis,
    pub(super) left: BoundSide,
    pub(super) right: BoundSide,
    /// The types in which the columns are compared that must be equal.
    pub(super) by: Vec<DataType>,
    kind: BoundKind,
    /// The columns of the result.
    pub schema: SchemaRef,
}

impl JoinPlan {
    /// Ties a join to the columns of both sides. Rows are joined where the columns `by` are equal, which both sides have; columns of the right
    /// side whose names the left has, too, get the `suffix`.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotFound` for columns that are lacking, that do not compare, or of which two would have one name.
    pub fn new(
        kind: &JoinKind,
        left: &JoinSide<'_>,
        right: &JoinSide<'_>,
        by: &[String],
        suffix: &str,
    ) -> Result<Self> {
        let on = |side: &JoinSide<'_>| find_column(side.schema, side.on).map(|at| side.schema.field(at).clone());
        let (left_on, right_on) = (on(left)?, on(right)?);
        let axis = Axis::new((left.on, left_on.data_type()), (right.on, right_on.data_type()))?;
        let left_bound = BoundSide::new(left, by, left.columns.iter().map(String::as_str))?;
        let mut fields: Vec<FieldRef> = Vec::new();
        for at in &left_bound.shown {
            fields.push(field_of(left.schema, &left_bound.columns[*at]));
        }
        let (right_bound, kind) = match kind {
            JoinKind::Asof(asof) => {
                let bound = BoundSide::new(right, by, right.columns.iter().map(String::as_str))?;
                for at in &bound.shown {
                    let field = field_of(right.schema, &bound.columns[*at]);
                    let taken = fields.iter().any(|other| other.name() == field.name());
                    let name = if taken { format!("{}{suffix}", field.name()) } else { field.name().clone() };
                    fields.push(Arc::new(Field::clone(&field).with_name(name).with_nullable(true)));
                }
                (bound, BoundKind::Asof(asof.bind(&axis)?))
            }
            JoinKind::Window(window) => {
                let bound = window.bind(&axis, right.schema)?;
                let side = BoundSide::new(right, by, bound.columns())?;
                fields.extend(bound.fields());
                (side, BoundKind::Window(bound))
            }
        };
        for (at, field) in fields.iter().enumerate() {
            if fields[..at].iter().any(|other| other.name() == field.name()) {
                return Err(Error::invalid(format!(
                    "two columns of the result are called '{}'; select others, or give another suffix or name",
                    field.name()
                )));
            }
        }
        let by = by.iter().map(|name| common_type(left, right, name)).collect::<Result<_>>()?;
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { axis, left: left_bound, right: right_bound, by, kind, schema })
    }

    fn has_groups(&self) -> bool {
        !self.by.is_empty()
    }

    /// The column of times of the left side.
    pub fn left_on(&self) -> &str {
        &self.left.columns[self.left.on]
    }

    /// The same of the right side.
    pub fn right_on(&self) -> &str {
        &self.right.columns[self.right.on]
    }

    /// The columns to read of the left side, in the order in which batches have them.
    pub fn left_columns(&self) -> &[String] {
        &self.left.columns
    }

    /// The same of the right side.
    pub fn right_columns(&self) -> &[String] {
        &self.right.columns
    }

    /// How far the values of the left side reach to both sides, beyond the next value on each.
    pub(super) fn reach(&self) -> (i64, i64) {
        match &self.kind {
            BoundKind::Asof(asof) => (0, asof.ahead().filter(|_| self.has_groups()).unwrap_or(0)),
            BoundKind::Window(window) => window.reach(),
        }
    }

    /// Whether rows of the left side may be joined with the last row before them, however far it is.
    pub(super) fn needs_earlier(&self) -> bool {
        matches!(self.kind, BoundKind::Asof(_))
    }

    /// Whether sides that are ordered by time can pass each other: it is known how far ahead rows are needed.
    pub fn can_pass(&self) -> bool {
        match &self.kind {
            BoundKind::Asof(asof) => !self.has_groups() || asof.ahead().is_some(),
            BoundKind::Window(_) => true,
        }
    }

    /// By what rows of the left side are joined.
    pub(super) fn left_keys(&self, left: &RecordBatch) -> Result<AxisValues> {
        self.axis.of_left(left.column(self.left.on))
    }

    /// Joins a batch of the left side, by these of its values, with rows of the right.
    pub(super) fn join(&self, left: &RecordBatch, keys: &AxisValues, right: &RightRows) -> Result<RecordBatch> {
        let mut columns: Vec<_> = self.left.shown.iter().map(|at| left.column(*at).clone()).collect();
        let ranges = right.ranges(left, &self.left.by, &self.by)?;
        columns.extend(match &self.kind {
            BoundKind::Asof(asof) => asof.columns(keys, &ranges, right)?,
            BoundKind::Window(window) => window.results(keys, &ranges, right)?,
        });
        let typed = columns.into_iter().zip(self.schema.fields());
        let columns = typed.map(|(column, field)| into_type(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(left.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns.collect::<Result<_>>()?, &options)?)
    }

    /// Rows of the right side, of batches with the columns that are read of it.
    pub(super) fn right_rows(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RightRows> {
        RightRows::new(&self.axis, &self.right, &self.by, schema, batches)
    }

    /// Joins batches of the left side with all rows of the right that they may be joined with.
    pub fn join_all(
        &self,
        left: &[RecordBatch],
        right_schema: &SchemaRef,
        right: &[RecordBatch],
    ) -> Result<Vec<RecordBatch>> {
        let right = self.right_rows(right_schema, right)?;
        let join = |batch: &RecordBatch| self.join(batch, &self.left_keys(batch)?, &right);
        left.iter().filter(|batch| batch.num_rows() > 0).map(join).collect()
    }
}

fn field_of(schema: &SchemaRef, name: &str) -> FieldRef {
    schema.fields()[schema.index_of(name).expect("it was found")].clone()
}

/// The type in which a column of both sides is compared.
fn common_type(left: &JoinSide<'_>, right: &JoinSide<'_>, name: &str) -> Result<DataType> {
    let of = |side: &JoinSide<'_>| -> Result<SchemaRef> {
        let field = side.schema.field(find_column(side.schema, name)?);
        let plain = match field.data_type() {
            DataType::Dictionary(_, values) => (**values).clone(),
            other => other.clone(),
        };
        Ok(Arc::new(Schema::new(vec![Field::new("by", plain, true)])))
    };
    let both = union(&[of(left)?, of(right)?]);
    match (both.apart.is_empty(), both.schema.fields().first()) {
        (true, Some(field)) if !field.data_type().is_nested() => Ok(field.data_type().clone()),
        _ => Err(Error::invalid(format!("rows cannot be joined by '{name}': no type has the values of both sides"))),
    }
}
