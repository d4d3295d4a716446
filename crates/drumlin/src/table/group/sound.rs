//! Whether the record of a row group is consistent: one that is not can only be damaged.

use super::patch::{Layer, PATCHES_MAX};
use crate::base::{Error, Result};
use crate::block::Address;
use crate::table::{ROWS_MAX, RowGroup, StoredSchema};

/// No block reaches this offset.
const BLOCK_END_MAX: u64 = 1 << 40;

/// Whether there can be a block with this address.
pub(in crate::table) fn is_possible(address: &Address) -> bool {
    let bytes = address.segment_bytes.checked_add(u64::from(address.directory_bytes));
    let end = bytes.and_then(|bytes| address.offset.checked_add(bytes));
    end.is_some_and(|end| end <= BLOCK_END_MAX)
}

impl RowGroup {
    /// Fails if the record is inconsistent, as only a damaged one is. `schemas` is how many the table has.
    pub fn check(&self, schemas: usize) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("row group {}: {what}", self.id.0)));
        let covered = self.runs.iter().try_fold(0_u32, |rows, run| rows.checked_add(run.rows));
        if self.rows == 0 || self.rows > ROWS_MAX || covered != Some(self.rows) {
            return bad(&format!(
                "its runs cover {} rows; expected {}, which is at most {ROWS_MAX}",
                covered.unwrap_or(u32::MAX),
                self.rows
            ));
        }
        if self.schema as usize >= schemas {
            return bad("it has a schema that the table does not have");
        }
        if self.deletions.iter().any(|deletion| deletion.rows.0.max().is_some_and(|max| max >= self.rows)) {
            return bad("it deletes a row past its end");
        }
        if !self.addresses().all(is_possible) {
            return bad("it has an address past the end of any block");
        }
        self.check_layers(schemas)
    }

    /// Fails if what is said of its layers is inconsistent, as only a damaged record is. `schemas` is how many the table has.
    fn check_layers(&self, schemas: usize) -> Result<()> {
        let Some(patched) = self.patched.as_deref() else { return Ok(()) };
        let bad = |what: &str| Err(Error::corrupt(format!("row group {}: {what}", self.id.0)));
        if patched.below.is_empty() || patched.below.len() > PATCHES_MAX {
            return bad(&format!(
                "there are {} layers below a patch; expected 1 to {PATCHES_MAX}",
                patched.below.len()
            ));
        }
        for (at, layer) in self.layers().enumerate() {
            if layer.schema as usize >= schemas {
                return bad("a layer has a schema that the table does not have");
            }
            let ascending = |columns: &[u32]| columns.windows(2).all(|pair| pair[0] < pair[1]);
            if layer.columns.is_some_and(|columns| columns.is_empty() || !ascending(columns)) {
                return bad("a patch has no columns, or has one twice");
            }
            if self.addresses().take(at).any(|other| other == layer.address) {
                return bad("two layers have the same address");
            }
        }
        match patched.dead_bytes > self.bytes() {
            true => bad("it counts more unread bytes than it has"),
            false => Ok(()),
        }
    }

    /// Fails if a patch has columns that its schema does not have.
    pub(in crate::table) fn check_columns(&self, schemas: &[StoredSchema]) -> Result<()> {
        let within = |layer: Layer<'_>| {
            let width = schemas[layer.schema as usize].0.fields().len();
            layer.columns.is_none_or(|columns| columns.iter().all(|column| (*column as usize) < width))
        };
        match self.patched.is_none() || self.layers().all(within) {
            true => Ok(()),
            false => Err(Error::corrupt(format!("row group {}: a patch has columns that do not exist", self.id.0))),
        }
    }
}
