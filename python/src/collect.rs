//! Collects many readings at once: all threads decode, whichever table a row group belongs to.
//!
//! Columns of numbers can be returned as NumPy arrays. A row group is decoded and copied to its place by the same task, so
//! that a table is not in memory twice.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use drumlin::{ErrorKind, Result, Scan, ScanPart};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::call::{long, long_each};
use crate::result::{Batches, Prepared, Reading};

/// The native type of a column's values, and its name in NumPy; `None` if they are not plain numbers.
fn kind(data_type: &DataType) -> Option<(Kind, &'static str)> {
    Some(match data_type {
        DataType::Boolean => (Kind::Bool, "bool"),
        DataType::Int8 => (Kind::I8, "int8"),
        DataType::Int16 => (Kind::I16, "int16"),
        DataType::Int32 => (Kind::I32, "int32"),
        DataType::Int64 => (Kind::I64, "int64"),
        DataType::UInt8 => (Kind::U8, "uint8"),
        DataType::UInt16 => (Kind::U16, "uint16"),
        DataType::UInt32 => (Kind::U32, "uint32"),
        DataType::UInt64 => (Kind::U64, "uint64"),
        DataType::Float32 => (Kind::F32, "float32"),
        DataType::Float64 => (Kind::F64, "float64"),
        DataType::Timestamp(TimeUnit::Second, None) => (Kind::I64, "datetime64[s]"),
        DataType::Timestamp(TimeUnit::Millisecond, None) => (Kind::I64, "datetime64[ms]"),
        DataType::Timestamp(TimeUnit::Microsecond, None) => (Kind::I64, "datetime64[us]"),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => (Kind::I64, "datetime64[ns]"),
        _ => return None,
    })
}

macro_rules! natives {
    ($($kind:ident: $native:ty),* $(,)?) => {
        /// A native type.
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Kind { $($kind),* }

        /// Where a part of a column goes.
        enum Slot<'a> { $($kind(&'a mut [$native])),* }

        /// The values of columns of a type, one column after the other.
        enum Values { $($kind(Vec<$native>)),* }

        impl Slot<'_> {
            fn len(&self) -> usize {
                match self {
                    $(Slot::$kind(to) => to.len()),*
                }
            }
        }

        impl Values {
            fn new(kind: Kind, length: usize) -> Self {
                match kind {
                    $(Kind::$kind => Values::$kind(vec![<$native>::default(); length])),*
                }
            }

            /// The slots of each column, in parts of the given sizes.
            fn slots(&mut self, sizes: &[usize]) -> Vec<Vec<Slot<'_>>> {
                let rows: usize = sizes.iter().sum();
                match self {
                    $(Values::$kind(all) => {
                        all.chunks_mut(rows.max(1)).map(|mut column| {
                            let part = |size: &usize| Slot::$kind(column.split_off_mut(..*size).unwrap_or_default());
                            sizes.iter().map(part).collect()
                        }).collect()
                    })*
                }
            }

            /// An array with one row per column.
            fn into_array(self, py: Python<'_>, columns: usize, rows: usize) -> PyResult<Bound<'_, PyAny>> {
                let shape = [columns, rows];
                Ok(match self {
                    $(Values::$kind(all) => PyArray1::from_vec(py, all).reshape(shape)?.into_any()),*
                })
            }
        }
    };
}

natives! {
    Bool: bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64,
}

/// Copies values; returns whether all of them can be represented: `null` represents nulls, if they can be.
fn copy<T: ArrowPrimitiveType>(to: &mut [T::Native], column: &ArrayRef, null: Option<T::Native>) -> bool {
    let column = column.as_primitive::<T>();
    to.copy_from_slice(column.values());
    let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) else { return true };
    let Some(null) = null else { return false };
    (0..column.len()).filter(|at| nulls.is_null(*at)).for_each(|at| to[at] = null);
    true
}

impl Slot<'_> {
    /// Copies a column; returns whether its values can be represented.
    fn fill(self, column: &ArrayRef) -> bool {
        /// NumPy's "not a time".
        const NAT: Option<i64> = Some(i64::MIN);
        if self.len() != column.len() {
            return false;
        }
        match (self, column.data_type()) {
            (Slot::Bool(to), DataType::Boolean) => {
                let values = column.as_boolean().values();
                to.iter_mut().zip(values).for_each(|(to, value)| *to = value);
                column.null_count() == 0
            }
            (Slot::I8(to), DataType::Int8) => copy::<Int8Type>(to, column, None),
            (Slot::I16(to), DataType::Int16) => copy::<Int16Type>(to, column, None),
            (Slot::I32(to), DataType::Int32) => copy::<Int32Type>(to, column, None),
            (Slot::I64(to), DataType::Int64) => copy::<Int64Type>(to, column, None),
            (Slot::U8(to), DataType::UInt8) => copy::<UInt8Type>(to, column, None),
            (Slot::U16(to), DataType::UInt16) => copy::<UInt16Type>(to, column, None),
            (Slot::U32(to), DataType::UInt32) => copy::<UInt32Type>(to, column, None),
            (Slot::U64(to), DataType::UInt64) => copy::<UInt64Type>(to, column, None),
            (Slot::F32(to), DataType::Float32) => copy::<Float32Type>(to, column, Some(f32::NAN)),
            (Slot::F64(to), DataType::Float64) => copy::<Float64Type>(to, column, Some(f64::NAN)),
            (Slot::I64(to), DataType::Timestamp(unit, None)) => match unit {
                TimeUnit::Second => copy::<TimestampSecondType>(to, column, NAT),
                TimeUnit::Millisecond => copy::<TimestampMillisecondType>(to, column, NAT),
                TimeUnit::Microsecond => copy::<TimestampMicrosecondType>(to, column, NAT),
                TimeUnit::Nanosecond => copy::<TimestampNanosecondType>(to, column, NAT),
            },
            _ => false,
        }
    }
}

/// Columns of one type that become an array.
struct Group {
    kind: Kind,
    /// The type in NumPy.
    name: &'static str,
    /// Which columns they are.
    columns: Vec<usize>,
    values: Option<Values>,
}

/// A table that becomes arrays.
struct Frame {
    scan: Scan,
    parts: Vec<ScanPart>,
    /// Rows of each part.
    sizes: Vec<usize>,
    groups: Vec<Group>,
    /// For each column, its group and its place in the group.
    places: Vec<(usize, usize)>,
    /// Whether the arrays cannot represent all values.
    unfit: bool,
}

/// A part of a scan to decode, with the index of its table in the call, and where its columns go.
type Work<'a> = (ScanPart, (usize, Vec<Slot<'a>>));

impl Frame {
    /// Returns the scan if its columns are not plain numbers or its rows cannot be counted before they are read.
    fn new(mut scan: Scan) -> std::result::Result<Self, Box<Scan>> {
        let schema = scan.schema();
        let kinds: Option<Vec<_>> = schema.fields().iter().map(|field| kind(field.data_type())).collect();
        let Some((kinds, parts)) = kinds.and_then(|kinds| Some((kinds, scan.take_parts()?))) else {
            return Err(Box::new(scan));
        };
        let sizes = parts.iter().map(|part| part.rows() as usize).collect();
        let mut groups: Vec<Group> = Vec::new();
        let mut places = Vec::with_capacity(kinds.len());
        for (column, (kind, name)) in kinds.into_iter().enumerate() {
            let known = groups.iter().position(|group| group.name == name);
            let group = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push(Group { kind, name, columns: Vec::new(), values: None });
            }
            places.push((group, groups[group].columns.len()));
            groups[group].columns.push(column);
        }
        Ok(Self { scan, parts, sizes, groups, places, unfit: false })
    }

    fn rows(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Where each column goes, part by part.
    fn slots(&mut self) -> Vec<std::vec::IntoIter<Slot<'_>>> {
        let (rows, sizes) = (self.rows(), &self.sizes);
        let mut slots: Vec<Vec<Option<Vec<Slot<'_>>>>> = Vec::with_capacity(self.groups.len());
        for Group { kind, columns, values, .. } in &mut self.groups {
            let values = values.insert(Values::new(*kind, columns.len() * rows));
            slots.push(values.slots(sizes).into_iter().map(Some).collect());
        }
        let mut of_column = |(group, at): &(usize, usize)| slots[*group].get_mut(*at).and_then(Option::take);
        self.places.iter().map(|place| of_column(place).unwrap_or_default().into_iter()).collect()
    }

    /// The work for this frame, whose index is `frame`.
    fn work(&mut self, frame: usize) -> Vec<Work<'_>> {
        let parts = std::mem::take(&mut self.parts);
        let mut slots = self.slots();
        let mut of_part = || slots.iter_mut().filter_map(Iterator::next).collect();
        parts.into_iter().map(|part| (part, (frame, of_part()))).collect()
    }

    /// Where the columns of its only part go.
    fn only_slots(&mut self) -> Vec<Slot<'_>> {
        self.slots().iter_mut().filter_map(Iterator::next).collect()
    }

    /// Arrays, their types, and which columns their rows are.
    fn into_arrays(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let rows = self.rows();
        let array = |Group { name, columns, values, kind }: Group| {
            let values = values.unwrap_or_else(|| Values::new(kind, columns.len() * rows));
            Ok((values.into_array(py, columns.len(), rows)?, name, columns))
        };
        self.groups.into_iter().map(array).collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
    }
}

/// Decodes frames: those of a single part by a task each, which hands the frame over when it is done; the others together,
/// to be handed over at the end. Frames whose arrays cannot represent all values are marked.
fn decode(frames: Vec<(usize, Frame)>, hand_over: &(dyn Fn((usize, Frame)) + Sync)) -> Result<()> {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for (at, mut frame) in frames {
        match frame.parts.len() {
            0 => hand_over((at, frame)),
            1 => small.extend(frame.parts.pop().map(|part| (part, (at, frame)))),
            _ => large.push((at, frame)),
        }
    }
    ScanPart::decode_many(small, |(at, mut frame), batch| {
        frame.unfit = !fill(frame.only_slots(), batch)?;
        hand_over((at, frame));
        Ok(())
    })?;
    let unfit: Vec<AtomicBool> = large.iter().map(|_| AtomicBool::new(false)).collect();
    let work = large.iter_mut().enumerate().flat_map(|(frame, (_, of))| of.work(frame)).collect();
    ScanPart::decode_many(work, |(frame, slots): (usize, Vec<Slot<'_>>), batch| {
        unfit[frame].fetch_or(!fill(slots, batch)?, Ordering::Relaxed);
        Ok(())
    })?;
    for ((at, mut frame), unfit) in large.into_iter().zip(unfit) {
        frame.unfit = unfit.into_inner();
        hand_over((at, frame));
    }
    Ok(())
}

/// Copies columns to their places; returns whether arrays can represent all values. What another process has reclaimed is
/// read later, as batches, from its new place.
fn fill(slots: Vec<Slot<'_>>, batch: Result<Option<RecordBatch>>) -> Result<bool> {
    match batch {
        Ok(Some(batch)) => Ok(slots.into_iter().zip(batch.columns()).all(|(slot, column)| slot.fill(column))),
        Ok(None) => Ok(slots.iter().all(|slot| slot.len() == 0)),
        Err(e) if e.kind() == ErrorKind::SnapshotExpired => Ok(false),
        Err(e) => Err(e),
    }
}

/// All rows of readings, each with its given columns, if any. A reading becomes [`Batches`] or, if arrays are wanted
/// and can represent all values, the result of `make`. That is called while others are being decoded, with the
/// reading's position and a list of triples: an array with one row for each column of a type, that type, and the
/// positions of these columns.
#[pyfunction]
pub fn collect_many<'py>(
    py: Python<'py>,
    readings: Vec<(Bound<'py, Reading>, Option<Vec<String>>, bool)>,
    make: Py<PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    let (mut cancels, mut scans, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (reading, columns, arrays)) in readings.into_iter().enumerate() {
        let Prepared { scan, cancel } = reading.get().scan(py, columns)?;
        cancels.push(cancel);
        match if arrays { Frame::new(scan) } else { Err(Box::new(scan)) } {
            Ok(frame) => frames.push((at, frame)),
            Err(scan) => scans.push((at, *scan)),
        }
    }
    let (mut answers, mut unfit) = (Vec::with_capacity(cancels.len()), Vec::new());
    if !frames.is_empty() {
        let each = |py: Python<'_>, (at, frame): (usize, Frame)| {
            match frame.unfit {
                true => unfit.push((at, frame.scan)),
                false => answers.push((at, make.call1(py, (at, frame.into_arrays(py)?))?)),
            }
            Ok(())
        };
        long_each(py, &cancels, |hand_over| decode(frames, hand_over), each)?;
    }
    if !scans.is_empty() || !unfit.is_empty() {
        let collected = long(py, &cancels, || {
            for (at, scan) in unfit {
                scans.push((at, scan.again()?));
            }
            let (places, scans): (Vec<usize>, Vec<Scan>) = scans.into_iter().unzip();
            let schemas: Vec<SchemaRef> = scans.iter().map(Scan::schema).collect();
            let batches = schemas.into_iter().zip(Scan::collect_many(scans)?);
            let batches = batches.map(|(schema, batches)| Batches { schema, batches });
            Ok(places.into_iter().zip(batches).collect::<Vec<_>>())
        })?;
        for (at, batches) in collected {
            answers.push((at, batches.into_py_any(py)?));
        }
    }
    answers.sort_by_key(|(at, _)| *at);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
