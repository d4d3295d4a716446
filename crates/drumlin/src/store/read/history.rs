//! What happened to tables: their versions in the order of time, with what their writers said.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resolve::numbered;
use crate::base::{Error, Result, Seq, TableId, Timestamp, Version};
use crate::catalog::{Path, Read, State};
use crate::store::nouns::patterns::IntoPattern;
use crate::store::{Place, Store, VersionInfo};
use crate::table::{TableState, VersionRecord};

/// No message is longer.
const MESSAGE_BYTES_MAX: usize = 4096;

impl Store {
    /// A handle on the same store that says `message` with each commit made through it, also through its tables, its tree and
    /// its transactions. Versions made by such a commit tell it ([`VersionInfo::note`]), and so do the store's changes. To
    /// close this handle is to close the one that it was made of.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    /// store.with_message("nightly load")?.write("numbers", rows, &Default::default())?;
    /// let (path, version) = &store.history("**", None)?[0];
    /// assert_eq!((path.as_str(), version.note.message.as_deref()), ("numbers", Some("nightly load")));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the message is longer than 4 KiB.
    pub fn with_message(&self, message: &str) -> Result<Store> {
        if message.len() > MESSAGE_BYTES_MAX {
            let bytes = message.len();
            return Err(Error::invalid(format!("the message has {bytes} bytes; expected at most {MESSAGE_BYTES_MAX}")));
        }
        Ok(self.saying(Some(message).filter(|message| !message.is_empty())))
    }
}

impl Place {
    /// The versions of the tables that match, the newest first.
    pub(in crate::store) fn history(
        &self,
        pattern: impl IntoPattern,
        limit: Option<usize>,
    ) -> Result<Vec<(String, VersionInfo)>> {
        let pattern = pattern.into_pattern()?;
        let reads = |state: &State| {
            let of = |(_, table)| [Read::Schema(table), Read::Rows(table), Read::Versions(table)];
            let of_tables = state.ids_matching(&pattern).flat_map(of);
            Ok([Read::Pattern(pattern.clone()), Read::Snapshots].into_iter().chain(of_tables).collect())
        };
        self.read(reads, |state, _| {
            let mut all: Vec<(&Path, TableId, Version, (Timestamp, Seq))> = Vec::new();
            for found in state.tables_matching(&pattern) {
                let (path, table) = found?;
                let of = |record: &Arc<VersionRecord>| (path, table.id, record.version, (record.time, record.seq));
                all.extend(table.versions.iter().map(of));
            }
            // The versions of a table ascend, also where several have one time.
            all.sort_by(|(path, _, a, made), (other, _, b, other_made)| {
                other_made.cmp(made).then_with(|| path.cmp(other)).then_with(|| b.cmp(a))
            });
            all.truncate(limit.unwrap_or(usize::MAX));
            let mut holders: BTreeMap<TableId, BTreeMap<Version, Vec<String>>> = BTreeMap::new();
            let described = all.into_iter().map(|(path, id, version, _)| {
                let table = state.get(id)?;
                let holders = holders.entry(id).or_insert_with(|| state.holders_of(path, &table));
                let record = table.record(version)?;
                Ok((path.to_string(), self.store().version_info(state, &table, record, holders)?))
            });
            described.collect()
        })
    }
}

impl Store {
    /// What is known of a version. Counts its rows, if part of them is in memory.
    pub(in crate::store) fn version_info(
        &self,
        state: &State,
        table: &TableState,
        record: &VersionRecord,
        holders: &BTreeMap<Version, Vec<String>>,
    ) -> Result<VersionInfo> {
        let mut info = VersionInfo::of(record, holders.get(&record.version).cloned().unwrap_or_default());
        if table.depends_on_parts(record.version) {
            info.rows = self.count_rows(table, numbered(state, table, record.version).with_expired())?;
        }
        Ok(info)
    }
}
