//! `alter`: the columns of a table.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use clap::Args;
use drumlin::store::UpdateOptions;
use drumlin::{Alter as Change, AsOf, Expression, Fill, NewColumn, Tables};

use super::update::assignment;
use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;
use crate::source::{ColumnType, parse_column_type};

/// Add, drop, rename and widen columns, in one commit
///
/// Rows stay as they are stored, and every older version keeps its columns. Changes are made in this order: drop, rename, widen,
/// add; a version each.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin alter market.drumlin trades --add venue=Utf8 --add 'fee=Float64' --fill 'fee=0.5'
  drumlin alter market.drumlin trades --add 'value=Float64' --fill 'value=price * size' --drop note
  drumlin alter market.drumlin trades --rename px=price --widen size=Int64")]
#[group(required = true, multiple = true, id = "changes", args = ["add", "drop", "rename", "widen"])]
pub struct Alter {
    #[command(flatten)]
    place: ChangedPlace,
    /// The table
    table: String,
    /// A new column and its Arrow type; may be given again
    #[arg(long, value_name = "COLUMN=TYPE", value_parser = parse_column_type)]
    add: Vec<ColumnType>,
    /// What rows that are there have in a new column: a value, which writes no rows, or an expression over the other columns
    /// [default: null]
    #[arg(long, value_name = "COLUMN=EXPRESSION", value_parser = assignment, requires = "add")]
    fill: Vec<(String, Expression)>,
    /// A column to drop; may be given again
    #[arg(long, value_name = "COLUMN")]
    drop: Vec<String>,
    /// A column and its new name; may be given again, and all are renamed at once
    #[arg(long, value_name = "OLD=NEW", value_parser = names)]
    rename: Vec<(String, String)>,
    /// A column and a type that holds all of its values; may be given again
    #[arg(long, value_name = "COLUMN=TYPE", value_parser = parse_column_type)]
    widen: Vec<ColumnType>,
    /// A note kept with the new versions
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
}

fn names(text: &str) -> Result<(String, String), String> {
    let (old, new) = text.split_once('=').ok_or("expected OLD=NEW")?;
    Ok((old.to_owned(), new.to_owned()))
}

impl Alter {
    /// Changes columns and reports which there are.
    pub fn run(self, out: &mut Output) -> Outcome {
        let changes = self.changes()?;
        let store = self.place.write()?;
        let bar = Bar::new("altering", 0);
        let options = UpdateOptions { metadata: self.metadata.clone(), task: bar.task(&interrupt::listen()) };
        let done = store.transact(|tx| {
            let table = tx.table(&self.table);
            changes.iter().try_for_each(|change| table.alter(change, &options).map(drop))
        });
        bar.clear();
        done.map_err(|e: drumlin::Error| Failure::from(e).or_interrupted("the table is as it was"))?;
        let schema = store.table(&self.table).schema(&AsOf::Newest)?;
        store.close()?;
        let columns: Vec<String> =
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        Ok(writeln!(out, "{}: {}", self.table, columns.join(", "))?)
    }

    fn changes(&self) -> Result<Vec<Change>, Failure> {
        if let Some((name, _)) = self.fill.iter().find(|(name, _)| !self.add.iter().any(|new| new.name() == name)) {
            return Err(Failure::Usage(format!("--fill {name}: there is no --add {name}=TYPE")));
        }
        let names = |at: usize| &self.fill[at].0;
        if let Some(at) = (1..self.fill.len()).find(|at| (0..*at).any(|before| names(before) == names(*at))) {
            return Err(Failure::Usage(format!("--fill {} is given twice", names(at))));
        }
        let new = |column: &ColumnType| {
            let field = Field::new(column.name(), column.data_type().clone(), true);
            let given = self.fill.iter().find(|(name, _)| name == column.name());
            let fill = given.map_or(Ok(Fill::Null), |(_, expression)| fill(expression, &field))?;
            Ok::<_, Failure>(NewColumn { field, fill })
        };
        let added = self.add.iter().map(new).collect::<Result<Vec<_>, _>>()?;
        let widened = self.widen.iter().map(|column| (column.name().to_owned(), column.data_type().clone())).collect();
        let mut changes = Vec::new();
        changes.extend((!self.drop.is_empty()).then(|| Change::Drop(self.drop.clone())));
        changes.extend((!self.rename.is_empty()).then(|| Change::Rename(self.rename.clone())));
        changes.extend((!self.widen.is_empty()).then_some(Change::Widen(widened)));
        changes.extend((!added.is_empty()).then_some(Change::Add(added)));
        Ok(changes)
    }
}

/// A constant is a default; what depends on other columns is computed.
fn fill(expression: &Expression, field: &Field) -> Result<Fill, Failure> {
    let none = Schema::empty();
    match expression.bind(&none, field.data_type()) {
        Ok(bound) => {
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let row =
                RecordBatch::try_new_with_options(Arc::new(none), vec![], &options).map_err(drumlin::Error::from)?;
            Ok(Fill::Default(bound.compute(&row)?))
        }
        Err(_) => Ok(Fill::Computed(expression.clone())),
    }
}
