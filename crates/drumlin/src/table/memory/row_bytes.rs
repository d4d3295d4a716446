//! Rows as bytes: a keyed table's columns other than the key, as the memtable holds them. Only used in memory, never
//! stored.
//!
//! ```text
//! row   one bit per column, 1 = null | columns of fixed width | for each other column, its length in 4 bytes | their bytes
//! ```
//!
//! Invariant: equal rows are equal bytes. What an array has in the place of a null is not copied: the bytes of a null are zeros.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryArray, LargeBinaryArray, LargeStringArray, OffsetSizeTrait, RecordBatch,
    StringArray, make_array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, SortField};

use crate::base::{Error, Result, TypeName};
use crate::memtable::RowBytes;

/// How a column's values become bytes.
#[derive(Clone, Debug)]
enum Cell {
    /// This many bytes, as in Arrow.
    Fixed {
        width: usize,
        at: usize,
    },
    Bool {
        at: usize,
    },
    /// Strings and binary.
    Bytes {
        nth: usize,
    },
    /// Everything else, in Arrow's row format.
    Other {
        nth: usize,
        converter: Arc<RowConverter>,
    },
}

/// Encodes and decodes rows.
#[derive(Clone, Debug)]
pub struct RowCodec {
    columns: Vec<(DataType, Cell)>,
    /// Where the lengths begin.
    lengths: usize,
    /// Where the bytes of columns without a fixed width begin.
    bytes: usize,
}

impl RowCodec {
    /// For columns of these types.
    pub fn new(types: impl Iterator<Item = DataType>) -> Result<Self> {
        let types: Vec<DataType> = types.collect();
        let (mut at, mut others) = (types.len().div_ceil(8), 0);
        let mut columns = Vec::with_capacity(types.len());
        for data_type in types {
            let cell = match (&data_type, data_type.primitive_width()) {
                (DataType::Boolean, _) => Cell::Bool { at },
                (DataType::FixedSizeBinary(width), _) => Cell::Fixed { width: *width as usize, at },
                (_, Some(width)) => Cell::Fixed { width, at },
                _ => {
                    let nth = others;
                    others += 1;
                    match is_bytes(&data_type) {
                        true => Cell::Bytes { nth },
                        false => {
                            let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
                            Cell::Other { nth, converter: Arc::new(converter) }
                        }
                    }
                }
            };
            at += match cell {
                Cell::Bool { .. } => 1,
                Cell::Fixed { width, .. } => width,
                _ => 0,
            };
            columns.push((data_type, cell));
        }
        Ok(Self { columns, lengths: at, bytes: at + 4 * others })
    }

    /// Fails if a column has a type that could not be decoded again.
    pub(in crate::table) fn check(&self) -> Result<()> {
        let nulls: Vec<ArrayRef> = self.columns.iter().map(|(data_type, _)| new_null_array(data_type, 1)).collect();
        let encoded = self.encode(1, &nulls)?;
        for (at, (data_type, _)) in self.columns.iter().enumerate() {
            self.decode(&encoded, &[at]).map_err(|e| {
                Error::invalid(format!("a table with a key cannot have a column of type {}", TypeName(data_type)))
                    .with_source(e)
            })?;
        }
        Ok(())
    }

    /// Encodes rows, given their columns.
    pub fn encode(&self, rows: usize, columns: &[ArrayRef]) -> Result<RowBytes> {
        let mut starts = vec![self.bytes; rows];
        let mut others: Vec<Option<Others>> = Vec::with_capacity(columns.len());
        for (column, (data_type, cell)) in columns.iter().zip(&self.columns) {
            others.push(match cell {
                Cell::Bytes { .. } => Some(Others::Bytes(as_bytes(column)?)),
                Cell::Other { converter, .. } => {
                    Some(Others::Rows(converter.convert_columns(std::slice::from_ref(column))?))
                }
                _ => None,
            });
            debug_assert_eq!(column.data_type(), data_type);
        }
        for other in others.iter().flatten() {
            (0..rows).for_each(|row| starts[row] += other.get(row).len());
        }
        let mut total = 0;
        let mut ends = Vec::with_capacity(rows);
        for start in &mut starts {
            let bytes = *start;
            *start = total;
            total += bytes;
            ends.push(total);
        }
        let mut out = vec![0; total];
        let mut fill: Vec<usize> = starts.iter().map(|start| start + self.bytes).collect();
        for (index, (column, (_, cell))) in columns.iter().zip(&self.columns).enumerate() {
            let nulls = column.logical_nulls();
            let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            for row in (0..rows).filter(|row| is_null(*row)) {
                out[starts[row] + index / 8] |= 1 << (index % 8);
            }
            match cell {
                Cell::Fixed { width, at } => {
                    let data = column.to_data();
                    let values = &data.buffers()[0].as_slice()[data.offset() * width..];
                    for row in (0..rows).filter(|row| !is_null(*row)) {
                        let from = starts[row] + at;
                        out[from..from + width].copy_from_slice(&values[row * width..(row + 1) * width]);
                    }
                }
                Cell::Bool { at } => {
                    let values = column.as_boolean().values();
                    let valid = (0..rows).filter(|row| !is_null(*row));
                    valid.for_each(|row| out[starts[row] + at] = u8::from(values.value(row)));
                }
                Cell::Bytes { nth } | Cell::Other { nth, .. } => {
                    let other = others[index].as_ref().expect("made for each");
                    for row in 0..rows {
                        let value = other.get(row);
                        let length = u32::try_from(value.len())
                            .map_err(|_| Error::invalid("a value of 4 GiB or more cannot be stored; split it"))?;
                        let at = starts[row] + self.lengths + 4 * nth;
                        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
                        out[fill[row]..fill[row] + value.len()].copy_from_slice(value);
                        fill[row] += value.len();
                    }
                }
            }
        }
        Ok(RowBytes::new(out, ends))
    }

    /// Decodes columns, given by their places, of rows.
    pub fn decode(&self, rows: &RowBytes, wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        wanted.iter().map(|&index| self.decode_column(rows, index)).collect()
    }

    fn decode_column(&self, rows: &RowBytes, index: usize) -> Result<ArrayRef> {
        let (data_type, cell) = &self.columns[index];
        let n = rows.len();
        if n == 0 {
            return Ok(new_null_array(data_type, 0));
        }
        let is_null = |row: usize| rows.get(row)[index / 8] >> (index % 8) & 1 == 1;
        let some = (0..n).any(is_null);
        let nulls = some.then(|| NullBuffer::new(BooleanBuffer::collect_bool(n, |row| !is_null(row))));
        let fixed = |buffer: Buffer| -> Result<ArrayRef> {
            let data = ArrayData::builder(data_type.clone()).len(n).add_buffer(buffer).nulls(nulls.clone());
            Ok(make_array(data.build()?))
        };
        match cell {
            Cell::Fixed { width, at } => {
                let mut values = Vec::with_capacity(n * width);
                (0..n).for_each(|row| values.extend_from_slice(&rows.get(row)[*at..at + width]));
                fixed(Buffer::from(values))
            }
            Cell::Bool { at } => fixed(BooleanBuffer::collect_bool(n, |row| rows.get(row)[*at] != 0).into_inner()),
            Cell::Bytes { nth } => self.bytes_column(rows, *nth, nulls, data_type),
            Cell::Other { nth, converter } => {
                let parser = converter.parser();
                let parsed = (0..n).map(|row| parser.parse(self.other(rows.get(row), *nth)));
                let columns = converter.convert_rows(parsed)?;
                let column = columns.into_iter().next().ok_or_else(|| Error::corrupt("a row in memory is damaged"))?;
                Ok(if column.data_type() == data_type { column } else { cast(&column, data_type)? })
            }
        }
    }

    /// The `nth` column without a fixed width, of strings or binary.
    fn bytes_column(
        &self,
        rows: &RowBytes,
        nth: usize,
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        Ok(match data_type {
            DataType::Utf8 => {
                let (offsets, values) = self.gather(rows, nth)?;
                Arc::new(StringArray::try_new(offsets, values, nulls)?)
            }
            DataType::LargeUtf8 => {
                let (offsets, values) = self.gather(rows, nth)?;
                Arc::new(LargeStringArray::try_new(offsets, values, nulls)?)
            }
            DataType::Binary => {
                let (offsets, values) = self.gather(rows, nth)?;
                Arc::new(BinaryArray::try_new(offsets, values, nulls)?)
            }
            DataType::Utf8View => cast(&self.bytes_column(rows, nth, nulls, &DataType::LargeUtf8)?, data_type)?,
            DataType::BinaryView => cast(&self.bytes_column(rows, nth, nulls, &DataType::LargeBinary)?, data_type)?,
            _ => {
                let (offsets, values) = self.gather(rows, nth)?;
                Arc::new(LargeBinaryArray::try_new(offsets, values, nulls)?)
            }
        })
    }

    /// The values of the `nth` column without a fixed width, end to end, and where each begins.
    fn gather<O: OffsetSizeTrait>(&self, rows: &RowBytes, nth: usize) -> Result<(OffsetBuffer<O>, Buffer)> {
        let values = (0..rows.len()).map(|row| self.other(rows.get(row), nth));
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        let mut end = 0;
        offsets.push(O::default());
        for value in values.clone() {
            end += value.len();
            let offset = O::from_usize(end);
            offsets.push(offset.ok_or_else(|| {
                Error::invalid("a column of strings or binary takes 2 GiB or more; use fewer rows at a time")
            })?);
        }
        let mut bytes = Vec::with_capacity(end);
        values.for_each(|value| bytes.extend_from_slice(value));
        Ok((OffsetBuffer::new(offsets.into()), bytes.into()))
    }

    /// The bytes of a row's `nth` column without a fixed width.
    fn other<'a>(&self, row: &'a [u8], nth: usize) -> &'a [u8] {
        let length = |nth: usize| {
            let at = self.lengths + 4 * nth;
            u32::from_le_bytes(row[at..at + 4].try_into().expect("4 bytes")) as usize
        };
        let start = self.bytes + (0..nth).map(length).sum::<usize>();
        &row[start..start + length(nth)]
    }
}

/// The columns of a batch at these places.
pub(in crate::table) fn columns_at(batch: &RecordBatch, places: &[usize]) -> Vec<ArrayRef> {
    places.iter().map(|&at| batch.column(at).clone()).collect()
}

/// The places of the columns of `schema` that are in `key`, in the key's order, and of the others.
pub(in crate::table) fn split_columns(schema: &SchemaRef, key: &[String]) -> Result<(Vec<usize>, Vec<usize>)> {
    let keys = key.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    let others = (0..schema.fields().len()).filter(|at| !keys.contains(at)).collect();
    Ok((keys, others))
}

fn is_bytes(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// Strings or binary, of any kind.
enum Others {
    Bytes(LargeBinaryArray),
    Rows(arrow::row::Rows),
}

impl Others {
    fn get(&self, row: usize) -> &[u8] {
        match self {
            Others::Bytes(values) if values.is_null(row) => &[],
            Others::Bytes(values) => values.value(row),
            // The row outlives the temporary that refers to it.
            Others::Rows(rows) => rows.row(row).data(),
        }
    }
}

fn as_bytes(column: &ArrayRef) -> Result<LargeBinaryArray> {
    let plain = match column.data_type() {
        DataType::Utf8View => cast(column, &DataType::Utf8)?,
        _ => column.clone(),
    };
    Ok(cast(&plain, &DataType::LargeBinary)?.as_binary::<i64>().clone())
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use arrow::datatypes::*;

    use super::*;

    /// Arrays may have anything in the places of nulls.
    #[test]
    fn equal_rows_are_equal_bytes() {
        let nulls = || Some(NullBuffer::from(vec![true, false, true]));
        let rows = |hidden: i64| -> Vec<ArrayRef> {
            let numbers = Int64Array::new(vec![1, hidden, 3].into(), nulls());
            let small = Int8Array::new(vec![1, hidden as i8, 3].into(), nulls());
            let times = TimestampNanosecondArray::new(vec![1, hidden, 3].into(), nulls()).with_timezone("UTC");
            let decimals = Decimal128Array::new(vec![1, i128::from(hidden), 3].into(), nulls());
            let floats = Float64Array::new(vec![1.0, hidden as f64, 3.0].into(), nulls());
            let flags = BooleanArray::new(BooleanBuffer::from(vec![true, hidden % 2 == 1, false]), nulls());
            let fixed = FixedSizeBinaryArray::new(2, Buffer::from(vec![1, 1, hidden as u8, 2, 3, 3]), nulls());
            let text = if hidden == 0 { ["a", "", "c"] } else { ["a", "hidden", "c"] };
            let plain = StringArray::from(text.to_vec());
            let texts = StringArray::new(plain.offsets().clone(), plain.values().clone(), nulls());
            let offsets = || OffsetBuffer::new(vec![0, 1, 2, 3].into());
            let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
            let list = ListArray::new(item(DataType::Int64), offsets(), Arc::new(numbers.clone()), nulls());
            let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
            let parts = Int64Array::from(vec![1, hidden, 3]);
            let records = StructArray::new(fields, vec![Arc::new(parts.clone())], nulls());
            let pairs = FixedSizeListArray::new(item(DataType::Int64), 1, Arc::new(parts), nulls());
            let keys = Int8Array::new(vec![0, (hidden % 2) as i8, 1].into(), nulls());
            let keyed = DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["a", "b"])));
            // Two nulls: one of the key, one of the value.
            let of_null = DictionaryArray::new(
                Int8Array::from(vec![0, 1, 0]),
                Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef,
            );
            vec![
                Arc::new(numbers),
                Arc::new(small),
                Arc::new(times),
                Arc::new(decimals),
                Arc::new(floats),
                Arc::new(flags),
                Arc::new(fixed),
                Arc::new(texts.clone()),
                cast(&texts, &DataType::Utf8View).unwrap(),
                Arc::new(list),
                Arc::new(records),
                Arc::new(pairs),
                Arc::new(keyed),
                Arc::new(of_null),
            ]
        };
        let (zeros, others) = (rows(0), rows(77));
        for (one, other) in zeros.iter().zip(&others) {
            let codec = RowCodec::new(std::iter::once(one.data_type().clone())).unwrap();
            let [one, other] = [one, other].map(|column| codec.encode(3, std::slice::from_ref(column)).unwrap());
            let equal = (0..3).all(|row| one.get(row) == other.get(row));
            assert!(equal, "{:?}: {one:?} and {other:?}", codec.columns);
        }
    }

    #[test]
    fn rows_of_all_kinds_come_back_as_they_were() {
        let mut list = ListBuilder::new(Int32Builder::new());
        let mut keyed = StringDictionaryBuilder::<Int8Type>::new();
        for row in 0..50 {
            (0..row % 4).for_each(|n| list.values().append_value(n));
            list.append(row % 5 > 0);
            keyed.append_option((row % 3 > 0).then_some(["a", "bb"][row as usize % 2]));
        }
        let texts: StringArray = (0..50).map(|n| (n % 7 > 0).then(|| "text ".repeat(n % 9))).collect();
        let binary = cast(&texts, &DataType::Binary).unwrap();
        let fixed =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size((0..50).map(|n| (n % 2 > 0).then_some([n, 1, 2])), 3);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter((0..50).map(|n| (n % 4 > 0).then_some(n)))),
            Arc::new(BooleanArray::from_iter((0..50).map(|n| (n % 3 > 0).then_some(n % 2 == 0)))),
            Arc::new(texts.clone()),
            Arc::new(LargeStringArray::from_iter(texts.iter())),
            Arc::new(StringViewArray::from_iter(texts.iter())),
            cast(&binary, &DataType::BinaryView).unwrap(),
            binary,
            Arc::new(fixed.unwrap()),
            Arc::new(
                Decimal128Array::from_iter((0..50).map(|n| (n % 6 > 0).then_some(n)))
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            ),
            Arc::new(
                TimestampNanosecondArray::from_iter((0..50).map(|n| (n % 6 > 0).then_some(n))).with_timezone("UTC"),
            ),
            Arc::new(Float32Array::from_iter((0..50).map(|n| (n % 5 > 0).then_some(n as f32)))),
            Arc::new(list.finish()),
            Arc::new(keyed.finish()),
            new_null_array(&DataType::Int16, 50),
        ];
        let codec = RowCodec::new(columns.iter().map(|column| column.data_type().clone())).unwrap();
        for (from, rows) in [(0, 50), (7, 20), (49, 1), (3, 0)] {
            let sliced: Vec<ArrayRef> = columns.iter().map(|column| column.slice(from, rows)).collect();
            let encoded = codec.encode(rows, &sliced).unwrap();
            assert_eq!(encoded.len(), rows);
            let places: Vec<usize> = (0..columns.len()).rev().collect();
            for (index, decoded) in places.iter().zip(codec.decode(&encoded, &places).unwrap()) {
                assert_eq!(decoded.data_type(), columns[*index].data_type());
                let text = |array: &ArrayRef| -> Vec<String> {
                    let text = |at| arrow::util::display::array_value_to_string(array, at).unwrap();
                    (0..rows).map(|at| if array.is_null(at) { "null".into() } else { text(at) }).collect()
                };
                assert_eq!(text(&decoded), text(&sliced[*index]), "column {index}");
            }
        }
    }
}
