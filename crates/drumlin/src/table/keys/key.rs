//! Keys as bytes: a keyed table's key columns, encoded so that bytes compare like the rows in the table's order and no
//! key is a prefix of another. Only used in memory, never stored.
//!
//! Integers, booleans, dates and times take 8 bytes, the most significant first and with the sign bit flipped; decimals take
//! 16. Strings and binary end with 0 0, and each zero in them becomes 0 1.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, LargeBinaryArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, UInt64Type};

use crate::base::{Error, Result, TypeName};
use crate::memtable::{KEY_BYTES_MAX, Key, Keys};
use crate::segment::Stat;
use crate::table::order::sort_columns::{SORTABLE, check_order};

/// How a column's values become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyEncoding {
    Bool,
    Signed,
    Unsigned,
    Decimal,
    Bytes,
}

const SIGN: u64 = 1 << 63;
const SIGN_WIDE: u128 = 1 << 127;

fn cell(data_type: &DataType) -> Option<KeyEncoding> {
    use DataType::*;
    Some(match data_type {
        Boolean => KeyEncoding::Bool,
        Int8 | Int16 | Int32 | Int64 | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => {
            KeyEncoding::Signed
        }
        UInt8 | UInt16 | UInt32 | UInt64 => KeyEncoding::Unsigned,
        Decimal32(..) | Decimal64(..) | Decimal128(..) => KeyEncoding::Decimal,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(1..) => KeyEncoding::Bytes,
        Dictionary(_, values) => cell(values)?,
        _ => return None,
    })
}

/// Encodes and decodes the keys of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyCodec {
    columns: Vec<KeyColumn>,
}

#[derive(Clone, Debug, PartialEq)]
struct KeyColumn {
    name: String,
    data_type: DataType,
    cell: KeyEncoding,
}

/// Checks that `key` names columns of `schema` that can be a key.
pub fn check_key(key: &[String], schema: &Schema) -> Result<()> {
    for name in key {
        if let Ok(field) = schema.field_with_name(name)
            && cell(field.data_type()).is_none()
        {
            let what = TypeName(field.data_type());
            return Err(Error::invalid(format!(
                "column '{name}' of type {what} cannot be in a key; expected {SORTABLE}"
            )));
        }
    }
    check_order(key, schema, "key column")
}

impl KeyCodec {
    /// For the columns of `schema` called `key`, which must have passed [`check_key`].
    pub fn new(schema: &Schema, key: &[String]) -> Result<Self> {
        let column = |name: &String| {
            let field = schema
                .field_with_name(name)
                .map_err(|_| Error::invalid(format!("key column '{name}' does not exist")))?;
            let data_type = field.data_type().clone();
            let cell = cell(&data_type).ok_or_else(|| Error::invalid(format!("column '{name}' cannot be in a key")))?;
            Ok(KeyColumn { name: name.clone(), data_type, cell })
        };
        Ok(Self { columns: key.iter().map(column).collect::<Result<_>>()? })
    }

    /// Fails if a column has a type that could not be decoded again.
    pub(in crate::table) fn check(&self) -> Result<()> {
        let refused = |e: Error| Error::invalid("columns of these types cannot be a key").with_source(e);
        self.decode(std::iter::empty()).map(drop).map_err(refused)
    }

    /// The schema of only the key columns.
    pub fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|c| Field::new(&c.name, c.data_type.clone(), true)).collect::<Vec<_>>())
    }

    /// Whether every key is one word.
    pub(in crate::table) fn is_word(&self) -> bool {
        use KeyEncoding::{Bool, Signed, Unsigned};
        matches!(self.columns.as_slice(), [only] if matches!(only.cell, Bool | Signed | Unsigned))
    }

    /// The keys of rows, given their key columns. `InvalidArgument` if one is null or longer than [`KEY_BYTES_MAX`].
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Keys> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut cells = Vec::with_capacity(columns.len());
        for (column, known) in columns.iter().zip(&self.columns) {
            let nulls = column.logical_null_count();
            if nulls > 0 {
                let name = &known.name;
                return Err(Error::invalid(format!("key column '{name}' takes no nulls; the data has {nulls}")));
            }
            cells.push(Values::of(column, known.cell)?);
        }
        if let [Values::Words(_)] = cells.as_slice()
            && let Some(Values::Words(words)) = cells.pop()
        {
            return Ok(Keys::from_words(words));
        }
        let mut keys = Keys::with_capacity(rows, 16 * columns.len());
        let mut key = Vec::new();
        for row in 0..rows {
            key.clear();
            cells.iter().for_each(|cell| cell.write(row, &mut key));
            if key.len() > KEY_BYTES_MAX {
                let bytes = key.len();
                return Err(Error::invalid(format!("a key takes {bytes} bytes; expected at most {KEY_BYTES_MAX}")));
            }
            keys.push(&key);
        }
        Ok(keys)
    }

    /// The key columns of keys.
    pub fn decode<'a>(&self, keys: impl Iterator<Item = Key<'a>>) -> Result<Vec<ArrayRef>> {
        let mut builders: Vec<ColumnBuilder> =
            self.columns.iter().map(|column| ColumnBuilder::new(column.cell)).collect();
        let mut bytes = Vec::new();
        for key in keys {
            bytes.clear();
            key.copy_to(&mut bytes);
            let mut rest = &bytes[..];
            for builder in &mut builders {
                rest = builder.read(rest).ok_or_else(|| Error::corrupt("a key in memory is damaged"))?;
            }
        }
        builders.into_iter().zip(&self.columns).map(|(builder, column)| builder.finish(&column.data_type)).collect()
    }

    /// A key as text, for messages.
    pub fn describe(&self, key: Key<'_>) -> String {
        let Ok(columns) = self.decode(std::iter::once(key)) else { return "(damaged)".into() };
        let text = |(column, known): (&ArrayRef, &KeyColumn)| {
            let value = arrow::util::display::array_value_to_string(column, 0).unwrap_or_default();
            let quoted = known.cell == KeyEncoding::Bytes;
            if quoted { format!("'{value}'") } else { value }
        };
        let parts: Vec<String> = columns.iter().zip(&self.columns).map(text).collect();
        if let [only] = parts.as_slice() { only.clone() } else { format!("({})", parts.join(", ")) }
    }

    /// Keys as text, for messages: the first few, and how many more.
    pub fn describe_some<'a>(&self, keys: impl ExactSizeIterator<Item = Key<'a>>) -> String {
        const NAMED_MAX: usize = 5;
        let more = keys.len().saturating_sub(NAMED_MAX);
        let named: Vec<String> = keys.take(NAMED_MAX).map(|key| self.describe(key)).collect();
        let named = named.join(", ");
        if more == 0 { named } else { format!("{named} and {more} more") }
    }

    /// Bytes at or below all keys whose first column is at or above `bound`.
    pub(in crate::table) fn lower(&self, bound: &Stat) -> Option<Vec<u8>> {
        let mut bytes = stat_bytes(bound)?;
        if let Stat::Bytes(_) = bound {
            // It may be cut: values with this prefix are above it.
            bytes.truncate(bytes.len() - 2);
        }
        Some(bytes)
    }

    /// Bytes above all keys whose first column is at or below `bound`; `None` if there are none.
    pub(in crate::table) fn upper(&self, bound: &Stat) -> Option<Vec<u8>> {
        // The smallest bytes above every key that begins with this first column.
        let mut bytes = stat_bytes(bound)?;
        while let Some(last) = bytes.pop() {
            if last < 0xff {
                bytes.push(last + 1);
                return Some(bytes);
            }
        }
        None
    }
}

fn stat_bytes(stat: &Stat) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match stat {
        Stat::Bool(value) => bytes.extend_from_slice(&u64::from(*value).to_be_bytes()),
        Stat::Int(value) => bytes.extend_from_slice(&(*value as u64 ^ SIGN).to_be_bytes()),
        Stat::UInt(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Stat::Decimal(value) => bytes.extend_from_slice(&(*value as u128 ^ SIGN_WIDE).to_be_bytes()),
        Stat::Bytes(value) => write_bytes(value, &mut bytes),
        Stat::Float(_) => return None,
    }
    Some(bytes)
}

fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(1);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// A column's values, ready to be encoded.
enum Values {
    Words(Vec<u64>),
    Wide(Vec<u128>),
    Bytes(LargeBinaryArray),
    Binary(arrow::array::BinaryArray),
    Text(arrow::array::StringArray),
}

impl Values {
    fn of(column: &ArrayRef, cell: KeyEncoding) -> Result<Self> {
        let to = |data_type: &DataType| cast(column, data_type).map_err(Error::from);
        Ok(match cell {
            KeyEncoding::Bool => {
                Values::Words(to(&DataType::Boolean)?.as_boolean().values().iter().map(u64::from).collect())
            }
            KeyEncoding::Signed => {
                let values = integers(column)?;
                Values::Words(values.as_primitive::<Int64Type>().values().iter().map(|v| *v as u64 ^ SIGN).collect())
            }
            KeyEncoding::Unsigned => {
                Values::Words(to(&DataType::UInt64)?.as_primitive::<UInt64Type>().values().to_vec())
            }
            KeyEncoding::Decimal => {
                let scale = scale_of(column.data_type());
                let values = to(&DataType::Decimal128(38, scale))?;
                let values = values.as_primitive::<Decimal128Type>().values();
                Values::Wide(values.iter().map(|v| *v as u128 ^ SIGN_WIDE).collect())
            }
            KeyEncoding::Bytes => match column.data_type() {
                DataType::Binary => Values::Binary(column.as_binary::<i32>().clone()),
                DataType::Utf8 => Values::Text(column.as_string::<i32>().clone()),
                _ => Values::Bytes(large_binary(column)?.as_binary::<i64>().clone()),
            },
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Values::Words(words) => out.extend_from_slice(&words[row].to_be_bytes()),
            Values::Wide(words) => out.extend_from_slice(&words[row].to_be_bytes()),
            Values::Bytes(values) => write_bytes(values.value(row), out),
            Values::Binary(values) => write_bytes(values.value(row), out),
            Values::Text(values) => write_bytes(values.value(row).as_bytes(), out),
        }
    }
}

fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
        DataType::Dictionary(_, values) => scale_of(values),
        _ => 0,
    }
}

/// Any signed number of up to 64 bits, or any time, as 64 bits in its own unit.
fn integers(column: &ArrayRef) -> Result<ArrayRef> {
    let plain = match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values)?,
        DataType::Date32 | DataType::Time32(_) => cast(column, &DataType::Int32)?,
        _ => column.clone(),
    };
    let plain = match plain.data_type() {
        DataType::Date32 | DataType::Time32(_) => cast(&plain, &DataType::Int32)?,
        _ => plain,
    };
    Ok(cast(&plain, &DataType::Int64)?)
}

fn large_binary(column: &ArrayRef) -> Result<ArrayRef> {
    let plain = match column.data_type() {
        DataType::Dictionary(_, values) => cast(column, values)?,
        _ => column.clone(),
    };
    let plain = match plain.data_type() {
        DataType::Utf8View => cast(&plain, &DataType::Utf8)?,
        _ => plain,
    };
    Ok(cast(&plain, &DataType::LargeBinary)?)
}

/// A key column being decoded.
enum ColumnBuilder {
    Bools(Vec<bool>),
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Decimals(Vec<i128>),
    Bytes { values: Vec<u8>, offsets: Vec<i64> },
}

impl ColumnBuilder {
    fn new(cell: KeyEncoding) -> Self {
        match cell {
            KeyEncoding::Bool => ColumnBuilder::Bools(Vec::new()),
            KeyEncoding::Signed => ColumnBuilder::Signed(Vec::new()),
            KeyEncoding::Unsigned => ColumnBuilder::Unsigned(Vec::new()),
            KeyEncoding::Decimal => ColumnBuilder::Decimals(Vec::new()),
            KeyEncoding::Bytes => ColumnBuilder::Bytes { values: Vec::new(), offsets: vec![0] },
        }
    }

    /// Takes a value off the front.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let word = || bytes.split_first_chunk::<8>().map(|(word, rest)| (u64::from_be_bytes(*word), rest));
        Some(match self {
            ColumnBuilder::Bools(values) => {
                let (value, rest) = word()?;
                values.push(value != 0);
                rest
            }
            ColumnBuilder::Signed(values) => {
                let (value, rest) = word()?;
                values.push((value ^ SIGN) as i64);
                rest
            }
            ColumnBuilder::Unsigned(values) => {
                let (value, rest) = word()?;
                values.push(value);
                rest
            }
            ColumnBuilder::Decimals(values) => {
                let (value, rest) = bytes.split_first_chunk::<16>()?;
                values.push((u128::from_be_bytes(*value) ^ SIGN_WIDE) as i128);
                rest
            }
            ColumnBuilder::Bytes { values, offsets } => {
                let mut rest = bytes;
                loop {
                    let zero = rest.iter().position(|byte| *byte == 0)?;
                    values.extend_from_slice(&rest[..zero]);
                    let mark = *rest.get(zero + 1)?;
                    rest = &rest[zero + 2..];
                    match mark {
                        0 => break,
                        _ => values.push(0),
                    }
                }
                offsets.push(values.len() as i64);
                rest
            }
        })
    }

    fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        use std::sync::Arc;
        let own: ArrayRef = match self {
            ColumnBuilder::Bools(values) => Arc::new(BooleanArray::from(values)),
            ColumnBuilder::Signed(values) => Arc::new(Int64Array::from(values)),
            ColumnBuilder::Unsigned(values) => Arc::new(UInt64Array::from(values)),
            ColumnBuilder::Decimals(values) => {
                let values = Decimal128Array::from(values);
                Arc::new(values.with_precision_and_scale(38, scale_of(data_type))?)
            }
            ColumnBuilder::Bytes { values, offsets } => {
                let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
                Arc::new(LargeBinaryArray::try_new(offsets, values.into(), None)?)
            }
        };
        from_own(&own, data_type)
    }
}

/// From the widest type of a kind to one of them.
fn from_own(own: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Dictionary(_, values) => cast(&from_own(own, values)?, data_type)?,
        DataType::Date32 | DataType::Time32(_) => cast(&cast(own, &DataType::Int32)?, data_type)?,
        DataType::Utf8View => cast(&cast(own, &DataType::LargeUtf8)?, data_type)?,
        DataType::Utf8 => cast(&cast(own, &DataType::LargeUtf8)?, data_type)?,
        _ => cast(own, data_type)?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{RecordBatch, StringArray};
    use arrow::datatypes::TimeUnit;
    use arrow::row::{RowConverter, SortField};

    use super::*;

    fn column(rng: &mut fastrand::Rng, data_type: &DataType, rows: usize) -> ArrayRef {
        let texts = |rng: &mut fastrand::Rng| -> ArrayRef {
            let mut text =
                || -> String { (0..rng.usize(..9)).map(|_| ['\0', '\u{1}', 'a', 'ÿ', 'b'][rng.usize(..5)]).collect() };
            Arc::new(StringArray::from_iter_values((0..rows).map(|_| text())))
        };
        match cell(data_type).unwrap() {
            KeyEncoding::Bytes if let DataType::FixedSizeBinary(size) = data_type => {
                let mut bytes = || -> Vec<u8> { (0..*size).map(|_| [0, 0, 1, 255][rng.usize(..4)]).collect() };
                let values: Vec<Vec<u8>> = (0..rows).map(|_| bytes()).collect();
                Arc::new(arrow::array::FixedSizeBinaryArray::try_from_iter(values.into_iter()).unwrap())
            }
            KeyEncoding::Bytes => {
                let values = if let DataType::Dictionary(_, values) = data_type { values } else { data_type };
                let plain = if *values == DataType::BinaryView { DataType::Binary } else { values.clone() };
                cast(&cast(&cast(&texts(rng), &plain).unwrap(), values).unwrap(), data_type).unwrap()
            }
            KeyEncoding::Bool => Arc::new(BooleanArray::from((0..rows).map(|_| rng.bool()).collect::<Vec<_>>())),
            KeyEncoding::Decimal => {
                let values = Decimal128Array::from_iter_values((0..rows).map(|_| i128::from(rng.i64(-9999..9999))));
                cast(&values.with_precision_and_scale(6, 2).unwrap(), data_type).unwrap()
            }
            KeyEncoding::Unsigned => {
                cast(&UInt64Array::from_iter_values((0..rows).map(|_| rng.u64(..200))), data_type).unwrap()
            }
            KeyEncoding::Signed => {
                let days = matches!(data_type, DataType::Date64);
                let unit = if days { 86_400_000 } else { 1 };
                let low = if matches!(data_type, DataType::Time32(_) | DataType::Time64(_)) { 0 } else { -120 };
                let values = Int64Array::from_iter_values((0..rows).map(|_| rng.i64(low..120) * unit));
                from_own(&(Arc::new(values) as ArrayRef), data_type).unwrap()
            }
        }
    }

    #[test]
    fn keys_compare_as_arrow_rows_and_come_back() {
        use DataType::*;
        let text = |values: DataType| Dictionary(Box::new(Int8), Box::new(values));
        let types = vec![
            Boolean,
            Int8,
            Int16,
            Int32,
            Int64,
            UInt8,
            UInt16,
            UInt32,
            UInt64,
            Date32,
            Date64,
            Time32(TimeUnit::Second),
            Time32(TimeUnit::Millisecond),
            Time64(TimeUnit::Microsecond),
            Time64(TimeUnit::Nanosecond),
            Timestamp(TimeUnit::Second, None),
            Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Duration(TimeUnit::Millisecond),
            Decimal32(8, 2),
            Decimal64(12, 2),
            Decimal128(30, 2),
            Utf8,
            LargeUtf8,
            Utf8View,
            Binary,
            LargeBinary,
            BinaryView,
            FixedSizeBinary(16),
            FixedSizeBinary(1),
            text(Utf8),
            text(Int64),
        ];
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..300 {
            let of = if round < types.len() {
                vec![types[round].clone()]
            } else {
                (0..rng.usize(1..4)).map(|_| types[rng.usize(..types.len())].clone()).collect()
            };
            let names: Vec<String> = (0..of.len()).map(|at| format!("c{at}")).collect();
            let schema =
                Schema::new(names.iter().zip(&of).map(|(n, t)| Field::new(n, t.clone(), true)).collect::<Vec<_>>());
            check_key(&names, &schema).unwrap();
            let codec = KeyCodec::new(&schema, &names).unwrap();
            let columns: Vec<ArrayRef> = of.iter().map(|t| column(&mut rng, t, 60)).collect();
            let keys = codec.encode(&columns).unwrap();
            let back = codec.decode(keys.iter()).unwrap();
            let batch = |columns: Vec<ArrayRef>| RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
            let plain = |columns: &[ArrayRef]| -> Vec<ArrayRef> {
                columns
                    .iter()
                    .map(|c| match c.data_type() {
                        Dictionary(_, values) => cast(c, values).unwrap(),
                        _ => c.clone(),
                    })
                    .collect()
            };
            assert_eq!(batch(back.clone()).num_rows(), 60);
            assert_eq!(plain(&back), plain(&columns), "{of:?}");
            let fields = of.iter().map(|t| SortField::new(t.clone())).collect();
            let rows = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
            for a in 0..60 {
                for b in 0..60 {
                    assert_eq!(keys.get(a).cmp(&keys.get(b)), rows.row(a).cmp(&rows.row(b)), "{of:?}");
                    let (a, b) = (keys.get(a).to_vec(), keys.get(b).to_vec());
                    assert!(a == b || !b.starts_with(&a), "{a:?} begins {b:?}");
                }
            }
            let stats = crate::segment::measure(&columns[0]);
            let low = stats.min.as_ref().and_then(|min| codec.lower(min)).unwrap();
            let high = stats.max.as_ref().and_then(|max| codec.upper(max)).unwrap();
            assert!(keys.iter().all(|key| low <= key.to_vec() && key.to_vec() < high), "{of:?}");
            let greatest = [Stat::Int(i64::MAX), Stat::UInt(u64::MAX)].map(|stat| codec.upper(&stat));
            assert_eq!(greatest, [None, None]);
        }
    }

    #[test]
    fn nulls_floats_and_long_keys_are_refused() {
        let schema = Schema::new(vec![Field::new("f", DataType::Float64, true), Field::new("s", DataType::Utf8, true)]);
        let error = check_key(&["f".into()], &schema).unwrap_err();
        assert!(error.message().contains("'f' of type double cannot be in a key"), "{error}");
        let codec = KeyCodec::new(&schema, &["s".into()]).unwrap();
        let keys = |values: Vec<Option<&str>>| codec.encode(&[Arc::new(StringArray::from(values)) as ArrayRef]);
        assert!(keys(vec![Some("a"), None]).unwrap_err().message().contains("'s' takes no nulls; the data has 1"));
        let long = "x".repeat(KEY_BYTES_MAX);
        assert!(keys(vec![Some(&long)]).unwrap_err().message().contains("32770 bytes"));
        assert_eq!(codec.describe(keys(vec![Some("it")]).unwrap().get(0)), "'it'");
    }
}
