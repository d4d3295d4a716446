//! The section of tables: pages, which are compressed, and of which the index says what they hold.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::section::{CHUNK_BYTES, CatalogChunk, Pack, SPARSE_BYTES};
use crate::base::{Result, Seq, TableId};
use crate::catalog::tables::{Figures, Page, PageWriter};
use crate::catalog::{Packed, State};

/// A page, as the index names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PageChunk {
    pub chunk: CatalogChunk<TableId>,
    pub figures: Figures,
}

impl PageChunk {
    /// The page, whose bytes were read.
    pub fn page(&self, bytes: Bytes) -> Page {
        Page::new(self.chunk.first, self.figures.clone(), bytes)
    }
}

/// Writes the pages in which something differs from `then`, of which `old` are, and those in objects to be emptied; returns all.
pub(super) fn write_pages(
    old: &[PageChunk],
    emptied: &[Seq],
    then: &State,
    now: &State,
    pack: &mut Pack,
) -> Result<(Vec<PageChunk>, Arc<Packed>)> {
    let describe = |table: &_| now.figures_of(table);
    let mut writer = PageWriter::new(CHUNK_BYTES, &describe);
    let (mut chunks, mut pages) = (Vec::new(), Vec::new());
    let mut put = |written: Vec<Page>, chunks: &mut Vec<PageChunk>, pages: &mut Vec<Page>| {
        for page in written {
            let chunk = pack.add(page.first, page.bytes.clone());
            chunks.push(PageChunk { chunk, figures: page.figures.clone() });
            pages.push(page);
        }
    };
    let again = now.tables.doubted.is_some();
    let continues = now.tables.same_pages(&then.tables) && old.len() == now.tables.pages().len() && !old.is_empty();
    if !continues || again {
        now.tables.write_range((None, None), again, &mut writer)?;
    } else {
        let mut stale: Vec<bool> = old.iter().map(|page| emptied.contains(&page.chunk.place.object)).collect();
        for id in now.tables.changed_since(&then.tables, &describe)? {
            stale[old.partition_point(|page| page.chunk.first <= id).saturating_sub(1)] = true;
        }
        for (at, (known, page)) in old.iter().zip(now.tables.pages()).enumerate() {
            let sparse = (1..SPARSE_BYTES).contains(&writer.open_bytes());
            if stale[at] || sparse {
                let until = old.get(at + 1).map(|next| next.chunk.first);
                now.tables.write_range(((at > 0).then_some(known.chunk.first), until), false, &mut writer)?;
                put(writer.take(), &mut chunks, &mut pages);
            } else {
                writer.cut();
                put(writer.take(), &mut chunks, &mut pages);
                chunks.push(known.clone());
                pages.push(page.clone());
            }
        }
    }
    writer.cut();
    put(writer.take(), &mut chunks, &mut pages);
    Ok((chunks, Arc::new(Packed::new(pages))))
}
