//! The public API: a store, opened from a folder or in memory.
//!
//! Everything a store does is one of three things: it reads a [`State`] that it holds (reads never wait), it proposes a
//! commit (*commit.rs*), or it deletes objects that a commit has already released (*reclaim.rs*).

mod audit;
mod change;
mod commit;
mod feed;
mod jobs;
mod nouns;
mod open;
mod purge;
mod read;
mod upkeep;
mod write;
mod options;
mod parts;
mod store;

pub use read::activity::{Activity, SessionInfo, SnapshotSummary, TriggerInfo};
pub use change::update::UpdateReport;
#[cfg(feature = "internals")]
pub use upkeep::background::wait_for_checkpoint;
pub use write::by_key::RowsReport;
pub use upkeep::checkpoint_report::{CheckpointOptions, CheckpointReport};
pub use change::add_columns::ColumnFn;
pub use jobs::copy_to::{CopyToOptions, CopyToReport};
pub use read::dataset::{Dataset, DatasetOptions, DatasetPlan};
pub use read::dataset_scan::DatasetScan;
pub use read::diff::{Diff, DiffOptions};
pub use audit::doctor::{Diagnosis, Finding};
pub use change::drop::{DropReport, TrashItem};
pub use nouns::export::ImportReport;
pub use feed::changes::{ChangeFeed, Commit};
pub use jobs::holds::HoldInfo;
pub use read::lookup::{LookupOptions, TableView};
pub use upkeep::layout::{CellKind, Layout, LayoutBlock, LayoutCell, LayoutOptions, LayoutTable, NeededBy, TableHome};
pub use jobs::lease::{Lease, SplitOptions, Splits};
pub use change::merge::MergeReport;
pub use upkeep::metrics::{Metric, MetricValue, metrics, prometheus};
#[cfg(feature = "internals")]
pub use open::opening::{open_bucket, open_on};
pub use options::{BucketOptions, Mode, Options, Sync};
pub use parts::{TriggerCall, TriggerEvent, TriggerFailure, TriggerFn};
pub use nouns::place::Place;
pub use upkeep::plans::VacuumPlan;
pub use feed::projection::ProjectionView;
pub use purge::run::Purge;
pub use purge::report::{Held, PurgePlan, PurgeProof, PurgeReceipt, PurgedObject, PurgedTable};
pub use read::views::ReadOptions;
pub use upkeep::reclaim::{Holding, ReclaimOptions, ReclaimReport};
pub use read::resolve::AsOf;
pub use audit::salvage::{SalvageTarget, salvage};
pub use audit::salvage_report::{Loss, LossKind, LostRows, SalvageReport};
#[cfg(feature = "internals")]
pub use jobs::split::check_plan;
pub use jobs::split::{Split, SplitReader, SplitScan};
pub use jobs::stage::{Stage, StageMode, StageOptions, Ticket, Token};
pub use jobs::stage_commit::{Aborted, StagedCommit, StagedReport};
pub use read::stat::{StoreStat, TableStat};
pub use store::Store;
pub use nouns::table::Table;
pub use nouns::tables::Tables;
pub use nouns::transaction::Transaction;
pub use nouns::tree::{IntoPattern, ListEntry, TableFigures, Tree};
pub use change::delete::{DeleteReport, UpdateOptions};
pub use audit::verify::{Fault, VerifyOptions, VerifyReport};
pub use change::versions::{Missing, SnapshotInfo, SnapshotOf, VersionInfo, VersionsReport};
pub use write::frame::{Frame, TableOptions, WriteOptions};
