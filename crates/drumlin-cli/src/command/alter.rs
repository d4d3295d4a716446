//! `alter`: the columns of a table.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use clap::Args;
use drumlin::{
    Alter as Change, AsOf, ConstraintNames, Constraints, Expression, Fill, Filter, Generator, NewColumn, Tables,
    TimeToLive, TypeName, UpdateOptions,
};

use super::update::assignment;
use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::interrupt;
use crate::output::Output;
use crate::place::ChangedPlace;
use crate::source::{ColumnType, parse_column_type};

/// Add, drop, rename and widen columns, put and lift constraints, and say when rows expire, in one commit
///
/// Rows stay as they are stored, and every older version keeps its columns. Changes are made in this order: constraints lifted, columns
/// dropped, renamed, widened, added, times to live set, constraints put; a version each. Rows that are there must keep new constraints.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin alter market.drumlin trades --add venue=Utf8 --add 'fee=Float64' --fill 'fee=0.5'
  drumlin alter market.drumlin trades --add 'value=Float64' --fill 'value=price * size' --drop note
  drumlin alter market.drumlin trades --rename px=price --widen size=Int64
  drumlin alter market.drumlin trades --check 'positive=price > 0' --not-null size --default size=1
  drumlin alter market.drumlin quotes --ttl time=30d")]
#[group(required = true, multiple = true, id = "changes", args = ["add", "drop", "rename", "widen", "check", "not_null", "default",
    "drop_check", "nullable", "no_default", "ttl", "no_ttl"])]
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
    /// A predicate that no row may make false, under a name; may be given again
    #[arg(long, value_name = "NAME=FILTER", value_parser = check)]
    check: Vec<(String, Filter)>,
    /// A column that takes no nulls; may be given again
    #[arg(long, value_name = "COLUMN")]
    not_null: Vec<String>,
    /// What later rows have in a column that they lack: a value, now(), uuid(), or sequence(), which may say where it begins,
    /// sequence(100); may be given again
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = default_value)]
    default: Vec<(String, DefaultValue)>,
    /// A check to lift; may be given again
    #[arg(long, value_name = "NAME")]
    drop_check: Vec<String>,
    /// A column that takes nulls again; may be given again
    #[arg(long, value_name = "COLUMN")]
    nullable: Vec<String>,
    /// A column whose default goes; may be given again
    #[arg(long, value_name = "COLUMN")]
    no_default: Vec<String>,
    /// A column with times, until which rows are seen, and how much longer, such as 30d or 12h; then they expire
    #[arg(long, value_name = "COLUMN[=TIME]", value_parser = time_to_live)]
    ttl: Option<TimeToLive>,
    /// Rows do not expire any more; those that have are deleted
    #[arg(long, conflicts_with = "ttl")]
    no_ttl: bool,
    /// A note kept with the new versions
    #[arg(long, value_name = "JSON", value_parser = figures::parse_json)]
    metadata: Option<String>,
}

fn check(text: &str) -> Result<(String, Filter), String> {
    let (name, filter) = text.split_once('=').ok_or("expected NAME=FILTER")?;
    Ok((name.to_owned(), Filter::parse(filter).map_err(|e| e.message().to_owned())?))
}

fn time_to_live(text: &str) -> Result<TimeToLive, String> {
    let (column, after) = match text.split_once('=') {
        Some((column, after)) => (column, figures::parse_span(after)?),
        None => (text, 0),
    };
    let after_micros = i64::try_from(after).map_err(|_| format!("'{text}' is too long a time"))?;
    Ok(TimeToLive { column: column.to_owned(), after_micros })
}

/// A default as it is given.
#[derive(Clone)]
enum DefaultValue {
    Constant(Expression),
    Made(Generator),
}

fn default_value(text: &str) -> Result<(String, DefaultValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected COLUMN=VALUE")?;
    match Generator::parse(value, name.trim()) {
        Some(made) => Ok((name.trim().to_owned(), DefaultValue::Made(made))),
        None => assignment(text).map(|(name, value)| (name, DefaultValue::Constant(value))),
    }
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
            changes.iter().try_for_each(|change| table.alter(change, &options).map(drop))?;
            if self.check.is_empty() && self.not_null.is_empty() && self.default.is_empty() {
                return Ok(());
            }
            let schema = table.schema(&AsOf::Newest)?;
            let (checks, not_null) = (self.check.clone(), self.not_null.clone());
            let mut constraints = Constraints { checks, not_null, ..Constraints::default() };
            for (name, value) in &self.default {
                let field = schema.field(drumlin::arrays::find_column(&schema, name)?);
                let name = field.name().clone();
                match value {
                    DefaultValue::Made(made) => constraints.generators.push((name, made.clone())),
                    DefaultValue::Constant(value) => {
                        let value = constant(&value.bind(&Schema::empty(), field.data_type())?)?;
                        constraints.defaults.push((name, value));
                    }
                }
            }
            table.alter(&Change::AddConstraints(constraints), &options).map(drop)
        });
        bar.clear();
        done.map_err(|e: drumlin::Error| Failure::from(e).or_interrupted("the table is unchanged"))?;
        let schema = store.table(&self.table).schema(&AsOf::Newest)?;
        let checks = store.table(&self.table).constraints(&AsOf::Newest)?.checks;
        let ttl = store.table(&self.table).ttl(&AsOf::Newest)?;
        store.close()?;
        let columns: Vec<String> =
            schema.fields().iter().map(|field| format!("{} {}", field.name(), TypeName(field.data_type()))).collect();
        writeln!(out, "{}: {}", self.table, columns.join(", "))?;
        for (name, text) in checks {
            writeln!(out, "  check {name}: {text}")?;
        }
        if let Some(ttl) = ttl {
            writeln!(out, "  {}", figures::expiry(&ttl))?;
        }
        Ok(())
    }

    fn changes(&self) -> Result<Vec<Change>, Failure> {
        if let Some((name, _)) = self.fill.iter().find(|(name, _)| !self.add.iter().any(|new| new.name() == name)) {
            return Err(Failure::Usage(format!("--fill {name} needs --add {name}=TYPE")));
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
        let lifted = ConstraintNames {
            checks: self.drop_check.clone(),
            not_null: self.nullable.clone(),
            defaults: self.no_default.clone(),
        };
        let lifts = !lifted.checks.is_empty() || !lifted.not_null.is_empty() || !lifted.defaults.is_empty();
        changes.extend(lifts.then_some(Change::DropConstraints(lifted)));
        changes.extend(self.no_ttl.then_some(Change::DropTtl));
        changes.extend((!self.drop.is_empty()).then(|| Change::Drop(self.drop.clone())));
        changes.extend((!self.rename.is_empty()).then(|| Change::Rename(self.rename.clone())));
        changes.extend((!self.widen.is_empty()).then_some(Change::Widen(widened)));
        changes.extend((!added.is_empty()).then_some(Change::Add(added)));
        changes.extend(self.ttl.clone().map(Change::SetTtl));
        Ok(changes)
    }
}

/// A constant is a default; what depends on other columns is computed.
fn fill(expression: &Expression, field: &Field) -> Result<Fill, Failure> {
    match expression.bind(&Schema::empty(), field.data_type()) {
        Ok(bound) => Ok(Fill::Default(constant(&bound)?)),
        Err(_) => Ok(Fill::Computed(expression.clone())),
    }
}

/// The value of an expression without columns.
fn constant(bound: &drumlin::BoundExpression) -> drumlin::Result<ArrayRef> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    bound.compute(&RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?)
}
