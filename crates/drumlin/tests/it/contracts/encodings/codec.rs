//! The functions under test, as a value, so that broken ones can stand in for them.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use bytes::Bytes;
use drumlin::Result;
use drumlin::segment::{Form, Scheme, Segment, decode, decode_rows, encode, encode_like};

/// The functions under test.
pub struct Codec {
    pub encode: fn(&ArrayRef) -> Result<Segment>,
    pub encode_like: fn(&ArrayRef, &DataType, &Scheme) -> Result<(Segment, Scheme)>,
    pub decode: fn(Bytes, usize, &DataType, Form) -> Result<ArrayRef>,
    pub decode_rows: fn(Bytes, usize, &DataType, &[u32]) -> Result<ArrayRef>,
}

/// Those of the crate.
pub const REAL: Codec = Codec { encode, encode_like, decode, decode_rows };
