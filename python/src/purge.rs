//! What a purge would do and did, as plain immutable objects.

use std::time::SystemTime;

use pyo3::prelude::*;

use crate::reports::{describe, record, time};

record! {
    /// Rows of a table that a purge erases.
    PurgedTable {
        /// The table's path; for a table in the trash or held only by snapshots, its former path.
        path: String,
        /// Whether the pattern matches it; otherwise it has rows in common with a table that does.
        named: bool,
        /// The versions that showed some of these rows.
        versions: Vec<u64>,
        /// The number of these rows, including rows that no version showed.
        rows: u64,
    } {}
}

impl From<drumlin::PurgedTable> for PurgedTable {
    fn from(table: drumlin::PurgedTable) -> Self {
        let drumlin::PurgedTable { path, named, versions, rows, .. } = table;
        Self { path, named, versions, rows }
    }
}

record! {
    /// What a purge would erase, or has erased. `print` it.
    PurgePlan {
        /// The tables with such rows.
        tables: Vec<PurgedTable>,
        /// The number of rows in row groups, each counted once.
        rows: u64,
        /// The number of rows in memory, written by key.
        rows_in_memory: u64,
        /// The number of row groups to rewrite.
        row_groups: u64,
        /// The bytes of these row groups.
        bytes: u64,
        /// Tables to which the filter does not apply in any version: the path, and why.
        not_covered: Vec<(String, String)>,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::PurgePlan> for PurgePlan {
    fn from(plan: drumlin::PurgePlan) -> Self {
        let text = plan.to_string();
        let drumlin::PurgePlan { tables, rows, rows_in_memory, row_groups, bytes, not_covered } = plan;
        let tables = tables.into_iter().map(PurgedTable::from).collect();
        Self { tables, rows, rows_in_memory, row_groups, bytes, not_covered, text }
    }
}

record! {
    /// An object that a purge deleted.
    PurgedObject {
        /// The object's name in the store.
        name: String,
        /// The object's size in bytes.
        bytes: u64,
        /// The CRC32C checksum of its bytes.
        crc32c: u32,
    } {}
}

record! {
    /// The evidence that a purge collected afterwards.
    PurgeProof {
        /// The number of the newest commit at the time of the examination.
        commit: u64,
        /// The number of objects in the store; each is in use, or listed as held.
        objects: u64,
        /// The bytes of these objects.
        bytes: u64,
        /// The number of row groups of the affected tables; the filter was evaluated on all of their rows.
        row_groups: u64,
        /// The number of these rows.
        rows: u64,
        /// The number of rows that match: 0, unless some were written during the purge.
        matching: u64,
        /// The number of blocks with bytes that belong to no row group.
        blocks_with_unused_bytes: u64,
    } {}
}

/// The result of a purge. `print` it.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(Clone, PartialEq)]
pub struct PurgeReceipt(drumlin::PurgeReceipt);

impl From<drumlin::PurgeReceipt> for PurgeReceipt {
    fn from(receipt: drumlin::PurgeReceipt) -> Self {
        Self(receipt)
    }
}

#[pymethods]
impl PurgeReceipt {
    /// When the purge was done, in UTC.
    #[getter]
    fn time(&self) -> SystemTime {
        time(drumlin::Timestamp(self.0.time))
    }

    /// What was erased.
    #[getter]
    fn erased(&self) -> PurgePlan {
        self.0.erased.clone().into()
    }

    /// The numbers of the purge's commits.
    #[getter]
    fn commits(&self) -> Vec<u64> {
        self.0.commits.clone()
    }

    /// Bytes written.
    #[getter]
    fn bytes_written(&self) -> u64 {
        self.0.bytes_written
    }

    /// The deleted objects.
    #[getter]
    fn deleted(&self) -> Vec<PurgedObject> {
        let object = |object: &drumlin::PurgedObject| {
            let drumlin::PurgedObject { name, bytes, crc32c } = object.clone();
            PurgedObject { name, bytes, crc32c }
        };
        self.0.deleted.iter().map(object).collect()
    }

    /// What may still hold erased rows, and why; empty if nothing does.
    #[getter]
    fn held(&self) -> Vec<(String, String)> {
        self.0.held.iter().map(|held| (held.what.clone(), held.why.clone())).collect()
    }

    /// What the receipt says nothing about.
    #[getter]
    fn not_examined(&self) -> Vec<String> {
        self.0.not_examined.clone()
    }

    /// The evidence that the rows are gone.
    #[getter]
    fn proof(&self) -> PurgeProof {
        let drumlin::PurgeProof { commit, objects, bytes, row_groups, rows, matching, blocks_with_unused_bytes } =
            self.0.proof;
        PurgeProof { commit, objects, bytes, row_groups, rows, matching, blocks_with_unused_bytes }
    }

    /// Whether nothing in the store still holds an erased row.
    #[getter]
    fn complete(&self) -> bool {
        self.0.is_complete()
    }

    /// The whole receipt as JSON text.
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
