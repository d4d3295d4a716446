//! What is asked of groups, as Python says it.

use arrow::datatypes::{DataType, Schema, TimeUnit};
use drumlin::{Aggregate, Error, Every, Function, GroupBy, Length, Result, TypeName};

/// Where a bucket begins: microseconds since 1970, nanoseconds beyond that, and whether it is of a time zone.
pub type Origin = (i64, i64, bool);

/// The column of times, the length of buckets, where one begins, whether their ends belong to them, and whether they are called by those.
pub type Buckets = (String, String, Option<Origin>, bool, bool);

/// A name, a function, a column, and what the function needs more: a share, or a weight.
pub type Asked = (String, String, Option<String>, Option<f64>, Option<String>);

/// What is asked, of rows of a schema.
pub fn group_by(keys: Vec<String>, every: Option<Buckets>, asked: Vec<Asked>, schema: &Schema) -> Result<GroupBy> {
    let aggregates = asked.into_iter().map(aggregate).collect::<Result<_>>()?;
    Ok(GroupBy { keys, every: every.map(|every| buckets(every, schema)).transpose()?, aggregates })
}

fn buckets((column, length, origin, closed_right, label_right): Buckets, schema: &Schema) -> Result<Every> {
    let mut data_type = schema.field_with_name(&column).map_or(&DataType::Null, |field| field.data_type());
    if let DataType::Dictionary(_, values) = data_type {
        data_type = values;
    }
    let in_units = |(micros, nanos, zoned): Origin| {
        let unit: i64 = match data_type {
            DataType::Date32 => 86_400_000_000_000,
            DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
            DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
            _ => 1000,
        };
        if let (DataType::Timestamp(_, Some(zone)), false) = (data_type, zoned) {
            return Err(Error::invalid(format!(
                "origin has no time zone, but column '{column}' has '{zone}'; give a datetime with a time zone"
            )));
        }
        let since = i128::from(micros) * 1000 + i128::from(nanos);
        if since % i128::from(unit) != 0 {
            return Err(Error::invalid(format!(
                "origin is between two values of column '{column}' of type {}; give one that the type holds",
                TypeName(data_type)
            )));
        }
        i64::try_from(since / i128::from(unit)).map_err(|_| {
            Error::invalid(format!(
                "origin is outside of the range of column '{column}' of type {}",
                TypeName(data_type)
            ))
        })
    };
    let origin = origin.map(in_units).transpose()?;
    Ok(Every { length: Length::parse(&length)?, column, origin, closed_right, label_right })
}

/// One of them.
pub fn aggregate((name, function, of, share, weight): Asked) -> Result<Aggregate> {
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
        _ => {
            return Err(Error::invalid(format!(
                "'{name}': '{function}' is not an aggregate, or does not take these arguments; expected count, \
                 count_distinct, sum, mean, min, max, first, last, std, var, median, any, all, quantile with a share, \
                 or weighted_mean with a weight"
            )));
        }
    };
    Ok(Aggregate { name, function, of })
}
