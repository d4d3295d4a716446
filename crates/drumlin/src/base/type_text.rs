//! Reads Arrow types from text: as pyarrow prints them (*type_name.rs*), by the names that its functions have, and as Arrow's Rust library
//! prints them; and SQL's names of types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};

use super::error::{Error, Result};
use super::text::clip;

/// How deep types may be nested.
const DEPTH_MAX: usize = 64;

/// The type that `text` names: `int64`, `double`, `string`, `timestamp[us, tz=UTC]`, `decimal128(12, 2)`, `list<string>`; or as SQL names
/// it: `bigint`, `text`, `numeric(12, 2)`, `timestamptz`, `double[]`. Case counts in the former only, spaces in neither. A name that both
/// have is Arrow's: `int8` has 8 bits.
///
/// # Errors
/// `InvalidArgument` if it names none.
pub fn parse_type(text: &str) -> Result<DataType> {
    let mut reader = TypeText { rest: text.trim() };
    let read = reader.data_type(0).filter(|_| reader.rest.is_empty());
    // Arrow's own reader descends as deep as the text says.
    let by_arrow = || (text.matches('(').count() <= DEPTH_MAX).then(|| text.trim().parse().ok())?;
    read.or_else(by_arrow).or_else(|| by_sql(text, 0)).ok_or_else(|| {
        Error::invalid(format!(
            "'{}' is not a type; expected one such as int64, double, string, date32, timestamp[us], \
             decimal128(12, 2), list<string>, or SQL's: bigint, text, numeric(12, 2), timestamp",
            clip(text, 100)
        ))
    })
}

/// The type that SQL calls so; sizes of texts are ignored.
fn by_sql(text: &str, depth: usize) -> Option<DataType> {
    use DataType::*;
    let lower = text.trim().to_ascii_lowercase();
    if let Some(inner) = lower.strip_suffix("[]").filter(|_| depth < DEPTH_MAX) {
        return Some(List(Arc::new(Field::new("item", by_sql(inner, depth + 1)?, true))));
    }
    let (name, sizes) = match lower.split_once('(') {
        Some((name, sizes)) => (name, Some(sizes.strip_suffix(')')?)),
        None => (lower.as_str(), None),
    };
    let sizes: Vec<u8> = match sizes {
        Some(sizes) => sizes.split(',').map(|size| size.trim().parse().ok()).collect::<Option<_>>()?,
        None => Vec::new(),
    };
    let words = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let micros = |zone: Option<&str>| Timestamp(TimeUnit::Microsecond, zone.map(Arc::from));
    Some(match (words.as_str(), &sizes[..]) {
        (
            "text" | "varchar" | "char" | "character" | "character varying" | "nvarchar" | "bpchar" | "string",
            [] | [_],
        ) => Utf8,
        ("numeric" | "decimal" | "dec", []) => Decimal128(18, 3),
        ("numeric" | "decimal" | "dec", [digits @ 1..=38]) => Decimal128(*digits, 0),
        ("numeric" | "decimal" | "dec", [digits @ 1..=38, scale]) if scale <= digits => {
            Decimal128(*digits, *scale as i8)
        }
        (_, [_, ..]) => return None,
        ("bool" | "boolean" | "logical", _) => Boolean,
        ("tinyint", _) => Int8,
        ("smallint" | "int2", _) => Int16,
        ("int" | "integer" | "int4", _) => Int32,
        ("bigint" | "long", _) => Int64,
        ("hugeint", _) => Decimal128(38, 0),
        ("utinyint", _) => UInt8,
        ("usmallint", _) => UInt16,
        ("uinteger", _) => UInt32,
        ("ubigint", _) => UInt64,
        ("real" | "float" | "float4", _) => Float32,
        ("double" | "double precision" | "float8", _) => Float64,
        ("json", _) => Utf8,
        ("blob" | "bytea" | "varbinary" | "binary" | "bytes", _) => Binary,
        ("uuid", _) => FixedSizeBinary(16),
        ("date", _) => Date32,
        ("time" | "time without time zone", _) => Time64(TimeUnit::Microsecond),
        ("timestamp" | "datetime" | "timestamp without time zone", _) => micros(None),
        ("timestamptz" | "timestamp with time zone", _) => micros(Some("UTC")),
        ("timestamp_s", _) => Timestamp(TimeUnit::Second, None),
        ("timestamp_ms", _) => Timestamp(TimeUnit::Millisecond, None),
        ("timestamp_ns", _) => Timestamp(TimeUnit::Nanosecond, None),
        ("interval", _) => Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}

/// What is left of the text.
struct TypeText<'a> {
    rest: &'a str,
}

impl<'a> TypeText<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// All up to one of `ends`.
    fn until(&mut self, ends: &[char]) -> Option<&'a str> {
        let end = self.rest.find(ends)?;
        let (found, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(found.trim())
    }

    fn data_type(&mut self, depth: usize) -> Option<DataType> {
        use DataType::*;
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.word() {
            "null" => Null,
            "bool" | "boolean" => Boolean,
            "int8" => Int8,
            "int16" => Int16,
            "int32" => Int32,
            "int64" => Int64,
            "uint8" => UInt8,
            "uint16" => UInt16,
            "uint32" => UInt32,
            "uint64" => UInt64,
            "halffloat" | "float16" => Float16,
            "float" | "float32" => Float32,
            "double" | "float64" => Float64,
            "string" | "str" | "utf8" => Utf8,
            "large_string" | "large_utf8" => LargeUtf8,
            "string_view" => Utf8View,
            "binary" if self.eat("[") => FixedSizeBinary(self.size()?),
            "binary" => Binary,
            "large_binary" => LargeBinary,
            "binary_view" => BinaryView,
            "fixed_size_binary" => {
                self.expect("[")?;
                FixedSizeBinary(self.size()?)
            }
            "date32" => self.noted("day", Date32)?,
            "date64" => self.noted("ms", Date64)?,
            "time32" => Time32(self.unit_within(&[TimeUnit::Second, TimeUnit::Millisecond])?),
            "time64" => Time64(self.unit_within(&[TimeUnit::Microsecond, TimeUnit::Nanosecond])?),
            "duration" => Duration(self.unit_within(&UNITS.map(|(_, unit)| unit))?),
            "timestamp" => self.timestamp()?,
            "month_interval" => Interval(IntervalUnit::YearMonth),
            "day_time_interval" => Interval(IntervalUnit::DayTime),
            "month_day_nano_interval" => Interval(IntervalUnit::MonthDayNano),
            "decimal32" => self.decimal(9, Decimal32)?,
            "decimal64" => self.decimal(18, Decimal64)?,
            "decimal" | "decimal128" => self.decimal(38, Decimal128)?,
            "decimal256" => self.decimal(76, Decimal256)?,
            "list" => List(self.item(depth)?),
            "large_list" => LargeList(self.item(depth)?),
            "list_view" => ListView(self.item(depth)?),
            "large_list_view" => LargeListView(self.item(depth)?),
            "fixed_size_list" => {
                let item = self.item(depth)?;
                self.expect("[")?;
                FixedSizeList(item, self.size()?)
            }
            "struct" => Struct(self.parts(depth)?),
            "map" => self.map(depth)?,
            "dictionary" => self.dictionary(depth)?,
            _ => return None,
        })
    }

    /// `n]`.
    fn size(&mut self) -> Option<i32> {
        let size = self.number().filter(|size| *size >= 0)?;
        self.expect("]")?;
        Some(size)
    }

    /// A type with a note in brackets, which may be left out.
    fn noted(&mut self, note: &str, data_type: DataType) -> Option<DataType> {
        if self.eat("[") {
            self.expect(note)?;
            self.expect("]")?;
        }
        Some(data_type)
    }

    fn unit(&mut self) -> Option<TimeUnit> {
        let word = self.word();
        UNITS.iter().find(|(name, _)| *name == word).map(|(_, unit)| *unit)
    }

    /// `[unit]`, one of `among`.
    fn unit_within(&mut self, among: &[TimeUnit]) -> Option<TimeUnit> {
        self.expect("[")?;
        let unit = self.unit().filter(|unit| among.contains(unit))?;
        self.expect("]")?;
        Some(unit)
    }

    /// `[unit]` or `[unit, tz=zone]`.
    fn timestamp(&mut self) -> Option<DataType> {
        self.expect("[")?;
        let unit = self.unit()?;
        let zone = match self.eat(",") {
            true => {
                self.expect("tz")?;
                self.expect("=")?;
                Some(self.until(&[']'])?).filter(|zone| !zone.is_empty())
            }
            false => None,
        };
        self.expect("]")?;
        Some(DataType::Timestamp(unit, zone.map(Arc::from)))
    }

    /// `(digits, scale)`, or `(digits)`.
    fn decimal(&mut self, digits_max: u8, of: fn(u8, i8) -> DataType) -> Option<DataType> {
        self.expect("(")?;
        let digits = self.number().filter(|digits| (1..=digits_max).contains(digits))?;
        let scale: i8 = if self.eat(",") { self.number()? } else { 0 };
        self.expect(")")?;
        (i16::from(scale) <= i16::from(digits)).then(|| of(digits, scale))
    }

    /// `name: type`, with `not null` if it takes none.
    fn named(&mut self, depth: usize) -> Option<Field> {
        let name = self.until(&[':'])?.to_owned();
        self.expect(":")?;
        self.field(&name, depth)
    }

    /// A type, with `not null` if it takes none.
    fn field(&mut self, name: &str, depth: usize) -> Option<Field> {
        let data_type = self.data_type(depth + 1)?;
        let not_null = self.eat("not") && self.eat("null");
        Some(Field::new(name, data_type, !not_null))
    }

    /// `<type>`, or `<name: type>`.
    fn item(&mut self, depth: usize) -> Option<FieldRef> {
        self.expect("<")?;
        self.skip();
        let end = self.rest.find([':', '<', '>', '[', '(', ','])?;
        let item = match self.rest[end..].starts_with(':') {
            true => self.named(depth)?,
            false => self.field("item", depth)?,
        };
        self.expect(">")?;
        Some(Arc::new(item))
    }

    /// `<name: type, name: type>`.
    fn parts(&mut self, depth: usize) -> Option<Fields> {
        self.expect("<")?;
        let mut parts = Vec::new();
        while !self.eat(">") {
            if !parts.is_empty() {
                self.expect(",")?;
            }
            self.skip();
            parts.push(self.named(depth)?);
        }
        Some(parts.into())
    }

    /// `<key, value>`, with `keys_sorted` after it if they are.
    fn map(&mut self, depth: usize) -> Option<DataType> {
        self.expect("<")?;
        let key = self.field("key", depth)?.with_nullable(false);
        self.expect(",")?;
        let value = self.field("value", depth)?;
        let sorted = self.eat(",") && self.eat("keys_sorted");
        self.expect(">")?;
        let entries = Field::new("entries", DataType::Struct(Fields::from(vec![key, value])), false);
        Some(DataType::Map(Arc::new(entries), sorted))
    }

    /// `<values=type, indices=type>`; the order that pyarrow prints after them is ignored.
    fn dictionary(&mut self, depth: usize) -> Option<DataType> {
        self.expect("<")?;
        self.expect("values=")?;
        let values = self.data_type(depth + 1)?;
        self.expect(",")?;
        self.expect("indices=")?;
        let keys = self.data_type(depth + 1).filter(DataType::is_dictionary_key_type)?;
        if self.eat(",") {
            self.expect("ordered=")?;
            self.number::<u8>()?;
        }
        self.expect(">")?;
        Some(DataType::Dictionary(Box::new(keys), Box::new(values)))
    }
}

const UNITS: [(&str, TimeUnit); 4] = [
    ("s", TimeUnit::Second),
    ("ms", TimeUnit::Millisecond),
    ("us", TimeUnit::Microsecond),
    ("ns", TimeUnit::Nanosecond),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::TypeName;

    #[test]
    fn what_is_printed_is_read() {
        for text in [
            "null",
            "bool",
            "int8",
            "uint64",
            "halffloat",
            "float",
            "double",
            "string",
            "large_string",
            "string_view",
            "binary",
            "fixed_size_binary[16]",
            "date32[day]",
            "date64[ms]",
            "time32[ms]",
            "time64[us]",
            "duration[ns]",
            "timestamp[s]",
            "timestamp[us, tz=Europe/Berlin]",
            "timestamp[ns, tz=+02:00]",
            "month_day_nano_interval",
            "decimal32(9, 0)",
            "decimal128(12, 2)",
            "decimal256(76, -3)",
            "list<int64>",
            "list<int64 not null>",
            "large_list<element: int64>",
            "list_view<date32[day]>",
            "fixed_size_list<float>[3]",
            "struct<a: int64 not null, b: list<string>>",
            "struct<>",
            "map<string, int8>",
            "map<string, list<timestamp[us, tz=UTC]> not null, keys_sorted>",
            "dictionary<values=string, indices=int32>",
        ] {
            assert_eq!(TypeName(&parse_type(text).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_are_read() {
        for (text, name) in [
            (" str ", "string"),
            ("utf8", "string"),
            ("float64", "double"),
            ("float32", "float"),
            ("boolean", "bool"),
            ("date32", "date32[day]"),
            ("decimal( 12 , 2 )", "decimal128(12, 2)"),
            ("decimal(5)", "decimal128(5, 0)"),
            ("timestamp[ us,tz = UTC ]", "timestamp[us, tz=UTC]"),
            ("list<item: int64>", "list<int64>"),
            ("dictionary<values=string, indices=int32, ordered=0>", "dictionary<values=string, indices=int32>"),
            ("Utf8", "string"),
            ("Decimal128(12,2)", "decimal128(12, 2)"),
            ("Date32", "date32[day]"),
            // Of SQL.
            ("BIGINT", "int64"),
            ("int", "int32"),
            ("int8", "int8"),
            ("text", "string"),
            ("varchar ( 20 )", "string"),
            ("double  precision", "double"),
            ("Numeric(10,2)", "decimal128(10, 2)"),
            ("decimal", "decimal128(18, 3)"),
            ("timestamp", "timestamp[us]"),
            ("TIMESTAMP WITH TIME ZONE", "timestamp[us, tz=UTC]"),
            ("date", "date32[day]"),
            ("uuid", "fixed_size_binary[16]"),
            ("bigint[][]", "list<list<int64>>"),
        ] {
            assert_eq!(TypeName(&parse_type(text).unwrap()).to_string(), name, "{text}");
        }
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let deep = format!("{}int8{}", "list<".repeat(100_000), ">".repeat(100_000));
        for text in [
            "",
            "int7",
            "int(4)",
            "numeric(39, 2)",
            "numeric(5, 6)",
            "numeric(5",
            "varchar(a)",
            "[]",
            "int64 ",
            "int64x",
            "timestamp[us",
            "timestamp[days]",
            "time32[us]",
            "decimal128(39, 2)",
            "decimal128(5, 6)",
            "decimal128(0, 0)",
            "list",
            "list<>",
            "list<int64",
            "struct<a>",
            "map<string>",
            "dictionary<values=string, indices=string>",
            "fixed_size_list<int8>[-1]",
            "ä",
            &deep,
        ] {
            let read = parse_type(text);
            assert_eq!(read.is_ok(), text == "int64 ", "{text:.40}");
        }
    }
}
