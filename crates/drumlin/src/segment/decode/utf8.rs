//! Checks that texts read from storage are UTF-8, once per segment.
//!
//! Vortex does not check the bytes of a text. Buffers are checked as a whole, which takes about 50 ps per byte; values are
//! checked individually only if a buffer holds something else too.

use std::str::from_utf8;

use arrow::array::{Array, ArrayRef, AsArray, ByteView, OffsetSizeTrait, StringViewArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType;

use crate::base::{Error, Result};

/// Values of up to this many bytes are stored inside their view.
const INLINE_MAX: usize = 12;

/// The highest bits of the bytes inside a view: all zero if they are ASCII.
const INLINE_HIGH_BITS: u128 = 0x8080_8080_8080_8080_8080_8080_0000_0000;

/// Fails with `Corrupt` if an array of strings holds a value that is not UTF-8. Arrays of other types pass.
pub(in crate::segment) fn check(array: &ArrayRef) -> Result<()> {
    let row = match array.data_type() {
        DataType::Utf8View => find_in_views(array.as_string_view()),
        DataType::Utf8 => find(array.as_string::<i32>().offsets(), array.as_string::<i32>().values()),
        DataType::LargeUtf8 => find(array.as_string::<i64>().offsets(), array.as_string::<i64>().values()),
        _ => None,
    };
    match row {
        None => Ok(()),
        Some(row) => Err(Error::corrupt(format!("the text in row {row} is not UTF-8"))),
    }
}

fn find<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, bytes: &[u8]) -> Option<usize> {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let whole = from_utf8(bytes.get(first..last)?).ok();
    offsets.windows(2).position(|pair| {
        let (start, end) = (pair[0].as_usize(), pair[1].as_usize());
        match whole {
            Some(whole) => !whole.is_char_boundary(start - first) || !whole.is_char_boundary(end - first),
            None => from_utf8(&bytes[start..end]).is_err(),
        }
    })
}

fn find_in_views(array: &StringViewArray) -> Option<usize> {
    let buffers = array.data_buffers();
    let whole: Vec<Option<&str>> = buffers.iter().map(|buffer| from_utf8(buffer).ok()).collect();
    let bad = |view: u128| {
        let length = view as u32 as usize;
        if length <= INLINE_MAX {
            return view & INLINE_HIGH_BITS != 0 && from_utf8(&view.to_le_bytes()[4..4 + length]).is_err();
        }
        let ByteView { buffer_index, offset, .. } = ByteView::from(view);
        let (start, end) = (offset as usize, offset as usize + length);
        match (whole.get(buffer_index as usize), buffers.get(buffer_index as usize)) {
            (Some(Some(text)), _) => !text.is_char_boundary(start) || !text.is_char_boundary(end),
            (_, Some(buffer)) => buffer.get(start..end).is_none_or(|value| from_utf8(value).is_err()),
            _ => true,
        }
    };
    let views = array.views();
    (0..views.len()).find(|row| bad(views[*row]) && array.is_valid(*row))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BinaryArray, BinaryViewArray, LargeStringArray, StringArray};

    use super::*;

    #[test]
    fn texts_are_told_from_other_bytes() {
        let texts = ["", "plain", "Ä", "twelve bytes", "a text of more than twelve bytes", "Größe über zwölf Bytes"];
        for texts in [&texts[..], &texts[..2], &texts[3..4], &[]] {
            check(&(Arc::new(StringViewArray::from(texts.to_vec())) as ArrayRef)).unwrap();
            check(&(Arc::new(StringArray::from(texts.to_vec())) as ArrayRef)).unwrap();
            check(&(Arc::new(LargeStringArray::from(texts.to_vec()).slice(0, texts.len() / 2)) as ArrayRef)).unwrap();
        }
        // Arrays that are not text are not checked.
        check(&(Arc::new(BinaryArray::from(vec![&b"\xff"[..]])) as ArrayRef)).unwrap();
        check(&(Arc::new(BinaryViewArray::from(vec![&b"\xff"[..]])) as ArrayRef)).unwrap();
    }

    #[test]
    fn values_that_cut_a_letter_are_found_in_offsets() {
        let bytes = "aÄb".as_bytes();
        let offsets = |offsets: Vec<i32>| OffsetBuffer::new(offsets.into());
        assert_eq!(find(&offsets(vec![0, 1, 3, 4]), bytes), None);
        assert_eq!(find(&offsets(vec![0, 1, 2, 4]), bytes), Some(1));
        assert_eq!(find(&offsets(vec![0, 1, 4]), b"a\xff\xffb"), Some(1));
        // Bytes outside all values may be anything.
        assert_eq!(find(&offsets(vec![1, 2, 3]), b"\xffab\xff"), None);
    }
}
