//! Checks a row group: that its segments can be decoded, and that their statistics and the order of its rows match its
//! directory and the table.

use std::cmp::Ordering;

use arrow::array::ArrayRef;

use crate::base::{Error, Result, to_hex};
use crate::block::BlockReader;
use crate::segment::{ColumnStats, Form, Stat, decode, measure};
use crate::table::order::sort_columns;
use crate::table::{PLACES, RowGroup, TableState};

/// Reads every column of a layer of `group`, the newest being 0, bypassing the cache. Returns what is wrong with it, by column.
pub fn check_group(reader: &BlockReader, table: &TableState, group: &RowGroup, layer: usize) -> Result<Vec<String>> {
    let layer =
        group.layers().nth(layer).ok_or_else(|| Error::invalid("the row group does not have the requested layer"))?;
    let schema = &table.schemas[layer.schema as usize];
    let (schema, order) = (&schema.0, schema.order(&table.spec));
    let mut faults = Vec::new();
    let mut sort: Vec<Option<ArrayRef>> = vec![None; order.len()];
    let encoded = reader.row_groups(std::slice::from_ref(layer.address))?.remove(0);
    let block = layer.address.block;
    for (index, segment) in encoded.segments.into_iter().enumerate() {
        // Behind the columns of the schema come the places of rows.
        let field = schema.fields().get(layer.place_in_schema(index));
        let (name, data_type) = field.map_or(("", &PLACES), |field| (field.name().as_str(), field.data_type()));
        let fault = |what: String| match field {
            Some(_) => format!("block {block}, column '{name}': {what}"),
            None => format!("block {block}, places of rows: {what}"),
        };
        match decode(segment.bytes.into(), group.rows as usize, data_type, Form::Exact) {
            Err(e) => faults.push(fault(e.to_string())),
            Ok(array) => {
                faults.extend(disagreement(&segment.stats, &measure(&array)).map(fault));
                if let Some(at) = order.iter().position(|sorted| field.is_some() && sorted == name) {
                    sort[at] = Some(array);
                }
            }
        }
    }
    let sort: Option<Vec<ArrayRef>> = sort.into_iter().collect();
    if let Some(columns) = sort.filter(|columns| group.is_in_order() && !columns.is_empty())
        && sort_columns::sorted_positions(&columns)?.is_some()
    {
        faults.push(format!("block {block}: the rows are not in the table's order"));
    }
    Ok(faults)
}

/// How the statistics `stated` contradict `found`, those of the actual column.
fn disagreement(stated: &ColumnStats, found: &ColumnStats) -> Option<String> {
    if stated.nulls != found.nulls {
        return Some(format!("its statistics count {} nulls, but it has {}", stated.nulls, found.nulls));
    }
    let wrong = |what: &str, stated_bound: &Option<Stat>, found_bound: &Option<Stat>, outside: Ordering| {
        // A missing bound is never wrong.
        let (said, is) = (stated_bound.as_ref()?, found_bound.as_ref()?);
        let order = said.compare(is);
        let sound = match order {
            None => false,
            // A long value is cut in both; only a whole value must be exactly equal.
            Some(order) => order != outside && (!stated.exact || !found.exact || order == Ordering::Equal),
        };
        (!sound)
            .then(|| format!("its statistics say that the {what} value is {}, but it is {}", shown(said), shown(is)))
    };
    wrong("least", &stated.min, &found.min, Ordering::Greater)
        .or_else(|| wrong("greatest", &stated.max, &found.max, Ordering::Less))
}

/// A bound as text.
fn shown(stat: &Stat) -> String {
    match stat {
        Stat::Bool(value) => value.to_string(),
        Stat::Int(value) => value.to_string(),
        Stat::UInt(value) => value.to_string(),
        Stat::Decimal(value) => value.to_string(),
        Stat::Float(value) => value.to_string(),
        Stat::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => format!("'{text}'"),
            Err(_) => format!("x'{}'", to_hex(bytes)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_may_be_wider_than_the_values_unless_they_are_exact() {
        let stats = |min: i64, max: i64, nulls: u64, exact: bool| ColumnStats {
            nulls,
            min: Some(Stat::Int(min)),
            max: Some(Stat::Int(max)),
            exact,
        };
        let found = stats(3, 7, 1, true);
        for (stated, sound) in [
            (stats(3, 7, 1, true), true),
            (stats(0, 9, 1, false), true),
            (stats(0, 9, 1, true), false),
            (stats(4, 9, 1, false), false),
            (stats(0, 6, 1, false), false),
            (stats(3, 7, 0, true), false),
            (ColumnStats { nulls: 1, ..ColumnStats::default() }, true),
            (ColumnStats { min: Some(Stat::UInt(3)), ..stats(3, 7, 1, true) }, false),
        ] {
            assert_eq!(disagreement(&stated, &found).is_none(), sound, "{stated:?}");
        }
    }
}
