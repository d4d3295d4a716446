//! Effects: everything that can happen to a store, one variant each; the payload of the commit log.
//!
//! The encoding is postcard, so the order of variants and fields is part of the format: add at the end only.

use serde::{Deserialize, Serialize};

use super::{Inline, NodeEffects, Path, Projection, Retention, TriggerFilter};
use crate::base::{BlockId, Error, Result, Seq, SessionId, TableId, Version};
use crate::block::Address;
use crate::table::{Change, Flush, GroupId, NewGroup, Positions, Rewrite, RowsChange, TableSpec};

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
    /// What happens to nodes.
    Nodes(NodeEffects),
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
    /// Makes a projection, or puts it in the place of the one with its name.
    PutProjection {
        /// Its name.
        name: String,
        /// What it is.
        #[serde(with = "crate::base::json_text")]
        projection: Projection,
    },
    /// Removes a projection.
    DropProjection {
        /// Its name.
        name: String,
    },
    /// Makes a durable trigger, or puts it in the place of the one with its name, which keeps its place in the log.
    PutTrigger {
        /// Its name.
        name: String,
        /// What it is called for.
        #[serde(with = "crate::base::json_text")]
        filter: TriggerFilter,
        /// Which process calls it.
        owner: SessionId,
    },
    /// A durable trigger has been called for all commits up to one.
    TriggerDone {
        /// Its name.
        name: String,
        /// That commit.
        seq: Seq,
    },
    /// Removes a durable trigger.
    DropTrigger {
        /// Its name.
        name: String,
    },
    /// Row groups of a table lie elsewhere now, byte for byte the same.
    MoveGroups {
        /// The table.
        table: TableId,
        /// From where to where.
        moves: Vec<(Address, Address)>,
    },
    /// A block that is not on storage: the effect brings it.
    AddInline {
        /// The block.
        block: BlockId,
        /// Its content.
        content: Inline,
    },
    /// Writes rows to a keyed table, and deletes keys.
    WriteRows {
        /// The table.
        table: TableId,
        /// The version that they will belong to: the table's next one.
        version: Version,
        /// What is written.
        rows: RowsChange,
    },
    /// Numbers a version for the rows written since the last one.
    FreezeRows {
        /// The table.
        table: TableId,
    },
    /// Turns the oldest rows so written into row groups.
    FlushRows {
        /// The table.
        table: TableId,
        /// How.
        flush: Flush,
    },
    /// Ends sessions: blocks of theirs that no earlier commit made known are garbage.
    FenceSessions {
        /// Those sessions; those that have ended already are passed over.
        sessions: Vec<SessionId>,
    },
    /// Nothing more is expected of sessions that have ended.
    ForgetSessions {
        /// Those sessions.
        sessions: Vec<SessionId>,
    },
    /// Turns the oldest rows so written into row groups, and keeps what their commits had written before.
    FlushWithHistory {
        /// The table.
        table: TableId,
        /// How.
        flush: Flush,
        /// What was written, commit by commit.
        history: Vec<NewGroup>,
    },
}

impl Effect {
    /// The format features that a reader must know.
    pub fn features(&self) -> u64 {
        match self {
            Effect::FlushWithHistory { .. } => super::FEATURE_HISTORY,
            _ => 0,
        }
    }

    /// The table that it is about, if it is about one.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Effect::CreateTable { table, .. }
            | Effect::ChangeTable { table, .. }
            | Effect::WriteRows { table, .. }
            | Effect::RewriteTable { table, .. }
            | Effect::MoveGroups { table, .. }
            | Effect::FlushRows { table, .. }
            | Effect::FlushWithHistory { table, .. }
            | Effect::DeleteVersions { table, .. } => Some(*table),
            _ => None,
        }
    }

    /// What it deletes by position: of which table, and where.
    pub(super) fn deletions_mut(&mut self) -> Option<(TableId, &mut Vec<(GroupId, Positions)>)> {
        match self {
            Effect::ChangeTable { table, change } if !change.deletions.is_empty() => {
                Some((*table, &mut change.deletions))
            }
            _ => None,
        }
    }

    /// What it does, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Effect::OpenSession { .. } => "begins a session",
            Effect::Nodes(_) => "changes nodes",
            Effect::SetRetention { .. } | Effect::SetDefaultRetention { .. } => "sets a retention",
            Effect::CreateTable { .. } => "makes a table",
            Effect::AddBlocks { .. } | Effect::AddInline { .. } => "adds blocks",
            Effect::ChangeTable { .. } => "makes a version of a table",
            Effect::RewriteTable { .. } | Effect::MoveGroups { .. } => "moves rows of a table",
            Effect::DeleteVersions { .. } => "deletes versions",
            Effect::DropTable { .. } | Effect::Condemn { .. } => "drops a table",
            Effect::UndropTable { .. } => "takes a table back",
            Effect::Reclaimed { .. } => "deletes blocks",
            Effect::PutSnapshot { .. } => "makes a snapshot",
            Effect::DropSnapshot { .. } => "drops a snapshot",
            Effect::PutProjection { .. } | Effect::DropProjection { .. } => "makes or drops a projection",
            Effect::PutTrigger { .. } | Effect::TriggerDone { .. } | Effect::DropTrigger { .. } => "changes a trigger",
            Effect::WriteRows { .. } => "writes rows by key",
            Effect::FreezeRows { .. } => "numbers a version",
            Effect::FlushRows { .. } | Effect::FlushWithHistory { .. } => "turns rows in memory into row groups",
            Effect::FenceSessions { .. } | Effect::ForgetSessions { .. } => "ends sessions",
        }
    }

    /// The table that it is about, to be given its final number.
    pub(super) fn table_mut(&mut self) -> Option<&mut TableId> {
        match self {
            Effect::CreateTable { table, .. }
            | Effect::ChangeTable { table, .. }
            | Effect::RewriteTable { table, .. }
            | Effect::DeleteVersions { table, .. }
            | Effect::MoveGroups { table, .. }
            | Effect::WriteRows { table, .. }
            | Effect::FreezeRows { table }
            | Effect::FlushRows { table, .. }
            | Effect::FlushWithHistory { table, .. }
            | Effect::DropTable { table }
            | Effect::UndropTable { table, .. } => Some(table),
            _ => None,
        }
    }
}

/// Effects that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// In order.
    pub effects: Vec<Effect>,
}

/// Payloads below this are not compressed: it would save little.
const COMPRESSED_FROM: usize = 512;
/// No compressed byte stands for more than this many.
const EXPANSION_MAX: usize = 255;
const PLAIN: u8 = 0;
const LZ4: u8 = 1;

impl Transaction {
    /// Encodes the transactions of one entry: a byte that says how, then postcard, compressed if that is shorter.
    pub fn encode(transactions: &[Transaction]) -> Result<Vec<u8>> {
        let plain = postcard::to_extend(transactions, vec![PLAIN])
            .map_err(|e| Error::invalid("a commit could not be encoded").with_source(e.to_string()))?;
        if plain.len() < COMPRESSED_FROM {
            return Ok(plain);
        }
        let content = &plain[1..];
        let Ok(len) = u32::try_from(content.len()) else { return Ok(plain) };
        let mut packed = vec![0; 5 + lz4_flex::block::get_maximum_output_size(content.len())];
        packed[0] = LZ4;
        packed[1..5].copy_from_slice(&len.to_le_bytes());
        match lz4_flex::block::compress_into(content, &mut packed[5..]) {
            Ok(bytes) if 5 + bytes < plain.len() => {
                packed.truncate(5 + bytes);
                Ok(packed)
            }
            _ => Ok(plain),
        }
    }

    /// Bytes that it takes in the log at most.
    pub fn bytes(&self) -> u64 {
        let counted = postcard::serialize_with_flavor(self, postcard::ser_flavors::Size::default());
        counted.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// The effect that takes most of that.
    pub fn largest(&self) -> Option<&Effect> {
        let bytes = |effect: &&Effect| {
            postcard::serialize_with_flavor(*effect, postcard::ser_flavors::Size::default()).unwrap_or(usize::MAX)
        };
        self.effects.iter().max_by_key(bytes)
    }

    /// How many effects on nodes it has.
    pub fn nodes(&self) -> usize {
        let nodes = |effect: &Effect| if let Effect::Nodes(nodes) = effect { nodes.len() } else { 0 };
        self.effects.iter().map(nodes).sum()
    }

    /// Decodes an entry's payload.
    pub fn decode(payload: &[u8]) -> Result<Vec<Transaction>> {
        let bad = |what: &dyn std::fmt::Display| Error::corrupt(format!("undecodable effects: {what}"));
        match payload.split_first() {
            Some((&PLAIN, plain)) => postcard::from_bytes(plain).map_err(|e| bad(&e)),
            Some((&LZ4, packed)) => {
                let (len, packed) = packed.split_first_chunk::<4>().ok_or_else(|| bad(&"no length"))?;
                let len = u32::from_le_bytes(*len) as usize;
                if len > packed.len().saturating_mul(EXPANSION_MAX) {
                    return Err(bad(&"a length that cannot be"));
                }
                let plain = lz4_flex::block::decompress(packed, len).map_err(|e| bad(&e))?;
                postcard::from_bytes(&plain).map_err(|e| bad(&e))
            }
            _ => Err(bad(&"unknown form")),
        }
    }
}
