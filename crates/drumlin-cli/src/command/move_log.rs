//! `move-log`: where the log of a store is.

use std::io::Write;

use clap::Args;
use drumlin::{LogAddress, LogPlace, Mode, Options, move_log};

use crate::failure::Outcome;
use crate::output::Output;
use crate::place::Place;

/// Move the log of a store to PostgreSQL or etcd, so that commits need no request to the bucket, or back
///
/// Tables stay where they are. Processes that have the store open must open it again. A command that was cut off is finished by the
/// next one, or by a process that opens the store for writing.
///
/// Users and passwords are not noted in the store: they come from the environment (PGUSER, PGPASSWORD, PGPASSFILE; ETCDCTL_USER).
#[derive(Args)]
#[command(after_help = "\
Examples:
  drumlin move-log s3://lake/market --to postgresql://db.example/lake
  drumlin move-log s3://lake/market --to etcd://db.example:2379
  drumlin move-log s3://lake/market --back")]
pub struct MoveLog {
    #[command(flatten)]
    place: Place,
    /// Where the log goes: postgresql://host/database, etcd://host:2379, or etcds:// with TLS
    #[arg(long, value_name = "ADDRESS", required_unless_present = "back", conflicts_with = "back")]
    to: Option<String>,
    /// The log goes back to the store
    #[arg(long)]
    back: bool,
    /// Where the log is now, if its server was moved to another address
    #[arg(long, value_name = "ADDRESS")]
    log: Option<String>,
}

impl MoveLog {
    /// Moves it.
    pub fn run(self, out: &mut Output) -> Outcome {
        let log_at = self.log.map(LogAddress);
        let options = Options { log_at, ..self.place.options(Mode::Write) };
        let (to, done) = match self.to {
            Some(address) => (LogPlace::Cell(address), "the log is on the server now"),
            None => (LogPlace::Store, "the log is with the store now"),
        };
        move_log(self.place.uri(), &to, &options)?;
        writeln!(out, "{done}")?;
        Ok(())
    }
}
