//! The distinct values of a batch's columns: each row gets a small number, equal for equal values. Dictionaries have such numbers
//! already, others are hashed, and neighbours that are equal are not looked up again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};

use crate::base::Result;

/// A number for each row, below `distinct`.
pub struct Codes {
    pub of_rows: Vec<u32>,
    pub distinct: usize,
}

/// A row each of the distinct combinations of values, and which of them each row has.
pub struct Combinations {
    pub codes: Codes,
    /// The first row of each combination.
    pub first: Vec<u32>,
}

/// Mixes the bits of a number.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

type Known = HashMap<u64, u32, BuildHasherDefault<Mix>>;

/// Up to this number of possible combinations, each has its place in a table.
const TABLE_MAX: usize = 1 << 16;

/// Numbers numbers in the order in which they first come. `None` is a null.
fn number(values: impl Iterator<Item = Option<u64>>, rows: usize) -> Codes {
    let (mut known, mut of_null) = (Known::default(), None);
    let (mut of_rows, mut distinct) = (Vec::with_capacity(rows), 0);
    let mut next = || {
        distinct += 1;
        distinct - 1
    };
    let mut last = None;
    for value in values {
        let code = match (last, value) {
            (Some((before, code)), _) if before == value => code,
            (_, None) => *of_null.get_or_insert_with(&mut next),
            (_, Some(value)) => *known.entry(value).or_insert_with(&mut next),
        };
        last = Some((value, code));
        of_rows.push(code);
    }
    Codes { of_rows, distinct: distinct as usize }
}

/// Floats in which equal numbers have equal bits: there is one zero, and one NaN. Other arrays are as they are.
pub fn plain_floats(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float64 => {
            let plain = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain)) as ArrayRef
        }
        DataType::Float32 => {
            let plain = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain)) as ArrayRef
        }
        DataType::Float16 => {
            let wide = cast(array, &DataType::Float32)?;
            cast(&plain_floats(&wide)?, &DataType::Float16)?
        }
        _ => array.clone(),
    })
}

impl Codes {
    /// Those of an array. Two codes may stand for the same value, if the array's dictionary has it twice.
    pub fn of(array: &ArrayRef) -> Result<Self> {
        use DataType::*;
        let rows = array.len();
        match array.data_type() {
            Null => Ok(Self { of_rows: vec![0; rows], distinct: 1 }),
            Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = cast(dictionary.keys(), &Int64)?;
                let keys = keys.as_primitive::<Int64Type>();
                let distinct = dictionary.values().len();
                let of_rows = match keys.null_count() {
                    0 => keys.values().iter().map(|key| *key as u32).collect(),
                    _ => keys.iter().map(|key| key.map_or(distinct as u32, |key| key as u32)).collect(),
                };
                Ok(Self { of_rows, distinct: distinct + 1 })
            }
            Boolean => {
                let of = |value: Option<bool>| value.map_or(2, u32::from);
                Ok(Self { of_rows: array.as_boolean().iter().map(of).collect(), distinct: 3 })
            }
            Float64 => {
                let plain = plain_floats(array)?;
                let values: &Float64Array = plain.as_primitive();
                Ok(number(values.iter().map(|v| v.map(f64::to_bits)), rows))
            }
            Float32 => {
                let plain = plain_floats(array)?;
                let values: &Float32Array = plain.as_primitive();
                Ok(number(values.iter().map(|v| v.map(|v| u64::from(v.to_bits()))), rows))
            }
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | Date64 | Timestamp(..) | Time64(_)
            | Duration(_) => Ok(Self::of_integers(&cast(array, &Int64)?)),
            Date32 | Time32(_) => Ok(Self::of_integers(&cast(&cast(array, &Int32)?, &Int64)?)),
            UInt64 => Ok(number(array.as_primitive::<arrow::datatypes::UInt64Type>().iter(), rows)),
            data_type => {
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
                let converted = converter.convert_columns(&[plain_floats(array)?])?;
                let mut known: HashMap<&[u8], u32> = HashMap::new();
                let mut of_rows: Vec<u32> = Vec::with_capacity(rows);
                for row in 0..rows {
                    let bytes = converted.row(row).data();
                    let same = row > 0 && converted.row(row - 1).data() == bytes;
                    let next = known.len() as u32;
                    of_rows.push(if same { of_rows[row - 1] } else { *known.entry(bytes).or_insert(next) });
                }
                Ok(Self { distinct: known.len(), of_rows })
            }
        }
    }

    fn of_integers(array: &ArrayRef) -> Self {
        let values = array.as_primitive::<Int64Type>();
        number(values.iter().map(|v| v.map(i64::cast_unsigned)), values.len())
    }

    /// The combinations of these and others, for the same rows.
    fn combined(&self, other: &Codes) -> Combinations {
        let (rows, width) = (self.of_rows.len(), other.distinct.max(1));
        let (mut of_rows, mut first) = (Vec::with_capacity(rows), Vec::<u32>::new());
        let pairs = self.of_rows.iter().zip(&other.of_rows);
        let mut add = |at: usize, code: &mut u32| {
            if *code == u32::MAX {
                *code = first.len() as u32;
                first.push(at as u32);
            }
            *code
        };
        match self.distinct.checked_mul(width).filter(|places| *places <= TABLE_MAX) {
            Some(places) => {
                let mut table = vec![u32::MAX; places];
                of_rows.extend(
                    pairs.enumerate().map(|(at, (a, b))| add(at, &mut table[*a as usize * width + *b as usize])),
                );
            }
            None => {
                let mut known = Known::default();
                of_rows.extend(
                    pairs.enumerate().map(|(at, (a, b))| {
                        add(at, known.entry(u64::from(*a) << 32 | u64::from(*b)).or_insert(u32::MAX))
                    }),
                );
            }
        }
        Combinations { codes: Codes { of_rows, distinct: first.len() }, first }
    }
}

impl Combinations {
    /// Those of several columns of `rows` rows; of none, there is one, if there are rows.
    pub fn of(columns: &[Codes], rows: usize) -> Self {
        let one = Codes { of_rows: vec![0; rows], distinct: 1 };
        match columns {
            [] => Self { codes: one, first: (0..u32::from(rows > 0)).collect() },
            [only] => only.combined(&one),
            [head, rest @ ..] => {
                let mut all = head.combined(&rest[0]);
                for more in &rest[1..] {
                    all = all.codes.combined(more);
                }
                all
            }
        }
    }
}

/// Some rows of an array, in a type of their own, with one zero and one NaN.
pub fn picked(array: &ArrayRef, rows: &[u32], data_type: &DataType) -> Result<ArrayRef> {
    let some = take(array, &UInt32Array::from(rows.to_vec()), None)?;
    let some = if some.data_type() == data_type { some } else { cast(&some, data_type)? };
    plain_floats(&some)
}
