//! The type that holds the values of two others.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};

use crate::table::schema::conform::keeps_values;

/// A column that holds the values of both; `None` if no type holds all values of both types. Metadata that differs is left
/// out.
pub(in crate::table) fn field(a: &Field, b: &Field) -> Option<Field> {
    let same_extension = a.extension_type_name() == b.extension_type_name();
    if !same_extension {
        return None;
    }
    let data_type = common(a.data_type(), b.data_type())?;
    let field = Field::new(a.name(), data_type, a.is_nullable() || b.is_nullable());
    Some(if a.metadata() == b.metadata() { field.with_metadata(a.metadata().clone()) } else { field })
}

/// The type that holds the values of both; `None` if there is none.
fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    if a == b || *b == Null {
        return Some(a.clone());
    }
    if *a == Null || widens(a, b) {
        return Some(b.clone());
    }
    if widens(b, a) {
        return Some(a.clone());
    }
    match (a, b) {
        (Dictionary(_, a), Dictionary(_, b)) => common(a, b),
        (Struct(one), Struct(other)) if one.len() == other.len() => {
            let both = |a: &FieldRef| Some(Arc::new(field(a, other.find(a.name())?.1)?));
            Some(Struct(one.iter().map(both).collect::<Option<_>>()?))
        }
        (Map(one, sorted), Map(other, other_sorted)) if sorted == other_sorted => {
            Some(Map(Arc::new(field(one, other)?), *sorted))
        }
        (FixedSizeList(one, size), FixedSizeList(other, other_size)) if size == other_size => {
            Some(FixedSizeList(Arc::new(field(one, other)?), *size))
        }
        _ if let (Some(one), Some(other)) = (elements(a), elements(b)) => {
            let both = Arc::new(field(one, other)?);
            // With offsets of 64 bits if one of them has such.
            let large = [a, b].into_iter().any(|list| matches!(list, LargeList(_) | LargeListView(_)));
            let views = [a, b].into_iter().all(|list| matches!(list, ListView(_) | LargeListView(_)));
            Some(match (large, views) {
                (false, false) => List(both),
                (true, false) => LargeList(both),
                (false, true) => ListView(both),
                (true, true) => LargeListView(both),
            })
        }
        // Signed and unsigned.
        _ if a.is_integer() && b.is_integer() => {
            [Int16, Int32, Int64].into_iter().find(|wider| keeps_values(a, wider) && keeps_values(b, wider))
        }
        _ if a.is_integer() && b.is_floating() || a.is_floating() && b.is_integer() => {
            [Float32, Float64].into_iter().find(|wider| widens(a, wider) && widens(b, wider))
        }
        (Timestamp(one, zone), Timestamp(other, other_zone)) if zone == other_zone => {
            Some(Timestamp(finer(*one, *other), zone.clone()))
        }
        (Duration(one), Duration(other)) => Some(Duration(finer(*one, *other))),
        (Time32(one) | Time64(one), Time32(other) | Time64(other)) => Some(match finer(*one, *other) {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Time32(unit),
            unit => Time64(unit),
        }),
        _ => {
            let (a, b) = (decimal(a)?, decimal(b)?);
            let (scale, whole) = (a.1.max(b.1), (i16::from(a.0) - i16::from(a.1)).max(i16::from(b.0) - i16::from(b.1)));
            match whole + i16::from(scale) {
                digits @ 1..=38 => Some(Decimal128(digits as u8, scale)),
                digits @ 39..=76 => Some(Decimal256(digits as u8, scale)),
                _ => None,
            }
        }
    }
}

/// Whether every value of type `from` is one of type `to`, which is not nested.
pub(in crate::table) fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        // A dictionary may be too small for the values of another.
        (_, Dictionary(..)) => false,
        (Int8 | UInt8 | Int16 | UInt16, Float32 | Float64) | (Int32 | UInt32, Float64) => true,
        (Int8 | UInt8, Float16) => true,
        _ => keeps_values(from, to),
    }
}

/// What the lists of a type have; `None` if it has no lists.
fn elements(data_type: &DataType) -> Option<&FieldRef> {
    use DataType::*;
    match data_type {
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) | FixedSizeList(field, _) => {
            Some(field)
        }
        _ => None,
    }
}

fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    let order = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if order(&a) >= order(&b) { a } else { b }
}

fn decimal(data_type: &DataType) -> Option<(u8, i8)> {
    use DataType::*;
    match data_type {
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale) => {
            Some((*digits, *scale))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever comes first, nested types are one where what is within is.
    #[test]
    fn nested_types_are_united() {
        use DataType::*;
        let item = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
        let shape = |name: &str, data_type: &DataType| -> DataType {
            match name {
                "list" => List(item(data_type)),
                "large" => LargeList(item(data_type)),
                "view" => ListView(item(data_type)),
                "large view" => LargeListView(item(data_type)),
                "pairs" => FixedSizeList(item(data_type), 2),
                "triples" => FixedSizeList(item(data_type), 3),
                "map" => {
                    let fields = vec![Field::new("keys", Utf8, false), Field::new("values", data_type.clone(), true)];
                    Map(Arc::new(Field::new("entries", Struct(fields.into()), false)), false)
                }
                _ => Struct(vec![Field::new("x", data_type.clone(), true), Field::new("y", Utf8, true)].into()),
            }
        };
        let cases = [
            ("list", "list", "list"),
            ("list", "large", "large"),
            ("list", "view", "list"),
            ("view", "large view", "large view"),
            ("view", "large", "large"),
            ("pairs", "pairs", "pairs"),
            ("pairs", "triples", "list"),
            ("pairs", "large view", "large"),
            ("map", "map", "map"),
            ("struct", "struct", "struct"),
        ];
        let elements =
            [(Int16, Int32, Some(Int32)), (Null, Utf8, Some(Utf8)), (Int64, Float64, None), (Utf8, Int8, None)];
        for (one, other, both) in cases {
            for (a, b, wanted) in &elements {
                let wanted = wanted.as_ref().map(|element| shape(both, element));
                assert_eq!(common(&shape(one, a), &shape(other, b)), wanted, "{one} {other} {a} {b}");
                assert_eq!(common(&shape(other, b), &shape(one, a)), wanted, "{other} {one} {b} {a}");
            }
        }
        assert_eq!(common(&shape("list", &Int8), &Int8), None);
        assert_eq!(common(&shape("map", &Int8), &shape("struct", &Int8)), None);
    }
}
