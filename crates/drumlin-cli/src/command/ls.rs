//! `ls`: the tables of a store.

use clap::Args;
use drumlin::{ListEntry, Store, TableFigures, Tables};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::figures::count;
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;
use crate::scope::Scope;

/// List tables
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin ls market.drumlin 'prices/*/A*'")]
pub struct Ls {
    #[command(flatten)]
    place: Place,
    /// A path, for itself and all below it, or a pattern with *, ? and ** [default: all]
    pattern: Option<String>,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Ls {
    /// Prints one line per table.
    pub fn run(self, out: &mut Output) -> Outcome {
        let entries = within(&self.place.read()?, &Scope::new(self.pattern.as_deref())?)?;
        let tables = entries.iter().filter_map(|entry| Some((&entry.path, entry.table?)));
        if self.json {
            let tables = tables.map(|(path, TableFigures { rows, versions, row_groups })| {
                json!({ "path": path, "rows": rows, "versions": versions, "row_groups": row_groups })
            });
            return Ok(out.json(&tables.collect())?);
        }
        let head =
            [("table", Align::Left), ("rows", Align::Right), ("versions", Align::Right), ("row groups", Align::Right)];
        let mut grid = Grid::new(head);
        for (path, table) in tables {
            grid.row([path.clone(), count(table.rows), count(table.versions), count(table.row_groups)]);
        }
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}

/// The nodes in `scope`, in path order.
pub fn within(store: &Store, scope: &Scope) -> Result<Vec<ListEntry>, Failure> {
    scope.check(store)?;
    let mut entries = Vec::new();
    for pattern in scope.patterns() {
        entries.extend(store.tree().list(pattern)?);
    }
    Ok(entries)
}
