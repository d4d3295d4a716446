//! What an index is of: values computed from the columns of a row, and maybe a condition for the rows that it has.
//!
//! Columns are stored by id, so an index means the same after columns were renamed, and nothing in a version that lacks one of them. Values
//! are not computed with functions of a time zone, whose rules change; and one that cannot be computed leaves its row group uncovered.

use std::collections::BTreeSet;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Memo, Result, TypeName};
use crate::filter::{BoundExpression, BoundFilter, Expression, Filter, is_comparable};
use crate::table::StoredSchema;
use crate::table::schema::arrays::{find, into_type};

/// The maximum number of values of an entry.
pub const VALUES_MAX: usize = 16;

/// Whether two rows of an index may have the same values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unique {
    /// They may.
    #[default]
    No,
    /// No row is written that has the values of another, but rows that were there before were not compared yet.
    Enforced,
    /// No two rows of the newest version have the same values.
    Proven,
}

/// An index as it is stored: texts in the language of filters, in which columns go by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDefinition {
    /// Its name.
    pub name: String,
    /// What its entries are ordered by.
    pub values: Vec<String>,
    /// It has only the rows for which this is true.
    pub condition: Option<String>,
    /// Whether two rows may have the same values, none of which is null.
    pub unique: Unique,
    /// What its texts mean, once asked for.
    #[serde(skip)]
    parsed: Memo<ParsedIndex>,
}

/// What the texts of an index mean.
#[derive(Debug)]
struct ParsedIndex {
    /// In ids.
    index: NamedIndex,
    /// The ids of the columns that it depends on.
    columns: BTreeSet<String>,
}

/// An index in the names of a schema.
#[derive(Clone, Debug)]
pub(in crate::table) struct NamedIndex {
    pub values: Vec<Expression>,
    pub condition: Option<Filter>,
}

/// The name of the column of an entry that has the value at a place.
pub(in crate::table) fn value_name(at: usize) -> String {
    format!("value {at}")
}

impl IndexDefinition {
    /// An index of a table whose newest schema is `schema`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no values, if one means nothing in the schema, or is of a type that has no order.
    pub fn new(name: &str, values: &[Expression], condition: Option<&Filter>, schema: &StoredSchema) -> Result<Self> {
        let invalid = |what: String| Error::invalid(format!("index '{name}': {what}"));
        if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return Err(Error::invalid("the name of an index has 1 to 255 bytes, none of them a control character"));
        }
        if values.is_empty() || values.len() > VALUES_MAX {
            return Err(invalid(format!("it has {} columns; expected 1 to {VALUES_MAX}", values.len())));
        }
        let named = NamedIndex {
            values: values.iter().map(|value| value.as_meant(&schema.0)).collect(),
            condition: condition.map(|condition| condition.as_meant(&schema.0)),
        };
        for (at, value) in named.values.iter().enumerate() {
            if named.values[..at].contains(value) {
                return Err(invalid(format!("{value} is named twice")));
            }
        }
        // What it is bound to says what is wrong.
        named.bound(schema).map_err(|e| e.context(format!("index '{name}'")))?;
        let id = |name: &str| schema.id_of(name).map(str::to_owned);
        let lost = || invalid("it refers to a column that does not exist".to_owned());
        Ok(Self {
            name: name.to_owned(),
            values: named
                .values
                .iter()
                .map(|value| value.renamed(&id).map(|value| value.to_string()))
                .collect::<Option<_>>()
                .ok_or_else(lost)?,
            condition: named
                .condition
                .map(|condition| condition.renamed(&id).map(|condition| condition.to_string()).ok_or_else(lost))
                .transpose()?,
            unique: Unique::No,
            parsed: Memo::default(),
        })
    }

    /// The same, of which two rows may not have the same values.
    #[must_use]
    pub fn with_unique(self, unique: Unique) -> Self {
        Self { unique, ..self }
    }

    /// Whether rows are refused that have the values of another.
    pub fn is_unique(&self) -> bool {
        self.unique != Unique::No
    }

    /// What its texts mean. `Corrupt` if it is damaged.
    fn parsed(&self) -> Result<&ParsedIndex> {
        self.parsed.get_or_try(|| {
            let damaged = |e: Error| Error::corrupt(format!("index '{}': {}", self.name, e.message()));
            let values = self.values.iter().map(|value| Expression::parse(value)).collect::<Result<Vec<_>>>();
            let condition = self.condition.as_deref().map(Filter::parse).transpose();
            let (values, condition) = (values.map_err(damaged)?, condition.map_err(damaged)?);
            let of_condition = condition.iter().flat_map(Filter::columns);
            let columns = values.iter().flat_map(Expression::columns).chain(of_condition).collect();
            Ok(ParsedIndex { index: NamedIndex { values, condition }, columns })
        })
    }

    /// The same in the names of a schema; `None` if that lacks a column. `Corrupt` if it is damaged.
    pub(in crate::table) fn named(&self, schema: &StoredSchema) -> Result<Option<NamedIndex>> {
        let by_name = |name: &str| schema.0.index_of(name).ok();
        let place = |id: &str| if planted(Bug::IndexByName) { by_name(id) } else { schema.place_of_id(id) };
        let name = |id: &str| place(id).map(|at| schema.0.field(at).name().clone());
        let NamedIndex { values, condition } = &self.parsed()?.index;
        let named = values.iter().map(|value| value.renamed(&name)).collect::<Option<Vec<_>>>();
        let Some(values) = named else { return Ok(None) };
        let condition = match condition {
            None => None,
            Some(condition) => match condition.renamed(&name) {
                Some(condition) => Some(condition),
                None => return Ok(None),
            },
        };
        Ok(Some(NamedIndex { values, condition }))
    }

    /// The ids of the columns that it depends on. `Corrupt` if it is damaged.
    pub(in crate::table) fn columns(&self) -> Result<&BTreeSet<String>> {
        Ok(&self.parsed()?.columns)
    }

    /// Whether it has values of its own: texts or numbers that are compared or computed with. Names of columns with digits count, too.
    pub fn has_literals(&self) -> bool {
        let is_literal = |c: char| c == '\'' || c.is_ascii_digit();
        let computed =
            self.values.iter().filter(|value| Expression::parse(value).is_ok_and(|value| !value.is_column()));
        computed.chain(&self.condition).any(|text| text.contains(is_literal))
    }

    /// What it is of, in the names of a schema, as text; `None` if that lacks a column.
    pub fn shown(&self, schema: &StoredSchema) -> Result<Option<(Vec<String>, Option<String>)>> {
        let shown = |named: NamedIndex| {
            let values = named.values.iter().map(|value| match value.as_column() {
                Some(name) => name.to_owned(),
                None => value.to_string(),
            });
            (values.collect(), named.condition.map(|condition| condition.to_string()))
        };
        Ok(self.named(schema)?.map(shown))
    }
}

/// An index tied to a schema: what its entries are computed with.
pub(in crate::table) struct BoundIndex {
    values: Vec<BoundValue>,
    condition: Option<BoundFilter>,
    /// The columns that are read for it, by their places in the schema, ascending.
    pub columns: Vec<usize>,
    /// The columns of its entries.
    pub schema: SchemaRef,
}

enum BoundValue {
    /// A column, as it is.
    Column(usize),
    Computed(BoundExpression),
}

impl NamedIndex {
    pub fn bound(&self, schema: &StoredSchema) -> Result<BoundIndex> {
        let schema = &schema.0;
        let (mut values, mut columns, mut fields) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (at, value) in self.values.iter().enumerate() {
            let data_type = stored_type(value.data_type(schema)?);
            if !is_comparable(&data_type) {
                return Err(Error::invalid(format!(
                    "{value} is of type {}; expected one whose values filters compare",
                    TypeName(&data_type)
                )));
            }
            match value.as_column() {
                Some(name) => {
                    let at = find(schema, name)?;
                    columns.insert(at);
                    values.push(BoundValue::Column(at));
                }
                None => {
                    let bound = value.bind(schema, &data_type)?;
                    refuse_zones(&value.to_string(), schema, bound.columns(), !value.is_column())?;
                    columns.extend(bound.columns());
                    values.push(BoundValue::Computed(bound));
                }
            }
            fields.push(Field::new(value_name(at), data_type, true));
        }
        let condition = self.condition.as_ref().map(|condition| condition.bind(schema)).transpose()?;
        if let Some(condition) = &condition {
            columns.extend(condition.columns());
        }
        Ok(BoundIndex {
            values,
            condition,
            columns: columns.into_iter().collect(),
            schema: std::sync::Arc::new(Schema::new(fields)),
        })
    }
}

/// The type in which values are stored: those of a dictionary rather than their codes.
fn stored_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => *values,
        other => other,
    }
}

/// The rules of time zones change, so nothing that depends on them is stored.
fn refuse_zones(value: &str, schema: &Schema, columns: &[usize], computed: bool) -> Result<()> {
    let zoned = |at: &&usize| matches!(schema.field(**at).data_type(), DataType::Timestamp(_, Some(_)));
    match columns.iter().find(zoned).filter(|_| computed) {
        None => Ok(()),
        Some(at) => Err(Error::invalid(format!(
            "{value} is computed from '{}', a timestamp with time zone, and the rules of time zones change; index the column itself",
            schema.field(*at).name()
        ))),
    }
}

impl BoundIndex {
    /// The values of each row, given the columns that are read, and the rows that it has if it does not have all.
    pub fn values(&self, columns: &RecordBatch) -> Result<(Vec<ArrayRef>, Option<arrow::array::BooleanArray>)> {
        let value = |(value, field): (&BoundValue, &arrow::datatypes::FieldRef)| {
            let array = match value {
                BoundValue::Column(at) => {
                    let place = self.columns.binary_search(at).expect("it is read");
                    columns.column(place).clone()
                }
                BoundValue::Computed(expression) => expression.compute(columns)?,
            };
            into_type(array, field.data_type())
        };
        let values = self.values.iter().zip(self.schema.fields()).map(value).collect::<Result<_>>()?;
        let condition = self.condition.as_ref().map(|condition| condition.evaluate(columns)).transpose()?;
        Ok((values, condition))
    }
}
