//! What a scan reads of a version: pieces in the order of the result, without what indexes say the filter does not keep.

use std::sync::Arc;

use super::pieces::{Piece, arrange};
use super::scan_options::ScanOptions;
use crate::base::{Pool, Result};
use crate::block::BlockReader;
use crate::table::index::mask::{Asked, IndexCost};
use crate::table::memory::overlay::SeenOverlay;
use crate::table::schema::read_as::ReadAs;
use crate::table::{RowGroup, Rows, View};

/// What of a version is read, in the order of the result.
pub(in crate::table) struct Selected {
    pub pieces: Vec<Piece>,
    /// Rows written by key since.
    pub overlay: Option<SeenOverlay>,
    /// What indexes said, if they were asked.
    pub by_index: Option<IndexCost>,
}

impl Selected {
    /// All that `view` shows, without what indexes say the filter does not keep. Reads directories if the order needs them. If `whole`, all
    /// row writes are there.
    pub fn all(
        reader: &BlockReader,
        pool: &Pool,
        view: &View,
        read_as: &ReadAs,
        options: &ScanOptions,
        whole: bool,
    ) -> Result<Self> {
        let (table, version) = (&*view.table, view.read_point.version);
        let limit = options.limit.map(|limit| limit.saturating_add(options.offset)).or(options.tail);
        let asked = Asked { reader, pool, table, version, read_as, limit };
        let mask = options.filter.as_ref().map_or(Ok(None), |filter| asked.mask(filter))?;
        let shown = |group: &RowGroup| {
            let rows = table.visible(group, version);
            match &mask {
                Some(mask) => mask.narrowed(group, rows),
                None => rows,
            }
        };
        let groups: Vec<(Arc<RowGroup>, Rows)> = table
            .groups
            .iter()
            .map(|group| (group.clone(), shown(group)))
            .filter(|(_, rows)| *rows != Rows::None)
            .collect();
        let filter = options.filter.as_ref().filter(|_| !whole);
        let overlay = asked.in_memory(view.read_point, filter)?;
        let pieces = arrange(reader, pool, table, view.read_point.version, groups, overlay.as_ref())?;
        Ok(Self { pieces, overlay, by_index: mask.map(|mask| mask.cost) })
    }
}
