//! Effects: everything that can happen to a store, one variant each; the payload of the commit log.
//!
//! The encoding is postcard, so the order of variants and fields is part of the format: add at the end only.

use serde::{Deserialize, Serialize};

use super::{Path, Payload, Retention};
use crate::base::{BlockId, Error, Result, SessionId, TableId, Version};
use crate::table::{Change, Rewrite, TableSpec};

/// One thing that happens to a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// A process begins to write blocks.
    OpenSession {
        /// The next number.
        session: SessionId,
        /// Whether it is alone: all earlier sessions are fenced.
        fence: bool,
    },
    /// Sets a node's payload.
    PutNode {
        /// The node; made, with its parents, if it is not there.
        path: Path,
        /// What it carries.
        payload: Payload,
    },
    /// Removes a node and all below it, none of which may hold a table.
    DeleteNode {
        /// The node.
        path: Path,
    },
    /// Sets how long tables at and below a node keep versions.
    SetRetention {
        /// The node; made if it is not there.
        path: Path,
        /// `None`: as the node above says.
        retention: Option<Retention>,
    },
    /// Puts an empty table at a path; a `ChangeTable` makes its first version.
    CreateTable {
        /// The node; it must not hold a table.
        path: Path,
        /// The next number.
        table: TableId,
        /// What it is made with.
        spec: TableSpec,
    },
    /// Makes blocks known that the following effects refer to.
    AddBlocks {
        /// Their ids and sizes in bytes.
        blocks: Vec<(BlockId, u64)>,
    },
    /// Makes a table's next version.
    ChangeTable {
        /// The table.
        table: TableId,
        /// How.
        change: Change,
    },
    /// Changes a table's layout, not its content.
    RewriteTable {
        /// The table.
        table: TableId,
        /// How.
        rewrite: Rewrite,
    },
    /// Takes versions off a table.
    DeleteVersions {
        /// The table.
        table: TableId,
        /// Those versions.
        versions: Vec<Version>,
    },
    /// Unlinks a table from its path; it goes to the trash.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// Takes a table from the trash.
    UndropTable {
        /// The table.
        table: TableId,
        /// Where it goes; must not hold a table.
        path: Path,
    },
    /// Gives tables in the trash up for good.
    Condemn {
        /// Those tables.
        tables: Vec<TableId>,
    },
    /// Condemned blocks are deleted from storage.
    Reclaimed {
        /// Those blocks.
        blocks: Vec<BlockId>,
    },
    /// Names and holds versions of tables.
    PutSnapshot {
        /// The name; must be free.
        name: String,
        /// What it holds.
        pins: Vec<(Path, TableId, Version)>,
    },
    /// Lets go of a snapshot.
    DropSnapshot {
        /// The name.
        name: String,
    },
    /// Sets how long tables keep versions where no node above them says.
    SetDefaultRetention {
        /// `None`: all.
        retention: Option<Retention>,
    },
}

/// Effects that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// In order.
    pub effects: Vec<Effect>,
}

impl Transaction {
    /// Encodes the transactions of one entry.
    pub fn encode(transactions: &[Transaction]) -> Result<Vec<u8>> {
        postcard::to_stdvec(transactions)
            .map_err(|e| Error::invalid("a commit could not be encoded").with_source(e.to_string()))
    }

    /// Decodes an entry's payload.
    pub fn decode(payload: &[u8]) -> Result<Vec<Transaction>> {
        postcard::from_bytes(payload).map_err(|e| Error::corrupt(format!("undecodable effects: {e}")))
    }
}
