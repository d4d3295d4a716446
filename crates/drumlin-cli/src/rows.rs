//! Rows on standard output: as an aligned table, CSV, or lines of JSON.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clap::ValueEnum;

use crate::failure::{Failure, Outcome};
use crate::grid::{Align, Grid};
use crate::json_rows;
use crate::output::{Output, say};
use crate::text_form::{OPTIONS, check_csv, cut_short, printable};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Aligned columns, long values cut short
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON object per line
    Json,
}

/// Rows that the table form prints by default.
pub const TABLE_ROWS: u64 = 100;
/// Rows converted to text at a time.
const SLICE_ROWS: usize = 4096;
/// Characters of a value in the table form.
const CELL_CHARS_MAX: usize = 80;

/// Prints batch by batch; of a table at most `most` rows, with a hint what to do where there are more.
pub fn print(
    form: Form,
    schema: &SchemaRef,
    batches: impl Iterator<Item = drumlin::Result<RecordBatch>>,
    (most, hint): (u64, &str),
    out: &mut Output,
) -> Outcome {
    match form {
        Form::Table => table(schema, batches, most, hint, out),
        Form::Csv => csv(schema, batches, out),
        Form::Json => json(batches, out),
    }
}

/// Slices that are small enough for their text to be small too.
fn slices(
    batches: impl Iterator<Item = drumlin::Result<RecordBatch>>,
) -> impl Iterator<Item = Result<RecordBatch, Failure>> {
    batches.flat_map(|batch| {
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

fn table(
    schema: &SchemaRef,
    batches: impl Iterator<Item = drumlin::Result<RecordBatch>>,
    most: u64,
    hint: &str,
    out: &mut Output,
) -> Outcome {
    const CELLS: FormatOptions<'static> = OPTIONS.with_null("null");
    let align = |numeric: bool| if numeric { Align::Right } else { Align::Left };
    let head = schema.fields().iter().map(|field| (field.name().clone(), align(field.data_type().is_numeric())));
    let mut grid = Grid::new(head).fitted();
    let mut printed = 0;
    for batch in slices(batches) {
        let batch = batch?;
        let cells = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &CELLS));
        let cells: Vec<ArrayFormatter<'_>> = cells.collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            if printed == most {
                grid.print(out)?;
                say(format_args!("only the first {most} rows are shown; {hint}"));
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

fn csv(schema: &SchemaRef, batches: impl Iterator<Item = drumlin::Result<RecordBatch>>, out: &mut Output) -> Outcome {
    check_csv(schema, "set --format json, or choose other columns")?;
    let empty = printable(&RecordBatch::new_empty(schema.clone()))?;
    let mut header = true;
    for batch in std::iter::once(Ok(empty)).chain(slices(batches)) {
        // Through a buffer: the writer would turn a reader that has gone into an ordinary error.
        let mut text = Vec::new();
        WriterBuilder::new().with_header(std::mem::take(&mut header)).build(&mut text).write(&batch?)?;
        out.write_all(&text)?;
    }
    Ok(())
}

fn json(batches: impl Iterator<Item = drumlin::Result<RecordBatch>>, out: &mut Output) -> Outcome {
    let mut text = Vec::new();
    for batch in slices(batches) {
        text.clear();
        json_rows::write(&batch?, &mut text)?;
        out.write_all(&text)?;
    }
    Ok(())
}
