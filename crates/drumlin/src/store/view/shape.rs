//! A view of one source: the groups, and the columns of both.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::aggregate::{Aggregate, Function, GroupBy, Grouping, KeptGroups};
use crate::base::{Error, Result, TypeName};
use crate::catalog::ViewDefinition;
use crate::filter::Filter;
use crate::table::HIDDEN;

/// The column of a view that holds what is kept of each group.
pub(in crate::store) const KEPT: &str = "_state";
/// What the number of a group's rows is called while it is computed.
const ROWS: &str = "_rows";

/// How the rows of one source become those of a view.
pub(super) struct Shape {
    /// The groups of the source, with the number of rows as the last aggregate.
    pub plan: Arc<Grouping>,
    /// Which rows have any.
    pub filter: Option<Filter>,
    /// What the columns of paths hold.
    names: Vec<String>,
    definition: ViewDefinition,
}

impl Shape {
    /// That of a source with these columns. `InvalidArgument` if they do not make the view's.
    pub fn new(definition: &ViewDefinition, names: Vec<String>, source: &Schema) -> Result<Self> {
        let mut aggregates = definition.groups.aggregates.clone();
        aggregates.push(Aggregate { name: ROWS.to_owned(), function: Function::Count, of: None });
        let groups = GroupBy { aggregates, ..definition.groups.clone() };
        let plan = Arc::new(Grouping::new(&groups, source)?);
        for field in &plan.schema.fields()[..plan.width()] {
            let data_type = field.data_type();
            if data_type.is_floating() || data_type.is_nested() || *data_type == DataType::Null {
                let (name, data_type) = (field.name(), TypeName(data_type));
                return Err(Error::invalid(format!(
                    "'{name}' of type {data_type} cannot be a key of a view; keys are integers, texts, dates and times"
                )));
            }
        }
        for aggregate in &groups.aggregates {
            if !aggregate.function.is_kept() {
                let (name, function) = (&aggregate.name, aggregate.function.name());
                return Err(Error::invalid(format!(
                    "aggregate '{name}': '{function}' cannot be kept in step, as it takes all rows again when one is gone; a \
                     view has count, sum, mean, weighted_mean, std, var, min, max, first and last"
                )));
            }
        }
        if let Some(name) = definition.path_columns.iter().find(|name| source.index_of(name).is_ok()) {
            return Err(Error::invalid(format!(
                "path_columns has '{name}', which is already one of its columns; choose another name"
            )));
        }
        let filter = definition.filter.as_deref().map(Filter::parse).transpose()?;
        if let Some(filter) = &filter {
            filter.bind(source)?;
        }
        Ok(Self { plan, filter, names, definition: definition.clone() })
    }

    /// What the view is of.
    pub fn definition(&self) -> &ViewDefinition {
        &self.definition
    }

    /// What the columns of paths hold.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns of the view.
    pub fn schema(&self) -> SchemaRef {
        let of_paths =
            self.definition.path_columns.iter().map(|name| Arc::new(Field::new(name, DataType::Utf8, false)));
        let width = self.plan.width();
        let fields = self.plan.schema.fields();
        let keys = fields[..width].iter().map(|field| Arc::new(Field::clone(field).with_nullable(false)));
        let aggregates = fields[width..fields.len() - 1].iter().cloned();
        let hidden = [(HIDDEN.to_owned(), "true".to_owned())];
        let kept = Arc::new(Field::new(KEPT, DataType::Binary, true).with_metadata(hidden.into()));
        let all: Vec<FieldRef> = of_paths.chain(keys).chain(aggregates).chain([kept]).collect();
        Arc::new(Schema::new(all))
    }

    /// How many columns are keys.
    pub fn keys(&self) -> usize {
        self.definition.path_columns.len() + self.plan.width()
    }

    /// Columns of keys of this source, as columns of the view's.
    fn with_names(&self, columns: &[ArrayRef], rows: usize) -> Vec<ArrayRef> {
        let names = self.names.iter().map(|name| Arc::new(StringArray::from(vec![name.as_str(); rows])) as ArrayRef);
        names.chain(columns.iter().cloned()).collect()
    }

    /// The keys of groups, as rows of the view's key columns.
    pub fn keys_of(&self, groups: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let columns = self.with_names(&groups.columns()[..self.plan.width()], groups.num_rows());
        of_types(columns, schema)
    }

    /// Groups, as rows of the view.
    pub fn rows_of(&self, groups: &KeptGroups, schema: &SchemaRef) -> Result<RecordBatch> {
        let results = groups.rows.num_columns() - 1;
        let mut columns = self.with_names(&groups.rows.columns()[..results], groups.rows.num_rows());
        columns.push(Arc::new(groups.kept.clone()));
        of_types(columns, schema)
    }

    /// Rows of the view, as groups, and what was kept of them.
    pub fn groups_of(&self, rows: &RecordBatch) -> Result<(RecordBatch, BinaryArray)> {
        let paths = self.definition.path_columns.len();
        let fields = &self.plan.schema.fields()[..self.plan.schema.fields().len() - 1];
        let of_groups = Arc::new(Schema::new(fields.to_vec()));
        let columns = rows.columns()[paths..rows.num_columns() - 1].to_vec();
        let kept = rows.columns().last().map(|kept| kept.as_binary_opt::<i32>().cloned());
        let kept = kept.flatten().filter(|kept| kept.null_count() == 0);
        let kept = kept.ok_or_else(|| Error::corrupt("a view lacks what was kept of its groups"))?;
        Ok((of_types(columns, &of_groups)?, kept))
    }
}

/// Columns in the types of a schema, which hold the same values.
fn of_types(columns: Vec<ArrayRef>, schema: &SchemaRef) -> Result<RecordBatch> {
    let typed =
        columns.iter().zip(schema.fields()).map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => Ok(arrow::compute::cast(column, field.data_type())?),
        });
    let columns = typed.collect::<Result<Vec<_>>>()?;
    let rows = columns.first().map_or(0, |column| column.len());
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
