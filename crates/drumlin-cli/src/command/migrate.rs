//! `migrate`: what the Python package does before this command line sees the arguments, since it needs Python.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Bring in tables of ArcticDB, Delta Lake, Lance and Parquet, and take tables out (with the Python package)
#[derive(Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Example:
  drumlin migrate arcticdb lmdb:///data/arctic prices market.drumlin
  drumlin migrate --help"
)]
pub struct Migrate {
    /// What the Python package takes; see `drumlin migrate --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Migrate {
    /// Says where the command is.
    pub fn run(self) -> Outcome {
        let asked = self.arguments.first().map_or(String::new(), |first| format!(" {first}"));
        Err(Failure::Error(format!(
            "'migrate{asked}' needs the Python package, which this program does not have; run pip install drumlin, and \
             use the drumlin command that it installs"
        )))
    }
}
