//! Format features: what builds of before do not know, and must refuse.

use crate::catalog::{Effect, HoldKind};
use crate::table::{RewrittenGroup, StoredSchema, VersionKind};

/// Format features that this build knows; an entry that needs another is refused.
pub const FEATURES_KNOWN: u64 = FEATURE_HISTORY
    | FEATURE_HOLDS
    | FEATURE_COPIES
    | FEATURE_CHANGES
    | FEATURE_PURGE
    | FEATURE_NOTES
    | FEATURE_ADOPTED
    | FEATURE_PATCHES
    | FEATURE_CONSTRAINTS
    | FEATURE_ORDER
    | FEATURE_REORDER
    | FEATURE_GENERATED
    | FEATURE_INDEXES
    | FEATURE_UNIQUE
    | FEATURE_TTL
    | FEATURE_FOLLOWERS
    | FEATURE_PRESENCES
    | FEATURE_VIEWS
    | FEATURE_LAYOUT
    | FEATURE_ERASED
    | FEATURE_REPLICAS
    | FEATURE_JOBS
    | FEATURE_COVERS;
/// Those that the tables of a catalog snapshot have too.
pub const FEATURES_KEPT: u64 = FEATURE_COPIES
    | FEATURE_CHANGES
    | FEATURE_PURGE
    | FEATURE_PATCHES
    | FEATURE_CONSTRAINTS
    | FEATURE_ORDER
    | FEATURE_GENERATED
    | FEATURE_INDEXES
    | FEATURE_UNIQUE
    | FEATURE_TTL
    | FEATURE_FOLLOWERS
    | FEATURE_PRESENCES
    | FEATURE_VIEWS
    | FEATURE_LAYOUT
    | FEATURE_REPLICAS;
/// The entry flushes rows with a history.
pub const FEATURE_HISTORY: u64 = 1;
/// The entry opens, renews or ends holds, or notes jobs.
pub const FEATURE_HOLDS: u64 = 2;

/// The entry copies, moves or restores tables, or moves row groups of several.
pub const FEATURE_COPIES: u64 = 4;
/// The entry changes the columns of a table and keeps its rows, or changes rows in place.
pub const FEATURE_CHANGES: u64 = 8;
/// The entry erases rows from all versions.
pub const FEATURE_PURGE: u64 = 16;
/// The entry notes something of versions: their writer's metadata, or what it said.
pub const FEATURE_NOTES: u64 = 32;
/// The entry makes tables as they are in another store.
pub const FEATURE_ADOPTED: u64 = 64;
/// The entry makes patches on row groups.
pub const FEATURE_PATCHES: u64 = 128;
/// The entry puts constraints on tables.
pub const FEATURE_CONSTRAINTS: u64 = 256;
/// The entry renames columns that a table is ordered by.
pub const FEATURE_ORDER: u64 = 512;
/// The entry puts row groups into another order.
pub const FEATURE_REORDER: u64 = 1024;
/// The entry puts defaults that are made for each row or call on columns, or moves sequences on.
pub const FEATURE_GENERATED: u64 = 2048;
/// The entry makes, drops or fills indexes.
pub const FEATURE_INDEXES: u64 = 4096;
/// The entry makes indexes of which no two rows may have the same values.
pub const FEATURE_UNIQUE: u64 = 8192;
/// A schema says when rows expire.
pub const FEATURE_TTL: u64 = 16384;
/// The entry makes followers of tables, or moves them on.
pub const FEATURE_FOLLOWERS: u64 = 32768;
/// The entry begins, renews or ends presences, or nodes end with them or by themselves.
pub const FEATURE_PRESENCES: u64 = 65536;
/// The entry makes views of rows, or says with which sources they are behind. A build that does not know them would change sources alone.
pub const FEATURE_VIEWS: u64 = 131072;
/// The entry sets a layout, or names row groups whose rows have places.
pub const FEATURE_LAYOUT: u64 = 262144;
/// The catalog snapshot says when rows were last erased. No entry has it.
pub const FEATURE_ERASED: u64 = 524288;
/// The entry opens a lease for a replica.
pub const FEATURE_REPLICAS: u64 = 1048576;
/// The catalog snapshot has committed jobs in chunks of their own. No entry has it.
pub const FEATURE_JOBS: u64 = 2097152;
/// The entry takes a snapshot of all tables that match a pattern, or the catalog snapshot has such ones.
pub const FEATURE_COVERS: u64 = 4194304;

/// What a reader of a schema must know.
fn of_schema(schema: &StoredSchema) -> u64 {
    let constraints = if schema.is_constrained() { FEATURE_CONSTRAINTS } else { 0 };
    let generated = if schema.generates() { FEATURE_GENERATED } else { 0 };
    let expires = if schema.expires() { FEATURE_TTL } else { 0 };
    constraints | generated | expires | if schema.renames_order() { FEATURE_ORDER } else { 0 }
}

/// What a reader of row groups that were written again must know.
fn of_groups<'a>(mut groups: impl Iterator<Item = &'a RewrittenGroup>) -> u64 {
    if groups.any(|group| group.standing.tract().is_some()) { FEATURE_LAYOUT } else { 0 }
}

impl Effect {
    /// Whether what it takes away shall not be found anywhere any more.
    pub fn erases(&self) -> bool {
        matches!(self, Effect::EraseRows { .. } | Effect::ShrinkGroups { .. } | Effect::SetSchemas { .. })
    }

    /// The format features that a reader must know.
    pub fn features(&self) -> u64 {
        match self {
            Effect::FlushWithHistory { .. } => FEATURE_HISTORY,
            Effect::OpenHold { kind: HoldKind::Replica { .. }, .. } => FEATURE_HOLDS | FEATURE_REPLICAS,
            Effect::OpenHold { .. }
            | Effect::Beat { .. }
            | Effect::EndHolds { .. }
            | Effect::PutJob { .. }
            | Effect::ForgetJobs { .. } => FEATURE_HOLDS,
            Effect::CopyTable { .. }
            | Effect::MoveTable { .. }
            | Effect::RestoreTable { .. }
            | Effect::MoveShared { .. } => FEATURE_COPIES,
            Effect::ChangeTable { change, .. } => {
                let changes = if change.needs_feature() { FEATURE_CHANGES } else { 0 };
                let expires = if change.kind == VersionKind::Expire { FEATURE_TTL } else { 0 };
                changes | expires | change.schema.as_ref().map_or(0, of_schema)
            }
            Effect::UpdateTable { .. } => FEATURE_CHANGES,
            Effect::ReorderTable { reorder, .. } => FEATURE_REORDER | of_groups(reorder.outputs()),
            Effect::RewriteTable { rewrite, .. } => of_groups(rewrite.outputs.iter()),
            Effect::SetLayout { .. } => FEATURE_LAYOUT,
            Effect::CoverTables { .. } => FEATURE_COVERS,
            Effect::AdvanceSequences { .. } => FEATURE_GENERATED,
            Effect::PutFollower { .. } => FEATURE_FOLLOWERS,
            Effect::Presences(_) => FEATURE_PRESENCES,
            Effect::PutView { .. } | Effect::MarkView { .. } => FEATURE_VIEWS,
            Effect::Nodes(nodes) if nodes.end() => FEATURE_PRESENCES,
            Effect::PutIndex { definition, .. } if definition.is_unique() => FEATURE_INDEXES | FEATURE_UNIQUE,
            Effect::PutIndex { .. } | Effect::DropIndex { .. } | Effect::PutRuns { .. } => FEATURE_INDEXES,
            Effect::ProveIndex { .. } => FEATURE_INDEXES | FEATURE_UNIQUE,
            Effect::PatchTable { .. } => FEATURE_CHANGES | FEATURE_PATCHES,
            Effect::ShrinkGroups { groups, .. } => {
                let placed =
                    groups.iter().any(|group| group.to.is_some_and(|(_, standing)| standing.tract().is_some()));
                FEATURE_PURGE | if placed { FEATURE_LAYOUT } else { 0 }
            }
            Effect::EraseRows { .. } | Effect::SetSchemas { .. } => FEATURE_PURGE,
            Effect::SetMetadata { .. } | Effect::Tell { .. } | Effect::CountChanged { .. } => FEATURE_NOTES,
            // Their row groups may have any mix of schemas.
            Effect::AdoptTables { tables } => {
                let patched = tables.iter().any(|(.., table)| table.has_patches());
                let placed = tables.iter().any(|(.., table)| table.has_tracts());
                let schemas = tables.iter().flat_map(|(.., table)| table.schemas());
                FEATURE_ADOPTED
                    | FEATURE_COPIES
                    | FEATURE_CHANGES
                    | if patched { FEATURE_PATCHES } else { 0 }
                    | if placed { FEATURE_LAYOUT } else { 0 }
                    | schemas.fold(0, |features, schema| features | of_schema(schema))
            }
            _ => 0,
        }
    }
}
