//! `cat`: prints rows.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clap::{Args, ValueEnum};
use drumlin::{Filter, ReadOptions, Scan, ScanOptions, Tables};

use crate::as_of;
use crate::failure::{Failure, Outcome};
use crate::grid::{Align, Grid};
use crate::interrupt;
use crate::json_rows;
use crate::output::{Output, say};
use crate::place::Place;
use crate::text_form::{OPTIONS, cut_short, printable};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Aligned columns, long values cut short
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON object per line
    Json,
}

/// Print rows of a table
///
/// The table form prints 100 rows by default; the others print all. Times in named zones are printed in UTC.
/// JSON has no NaN and no infinity: both are null there.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin cat market.drumlin prices/us/aapl --columns time,close --where 'close > 100' --tail 20")]
pub struct Cat {
    #[command(flatten)]
    place: Place,
    /// The table
    table: String,
    /// The columns, in this order [default: all]
    #[arg(long, short, value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Only rows for which this is true, as in SQL
    #[arg(long = "where", short = 'w', value_name = "FILTER")]
    filter: Option<String>,
    /// Only the first N rows
    #[arg(long, short = 'n', visible_alias = "limit", value_name = "ROWS")]
    head: Option<u64>,
    /// Only the last N rows
    #[arg(long, value_name = "ROWS", conflicts_with = "head")]
    tail: Option<u64>,
    /// A version number (-1 is the newest), a snapshot, or a time; snapshot:NAME for a snapshot that looks like a number
    #[arg(long, value_name = "WHICH", allow_negative_numbers = true)]
    as_of: Option<String>,
    /// How rows are printed
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Rows that the table form prints by default.
const TABLE_ROWS: u64 = 100;
/// Rows converted to text at a time.
const SLICE_ROWS: usize = 4096;
/// Characters of a value in the table form.
const CELL_CHARS_MAX: usize = 80;

impl Cat {
    /// Prints batch by batch.
    pub fn run(self, out: &mut Output) -> Outcome {
        let filter = self.filter.as_deref().map(Filter::parse).transpose()?;
        let store = self.place.read()?;
        let as_of = as_of::resolve(self.as_of.as_deref());
        let cut = self.format == Form::Table && self.head.is_none() && self.tail.is_none();
        let scan = ScanOptions {
            columns: self.columns,
            filter,
            // One additional row shows whether there are more.
            limit: if cut { Some(TABLE_ROWS + 1) } else { self.head },
            tail: self.tail,
            cancel: interrupt::listen(),
            ..ScanOptions::default()
        };
        let scan = store.read(&self.table, &ReadOptions { as_of, scan })?;
        let printed = match self.format {
            Form::Table => table(scan, if cut { TABLE_ROWS } else { u64::MAX }, out),
            Form::Csv => csv(scan, out),
            Form::Json => json(scan, out),
        };
        printed.map_err(|failure| failure.or_interrupted("not all rows were printed"))
    }
}

/// Slices that are small enough for their text to be small too.
fn slices(scan: Scan) -> impl Iterator<Item = Result<RecordBatch, Failure>> {
    scan.flat_map(|batch| {
        let (batch, error) = match batch.and_then(|batch| printable(&batch)) {
            Ok(batch) => (Some(batch), None),
            Err(e) => (None, Some(Err(Failure::from(e)))),
        };
        let slices = batch.into_iter().flat_map(|batch| {
            let starts = (0..batch.num_rows()).step_by(SLICE_ROWS);
            starts.map(move |at| Ok(batch.slice(at, SLICE_ROWS.min(batch.num_rows() - at))))
        });
        slices.chain(error)
    })
}

fn table(scan: Scan, most: u64, out: &mut Output) -> Outcome {
    const CELLS: FormatOptions<'static> = OPTIONS.with_null("null");
    let align = |numeric: bool| if numeric { Align::Right } else { Align::Left };
    let schema = scan.schema();
    let head = schema.fields().iter().map(|field| (field.name().clone(), align(field.data_type().is_numeric())));
    let mut grid = Grid::new(head);
    let mut printed = 0;
    for batch in slices(scan) {
        let batch = batch?;
        let cells = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &CELLS));
        let cells: Vec<ArrayFormatter<'_>> = cells.collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            if printed == most {
                grid.print(out)?;
                say(format_args!("only the first {most} rows are shown; use --head or --tail to choose the rows"));
                return Ok(());
            }
            let texts: Vec<String> =
                cells.iter().map(|cell| cell.value(row).try_to_string()).collect::<Result<_, _>>()?;
            grid.row(texts.into_iter().map(|text| cut_short(text, CELL_CHARS_MAX)));
            printed += 1;
        }
        grid.print(out)?;
    }
    // Prints the column heads even if there were no rows.
    Ok(grid.print(out)?)
}

fn csv(scan: Scan, out: &mut Output) -> Outcome {
    let empty = printable(&RecordBatch::new_empty(scan.schema()))?;
    let mut header = true;
    for batch in std::iter::once(Ok(empty)).chain(slices(scan)) {
        // Through a buffer: the writer would turn a reader that has gone into an ordinary error.
        let mut text = Vec::new();
        WriterBuilder::new().with_header(std::mem::take(&mut header)).build(&mut text).write(&batch?)?;
        out.write_all(&text)?;
    }
    Ok(())
}

fn json(scan: Scan, out: &mut Output) -> Outcome {
    let mut text = Vec::new();
    for batch in slices(scan) {
        text.clear();
        json_rows::write(&batch?, &mut text)?;
        out.write_all(&text)?;
    }
    Ok(())
}
