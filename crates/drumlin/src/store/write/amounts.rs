//! Numbers that are added to columns of rows, which are found by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, Scalar};
use arrow::compute::kernels::{numeric, zip::zip};
use arrow::compute::{CastOptions, cast_with_options, is_null};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};

use super::partial::{completed, partial_schema};
use crate::base::{Cancel, Error, Result, Timestamp, TypeName};
use crate::catalog::{Path, State};
use crate::memtable::Keys;
use crate::segment::{interleave, take_batch};
use crate::store::Store;
use crate::store::read::resolve::table_at;
use crate::table::{Checks, Generators, RowsSchema, SchemaMode, TableCodec, TableState, conform, repeated, shown};

/// Numbers to be added to rows, one row for each key, in the order of the keys.
pub(in crate::store) struct Amounts {
    pub codec: Arc<TableCodec>,
    pub keys: Arc<Keys>,
    /// The key columns, and those that are added to, in the table's types.
    rows: RecordBatch,
    pub checks: Checks,
}

impl Amounts {
    /// `amounts` has the key columns, and columns that are added to.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none of these, if one is no number, or for a null.
    pub fn new(state: &State, path: &Path, amounts: &RecordBatch, generators: &Generators) -> Result<Self> {
        let table = &table_at(state, path)?;
        let named = |e: Error| e.context(format!("'{path}'"));
        let codec = table.codec().map_err(named)?;
        let came = amounts.schema();
        let rows = RowsSchema::added(table, &came, SchemaMode::Strict, generators).map_err(named)?;
        let stored = rows.stored.clone();
        let schema = partial_schema(&came, &rows).map_err(named)?.unwrap_or_else(|| codec.schema().clone());
        let given = conform(amounts, &taken_as(&schema, &came, codec.key_schema())).map_err(named)?;
        let keys = codec.keys_of(&given).map_err(named)?.0;
        let mut added = 0;
        for (field, column) in given.schema().fields().iter().zip(given.columns()) {
            if codec.key_schema().index_of(field.name()).is_ok() {
                continue;
            }
            added += 1;
            let is_number = field.data_type().is_numeric();
            let why = match (is_number, column.null_count()) {
                (true, 0) => continue,
                (true, _) => "what is added must not be null".to_owned(),
                (false, _) => format!("its type is {}, and only numbers can be added to", TypeName(field.data_type())),
            };
            return Err(named(Error::invalid(format!("column '{}': {why}", field.name()))));
        }
        if added == 0 {
            return Err(named(Error::invalid("the data has no column beside the key; give what is to be added")));
        }
        let (keys, rows) = folded(&codec, &keys, &given).map_err(named)?;
        Ok(Self { codec, keys: Arc::new(keys), rows, checks: stored.bound_checks()? })
    }

    fn key(&self, at: usize) -> String {
        self.codec.key_codec().describe_some([self.keys.get(at)].into_iter())
    }

    /// Whether a column is added to.
    fn adds_to(&self, name: &str) -> bool {
        self.rows.column_by_name(name).is_some() && self.codec.key_schema().index_of(name).is_err()
    }

    /// The whole rows of the keys in `table`, a table of `state`; new ones with their defaults, and 0 where that is null and something is added.
    /// Also returns when the first of them expires.
    pub fn found(
        &self,
        store: &Store,
        state: &State,
        table: &TableState,
        generators: &Generators,
    ) -> Result<(RecordBatch, Option<Timestamp>)> {
        let keys: Vec<usize> =
            (0..self.rows.num_columns()).filter(|at| !self.adds_to(self.rows.schema().field(*at).name())).collect();
        let keys = self.rows.project(&keys)?;
        let cancel = Cancel::default();
        let searcher = store.searcher(state, table, &self.codec, &cancel);
        let stored = table.schema().expect("it was written to");
        let lacking =
            |field: &FieldRef, rows: usize| match self.adds_to(field.name()) && !stored.has_default(field.name()) {
                true => repeated(&zero(field.data_type())?, rows),
                false => generators.lacking(stored, field, rows),
            };
        completed(&keys, &searcher, &self.keys, &Checks::default(), &lacking)
    }

    /// `rows`, whole rows in the order of the keys, with what is added.
    ///
    /// # Errors
    /// `InvalidArgument` if a column does not hold a sum, `SchemaMismatch` if a check does not hold.
    pub fn added_to(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let schema = rows.schema();
        let column = |(field, own): (&FieldRef, &ArrayRef)| {
            let Some(amount) = self.rows.column_by_name(field.name()).filter(|_| self.adds_to(field.name())) else {
                return Ok(own.clone());
            };
            let known = zip(&is_null(own)?, &Scalar::new(zero(field.data_type())?), own)?;
            add(&known, amount).map_err(|_| {
                let fails = |at: &usize| add(&known.slice(*at, 1), &amount.slice(*at, 1)).is_err();
                let at = (0..own.len()).find(fails).unwrap_or(0);
                Error::invalid(format!(
                    "column '{}' of type {} does not hold {} and {} together, in the row with the key {}",
                    field.name(),
                    TypeName(field.data_type()),
                    shown(&known, at).unwrap_or_default(),
                    shown(amount, at).unwrap_or_default(),
                    self.key(at)
                ))
            })
        };
        let columns = schema.fields().iter().zip(rows.columns()).map(column).collect::<Result<Vec<_>>>()?;
        let whole = RecordBatch::try_new(schema.clone(), columns)?;
        self.checks.test(&whole, |row| format!("the row with the key {}", self.key(row)))?;
        Ok(whole)
    }
}

/// The keys, ascending, none twice, and the rows of each together. Amounts of equal keys are added in their order.
fn folded(codec: &TableCodec, keys: &Keys, given: &RecordBatch) -> Result<(Keys, RecordBatch)> {
    let order = keys.sorted_places();
    // Of each key its first row, then its second, and so on; with the key's place among all.
    let mut rounds: Vec<Vec<(usize, u32)>> = vec![Vec::new()];
    let (mut firsts, mut round) = (Vec::new(), 0);
    for (at, place) in order.iter().enumerate() {
        let again = at > 0 && keys.get(order[at - 1] as usize) == keys.get(*place as usize);
        round = if again { round + 1 } else { 0 };
        firsts.extend((!again).then_some(*place as usize));
        rounds.resize(rounds.len().max(round + 1), Vec::new());
        rounds[round].push((firsts.len() - 1, *place));
    }
    let mut rounds = rounds.into_iter();
    let first = rounds.next().unwrap_or_default();
    let mut sum = take_batch(given, first.into_iter().map(|(_, place)| place))?;
    for round in rounds {
        let more = take_batch(given, round.iter().map(|(_, place)| *place))?;
        let at: BTreeMap<usize, usize> = round.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        let places: Vec<(usize, usize)> =
            (0..firsts.len()).map(|key| at.get(&key).map_or((0, 0), |at| (1, *at))).collect();
        let schema = sum.schema();
        let columns = schema.fields().iter().zip(sum.columns()).zip(more.columns()).map(|((field, own), more)| {
            match codec.key_schema().index_of(field.name()).is_ok() {
                true => Ok(own.clone()),
                false => add(own, &interleave(&[zero(own.data_type())?, more.clone()], &places)?),
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        sum = RecordBatch::try_new(schema, columns)?;
    }
    Ok((keys.take(firsts.into_iter()), sum))
}

/// `schema` with the types that amounts are taken in: integers in their own, since less than 0 can be added to what is never less; others, and the
/// key, in that of the column. Nulls are refused with other words.
fn taken_as(schema: &Schema, came: &Schema, key: &Schema) -> SchemaRef {
    let taken = |field: &FieldRef| {
        let given = came.field_with_name(field.name()).map_or(field.data_type(), |given| given.data_type());
        let is_key = key.index_of(field.name()).is_ok();
        let own = given.is_integer() && field.data_type().is_integer() && !is_key;
        let data_type = if own { given.clone() } else { field.data_type().clone() };
        field.as_ref().clone().with_data_type(data_type).with_nullable(true)
    };
    Arc::new(Schema::new(schema.fields().iter().map(taken).collect::<Vec<_>>()))
}

/// The sums, in the type of `own`; fails if that does not hold one.
fn add(own: &ArrayRef, amount: &ArrayRef) -> Result<ArrayRef> {
    let sum = match own.data_type() == amount.data_type() {
        true => numeric::add(own, amount)?,
        // Integers of two types, in one that holds both.
        false => {
            let wide = |of: &ArrayRef| cast_with_options(of, &DataType::Decimal128(38, 0), &exact());
            numeric::add(&wide(own)?, &wide(amount)?)?
        }
    };
    Ok(cast_with_options(&sum, own.data_type(), &exact())?)
}

fn zero(data_type: &DataType) -> Result<ArrayRef> {
    Ok(cast_with_options(&Int64Array::from(vec![0]), data_type, &exact())?)
}

/// A value that does not fit is an error, not a null.
fn exact() -> CastOptions<'static> {
    CastOptions { safe: false, ..CastOptions::default() }
}
