//! `info`: what is known of a table.

use std::io::Write;

use arrow::util::display::ArrayFormatter;
use clap::Args;
use drumlin::{AsOf, Tables, TypeName};
use serde_json::json;

use super::versions;
use crate::failure::Outcome;
use crate::figures;
use crate::figures::{bytes, counted, time};
use crate::grid::{Align, Grid, one_line};
use crate::output::Output;
use crate::place::Place;
use crate::text_form::OPTIONS;

/// Print what is known of a table: its rows and size, columns, key, constraints and newest version
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin info market.drumlin prices/us/aapl")]
pub struct Info {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Info {
    /// Prints some lines about the table, then one a column.
    pub fn run(self, out: &mut Output) -> Outcome {
        let table = self.place.read()?.table(&self.table);
        let (stat, schema) = (table.stat()?, table.schema(&AsOf::Newest)?);
        let rules = table.constraints(&AsOf::Newest)?;
        let ttl = table.ttl(&AsOf::Newest)?;
        let newest = table.versions()?.pop();
        let default = |name: &str| -> Option<String> {
            if let Some((_, made)) = rules.generators.iter().find(|(column, _)| column == name) {
                return Some(made.to_string());
            }
            let (_, value) = rules.defaults.iter().find(|(column, _)| column == name)?;
            ArrayFormatter::try_new(value, &OPTIONS).ok()?.value(0).try_to_string().ok()
        };
        let key: &[String] = if stat.keyed { &stat.sort } else { &[] };
        let is_required =
            |name: &str, nullable: bool| !nullable || rules.not_null.iter().chain(key).any(|column| column == name);
        if self.json {
            let columns = schema.fields().iter().map(|field| {
                json!({
                    "name": field.name(), "type": TypeName(field.data_type()).to_string(),
                    "nullable": !is_required(field.name(), field.is_nullable()), "default": default(field.name()),
                })
            });
            return Ok(out.json(&json!({
                "table": self.table, "rows": stat.rows, "bytes": stat.bytes, "row_groups": stat.row_groups,
                "versions": stat.versions, "sort": stat.sort, "key": key, "columns": columns.collect::<Vec<_>>(),
                "checks": rules.checks.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
                "ttl": ttl.map(|ttl| json!({ "column": ttl.column, "after_micros": ttl.after_micros })),
                "newest": newest.as_ref().map(versions::object),
            }))?);
        }
        writeln!(out, "{}", one_line(&self.table))?;
        let (rows, groups) = (counted(stat.rows, "row"), counted(stat.row_groups, "row group"));
        writeln!(out, "{rows}, {} in {groups}, {}", bytes(stat.bytes), counted(stat.versions, "version"))?;
        if let Some(newest) = newest {
            let message = newest.note.message.map(|message| format!(": {}", one_line(&message))).unwrap_or_default();
            writeln!(
                out,
                "newest version {}, {} at {}{message}",
                newest.version,
                newest.kind.name(),
                time(newest.time)
            )?;
        }
        match &stat.sort[..] {
            [] => {}
            sort if stat.keyed => writeln!(out, "key {}", sort.join(", "))?,
            sort => writeln!(out, "sorted by {}", sort.join(", "))?,
        }
        if let Some(ttl) = ttl {
            writeln!(out, "{}", figures::expiry(&ttl))?;
        }
        writeln!(out)?;
        let mut grid = Grid::new(["column", "type", "nulls", "default"].map(|name| (name, Align::Left))).fitted();
        for field in schema.fields() {
            let nulls = if is_required(field.name(), field.is_nullable()) { "no" } else { "yes" };
            let default = default(field.name()).unwrap_or_default();
            grid.row([field.name().clone(), TypeName(field.data_type()).to_string(), nulls.to_owned(), default]);
        }
        grid.print(out)?;
        for (name, check) in &rules.checks {
            writeln!(out, "check {}: {}", one_line(name), one_line(check))?;
        }
        Ok(())
    }
}
