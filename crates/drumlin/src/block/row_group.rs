//! A row group as it is placed in a block: its encoded segments and the filter of its keys; and taken apart again from the
//! block's bytes, every byte checked.

use bytes::Bytes;

use super::directory::{Address, ColumnEntry, Directory, KeyFilter};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, checksum_at};
use crate::segment::Segment;
use crate::storage::names;

/// A row group ready to be written: one segment per column.
pub struct EncodedRowGroup {
    /// Rows of each segment.
    pub rows: u32,
    /// The columns, in schema order.
    pub segments: Vec<Segment>,
    /// Recognises most keys that do not exist; in tables with a key.
    pub filter: Option<Vec<u8>>,
}

/// A whole row group as it was before it was placed, every byte checked.
pub(super) fn row_group(address: &Address, bytes: &Bytes) -> Result<EncodedRowGroup> {
    let (directory, segments, filter) = take_apart(address, bytes)?;
    Ok(encoded(&directory, segments, filter))
}

/// The same, but without its filter if that is damaged.
pub(super) fn salvaged_row_group(address: &Address, bytes: &Bytes) -> Result<EncodedRowGroup> {
    let (directory, segments, filter) = match take_apart(address, bytes) {
        Ok(parts) => parts,
        Err(e) => {
            let directory = Directory::decode(&bytes[address.segment_bytes as usize..], address)?;
            let bare = Directory { filter: None, ..directory };
            (bare.clone(), take_segments(address, &bare, bytes).map_err(|_| e)?, None)
        }
    };
    Ok(encoded(&directory, segments, filter))
}

/// A row group as it was before it was placed, from its parts.
fn encoded(directory: &Directory, segments: Vec<Bytes>, filter: Option<Bytes>) -> EncodedRowGroup {
    let segment = |(column, bytes): (&ColumnEntry, Bytes)| Segment {
        bytes: bytes.to_vec(),
        stats: column.stats.clone(),
        kept: column.kept,
    };
    let segments = directory.columns.iter().zip(segments).map(segment).collect();
    EncodedRowGroup { rows: directory.rows, segments, filter: filter.map(|bytes| bytes.to_vec()) }
}

/// The directory, the segments and the filter of a whole row group, every byte checked.
pub(super) fn take_apart(address: &Address, bytes: &Bytes) -> Result<(Directory, Vec<Bytes>, Option<Bytes>)> {
    let directory = Directory::decode(&bytes[address.segment_bytes as usize..], address)?;
    let segments = take_segments(address, &directory, bytes)?;
    let filter = directory.filter.map(|filter| {
        let from = (filter.offset - address.offset) as usize;
        let bytes = bytes.slice(from..from + filter.bytes as usize);
        verify_filter(address, &filter, &bytes).map(|()| bytes)
    });
    Ok((directory, segments, filter.transpose()?))
}

fn take_segments(address: &Address, directory: &Directory, bytes: &Bytes) -> Result<Vec<Bytes>> {
    let mut segments = Vec::with_capacity(directory.columns.len());
    for (index, column) in directory.columns.iter().enumerate() {
        let from = (column.offset - address.offset) as usize;
        let segment = bytes.slice(from..from + column.bytes as usize);
        verify_segment(address, directory, index, &segment)?;
        segments.push(segment);
    }
    Ok(segments)
}

/// Fails if `bytes` are not those of the filter.
pub(super) fn verify_filter(address: &Address, filter: &KeyFilter, bytes: &[u8]) -> Result<()> {
    let name = names::block(address.block);
    if checksum_at(bytes, &name, filter.offset) != filter.checksum {
        let offset = filter.offset;
        return Err(Error::corrupt(format!("{name}: filter at offset {offset}: the checksum does not match")));
    }
    Ok(())
}

/// Fails if `bytes` are not those of the segment of column `index`.
pub(super) fn verify_segment(address: &Address, directory: &Directory, index: usize, bytes: &[u8]) -> Result<()> {
    let column = &directory.columns[index];
    let name = names::block(address.block);
    if checksum_at(bytes, &name, column.offset) != column.checksum && !planted(Bug::SkipChecksum) {
        return Err(Error::corrupt(format!(
            "{name}: segment of column {index} at offset {}: the checksum does not match",
            column.offset
        )));
    }
    Ok(())
}
