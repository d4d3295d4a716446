//! Effects in words.

use crate::catalog::Effect;

impl Effect {
    /// Describes it, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Effect::OpenSession { .. } => "begins a session",
            Effect::Nodes(_) => "changes nodes",
            Effect::SetRetention { .. } | Effect::SetDefaultRetention { .. } => "sets a retention",
            Effect::CreateTable { .. } => "creates a table",
            Effect::AddBlocks { .. } | Effect::AddInline { .. } => "adds blocks",
            Effect::ChangeTable { .. } | Effect::UpdateTable { .. } | Effect::PatchTable { .. } => {
                "adds a version to a table"
            }
            Effect::RewriteTable { .. }
            | Effect::ReorderTable { .. }
            | Effect::MoveGroups { .. }
            | Effect::MoveShared { .. }
            | Effect::ShrinkGroups { .. } => "moves rows of a table",
            Effect::EraseRows { .. } | Effect::SetSchemas { .. } => "erases rows",
            Effect::SetMetadata { .. } => "changes the metadata of a version",
            Effect::AdvanceSequences { .. } => "takes numbers of a sequence",
            Effect::PutFollower { .. } => "records a follower",
            Effect::SetLayout { .. } => "sets by what row groups are laid out",
            Effect::PutView { .. } | Effect::MarkView { .. } => "makes a view, or says what it lacks",
            Effect::Presences(_) => "begins, renews or ends presences",
            Effect::PutIndex { .. } | Effect::DropIndex { .. } => "creates or drops an index",
            Effect::PutRuns { .. } | Effect::ProveIndex { .. } => "fills an index",
            Effect::Tell { .. } | Effect::CountChanged { .. } => "records what a version did",
            Effect::CopyTable { .. } => "copies a table",
            Effect::AdoptTables { .. } => "copies tables from another store",
            Effect::MoveTable { .. } => "moves a table",
            Effect::RestoreTable { .. } => "restores a version",
            Effect::DeleteVersions { .. } => "deletes versions",
            Effect::DropTable { .. } | Effect::Condemn { .. } => "drops a table",
            Effect::UndropTable { .. } => "restores a dropped table",
            Effect::Reclaimed { .. } => "deletes blocks",
            Effect::PutSnapshot { .. } | Effect::CoverTables { .. } => "creates a snapshot",
            Effect::DropSnapshot { .. } => "drops a snapshot",
            Effect::PutProjection { .. } | Effect::DropProjection { .. } => "creates or drops a projection",
            Effect::PutTrigger { .. } | Effect::TriggerDone { .. } | Effect::DropTrigger { .. } => "changes a trigger",
            Effect::WriteRows { .. } => "writes rows by key",
            Effect::FreezeRows { .. } => "numbers a version",
            Effect::FlushRows { .. } | Effect::FlushWithHistory { .. } => "turns rows in memory into row groups",
            Effect::FenceSessions { .. } | Effect::ForgetSessions { .. } => "ends sessions",
            Effect::OpenHold { .. } | Effect::Beat { .. } | Effect::EndHolds { .. } => "begins or ends a hold",
            Effect::PutJob { .. } | Effect::ForgetJobs { .. } => "records a job",
        }
    }
}
