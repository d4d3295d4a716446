//! `index create`, `list`, `rebuild` and `drop`: the indexes of a table.

use std::io::Write;

use clap::{Args, Subcommand};
use drumlin::{Expression, Filter, IndexOptions, Tables};
use serde_json::json;

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, count, counted};
use crate::grid::{Align, Grid};
use crate::interrupt;
use crate::output::Output;
use crate::place::{ChangedPlace, Place};

/// Create, list, rebuild and drop the indexes of a table
#[derive(Subcommand)]
#[command(after_help = "\
Example:
  drumlin index create market.drumlin trades by_sym sym venue
  drumlin index list market.drumlin trades")]
pub enum Index {
    Create(Create),
    List(List),
    Rebuild(Rebuild),
    Drop(Drop),
}

/// Make an index over columns and expressions, and fill it; reads with filters on them use it where that takes fewer bytes
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin index create market.drumlin trades by_sym sym venue
  drumlin index create market.drumlin trades large 'lower(note)' --where 'size > 1000'")]
pub struct Create {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// The index's name
    name: String,
    /// The columns and expressions that its entries are ordered by
    #[arg(required = true, value_name = "COLUMN", value_parser = |text: &str| Expression::parse(text))]
    columns: Vec<Expression>,
    /// It has only the rows for which this is true, and serves filters that include it
    #[arg(long = "where", value_name = "FILTER", value_parser = |text: &str| Filter::parse(text))]
    condition: Option<Filter>,
    /// Refuse rows that have the same values as another
    #[arg(long)]
    unique: bool,
    /// Leave it to the next checkpoints to fill it
    #[arg(long)]
    deferred: bool,
}

/// List the indexes of a table
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin index list market.drumlin trades")]
pub struct List {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Make an index again from the rows; mends one whose blocks are damaged or lost
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin index rebuild market.drumlin trades by_sym")]
pub struct Rebuild {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// The index's name
    name: String,
}

/// Drop an index; its space becomes reclaimable
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin index drop market.drumlin trades by_sym")]
pub struct Drop {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// The index's name
    name: String,
}

impl Index {
    /// Runs the subcommand.
    pub fn run(self, out: &mut Output) -> Outcome {
        match self {
            Index::Create(create) => create.run(out)?,
            Index::List(list) => list.run(out)?,
            Index::Rebuild(Rebuild { place, table, name }) => {
                let store = place.write()?;
                let bar = Bar::new("indexing", 0);
                let done = store.table(&table).rebuild_index(&name, &bar.task(&interrupt::listen()));
                bar.clear();
                done.map_err(|e| Failure::from(e).or_interrupted("what the index had before is still used"))?;
                store.close()?;
                writeln!(out, "{name} rebuilt")?;
            }
            Index::Drop(Drop { place, table, name }) => {
                let store = place.write()?;
                store.table(&table).drop_index(&name)?;
                store.close()?;
                writeln!(out, "{name} dropped")?;
            }
        }
        Ok(())
    }
}

impl Create {
    fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.write()?;
        let table = store.table(&self.table);
        let bar = Bar::new("indexing", 0);
        let task = bar.task(&interrupt::listen());
        let unique = self.unique;
        let options = IndexOptions { condition: self.condition, unique, deferred: self.deferred, task };
        let done = table.create_index(&self.name, &self.columns, &options);
        bar.clear();
        done.map_err(|e| {
            let after = match unique && table.indexes().is_ok_and(|all| all.iter().all(|own| own.name != self.name)) {
                true => "the index was not made",
                false => "the index is there; the next checkpoint goes on to fill it",
            };
            Failure::from(e).or_interrupted(after)
        })?;
        let made = table.indexes()?.into_iter().find(|index| index.name == self.name).unwrap_or_default();
        store.close()?;
        writeln!(out, "{}: {}, {}", self.name, counted_entries(made.entries), bytes(made.bytes))?;
        Ok(())
    }
}

fn counted_entries(entries: u64) -> String {
    match entries {
        1 => "1 entry".to_owned(),
        n => format!("{} entries", count(n)),
    }
}

impl List {
    fn run(self, out: &mut Output) -> Outcome {
        let indexes = self.place.read()?.table(&self.table).indexes()?;
        if self.json {
            let indexes = indexes.iter().map(|index| {
                json!({
                    "name": index.name, "columns": index.columns, "where": index.condition,
                    "unique": index.unique, "proven": index.proven, "suspended": index.suspended, "runs": index.runs, "entries": index.entries, "bytes": index.bytes,
                    "covered_row_groups": index.covered, "row_groups": index.row_groups,
                })
            });
            return Ok(out.json(&indexes.collect())?);
        }
        let mut grid = Grid::new([
            ("index", Align::Left),
            ("columns", Align::Left),
            ("where", Align::Left),
            ("unique", Align::Left),
            ("entries", Align::Right),
            ("size", Align::Right),
            ("covers", Align::Left),
        ]);
        for index in indexes {
            let covers = match index.suspended {
                true => "suspended: the table lacks a column of it".to_owned(),
                false => format!("{} of {}", count(index.covered), counted(index.row_groups, "row group")),
            };
            let unique = match (index.unique, index.proven) {
                (false, _) => "",
                (true, true) => "yes",
                (true, false) => "for new rows",
            };
            let (columns, condition) = (index.columns.join(", "), index.condition.unwrap_or_default());
            let unique = unique.to_owned();
            grid.row([index.name, columns, condition, unique, count(index.entries), bytes(index.bytes), covers]);
        }
        if grid.len() > 0 {
            grid.print(out)?;
        }
        Ok(())
    }
}
