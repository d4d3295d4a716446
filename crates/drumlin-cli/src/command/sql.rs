//! `sql`: what the Python package does before this command line sees the arguments, since it needs DuckDB.

use clap::Args;

use crate::failure::{Failure, Outcome};

/// Run SQL over the tables of a store, or a shell for it (with the Python package)
#[derive(Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Example:
  drumlin sql market.drumlin 'select count(*) from prices.us.aapl'
  drumlin sql market.drumlin
  drumlin sql --help"
)]
pub struct Sql {
    /// What the Python package takes; see `drumlin sql --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Sql {
    /// Says where the command is.
    pub fn run(self) -> Outcome {
        let _ = self.arguments;
        Err(Failure::Error(
            "'sql' needs the Python package, which this program does not have; run pip install 'drumlin[duckdb]', and use the \
             drumlin command that it installs"
                .to_owned(),
        ))
    }
}
