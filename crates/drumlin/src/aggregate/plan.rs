//! What is asked for: keys, buckets, aggregates; and the same tied to the columns of a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::bucket::{Buckets, Every};
use crate::base::{Error, Result, TypeName};
use crate::filter::{BoundExpression, Expression, column_meant, find_column};

/// What is made of the values of a group. All but [`Function::Count`] without a column leave nulls out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Function {
    /// How many there are: rows, or values that are not null.
    Count,
    /// How many different ones there are. NaN equals itself, and -0.0 equals 0.0.
    CountDistinct,
    /// Their sum: of integers and booleans an `Int64`, of unsigned ones a `UInt64`, of decimals a `Decimal128(38, scale)`, each an error if
    /// it is beyond that; of floats a `Float64`, rounded once. Null of none.
    Sum,
    /// Their mean, a `Float64`, rounded once.
    Mean,
    /// The least. NaN is greater than all numbers.
    Min,
    /// The greatest.
    Max,
    /// That of the first row, in the order of the table.
    First,
    /// That of the last row.
    Last,
    /// The standard deviation of a sample. Null of fewer than two.
    Std,
    /// The variance of a sample. Null of fewer than two.
    Var,
    /// The value below which a share of them lies, from 0 to 1, between the two nearest.
    Quantile(f64),
    /// Whether one is true. Null of none.
    Any,
    /// Whether all are true. Null of none.
    All,
    /// The mean in which each counts as much as another column, or calculation, says. Null if the weights come to zero.
    WeightedMean(String),
}

impl Function {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::CountDistinct => "count_distinct",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
            Self::Last => "last",
            Self::Std => "std",
            Self::Var => "var",
            Self::Quantile(_) => "quantile",
            Self::Any => "any",
            Self::All => "all",
            Self::WeightedMean(_) => "weighted_mean",
        }
    }
}

/// An aggregate: what is made of a column, or of a calculation in the language of filters, whose values are exact as long as there are
/// only integers and decimals (`Int64` or `Decimal128(38, scale)`) and doubles otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// Its name in the result.
    pub name: String,
    /// What is made.
    pub function: Function,
    /// Of what: a column, or a calculation. `None` for rows, which can only be counted.
    pub of: Option<String>,
}

/// Which groups rows are put in, and what is made of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupBy {
    /// Columns: rows that are equal in them are of one group. Nulls are equal to each other, NaN to itself, and -0.0 to 0.0.
    pub keys: Vec<String>,
    /// Buckets of time, whose label is a column of the result, by the name of its column, behind those of the keys. Rows without a time
    /// are of a group of their own.
    pub every: Option<Every>,
    /// What is made of each group.
    pub aggregates: Vec<Aggregate>,
}

/// Where values come from.
#[derive(Clone, Debug)]
pub enum AggregateInput {
    /// A column, by its place among those read.
    Column(usize),
    Computed(BoundExpression),
}

impl AggregateInput {
    /// With the type of its values; a column also has what its field says of them.
    fn new(text: &str, schema: &Schema, wanted: &mut Vec<String>) -> Result<(Self, Field)> {
        let column = |name: &str| schema.field_with_name(column_meant(name, schema)).ok().cloned();
        let known = match column(text) {
            Some(field) => Ok(field),
            None => {
                let expression = Expression::parse(text)?;
                // A name in quotes.
                expression.as_column().and_then(column).ok_or(expression)
            }
        };
        match known {
            Ok(field) => Ok((Self::Column(place(field.name(), wanted)), field)),
            Err(expression) => {
                let data_type = expression.data_type(schema)?;
                let bound = expression.bind(schema, &data_type)?;
                for at in bound.columns() {
                    place(schema.field(*at).name(), wanted);
                }
                Ok((Self::Computed(bound), Field::new("", data_type, true)))
            }
        }
    }

    /// Its values.
    pub fn of(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        match self {
            Self::Column(at) => Ok(batch.column(*at).clone()),
            Self::Computed(expression) => expression.compute_native(batch),
        }
    }
}

/// The place of a column among those that are read.
fn place(name: &str, wanted: &mut Vec<String>) -> usize {
    wanted.iter().position(|there| there == name).unwrap_or_else(|| {
        wanted.push(name.to_owned());
        wanted.len() - 1
    })
}

/// An aggregate, tied to columns.
#[derive(Clone, Debug)]
pub struct Bound {
    pub function: Function,
    /// Of what it was asked for.
    of: Option<String>,
    /// The values, and the weights of a weighted mean.
    pub inputs: Vec<AggregateInput>,
    /// The type of the values.
    pub data_type: DataType,
}

impl Bound {
    /// Whether what is known of groups for one of two aggregates is all that the other needs.
    fn shares(&self, other: &Bound) -> bool {
        use Function::*;
        let alike = match (&self.function, &other.function) {
            (Sum | Mean, Sum | Mean) | (Std | Var, Std | Var) | (Quantile(_), Quantile(_)) | (Any | All, Any | All) => {
                true
            }
            (one, other) => one == other,
        };
        alike && self.of == other.of
    }
}

/// A [`GroupBy`], tied to the columns of a table.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The columns to be read, in the order in which batches have them.
    pub columns: Vec<String>,
    /// The keys, without buckets: their places among the columns.
    pub keys: Vec<usize>,
    /// The column of times, and its buckets.
    pub buckets: Option<(usize, Buckets)>,
    /// What is made of groups, each with the place of the first for which the same has to be known.
    pub aggregates: Vec<(Bound, usize)>,
    /// The columns of the result.
    pub schema: SchemaRef,
}

/// The scale of values that are integers of at most 128 bits with one.
pub fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    }
}

fn refuse(function: &Function, of: &str, data_type: &DataType, takes: &str) -> Error {
    let (function, data_type) = (function.name(), TypeName(data_type));
    Error::invalid(format!("'{function}' of '{of}' is not possible: it takes {takes}, and '{of}' has type {data_type}"))
}

impl Grouping {
    /// Ties what is asked for to the columns of a table.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that is lacking, for two results of one name, and for values that an aggregate does not take.
    pub fn new(asked: &GroupBy, schema: &Schema) -> Result<Self> {
        let (mut columns, mut keys, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        let field_of = |name: &str| find_column(schema, name).map(|at| schema.field(at));
        for name in &asked.keys {
            let field = field_of(name)?;
            if field.data_type().is_nested() {
                return Err(Error::invalid(format!(
                    "rows cannot be grouped by column '{name}' of type {}",
                    TypeName(field.data_type())
                )));
            }
            keys.push(place(field.name(), &mut columns));
            fields.push(field.clone().with_data_type(plain(field.data_type())));
        }
        let mut buckets = None;
        if let Some(every) = &asked.every {
            let field = field_of(&every.column)?;
            buckets = Some((place(field.name(), &mut columns), Buckets::new(every, field.data_type())?));
            fields.push(Field::new(field.name(), plain(field.data_type()), field.is_nullable()));
        }
        let mut aggregates: Vec<(Bound, usize)> = Vec::new();
        for Aggregate { name, function, of } in &asked.aggregates {
            let named = |e: Error| e.context(format!("aggregate '{name}'"));
            let (bound, result) = bind(function, of.as_deref(), schema, &mut columns).map_err(named)?;
            let shared = aggregates.iter().position(|(other, _)| bound.shares(other));
            let own = aggregates.len();
            aggregates.push((bound, shared.unwrap_or(own)));
            fields.push(result.with_name(name));
        }
        for (at, field) in fields.iter().enumerate() {
            if fields[..at].iter().any(|other| other.name() == field.name()) {
                return Err(Error::invalid(format!(
                    "two columns of the result are called '{}'; rename one",
                    field.name()
                )));
            }
        }
        let counts = |bound: &Bound| bound.function == Function::Count && bound.inputs.is_empty();
        if columns.is_empty() && !aggregates.iter().all(|(bound, _)| counts(bound)) {
            // Constants are of as many rows as some column has.
            columns.extend(schema.fields().first().map(|field| field.name().clone()));
        }
        if fields.is_empty() {
            return Err(Error::invalid(
                "there is nothing to group by and nothing to compute; give columns to group by, buckets of time or \
                 aggregates",
            ));
        }
        Ok(Self { columns, keys, buckets, aggregates, schema: Arc::new(Schema::new(fields)) })
    }

    /// The aggregates for which something has to be known of groups, each with its place.
    pub fn needed(&self) -> impl Iterator<Item = (usize, &Bound)> {
        self.aggregates.iter().enumerate().filter(|(at, (_, needs))| at == needs).map(|(at, (bound, _))| (at, bound))
    }

    /// Whether the result depends on the order of rows.
    pub fn depends_on_order(&self) -> bool {
        self.aggregates.iter().any(|(bound, _)| bound.function.is_by_place())
    }

    /// How many columns of the result say which group it is.
    pub fn width(&self) -> usize {
        self.keys.len() + usize::from(self.buckets.is_some())
    }
}

/// The type of a key in the result: that of its values.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other.clone(),
    }
}

/// Whether values can be added up, as doubles.
fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() && !matches!(data_type, DataType::Decimal256(..)) || *data_type == DataType::Null
}

/// Ties an aggregate to columns; also the field of its result.
fn bind(function: &Function, of: Option<&str>, schema: &Schema, columns: &mut Vec<String>) -> Result<(Bound, Field)> {
    let Some(text) = of else {
        return match function {
            Function::Count => {
                let bound =
                    Bound { function: Function::Count, of: None, inputs: Vec::new(), data_type: DataType::Null };
                Ok((bound, Field::new("", DataType::Int64, false)))
            }
            other => Err(Error::invalid(format!("'{}' needs a column", other.name()))),
        };
    };
    let (input, field) = AggregateInput::new(text, schema, columns)?;
    let data_type = plain(field.data_type());
    let number = is_number(&data_type);
    let mut inputs = vec![input];
    let result = match function {
        Function::Count | Function::CountDistinct => Field::new("", DataType::Int64, false),
        Function::Sum => match &data_type {
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => made(DataType::UInt64),
            other if other.is_signed_integer() || *other == DataType::Boolean => made(DataType::Int64),
            other if other.is_floating() || *other == DataType::Null => made(DataType::Float64),
            other => match scale_of(other) {
                Some(scale) => made(DataType::Decimal128(38, scale)),
                None => return Err(refuse(function, text, other, "numbers")),
            },
        },
        Function::Mean if number || data_type == DataType::Boolean => made(DataType::Float64),
        Function::Std | Function::Var | Function::Quantile(_) | Function::WeightedMean(_) if number => {
            made(DataType::Float64)
        }
        // Values as they are, with what their field says of them.
        Function::Min | Function::Max | Function::First | Function::Last => {
            field.with_data_type(data_type.clone()).with_nullable(true)
        }
        Function::Any | Function::All if matches!(data_type, DataType::Boolean | DataType::Null) => {
            made(DataType::Boolean)
        }
        Function::Any | Function::All => return Err(refuse(function, text, &data_type, "booleans")),
        _ => return Err(refuse(function, text, &data_type, "numbers")),
    };
    match function {
        Function::Quantile(share) if !(0.0..=1.0).contains(share) => {
            return Err(Error::invalid(format!("a quantile needs a share from 0 to 1, not {share}")));
        }
        Function::WeightedMean(weight) => {
            let (input, field) = AggregateInput::new(weight, schema, columns)?;
            if !is_number(&plain(field.data_type())) {
                return Err(refuse(function, weight, field.data_type(), "numbers"));
            }
            inputs.push(input);
        }
        _ => {}
    }
    if data_type.is_nested() && !matches!(function, Function::Count) {
        return Err(refuse(function, text, &data_type, "no nested values"));
    }
    Ok((Bound { function: function.clone(), of: Some(text.to_owned()), inputs, data_type }, result))
}

fn made(data_type: DataType) -> Field {
    Field::new("", data_type, true)
}
