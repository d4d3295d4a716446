//! Reads rows by their values in columns that need not be a key: a filter on them, which an index answers if there is one, and what it
//! finds in the order of what was asked.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};

use super::views::ATTEMPTS;
use crate::base::{Error, ErrorKind, Result, TypeName};
use crate::filter::Filter;
use crate::segment::{interleave, take_batch};
use crate::store::{LookupOptions, ReadOptions, Table};
use crate::table::{Lookup, ScanOptions, conform, find_requested};

impl Table {
    /// The rows that have the values `values` in the columns `on`, in that order; a row as often as its values are asked for. A null finds
    /// nothing. For columns whose values are different in each row, of which a unique index makes sure.
    ///
    /// Costs a read with a filter on these columns, which an index on them answers if there is one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
    /// # use drumlin::arrow::datatypes::Int64Type;
    /// # use drumlin::Tables;
    /// # let store = drumlin::Store::memory()?;
    /// # let names = |names: Vec<&str>| Arc::new(StringArray::from(names)) as ArrayRef;
    /// # let ids = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    /// # let rows = RecordBatch::try_from_iter([("id", ids), ("name", names(vec!["ada", "ben"]))]).unwrap();
    /// store.write("users", rows, &Default::default())?;
    /// let asked = RecordBatch::try_from_iter([("name", names(vec!["ben", "eve"]))]).unwrap();
    /// let found = store.table("users").get_many_by(&["name".into()], &asked, &Default::default())?;
    /// assert_eq!(found.rows["id"].as_primitive::<Int64Type>().value(0), 2);
    /// assert!(found.found.value(0) && !found.found.value(1));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such table, version or column; `SchemaMismatch` for values of other types; `InvalidArgument` for columns that
    /// cannot be compared with a list of values (floats, lists), and if two rows have the same of them.
    pub fn get_many_by(&self, on: &[String], values: &RecordBatch, options: &LookupOptions) -> Result<Lookup> {
        let mut attempt = 0;
        loop {
            let schema = self.schema(&options.as_of)?;
            let found = self.find_by(&schema, on, values, options).map_err(|e| match e.kind() {
                ErrorKind::SnapshotExpired => e,
                _ => e.context(format!("'{}'", self.path())),
            })?;
            match found {
                Some(found) => return Ok(found),
                None if attempt == ATTEMPTS => {
                    return Err(Error::conflict(format!("the columns of '{}' changed during the call", self.path())));
                }
                None => attempt += 1,
            }
        }
    }

    /// The same, for columns as they are in `schema`; `None` if that is no longer the table's.
    fn find_by(
        &self,
        schema: &SchemaRef,
        on: &[String],
        values: &RecordBatch,
        options: &LookupOptions,
    ) -> Result<Option<Lookup>> {
        let places = find_requested(schema, on)?;
        if places.is_empty() {
            return Err(Error::invalid("name the columns by which rows are looked up (`on`)"));
        }
        let fields: Vec<FieldRef> =
            places.iter().map(|at| Arc::new(schema.field(*at).clone().with_nullable(true))).collect();
        let names = fields.iter().map(|field| field.name().as_str());
        let given = names.map(|name| {
            values
                .schema()
                .index_of(name)
                .map_err(|_| Error::schema_mismatch(format!("the data lacks column '{name}'")))
        });
        let given = values.project(&given.collect::<Result<Vec<_>>>()?)?;
        let asked = conform(&given, &Arc::new(Schema::new(fields)))?;
        let listed = asked.schema_ref().fields().iter().zip(asked.columns()).map(|(field, values)| {
            Filter::one_of(field.name(), values).ok_or_else(|| {
                let (name, of) = (field.name(), TypeName(field.data_type()));
                Error::invalid(format!(
                    "column '{name}' of type {of} cannot be looked up by a list of values; expected integers, decimals, \
                     dates, times, texts or bytes"
                ))
            })
        });
        let filter = Filter::all_of(listed.collect::<Result<Vec<_>>>()?);
        let wanted: Vec<usize> = match &options.columns {
            Some(names) => find_requested(schema, names)?,
            None => (0..schema.fields().len()).collect(),
        };
        let mut read = places.clone();
        read.extend(wanted.iter().filter(|at| !places.contains(at)));
        let columns = Some(read.iter().map(|at| schema.field(*at).name().clone()).collect());
        let scan = ScanOptions { columns, filter, cancel: options.cancel.clone(), ..ScanOptions::default() };
        let scan = self.read(&ReadOptions::of(options.as_of.clone(), scan))?;
        let same = |(at, field): (&usize, &FieldRef)| schema.field(*at).data_type() == field.data_type();
        if !read.iter().zip(scan.schema().fields()).all(same) {
            return Ok(None);
        }
        in_order(schema, (&places, &wanted, &read), &asked, scan, on).map(Some)
    }
}

/// The rows of a scan that have the values of `asked`, in that order. `read` are the columns of its batches, by their places in `schema`: first
/// those at `places`, by which they are found; `wanted` are those of the answer.
fn in_order(
    schema: &SchemaRef,
    (places, wanted, read): (&[usize], &[usize], &[usize]),
    asked: &RecordBatch,
    scan: impl Iterator<Item = Result<RecordBatch>>,
    on: &[String],
) -> Result<Lookup> {
    let sorted = asked.columns().iter().map(|column| SortField::new(column.data_type().clone()));
    let converter = RowConverter::new(sorted.collect())?;
    let keys = converter.convert_columns(asked.columns())?;
    let mut found: HashMap<Vec<u8>, Option<(usize, usize)>> = HashMap::new();
    let has_null = |at: usize| asked.columns().iter().any(|column| column.is_null(at));
    for at in (0..asked.num_rows()).filter(|at| !has_null(*at)) {
        found.insert(keys.row(at).as_ref().to_vec(), None);
    }
    // Those that are asked for, batch by batch: usually few of them.
    let mut rows: Vec<RecordBatch> = Vec::new();
    for batch in scan {
        let batch = batch?;
        let own = converter.convert_columns(&batch.columns()[..places.len()])?;
        let mut picked: Vec<u32> = Vec::new();
        for at in 0..batch.num_rows() {
            match found.get_mut(own.row(at).as_ref()) {
                // More is found of several columns than has the values of one key.
                None => {}
                Some(place @ None) => {
                    *place = Some((rows.len() + 1, picked.len()));
                    picked.push(at as u32);
                }
                Some(Some(_)) => {
                    let value = |column: &ArrayRef| crate::table::shown(column, at);
                    let values = batch.columns()[..places.len()].iter().map(value).collect::<Result<Vec<_>>>()?;
                    return Err(Error::invalid(format!(
                        "more than one row has {} = {}; a look-up finds one, so read with a filter, or make a unique index",
                        on.join(", "),
                        values.join(", ")
                    )));
                }
            }
        }
        if !picked.is_empty() {
            rows.push(take_batch(&batch, picked)?);
        }
    }
    // The first source is a null.
    let place = |at: usize| if has_null(at) { None } else { *found.get(keys.row(at).as_ref())? };
    let chosen: Vec<Option<(usize, usize)>> = (0..asked.num_rows()).map(place).collect();
    let mut fields = Vec::with_capacity(wanted.len());
    let column = |at: &usize| -> Result<ArrayRef> {
        let field = schema.field(*at);
        fields.push(Field::clone(field).with_nullable(true));
        if let Some(own) = places.iter().position(|place| place == at) {
            // As it was asked for, whether it was found or not.
            return Ok(asked.column(own).clone());
        }
        let own = read.iter().position(|place| place == at).expect("all that is wanted is read");
        let null = new_null_array(field.data_type(), 1);
        let sources: Vec<ArrayRef> =
            [null].into_iter().chain(rows.iter().map(|rows| rows.column(own).clone())).collect();
        let places: Vec<(usize, usize)> = chosen.iter().map(|place| place.unwrap_or((0, 0))).collect();
        interleave(&sources, &places)
    };
    let columns = wanted.iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(asked.num_rows()));
    let answer = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    Ok(Lookup {
        rows: RecordBatch::try_new_with_options(answer, columns, &options)?,
        found: BooleanArray::from(chosen.iter().map(Option::is_some).collect::<Vec<_>>()),
        until: None,
    })
}
