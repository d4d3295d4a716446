//! Arrow extension types: which ones fit into a column.
//!
//! An extension type is a storage type plus the meaning of its values: a name, and parameters as text. Values with another
//! meaning are refused, because a reader could not distinguish them. Plain values of the storage type take on the meaning
//! of the table's column, so that rows from CSV, JSON or Python can be written to such a column.

use arrow::datatypes::{DataType, Field, FieldRef};
use serde_json::Value;

use crate::base::{Error, Result, TypeName};
use crate::segment::children;

/// Checks that values of the field `came` mean what those of the table's field `wanted` mean, at every depth.
pub(in crate::table) fn check_extension(came: &Field, wanted: &Field) -> Result<()> {
    check(came, wanted).map_err(|told| Error::schema_mismatch(format!("column '{}': {told}", wanted.name())))
}

/// What is wrong, if anything is.
fn check(came: &Field, wanted: &Field) -> Result<(), String> {
    let (has, comes) = (extension(wanted), extension(came));
    if !fits(comes, has) && !came.data_type().is_null() {
        let (has, comes) = (told(has, wanted.data_type()), told(comes, came.data_type()));
        return Err(format!("the table has {has}, the data has {comes}; append values of the table's type"));
    }
    check_below(came.data_type(), wanted.data_type())
}

fn check_below(came: &DataType, wanted: &DataType) -> Result<(), String> {
    match (came, wanted) {
        (DataType::Dictionary(_, came), DataType::Dictionary(_, wanted)) => check_below(came, wanted),
        (DataType::Dictionary(_, came), wanted) => check_below(came, wanted),
        (came, DataType::Dictionary(_, wanted)) => check_below(came, wanted),
        (DataType::Struct(from), DataType::Struct(to)) => {
            let same = |field: &FieldRef| from.find(field.name()).map(|(_, came)| (came.clone(), field.clone()));
            let pairs: Vec<_> = to.iter().filter_map(same).collect();
            pairs.iter().try_for_each(|(came, wanted)| check(came, wanted).map_err(|told| at(wanted, &told)))
        }
        (came, wanted) => {
            children(came).iter().zip(children(wanted)).try_for_each(|(came, wanted)| check(came, wanted))
        }
    }
}

fn at(field: &Field, told: &str) -> String {
    format!("field '{}': {told}", field.name())
}

/// The name and the parameters of the extension type that a field has.
fn extension(field: &Field) -> Option<(&str, &str)> {
    Some((field.extension_type_name()?, field.extension_type_metadata().unwrap_or_default()))
}

/// Whether values of the extension `came` mean what those of `has` mean.
fn fits(came: Option<(&str, &str)>, has: Option<(&str, &str)>) -> bool {
    match (came, has) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((came, with)), Some((has, having))) => came == has && same_parameters(with, having),
    }
}

/// Parameters, if not empty, are usually JSON, and equal even if spelled differently.
fn same_parameters(a: &str, b: &str) -> bool {
    let value = |text: &str| match text.is_empty() {
        true => Some(Value::Object(serde_json::Map::new())),
        false => serde_json::from_str::<Value>(text).ok(),
    };
    a == b || value(a).is_some_and(|a| value(b).is_some_and(|b| a == b))
}

/// A type in a message.
fn told(extension: Option<(&str, &str)>, storage: &DataType) -> String {
    let storage = TypeName(storage);
    match extension {
        None => format!("type {storage}"),
        Some((name, "")) => format!("extension type '{name}' stored as {storage}"),
        Some((name, parameters)) => format!("extension type '{name}' with parameters {parameters} stored as {storage}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn field(name: &str, data_type: DataType, extension: Option<(&str, &str)>) -> Field {
        let metadata = extension.map(|(name, parameters)| {
            let pairs = [("ARROW:extension:name", name), ("ARROW:extension:metadata", parameters)];
            HashMap::from(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())))
        });
        Field::new(name, data_type, true).with_metadata(metadata.unwrap_or_default())
    }

    #[test]
    fn the_same_meaning_and_plain_values_fit() {
        let json = Some(("arrow.json", ""));
        let month = Some(("period", r#"{"freq": "M"}"#));
        for (came, has, fine) in [
            (None, None, true),
            (None, json, true),
            (json, json, true),
            (Some(("arrow.json", "{}")), json, true),
            (Some(("period", r#"{"freq":"M"}"#)), month, true),
            (Some(("period", r#"{"freq":"D"}"#)), month, false),
            (json, month, false),
            (json, None, false),
        ] {
            let of = |extension| field("c", DataType::Utf8, extension);
            let list = |extension| {
                let item = field("item", DataType::Utf8, extension);
                let row = DataType::Struct(vec![field("s", DataType::LargeList(item.into()), None)].into());
                field("c", row, None)
            };
            for (came, has) in [(of(came), of(has)), (list(came), list(has))] {
                match check_extension(&came, &has) {
                    Ok(()) => assert!(fine, "{came:?} into {has:?}"),
                    Err(e) => {
                        assert!(!fine, "{e}");
                        assert!(e.message().contains("column 'c'") && e.message().contains("the data has"), "{e}");
                    }
                }
            }
        }
    }

    #[test]
    fn nulls_fit_whatever_they_are_called() {
        let nulls = field("c", DataType::Null, Some(("arrow.opaque", "{}")));
        check_extension(&nulls, &field("c", DataType::Utf8, Some(("arrow.json", "")))).unwrap();
    }
}
