//! What a salvage did, and what it could not keep.

use pyo3::prelude::*;

use crate::reports::{describe, record};

record! {
    /// Something that could not be salvaged.
    Loss {
        /// What was lost: "log", "commits", "catalog", "nodes", "table", "rows", "rows in memory", "snapshot" or
        /// "change".
        kind: String,
        /// The table's path; for nodes, where they begin; for a snapshot, its name. None if it is unknown, or if there
        /// is none.
        path: Option<String>,
        /// For nodes: the path after the last.
        until: Option<String>,
        /// The numbers of the first and the last lost commit.
        commits: Option<(u64, u64)>,
        /// The number of the row group.
        row_group: Option<u64>,
        /// For each version that has lost rows: its number, the first lost row in storage order, and the number of lost
        /// rows.
        versions: Vec<(u64, u64, u64)>,
        /// The reason, with the name and offset of the object if there is one.
        why: String,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::Loss> for Loss {
    fn from(loss: drumlin::Loss) -> Self {
        let text = loss.to_string();
        let drumlin::Loss { kind, path, until, commits, group, versions, why } = loss;
        let commits = commits.map(|(first, last)| (first.0, last.0));
        let versions = versions.into_iter().map(|lost| (lost.version.0, lost.first, lost.rows)).collect();
        Self { text, kind: kind.name().to_owned(), path, until, commits, row_group: group, versions, why }
    }
}

record! {
    /// The result of a salvage.
    SalvageReport {
        /// The newest commit of the damaged store that is in the new one.
        seq: u64,
        /// Tables kept, including those in the trash and those held by snapshots.
        tables: u64,
        /// Row groups kept.
        row_groups: u64,
        /// The bytes of these row groups.
        bytes: u64,
        /// Nodes kept.
        nodes: u64,
        /// What could not be kept. Empty if nothing was damaged.
        losses: Vec<Loss>,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::SalvageReport> for SalvageReport {
    fn from(report: drumlin::SalvageReport) -> Self {
        Self {
            text: report.to_string(),
            seq: report.seq.0,
            tables: report.tables,
            row_groups: report.groups,
            bytes: report.bytes,
            nodes: report.nodes,
            losses: report.losses.into_iter().map(Loss::from).collect(),
        }
    }
}
