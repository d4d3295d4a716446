//! `stat`: figures about a store or a table.

use clap::Args;
use drumlin::{RowLayout, RowLayoutStat, StoreStat, TableStat, Tables};
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::figures::{bytes, count};
use crate::grid::{Align, Grid};
use crate::output::Output;
use crate::place::Place;

/// Print figures about the store, or about a table
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin stat market.drumlin prices/us/aapl")]
pub struct Stat {
    #[command(flatten)]
    place: Place,
    /// The table [default: the whole store]
    table: Option<String>,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Stat {
    /// Prints one line per figure.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        let (exact, lines) = match &self.table {
            Some(table) => of_table(&store.table(table).stat()?),
            None => of_store(&store.stat()?),
        };
        if self.json {
            return Ok(out.json(&exact)?);
        }
        let mut grid = Grid::new([("figure", Align::Left), ("value", Align::Right)]);
        lines.into_iter().for_each(|(name, value)| grid.row([name.to_owned(), value]));
        Ok(grid.print(out)?)
    }
}

type Lines = Vec<(&'static str, String)>;

fn of_table(stat: &TableStat) -> (Value, Lines) {
    let TableStat { rows, stored_rows, versions, row_groups, bytes: size, columns, sort, keyed, .. } = stat;
    let key: &[String] = if *keyed { sort } else { &[] };
    let exact = json!({
        "rows": rows, "stored_rows": stored_rows, "versions": versions, "row_groups": row_groups, "bytes": size,
        "columns": columns, "sort": sort, "key": key, "memory_keys": stat.memory_keys,
        "memory_bytes": stat.memory_bytes, "indexes": stat.indexes, "index_bytes": stat.index_bytes,
        "layout": stat.layout.as_ref().map(|found| json!({
            "columns": found.layout.columns(), "z_order": matches!(found.layout, RowLayout::Curve(_)),
            "laid_out": found.laid_out, "overlap": found.overlap,
        })),
    });
    let mut lines = vec![
        ("rows", count(*rows)),
        ("rows stored, of all versions", count(*stored_rows)),
        ("columns", count(*columns)),
        ("versions", count(*versions)),
        ("row groups", count(*row_groups)),
        ("size", bytes(*size)),
    ];
    if stat.indexes > 0 {
        lines.extend([("indexes", count(stat.indexes)), ("  their size", bytes(stat.index_bytes))]);
    }
    match sort.as_slice() {
        [] => {}
        _ if *keyed => lines.extend([
            ("key", key.join(", ")),
            ("keys in memory", count(stat.memory_keys)),
            ("size in memory", bytes(stat.memory_bytes)),
        ]),
        _ => lines.push(("sorted by", sort.join(", "))),
    }
    if let Some(RowLayoutStat { layout, laid_out, overlap }) = &stat.layout {
        let by =
            if matches!(layout, RowLayout::Curve(_)) { "row groups in Z-order by" } else { "row groups sorted by" };
        lines.extend([
            (by, layout.columns().join(", ")),
            ("  those that are", count(*laid_out)),
            ("  others that each overlaps", format!("{overlap:.1}")),
        ]);
    }
    (exact, lines)
}

fn of_store(stat: &StoreStat) -> (Value, Lines) {
    let exact = json!({
        "seq": stat.seq, "nodes": stat.nodes, "tables": stat.tables, "trash": stat.trash, "snapshots": stat.snapshots,
        "versions": stat.versions, "row_groups": stat.row_groups, "blocks": stat.blocks,
        "inline_blocks": stat.inline_blocks, "block_bytes": stat.block_bytes, "live_bytes": stat.live_bytes,
        "condemned": stat.condemned, "condemned_bytes": stat.condemned_bytes, "log_bytes": stat.log_bytes,
        "bytes": stat.bytes(), "memtable_bytes": stat.memtable_bytes,
    });
    let lines = vec![
        ("tables", count(stat.tables)),
        ("versions", count(stat.versions)),
        ("nodes", count(stat.nodes)),
        ("snapshots", count(stat.snapshots)),
        ("tables in the trash", count(stat.trash)),
        ("row groups", count(stat.row_groups)),
        ("blocks", count(stat.blocks)),
        ("blocks in the log", count(stat.inline_blocks)),
        ("size of blocks", bytes(stat.block_bytes)),
        ("  of it in use", bytes(stat.live_bytes)),
        ("size that waits for a reclaim", bytes(stat.condemned_bytes)),
        ("size of log and catalog", bytes(stat.log_bytes)),
        ("size in all", bytes(stat.bytes())),
        ("size of rows in memory", bytes(stat.memtable_bytes)),
        ("commits", count(stat.seq)),
    ];
    (exact, lines)
}
