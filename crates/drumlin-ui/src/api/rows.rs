//! Rows: a range of a version, filtered and sorted; their number; one value; the rows in which two versions differ.

use drumlin::arrow::array::RecordBatch;
use drumlin::arrow::compute::concat_batches;
use drumlin::arrow::datatypes::{Schema, SchemaRef};
use drumlin::{
    Cancel, DatasetOptions, DiffOptions, Error, Path, Pattern, ReadOptions, Result, ScanOptions, Tables, Transaction,
    TypeName,
};
use serde_json::json;

use super::asked::{Asked, COLUMNS_MAX, as_of, filter};
use super::context::Context;
use super::show::{display_text, stream};
use crate::query::Query;
use crate::reply::Reply;

/// The rows of one answer.
const ROWS_MAX: u64 = 1000;

/// A range of rows.
pub fn rows(context: &Context, query: &Query, cancel: &Cancel) -> Result<Reply> {
    let asked = Asked::new(&context.store, query)?;
    let offset = query.number("offset", 0, u64::MAX)?;
    let limit = query.number("limit", 200, ROWS_MAX)?;
    if let Some(column) = query.text("sort") {
        let sorted = context.sorted.of(&context.store, &asked, query, column, cancel)?;
        let part = sorted.part(offset, limit)?;
        return Ok(Reply::rows(stream(&part.schema(), std::slice::from_ref(&part))?, false));
    }
    let batches = read(context, &asked, offset, limit, cancel)?;
    let schema = match batches.first() {
        Some(batch) => batch.schema(),
        None => projected(&*context.store.table(asked.path).schema(&asked.as_of)?, &asked.columns)?,
    };
    Ok(Reply::rows(stream(&schema, &batches)?, false))
}

fn read(context: &Context, asked: &Asked<'_>, offset: u64, limit: u64, cancel: &Cancel) -> Result<Vec<RecordBatch>> {
    let scan = ScanOptions { offset, limit: Some(limit), ..asked.scan(cancel) };
    context.store.table(asked.path).collect(&ReadOptions::of(asked.as_of.clone(), scan))
}

fn projected(schema: &Schema, columns: &[String]) -> Result<SchemaRef> {
    let place =
        |name: &String| schema.index_of(name).map_err(|_| Error::not_found(format!("column '{name}' does not exist")));
    let places = columns.iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok(schema.project(&places).expect("the places are within the schema").into())
}

/// How many rows a filter keeps.
pub fn count(context: &Context, query: &Query, cancel: &Cancel) -> Result<Reply> {
    let path = Path::new(query.need("path")?)?;
    let options = DatasetOptions { as_of: as_of(query, "as_of")?, path_columns: Vec::new() };
    let dataset = context.store.scan(Pattern::of_path(&path), &options)?;
    let scan = ScanOptions { filter: filter(query)?, cancel: cancel.clone(), ..ScanOptions::default() };
    Ok(Reply::json(&json!({ "rows": dataset.count_rows(&scan)? })))
}

/// One value, whole unless it is very long.
pub fn cell(context: &Context, query: &Query, cancel: &Cancel) -> Result<Reply> {
    let asked = Asked::new(&context.store, query)?;
    let (row, column) = (query.number("row", 0, u64::MAX)?, query.need("of")?);
    let rows = match query.text("sort") {
        Some(sort) => vec![context.sorted.of(&context.store, &asked, query, sort, cancel)?.part(row, 1)?],
        None => read(context, &Asked { columns: vec![column.to_owned()], ..asked }, row, 1, cancel)?,
    };
    let value = rows.iter().find(|rows| rows.num_rows() > 0).and_then(|rows| rows.column_by_name(column));
    let value = value.ok_or_else(|| Error::not_found(format!("row {row} or column '{column}' does not exist")))?;
    Ok(Reply::json(&json!({ "value": display_text(value, 0)?, "type": TypeName(value.data_type()).to_string() })))
}

/// The rows in which two versions differ.
pub fn diff(context: &Context, query: &Query, cancel: &Cancel) -> Result<Reply> {
    let path = query.need("path")?;
    let (since, until) = (as_of(query, "since")?, as_of(query, "until")?);
    let limit = query.number("limit", 500, ROWS_MAX)? as usize;
    // Rows of older versions may have columns that the newest lacks; the first ones are compared if there are many.
    let mut columns: Option<Vec<String>> = None;
    let schema = context.store.table(path).schema(&until)?;
    if schema.fields().len() > COLUMNS_MAX {
        let first = schema.fields().iter().take(COLUMNS_MAX);
        columns = Some(first.map(|field| field.name().clone()).collect());
    }
    let options = DiffOptions { columns, each_version: false, cancel: cancel.clone() };
    // In a transaction, since outside of one rows in memory would be made row groups first, which is a change.
    let transaction = Transaction::read_only(&context.store)?;
    let diff = transaction.table(path).diff(&since, &until, &options)?;
    let (schema, mut batches, mut rows, mut more) = (diff.schema(), Vec::new(), 0, false);
    for batch in diff {
        let batch = batch?;
        if rows + batch.num_rows() > limit {
            batches.push(batch.slice(0, limit - rows));
            more = true;
            break;
        }
        rows += batch.num_rows();
        batches.push(batch);
    }
    let all = concat_batches(&schema, &batches).map_err(|e| Error::invalid(e.to_string()))?;
    Ok(Reply::rows(stream(&schema, &[all])?, more))
}
