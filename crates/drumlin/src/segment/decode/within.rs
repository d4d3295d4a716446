//! Which rows of a segment have an integer in a range, found without decoding it where it is packed.

use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use bytes::Bytes;
use drumlin_codec::Ptype;

use crate::base::Result;
use crate::segment::forms::fixed::scales;
use crate::segment::forms::tag::{FormTag, NULLS};
use crate::segment::forms::tree;
use crate::segment::forms::words::machine_type;
use crate::segment::guarded;

/// One bit for each of the `rows` rows of a segment of integers, decimals or times: whether its value, in units of the type, is in
/// `low..=high`; not set for nulls. `None` if the segment is not a tree, or `data_type` another type: then it must be decoded.
///
/// # Errors
/// `Corrupt` as [`decode`](crate::segment::decode).
pub fn within(bytes: Bytes, rows: usize, data_type: &DataType, low: i128, high: i128) -> Result<Option<BooleanBuffer>> {
    let decimal = matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..));
    let ptype = machine_type(data_type).filter(|ptype| ptype.is_int());
    if !decimal && ptype.is_none() {
        return Ok(None);
    }
    guarded(bytes, rows, data_type, |input| {
        let (mut low, mut high) = (low, high);
        let tag = FormTag::of(input.peek()?)?;
        if tag == FormTag::Null {
            return Ok(Some(BooleanBuffer::new_unset(rows)));
        }
        let ptype = match ptype {
            Some(ptype) if scales(data_type) && tag == FormTag::Scaled => {
                input.u8()?;
                let (factor, rest) = (i128::from(input.varint()? as i64), i128::from(input.varint()? as i64));
                if factor < 1 {
                    return Ok(None);
                }
                // The words of the values in the range.
                low = low.saturating_sub(rest).div_euclid(factor)
                    + i128::from(low.saturating_sub(rest).rem_euclid(factor) != 0);
                high = high.saturating_sub(rest).div_euclid(factor);
                ptype
            }
            Some(ptype) => ptype,
            None if tag == FormTag::Narrow => {
                input.u8()?;
                match input.u8()? {
                    4 => Ptype::I32,
                    8 => Ptype::I64,
                    _ => return Ok(None),
                }
            }
            None => return Ok(None),
        };
        let byte = input.peek()?;
        if FormTag::of(byte)? != FormTag::Tree {
            return Ok(None);
        }
        input.u8()?;
        tree::read(input, rows)?.within(ptype, byte & NULLS != 0, low, high).map(Some)
    })
}
