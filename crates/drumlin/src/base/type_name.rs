//! Names of Arrow types in messages, spelled as pyarrow prints them. Rust's own names (`Utf8`, `Timestamp(µs)`) never reach a user's
//! message.

use std::fmt;

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit, UnionMode};

/// Prints a type as users know it: `int64`, `timestamp[us, tz=UTC]`, `list<string>`.
#[derive(Clone, Copy, Debug)]
pub struct TypeName<'a>(pub &'a DataType);

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DataType::*;
        match self.0 {
            Null => f.write_str("null"),
            Boolean => f.write_str("bool"),
            Int8 => f.write_str("int8"),
            Int16 => f.write_str("int16"),
            Int32 => f.write_str("int32"),
            Int64 => f.write_str("int64"),
            UInt8 => f.write_str("uint8"),
            UInt16 => f.write_str("uint16"),
            UInt32 => f.write_str("uint32"),
            UInt64 => f.write_str("uint64"),
            Float16 => f.write_str("halffloat"),
            Float32 => f.write_str("float"),
            Float64 => f.write_str("double"),
            Date32 => f.write_str("date32[day]"),
            Date64 => f.write_str("date64[ms]"),
            Timestamp(unit, None) => write!(f, "timestamp[{}]", unit_name(*unit)),
            Timestamp(unit, Some(zone)) => write!(f, "timestamp[{}, tz={zone}]", unit_name(*unit)),
            Time32(unit) => write!(f, "time32[{}]", unit_name(*unit)),
            Time64(unit) => write!(f, "time64[{}]", unit_name(*unit)),
            Duration(unit) => write!(f, "duration[{}]", unit_name(*unit)),
            Interval(IntervalUnit::YearMonth) => f.write_str("month_interval"),
            Interval(IntervalUnit::DayTime) => f.write_str("day_time_interval"),
            Interval(IntervalUnit::MonthDayNano) => f.write_str("month_day_nano_interval"),
            Binary => f.write_str("binary"),
            LargeBinary => f.write_str("large_binary"),
            BinaryView => f.write_str("binary_view"),
            FixedSizeBinary(size) => write!(f, "fixed_size_binary[{size}]"),
            Utf8 => f.write_str("string"),
            LargeUtf8 => f.write_str("large_string"),
            Utf8View => f.write_str("string_view"),
            Decimal32(digits, scale) => write!(f, "decimal32({digits}, {scale})"),
            Decimal64(digits, scale) => write!(f, "decimal64({digits}, {scale})"),
            Decimal128(digits, scale) => write!(f, "decimal128({digits}, {scale})"),
            Decimal256(digits, scale) => write!(f, "decimal256({digits}, {scale})"),
            List(item) => write!(f, "list<{}>", item_text(item)),
            LargeList(item) => write!(f, "large_list<{}>", item_text(item)),
            ListView(item) => write!(f, "list_view<{}>", item_text(item)),
            LargeListView(item) => write!(f, "large_list_view<{}>", item_text(item)),
            FixedSizeList(item, size) => write!(f, "fixed_size_list<{}>[{size}]", item_text(item)),
            Struct(fields) => write!(f, "struct<{}>", joined(fields.iter().map(|field| field_text(field)))),
            Union(fields, mode) => {
                let mode = match mode {
                    UnionMode::Sparse => "sparse_union",
                    UnionMode::Dense => "dense_union",
                };
                write!(f, "{mode}<{}>", joined(fields.iter().map(|(id, field)| format!("{}={id}", field_text(field)))))
            }
            Dictionary(keys, values) => {
                write!(f, "dictionary<values={}, indices={}>", TypeName(values), TypeName(keys))
            }
            Map(entries, sorted) => {
                let parts = match entries.data_type() {
                    // Keys are never null.
                    Struct(parts) if parts.len() == 2 => {
                        format!("{}, {}", TypeName(parts[0].data_type()), nullable_text(&parts[1]))
                    }
                    other => TypeName(other).to_string(),
                };
                write!(f, "map<{parts}{}>", if *sorted { ", keys_sorted" } else { "" })
            }
            RunEndEncoded(ends, values) => {
                let (ends, values) = (TypeName(ends.data_type()), TypeName(values.data_type()));
                write!(f, "run_end_encoded<run_ends: {ends}, values: {values}>")
            }
        }
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// The type of a field, and whether it takes nulls.
fn nullable_text(field: &Field) -> String {
    format!("{}{}", TypeName(field.data_type()), if field.is_nullable() { "" } else { " not null" })
}

/// A field within a struct or union.
fn field_text(field: &Field) -> String {
    format!("{}: {}", field.name(), nullable_text(field))
}

/// The elements of a list, with their name only if it is not the usual one.
fn item_text(field: &Field) -> String {
    if field.name() == "item" { nullable_text(field) } else { field_text(field) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Fields, UnionFields};

    use super::*;

    fn field(name: &str, data_type: DataType, nullable: bool) -> Field {
        Field::new(name, data_type, nullable)
    }

    fn item(data_type: DataType) -> Arc<Field> {
        Arc::new(field("item", data_type, true))
    }

    fn check(expected: &[(DataType, &str)]) {
        for (data_type, name) in expected {
            assert_eq!(TypeName(data_type).to_string(), *name, "{data_type}");
        }
    }

    #[test]
    fn plain_types_have_the_names_of_pyarrow() {
        use DataType::*;
        check(&[
            (Null, "null"),
            (Boolean, "bool"),
            (Int8, "int8"),
            (Int16, "int16"),
            (Int32, "int32"),
            (Int64, "int64"),
            (UInt8, "uint8"),
            (UInt16, "uint16"),
            (UInt32, "uint32"),
            (UInt64, "uint64"),
            (Float16, "halffloat"),
            (Float32, "float"),
            (Float64, "double"),
            (Binary, "binary"),
            (LargeBinary, "large_binary"),
            (BinaryView, "binary_view"),
            (FixedSizeBinary(16), "fixed_size_binary[16]"),
            (Utf8, "string"),
            (LargeUtf8, "large_string"),
            (Utf8View, "string_view"),
            (Decimal32(9, 0), "decimal32(9, 0)"),
            (Decimal64(18, 1), "decimal64(18, 1)"),
            (Decimal128(12, 2), "decimal128(12, 2)"),
            (Decimal256(76, -3), "decimal256(76, -3)"),
        ]);
    }

    #[test]
    fn types_of_time_say_their_unit_and_zone() {
        use DataType::*;
        check(&[
            (Date32, "date32[day]"),
            (Date64, "date64[ms]"),
            (Timestamp(TimeUnit::Second, None), "timestamp[s]"),
            (Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "timestamp[us, tz=UTC]"),
            (Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())), "timestamp[ns, tz=+02:00]"),
            (Time32(TimeUnit::Millisecond), "time32[ms]"),
            (Time64(TimeUnit::Microsecond), "time64[us]"),
            (Duration(TimeUnit::Nanosecond), "duration[ns]"),
            (Interval(IntervalUnit::YearMonth), "month_interval"),
            (Interval(IntervalUnit::DayTime), "day_time_interval"),
            (Interval(IntervalUnit::MonthDayNano), "month_day_nano_interval"),
        ]);
    }

    #[test]
    fn nested_types_name_what_they_hold() {
        use DataType::*;
        let parts = Fields::from(vec![field("a", Int64, false), field("b", List(item(Utf8)), true)]);
        let entries = |nullable| Fields::from(vec![field("key", Utf8, false), field("value", Int8, nullable)]);
        let map = |nullable, sorted| Map(Arc::new(field("entries", Struct(entries(nullable)), false)), sorted);
        let union = |mode| {
            let fields = vec![field("i", Int32, true), field("s", Utf8, false)];
            Union(UnionFields::try_new(vec![0, 5], fields).expect("distinct numbers"), mode)
        };
        let ends = Arc::new(field("run_ends", Int16, false));
        check(&[
            (List(item(Int64)), "list<int64>"),
            (List(Arc::new(field("item", Int64, false))), "list<int64 not null>"),
            (LargeList(Arc::new(field("element", Int64, true))), "large_list<element: int64>"),
            (ListView(item(Date32)), "list_view<date32[day]>"),
            (LargeListView(item(Boolean)), "large_list_view<bool>"),
            (FixedSizeList(item(Float32), 3), "fixed_size_list<float>[3]"),
            (Struct(parts), "struct<a: int64 not null, b: list<string>>"),
            (Struct(Fields::empty()), "struct<>"),
            (union(UnionMode::Sparse), "sparse_union<i: int32=0, s: string not null=5>"),
            (union(UnionMode::Dense), "dense_union<i: int32=0, s: string not null=5>"),
            (Dictionary(Box::new(Int8), Box::new(Utf8)), "dictionary<values=string, indices=int8>"),
            (map(true, false), "map<string, int8>"),
            (map(false, true), "map<string, int8 not null, keys_sorted>"),
            (
                RunEndEncoded(ends, Arc::new(field("values", Utf8, true))),
                "run_end_encoded<run_ends: int16, values: string>",
            ),
        ]);
    }
}
