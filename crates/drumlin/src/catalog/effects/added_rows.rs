//! Which effects may add rows to what the newest version of a table shows. Each kind is named, so that a new one is thought of.

use crate::catalog::Effect;
use crate::table::Unique;

impl Effect {
    /// Whether the newest version of its table may have rows after it that it did not have before, or must have none with the values of
    /// another. Not of a copy of a whole table, or of one from another store, which keeps what that one kept.
    pub fn may_add_rows(&self) -> bool {
        match self {
            Effect::ChangeTable { change, .. } => !change.groups.is_empty(),
            Effect::WriteRows { rows, .. } => rows.has_rows(),
            Effect::CopyTable { version, .. } => version.is_some(),
            Effect::PutIndex { definition, .. } => definition.unique == Unique::Proven,
            Effect::UpdateTable { .. }
            | Effect::PatchTable { .. }
            | Effect::RestoreTable { .. }
            | Effect::DeleteVersions { .. } => true,
            Effect::OpenSession { .. }
            | Effect::Nodes(_)
            | Effect::SetRetention { .. }
            | Effect::CreateTable { .. }
            | Effect::AddBlocks { .. }
            | Effect::RewriteTable { .. }
            | Effect::DropTable { .. }
            | Effect::UndropTable { .. }
            | Effect::Condemn { .. }
            | Effect::Reclaimed { .. }
            | Effect::PutSnapshot { .. }
            | Effect::CoverTables { .. }
            | Effect::DropSnapshot { .. }
            | Effect::SetDefaultRetention { .. }
            | Effect::PutProjection { .. }
            | Effect::DropProjection { .. }
            | Effect::PutTrigger { .. }
            | Effect::TriggerDone { .. }
            | Effect::DropTrigger { .. }
            | Effect::MoveGroups { .. }
            | Effect::AddInline { .. }
            | Effect::FreezeRows { .. }
            | Effect::FlushRows { .. }
            | Effect::FenceSessions { .. }
            | Effect::ForgetSessions { .. }
            | Effect::FlushWithHistory { .. }
            | Effect::OpenHold { .. }
            | Effect::Beat { .. }
            | Effect::EndHolds { .. }
            | Effect::PutJob { .. }
            | Effect::ForgetJobs { .. }
            | Effect::MoveTable { .. }
            | Effect::MoveShared { .. }
            | Effect::EraseRows { .. }
            | Effect::ShrinkGroups { .. }
            | Effect::SetSchemas { .. }
            | Effect::SetMetadata { .. }
            | Effect::Tell { .. }
            | Effect::CountChanged { .. }
            | Effect::AdoptTables { .. }
            | Effect::ReorderTable { .. }
            | Effect::AdvanceSequences { .. }
            | Effect::DropIndex { .. }
            | Effect::PutRuns { .. }
            | Effect::ProveIndex { .. }
            | Effect::PutView { .. }
            | Effect::MarkView { .. }
            | Effect::SetLayout { .. }
            | Effect::PutFollower { .. }
            | Effect::Presences(_) => false,
        }
    }
}
