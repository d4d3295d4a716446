//! The commands, one file each.

mod alter;
mod cat;
mod checkpoint;
mod completions;
mod copy;
mod delete;
mod delete_versions;
mod diff;
mod doctor;
mod drop;
mod export;
mod export_nodes;
mod get;
mod head;
mod history;
mod import;
mod import_nodes;
mod index;
mod info;
mod ls;
mod migrate;
mod move_log;
mod purge;
mod put;
mod reclaim;
mod replica;
mod restore;
mod retention;
mod rm;
mod salvage;
mod schema;
mod share;
mod snapshot;
mod sql;
mod stat;
mod trash;
mod tree;
mod ui;
mod undrop;
mod update;
mod vacuum;
mod verify;
mod versions;
mod watch;

use clap::Subcommand;

use crate::failure::Outcome;
use crate::output::Output;

/// The command to run.
#[derive(Subcommand)]
pub enum Command {
    Import(import::Import),
    Export(export::Export),
    Ls(ls::Ls),
    Tree(tree::Tree),
    Cat(cat::Cat),
    Head(head::Head),
    Info(info::Info),
    Schema(schema::Schema),
    Stat(stat::Stat),
    Versions(versions::Versions),
    History(history::History),
    Diff(diff::Diff),
    Sql(sql::Sql),
    Delete(delete::Delete),
    Update(update::Update),
    Alter(alter::Alter),
    DeleteVersions(delete_versions::DeleteVersions),
    Drop(drop::Drop),
    Undrop(undrop::Undrop),
    Purge(purge::Purge),
    Restore(restore::Restore),
    Copy(copy::Copy),
    Move(copy::Move),
    CopyTo(copy::CopyTo),
    Migrate(migrate::Migrate),
    Trash(trash::Trash),
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    #[command(subcommand)]
    Index(index::Index),
    Retention(retention::Retention),
    Checkpoint(checkpoint::Checkpoint),
    Vacuum(vacuum::Vacuum),
    Reclaim(reclaim::Reclaim),
    Verify(verify::Verify),
    Salvage(salvage::Salvage),
    Share(share::Share),
    Unshare(share::Unshare),
    MoveLog(move_log::MoveLog),
    Follow(replica::Follow),
    Promote(replica::Promote),
    #[command(visible_alias = "restore-store")]
    Clone(replica::CloneStore),
    Get(get::Get),
    Put(put::Put),
    Rm(rm::Rm),
    ExportNodes(export_nodes::ExportNodes),
    ImportNodes(import_nodes::ImportNodes),
    Watch(watch::Watch),
    Ui(ui::Ui),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    #[command(name = "__complete", hide = true)]
    Complete(completions::Complete),
}

impl Command {
    /// Runs it.
    pub fn run(self, out: &mut Output) -> Outcome {
        match self {
            Command::Import(command) => command.run(out),
            Command::Export(command) => command.run(out),
            Command::Ls(command) => command.run(out),
            Command::Tree(command) => command.run(out),
            Command::Cat(command) => command.run(out),
            Command::Head(command) => command.run(out),
            Command::Info(command) => command.run(out),
            Command::Diff(command) => command.run(out),
            Command::Sql(command) => command.run(),
            Command::Completions(command) => command.run(out),
            Command::Complete(command) => command.run(out),
            Command::Schema(command) => command.run(out),
            Command::Stat(command) => command.run(out),
            Command::Versions(command) => command.run(out),
            Command::History(command) => command.run(out),
            Command::Delete(command) => command.run(out),
            Command::Update(command) => command.run(out),
            Command::Alter(command) => command.run(out),
            Command::DeleteVersions(command) => command.run(out),
            Command::Drop(command) => command.run(out),
            Command::Undrop(command) => command.run(out),
            Command::Purge(command) => command.run(out),
            Command::Restore(command) => command.run(out),
            Command::Copy(command) => command.run(out),
            Command::Move(command) => command.run(out),
            Command::CopyTo(command) => command.run(out),
            Command::Migrate(command) => command.run(),
            Command::Trash(command) => command.run(out),
            Command::Snapshot(command) => command.run(out),
            Command::Index(command) => command.run(out),
            Command::Retention(command) => command.run(out),
            Command::Checkpoint(command) => command.run(out),
            Command::Vacuum(command) => command.run(out),
            Command::Reclaim(command) => command.run(out),
            Command::Verify(command) => command.run(out),
            Command::Salvage(command) => command.run(out),
            Command::Share(command) => command.run(out),
            Command::Unshare(command) => command.run(out),
            Command::MoveLog(command) => command.run(out),
            Command::Follow(command) => command.run(out),
            Command::Promote(command) => command.run(out),
            Command::Clone(command) => command.run(out),
            Command::Get(command) => command.run(out),
            Command::Put(command) => command.run(out),
            Command::Rm(command) => command.run(out),
            Command::ExportNodes(command) => command.run(out),
            Command::ImportNodes(command) => command.run(out),
            Command::Watch(command) => command.run(out),
            Command::Ui(command) => command.run(out),
            Command::Doctor(command) => command.run(out),
        }
    }
}
