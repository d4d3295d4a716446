//! What a purge would do and did, as plain immutable objects.

use std::time::SystemTime;

use drumlin::store;
use pyo3::prelude::*;

use crate::reports::{describe, record, time};

record! {
    /// Rows of a table that a purge erases.
    PurgedTable {
        /// Where the table is; or was, for one in the trash or that only snapshots hold.
        path: String,
        /// Whether the pattern matches it; otherwise it has rows in common with a table that does.
        named: bool,
        /// The versions that showed some of the rows.
        versions: Vec<u64>,
        /// The rows, those that no version showed included.
        rows: u64,
    } {}
}

impl From<store::PurgedTable> for PurgedTable {
    fn from(table: store::PurgedTable) -> Self {
        let store::PurgedTable { path, named, versions, rows, .. } = table;
        Self { path, named, versions, rows }
    }
}

record! {
    /// What a purge would erase, or erased.
    PurgePlan {
        /// The tables with such rows.
        tables: Vec<PurgedTable>,
        /// The rows in row groups, each counted once.
        rows: u64,
        /// The rows in memory, as written by key.
        rows_in_memory: u64,
        /// Row groups to write again.
        row_groups: u64,
        /// Their bytes.
        bytes: u64,
        /// Tables for which the filter means nothing in any version: the path, and why.
        not_covered: Vec<(String, String)>,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<store::PurgePlan> for PurgePlan {
    fn from(plan: store::PurgePlan) -> Self {
        let text = plan.to_string();
        let store::PurgePlan { tables, rows, rows_in_memory, row_groups, bytes, not_covered } = plan;
        let tables = tables.into_iter().map(PurgedTable::from).collect();
        Self { tables, rows, rows_in_memory, row_groups, bytes, not_covered, text }
    }
}

record! {
    /// An object that a purge deleted.
    PurgedObject {
        /// Its name in the store.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// CRC32C of these.
        crc32c: u32,
    } {}
}

record! {
    /// What was looked at after a purge.
    PurgeProof {
        /// The newest commit when it was looked at.
        commit: u64,
        /// Objects of the store, each needed by it, or listed as held.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// Row groups of the tables in question, all of whose rows were judged.
        row_groups: u64,
        /// Those rows.
        rows: u64,
        /// How many of them match: 0, unless they were written while the purge ran.
        matching: u64,
        /// Blocks with bytes that belong to no row group.
        blocks_with_unused_bytes: u64,
    } {}
}

/// What a purge did.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone, PartialEq)]
pub struct PurgeReceipt(store::PurgeReceipt);

impl From<store::PurgeReceipt> for PurgeReceipt {
    fn from(receipt: store::PurgeReceipt) -> Self {
        Self(receipt)
    }
}

#[pymethods]
impl PurgeReceipt {
    /// When it was done, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(drumlin::Timestamp(self.0.time))
    }

    /// What was erased.
    #[getter]
    fn erased(&self) -> PurgePlan {
        self.0.erased.clone().into()
    }

    /// The commits that did it.
    #[getter]
    fn commits(&self) -> Vec<u64> {
        self.0.commits.clone()
    }

    /// Bytes written.
    #[getter]
    fn bytes_written(&self) -> u64 {
        self.0.bytes_written
    }

    /// The objects deleted.
    #[getter]
    fn deleted(&self) -> Vec<PurgedObject> {
        let object = |object: &store::PurgedObject| {
            let store::PurgedObject { name, bytes, crc32c } = object.clone();
            PurgedObject { name, bytes, crc32c }
        };
        self.0.deleted.iter().map(object).collect()
    }

    /// What may still hold erased rows, and why; empty if nothing does.
    #[getter]
    fn held(&self) -> Vec<(String, String)> {
        self.0.held.iter().map(|held| (held.what.clone(), held.why.clone())).collect()
    }

    /// What this says nothing about.
    #[getter]
    fn not_examined(&self) -> Vec<String> {
        self.0.not_examined.clone()
    }

    /// What shows that the rows are gone.
    #[getter]
    fn proof(&self) -> PurgeProof {
        let store::PurgeProof { commit, objects, bytes, row_groups, rows, matching, blocks_with_unused_bytes } =
            self.0.proof;
        PurgeProof { commit, objects, bytes, row_groups, rows, matching, blocks_with_unused_bytes }
    }

    /// Whether nothing in the store holds an erased row any more.
    #[getter]
    fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// All of it as JSON text.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("PurgeReceipt({})", self.0)
    }
}
