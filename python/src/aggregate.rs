//! What is asked of groups, as Python says it.

use arrow::datatypes::{DataType, Schema, TimeUnit};
use drumlin::{Aggregate, Error, Every, Function, GroupBy, Length, Result};

/// The column of times, the length of buckets, where one begins in microseconds since 1970, which ends belong to them, and by which they are
/// called.
pub type Buckets = (String, String, Option<i64>, bool, bool);

/// A name, a function, a column, and what the function needs more: a share, or a weight.
pub type Asked = (String, String, Option<String>, Option<f64>, Option<String>);

/// What is asked, of rows of a schema.
pub fn group_by(keys: Vec<String>, every: Option<Buckets>, asked: Vec<Asked>, schema: &Schema) -> Result<GroupBy> {
    let aggregates = asked.into_iter().map(aggregate).collect::<Result<_>>()?;
    Ok(GroupBy { keys, every: every.map(|every| buckets(every, schema)).transpose()?, aggregates })
}

fn buckets((column, length, origin, closed_right, label_right): Buckets, schema: &Schema) -> Result<Every> {
    const DAY: i64 = 86_400_000_000;
    let in_units = |micros: i64| match schema.field_with_name(&column).map(|field| field.data_type()) {
        Ok(DataType::Date32) => Ok(micros.div_euclid(DAY)),
        Ok(DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _)) => Ok(micros.div_euclid(1000)),
        Ok(DataType::Timestamp(TimeUnit::Second, _)) => Ok(micros.div_euclid(1_000_000)),
        Ok(DataType::Timestamp(TimeUnit::Nanosecond, _)) => micros
            .checked_mul(1000)
            .ok_or_else(|| Error::invalid(format!("origin: column '{column}' in nanoseconds does not reach that far"))),
        _ => Ok(micros),
    };
    let origin = origin.map(in_units).transpose()?;
    Ok(Every { length: Length::parse(&length)?, column, origin, closed_right, label_right })
}

fn aggregate((name, function, of, share, weight): Asked) -> Result<Aggregate> {
    let function = match (function.as_str(), share, weight) {
        ("quantile", Some(share), None) => Function::Quantile(share),
        ("weighted_mean", None, Some(weight)) => Function::WeightedMean(weight),
        ("count", None, None) => Function::Count,
        ("count_distinct", None, None) => Function::CountDistinct,
        ("sum", None, None) => Function::Sum,
        ("mean", None, None) => Function::Mean,
        ("min", None, None) => Function::Min,
        ("max", None, None) => Function::Max,
        ("first", None, None) => Function::First,
        ("last", None, None) => Function::Last,
        ("std", None, None) => Function::Std,
        ("var", None, None) => Function::Var,
        ("median", None, None) => Function::Quantile(0.5),
        ("any", None, None) => Function::Any,
        ("all", None, None) => Function::All,
        _ => return Err(Error::invalid(format!("'{name}': there is no aggregate '{function}' of such arguments"))),
    };
    Ok(Aggregate { name, function, of })
}
