//! `ls`: the tables of a store.

use clap::Args;
use drumlin::Store;
use drumlin::store::ListEntry;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::figures::count;
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

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
    /// Prints one line a table.
    pub fn run(self, out: &mut Output) -> Outcome {
        let entries = within(&self.place.read()?, self.pattern.as_deref())?;
        let tables = entries.iter().filter_map(|entry| Some((&entry.node.path, entry.table?)));
        if self.json {
            let tables = tables.map(|(path, (rows, versions, groups))| {
                json!({ "path": path, "rows": rows, "versions": versions, "row_groups": groups })
            });
            return Ok(out.json(&tables.collect())?);
        }
        let head =
            [("table", Align::Left), ("rows", Align::Right), ("versions", Align::Right), ("row groups", Align::Right)];
        let mut grid = Grid::new(head);
        for (path, (rows, versions, groups)) in tables {
            grid.row([path.clone(), count(rows), count(versions), count(groups)]);
        }
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}

/// The nodes that a pattern names; a plain path names itself and all below it.
pub fn within(store: &Store, pattern: Option<&str>) -> Result<Vec<ListEntry>, Failure> {
    let Some(pattern) = pattern else { return Ok(store.list("**")?) };
    let mut entries = store.list(pattern)?;
    if !pattern.contains(['*', '?']) {
        if entries.is_empty() {
            return Err(Failure::Error(format!("nothing at '{pattern}'")));
        }
        entries.extend(store.list(&format!("{pattern}/**"))?);
    }
    Ok(entries)
}
