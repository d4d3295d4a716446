//! What a purge would do, what it did, and what shows it.

use std::fmt;

use serde::Serialize;

/// Rows of a table that a purge erases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgedTable {
    /// Where the table is; or where it was, for one in the trash or that only snapshots hold.
    pub path: String,
    /// Its number.
    pub table: u64,
    /// Whether the pattern matches it; otherwise it has rows of a table that the pattern matches, or the other way round.
    pub named: bool,
    /// The versions that showed some of the rows.
    pub versions: Vec<u64>,
    /// The rows, in row groups, that some version showed or that no version showed any more. One that several tables share
    /// is counted in each.
    pub rows: u64,
}

/// What a purge would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgePlan {
    /// The tables with rows to erase, in the order of their numbers.
    pub tables: Vec<PurgedTable>,
    /// The rows, each counted once, in row groups.
    pub rows: u64,
    /// The rows, in memory, as written by key.
    pub rows_in_memory: u64,
    /// Row groups to write again.
    pub row_groups: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Tables that are left alone though they may have such rows: the filter means nothing in them, in any version, or whether
    /// they have rows in common with these is not known. The path, and why.
    pub not_covered: Vec<(String, String)>,
}

/// An object that a purge deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurgedObject {
    /// Its name in the store.
    pub name: String,
    /// Its size in bytes, when it was last read.
    pub bytes: u64,
    /// CRC32C of those bytes.
    pub crc32c: u32,
}

/// Something in which erased rows may still be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The object, or what else.
    pub what: String,
    /// Why it is still there, and what to do.
    pub why: String,
}

/// What was looked at after a purge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeProof {
    /// The newest commit when it was looked at.
    pub commit: u64,
    /// Objects of the store; each is one that the store needs, or is listed as held.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Row groups of the tables in question whose rows were all judged, those that no version shows included.
    pub row_groups: u64,
    /// Those rows.
    pub rows: u64,
    /// How many of them match; 0, unless they were written while the purge ran.
    pub matching: u64,
    /// Blocks with bytes that belong to no row group; 0, unless rows were removed while the purge ran, or it is said under held.
    pub blocks_with_unused_bytes: u64,
}

/// What a purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeReceipt {
    /// Where the store is.
    pub store: String,
    /// Which tables were named.
    pub pattern: String,
    /// Which rows, as the caller gave them. The store itself keeps no note of this.
    #[serde(rename = "where")]
    pub filter: String,
    /// When it was done, in microseconds since 1970 UTC.
    pub time: i64,
    /// What was erased.
    pub erased: PurgePlan,
    /// The commits that did it: the first took the rows out of all versions, the others moved what is left.
    pub commits: Vec<u64>,
    /// Bytes written.
    pub bytes_written: u64,
    /// The objects deleted: blocks, catalog snapshots and parts of the log.
    pub deleted: Vec<PurgedObject>,
    /// What may still hold erased rows; empty if nothing does. A purge that is done again once these are gone finishes it.
    pub held: Vec<Held>,
    /// What this says nothing about.
    pub not_examined: Vec<String>,
    /// What shows that the rows are gone.
    pub proof: PurgeProof,
}

impl PurgeReceipt {
    /// Whether nothing in the store holds an erased row any more.
    pub fn is_complete(&self) -> bool {
        self.held.is_empty()
    }

    /// The receipt as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("it has only texts, numbers and lists of these")
    }
}

impl PurgePlan {
    /// The plan as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("it has only texts, numbers and lists of these")
    }
}

impl fmt::Display for PurgePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: usize = self.tables.iter().map(|table| table.versions.len()).sum();
        write!(
            f,
            "{} rows in {versions} versions of {} tables, {} rows in memory; {} row groups to write again ({} bytes)",
            self.rows,
            self.tables.len(),
            self.rows_in_memory,
            self.row_groups,
            self.bytes
        )
    }
}

impl fmt::Display for PurgeReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rows erased from {} tables; {} bytes written, {} objects deleted; {} rows of {} objects examined, {} match",
            self.erased.rows,
            self.erased.tables.len(),
            self.bytes_written,
            self.deleted.len(),
            self.proof.rows,
            self.proof.objects,
            self.proof.matching
        )?;
        match self.held.as_slice() {
            [] => Ok(()),
            held => write!(f, "; still held in {} places, such as {}: {}", held.len(), held[0].what, held[0].why),
        }
    }
}
