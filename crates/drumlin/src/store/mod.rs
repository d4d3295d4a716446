//! The public API: a store, opened from a folder or in memory.
//!
//! Everything a store does is one of three things: it reads a [`crate::catalog::State`] that it holds (reads never wait), it proposes a
//! commit (*commit*), or it deletes objects that a commit has already released (*upkeep/reclaim.rs*).

mod audit;
mod change;
mod commit;
mod feed;
mod handle;
mod jobs;
mod nouns;
mod open;
mod options;
mod parts;
mod presence;
mod purge;
mod read;
mod replica;
mod upkeep;
mod view;
mod write;

pub use crate::log::LogPlace;
pub use audit::doctor::{Diagnosis, Finding};
pub use audit::salvage::{SalvageTarget, salvage};
pub use audit::salvage_report::{Loss, LossKind, LostRows, SalvageReport};
pub use audit::verify::{Fault, VerifyOptions, VerifyReport};
pub use change::add_columns::ColumnFn;
pub use change::delete::{DeleteReport, UpdateOptions};
pub use change::drop::{DropReport, TrashItem};
pub use change::index::{IndexInfo, IndexOptions};
pub use change::merge::MergeReport;
pub use change::update::UpdateReport;
pub use change::versions::{Missing, SnapshotInfo, SnapshotOf, VersionInfo, VersionsReport};
pub use feed::begin::FollowFrom;
pub use feed::changes::{ChangeFeed, Commit, SettingChange};
pub use feed::follow::{FollowOptions, FollowerInfo};
pub use feed::place::FeedPlace;
pub use feed::projection::ProjectionView;
pub use feed::row_trigger::{RowEvent, RowTriggerFn};
pub use feed::rows::{RowChanges, RowFeed};
pub use handle::Store;
pub use jobs::copy_to::{CopyToOptions, CopyToReport};
pub use jobs::holds::HoldInfo;
pub use jobs::lease::{Lease, SplitOptions, Splits};
#[cfg(feature = "internals")]
pub use jobs::split::check_plan;
pub use jobs::split::{Split, SplitReader, SplitScan};
pub use jobs::stage::{Stage, Ticket, Token};
pub use jobs::stage_commit::{Aborted, StagedCommit, StagedReport};
pub use jobs::target::{StageMode, StageOptions};
pub use nouns::export::ImportReport;
pub use nouns::key::{IntoKey, KeyValue};
pub use nouns::patterns::{IntoPattern, IntoPatterns};
pub use nouns::place::Place;
pub use nouns::table::Table;
pub use nouns::tables::Tables;
pub use nouns::transaction::Transaction;
pub use nouns::tree::{ListEntry, TableFigures, Tree};
pub use open::move_log::move_log;
#[cfg(feature = "internals")]
pub use open::move_log::move_log_on;
#[cfg(feature = "internals")]
pub use open::opening::{open_bucket, open_bucket_with, open_on};
pub use open::share::{share, unshare};
#[cfg(feature = "internals")]
pub use open::share::{share_on, unshare_on};
pub use options::{BucketOptions, LogAddress, Mode, Options, SyncMode};
pub use parts::{TriggerCall, TriggerEvent, TriggerFailure, TriggerFn};
pub use presence::handle::{Presence, PresenceInfo, PresenceOptions};
pub use purge::report::{Held, PurgePlan, PurgeProof, PurgeReceipt, PurgedObject, PurgedTable};
pub use purge::run::Purge;
pub use read::activity::{Activity, SessionInfo, SnapshotSummary, TriggerInfo};
pub use read::dataset::{Dataset, DatasetOptions, DatasetPlan};
pub use read::dataset_scan::DatasetScan;
pub use read::diff::{Diff, DiffOptions};
pub use read::join::{JoinOptions, JoinScan};
pub use read::lookup::{LookupOptions, TableView};
pub use read::resolve::AsOf;
pub use read::stat::{StoreStat, TableStat};
pub use read::views::ReadOptions;
pub use replica::clone::{CloneAt, CloneReport, clone_store};
pub use replica::options::{CaughtUp, ReplicateFrom, ReplicateOptions, ReplicateReport};
pub use replica::promote::{PromoteOptions, PromoteReport, promote};
pub use replica::run::replicate;
#[cfg(feature = "internals")]
pub use replica::{clone::clone_on, place::StorePlace, promote::promote_on, run::replicate_on};
#[cfg(feature = "internals")]
pub use upkeep::background::wait_for_checkpoint;
pub use upkeep::checkpoint_report::{CheckpointOptions, CheckpointReport};
pub use upkeep::layout::{CellKind, Layout, LayoutBlock, LayoutCell, LayoutOptions, LayoutTable, NeededBy, TableHome};
pub use upkeep::metrics::{Metric, MetricValue, metrics, prometheus};
pub use upkeep::plans::VacuumPlan;
pub use upkeep::reclaim::{Holding, ReclaimOptions, ReclaimReport};
pub use view::{CatchUpReport, ViewInfo, ViewOptions};
pub use write::by_key::RowsReport;
pub use write::frame::{Frame, TableOptions, WriteOptions};
