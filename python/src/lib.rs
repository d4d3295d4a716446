//! Python bindings of drumlin: arguments are converted, the interpreter lock is released, errors are mapped. No logic:
//! what a store does is in the core, what is convenient in Python is in the package around this module.

#![deny(unsafe_code)]

mod aggregate;
mod call;
mod callbacks;
mod clause;
mod collect;
mod constraints;
mod dataset;
mod diff;
mod errors;
mod event;
mod figures;
mod file;
mod foreign;
mod fork;
mod input;
mod join;
mod keyed;
mod layout;
mod metrics;
mod node;
mod open_store;
mod options;
mod pattern;
mod payload;
mod plans;
mod presence;
mod projection;
mod purge;
mod python_value;
mod replica;
mod reports;
mod result;
mod row_changes;
mod row_reports;
mod salvage;
mod schema;
mod splits;
mod staged;
mod statement;
mod store;
mod table;
mod tables;
mod transaction;
mod tree;
mod trigger;
mod ui;
mod value;
mod view;
mod watch;

use pyo3::prelude::*;

/// The core of drumlin, as the package uses it. It needs no interpreter lock: what it has is shared by threads as in Rust.
#[pymodule(gil_used = false)]
mod _drumlin {
    use super::*;

    #[pymodule_export]
    use super::collect::collect_many;
    #[pymodule_export]
    use super::dataset::{Dataset, DatasetPlan, expression_parts};
    #[pymodule_export]
    use super::event::{ChangeFeed, Commit, Event};
    #[pymodule_export]
    use super::figures::{Layout, StoreStat, TableStat};
    #[pymodule_export]
    use super::join::Join;
    #[pymodule_export]
    use super::keyed::{Lookup, Mask};
    #[pymodule_export]
    use super::layout::set_layout;
    #[pymodule_export]
    use super::node::{Change, Changes, ListEntry, Node, NodeChange, NodeChanges, Walk};
    #[pymodule_export]
    use super::open_store::Store;
    #[pymodule_export]
    use super::pattern::{Condition, Pattern};
    #[pymodule_export]
    use super::plans::{RepackPlan, TableVacuumPlan, VacuumPlan, VacuumWindow};
    #[pymodule_export]
    use super::presence::{Presence, PresenceInfo, begin_presence, presences};
    #[pymodule_export]
    use super::projection::{ProjectionEntry, ProjectionView};
    #[pymodule_export]
    use super::purge::{PurgePlan, PurgeProof, PurgeReceipt, PurgedObject, PurgedTable};
    #[pymodule_export]
    use super::replica::{CloneReport, PromoteReport, ReplicateReport, clone, promote, replicate_at, replicate_open};
    #[pymodule_export]
    use super::reports::{
        CheckpointReport, CopyReport, CopyToReport, DropReport, Fault, Hold, Holding, ImportReport, Index,
        ReclaimReport, Snapshot, StagedReport, TrashItem, TriggerFailure, VerifyReport, Version, VersionsReport,
    };
    #[pymodule_export]
    use super::result::{Batch, Batches, Reading, Stream};
    #[pymodule_export]
    use super::row_changes::{Follower, RowChanges, RowFeed, drop_follower, follow, followers, off_rows, on_rows};
    #[pymodule_export]
    use super::row_reports::{DeleteReport, MergeReport, RowsReport, UpdateReport};
    #[pymodule_export]
    use super::salvage::{Loss, SalvageReport};
    #[pymodule_export]
    use super::schema::Schema;
    #[pymodule_export]
    use super::splits::{Lease, Split, SplitReader};
    #[pymodule_export]
    use super::staged::{Stage, Ticket, Token, abort_staged, commit_staged, stage_alone};
    #[pymodule_export]
    use super::statement::parse_statement;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::tables::Tables;
    #[pymodule_export]
    use super::transaction::Transaction;
    #[pymodule_export]
    use super::tree::Tree;
    #[pymodule_export]
    use super::ui::Ui;
    #[pymodule_export]
    use super::view::{View, catch_up, create_view, view_of, views};
    #[pymodule_export]
    use super::watch::{make_bars, stoppable};

    /// Opens the store at `uri`.
    #[pyfunction]
    fn open(py: Python<'_>, uri: &str, mode: options::ModeName, settings: options::Settings) -> PyResult<Store> {
        let options = options::open(mode, settings)?;
        let told = options.bucket.told();
        Ok(Store::new(told, call::detached(py, || drumlin::Store::open_with(uri, options))?))
    }

    /// Copies what can be read from the store at `uri` into a new one.
    #[pyfunction]
    #[pyo3(signature = (uri, new, settings, progress=None))]
    fn salvage(
        py: Python<'_>,
        uri: &str,
        new: &str,
        settings: options::Settings,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<SalvageReport> {
        let options = options::open(options::ModeName::create(), settings)?;
        let salvage = |task: drumlin::Task| drumlin::salvage(uri, new, options, &task);
        Ok(call::with_progress(py, progress, salvage)?.into())
    }

    /// Makes a store in a folder shared, or not, without copying it.
    #[pyfunction]
    #[pyo3(signature = (uri, shared, progress=None))]
    fn turn_shared(py: Python<'_>, uri: &str, shared: bool, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let options = drumlin::Options::default();
        let turn = if shared { drumlin::share } else { drumlin::unshare };
        call::with_progress(py, progress, |task: drumlin::Task| turn(uri, options, &task))
    }

    /// Moves the log of a store to a server, or back to the store.
    #[pyfunction]
    fn move_log(py: Python<'_>, uri: &str, to: Option<String>, settings: options::Settings) -> PyResult<()> {
        let options = options::open(options::ModeName::create(), settings)?;
        let to = to.map_or(drumlin::LogPlace::Store, drumlin::LogPlace::Cell);
        call::detached(py, || drumlin::move_log(uri, &to, &options))
    }

    /// Runs the command line with `args`, the program's name first; returns the exit code.
    #[pyfunction]
    fn main(py: Python<'_>, args: Vec<String>) -> i32 {
        py.detach(|| drumlin_cli::main(args))
    }

    /// Prints rows on standard output as the command line does, at most `most` of a table; returns the exit code.
    #[pyfunction]
    fn print_rows(py: Python<'_>, rows: foreign::Rows, form: &str, most: u64, hint: &str) -> PyResult<i32> {
        let schema = rows.schema.clone();
        let batches = rows.checked();
        call::detached(py, || Ok(drumlin_cli::print_rows(form, &schema, batches, (most, hint))))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        drumlin_cli::memory::configure();
        fork::prepare();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
