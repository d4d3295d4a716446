//! Bringing rows of a frame into a table by comparing them with those that are there: which rows match, what becomes of
//! each, and the values that they get.
//!
//! Rows match if they are equal in some columns, as filters compare: NaN equals NaN, and the zeros each other; a null equals
//! nothing, or, if the merge says so, a null. Conditions and values are expressions over two struct columns, `source` and `target`.
//!
//! The frame of a merge is held in memory, by the keys in which rows are compared. Of the table, only the key columns
//! of row groups that may have these keys are read to find what matches.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use roaring::RoaringBitmap;

use super::computed::{NewValues, check_set, not_null, value_of};
use super::merge_keys::{KeyRows, SourceKeys, key_columns};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Pool, Result, TypeName, Version};
use crate::block::BlockReader;
use crate::filter::{BoundExpression, BoundFilter, Expression, Filter};
use crate::segment::{Form, interleave, take_batch};
use crate::table::index::mask::{Asked, Mask};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::select::expiry::Expiry;
use crate::table::schema::arrays::{cast_exactly, find, shown};
use crate::table::{
    Assignment, Constants, Generators, KeyRange, ReadAs, ReadPoint, RowGroup, Rows, StoredSchema, TableState, conform,
};

/// The names of the two sides in expressions.
const SOURCE: &str = "source";
const TARGET: &str = "target";

/// What becomes of a row of the table.
#[derive(Clone, Debug)]
pub enum WhenMatched {
    /// Columns are set.
    Update(Vec<Assignment>),
    /// Columns are set to those of the same name of the frame.
    UpdateAll,
    /// It goes.
    Delete,
}

/// What becomes of a row of the frame that no row of the table matches.
#[derive(Clone, Debug)]
pub enum WhenNotMatched {
    /// A row with these values is added; the other columns have their default, or are null.
    Insert(Vec<Assignment>),
    /// It is added.
    InsertAll,
}

/// How rows of a frame are brought into a table. Of each list, the first whose condition holds decides; if none does, nothing
/// happens to the row.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    /// The columns in which rows that match are equal. Default: the key of the table.
    pub on: Vec<String>,
    /// Whether a null in these columns equals a null. Default: it equals nothing, so a row with one is added by each merge.
    pub nulls_equal: bool,
    /// For rows of the table that a row of the frame matches.
    pub matched: Vec<(Option<Filter>, WhenMatched)>,
    /// For rows of the frame that match none.
    pub not_matched: Vec<(Option<Filter>, WhenNotMatched)>,
    /// For rows of the table that match none.
    pub not_matched_by_source: Vec<(Option<Filter>, WhenMatched)>,
}

/// A condition and what follows from it; `None` deletes.
pub(super) struct Clause {
    condition: Option<BoundFilter>,
    pub(super) set: Option<Vec<(usize, BoundExpression)>>,
    /// Columns that a row of the frame has too, and that must be the same there, since the row keeps its place: by the place in the
    /// table and in the frame.
    pub(super) same: Vec<(usize, usize)>,
    /// The columns of the table that the condition needs, and those that the values do.
    pub(super) condition_needs: Vec<usize>,
    pub(super) value_needs: Vec<usize>,
}

/// What happens to rows of a row group: their positions, ascending, each with the row of the frame that matches it.
type Pairs = Vec<(u32, Option<u32>)>;

/// What happens to the rows of a row group.
#[derive(Default)]
pub struct Outcome {
    /// Rows that go.
    pub deleted: RoaringBitmap,
    /// Rows that get new values.
    pub updated: RoaringBitmap,
    /// Rows of the frame that match one.
    pub matched: RoaringBitmap,
    /// The rows that get new values, by what says so.
    by_clause: Vec<Pairs>,
}

/// A merge, tied to a table.
pub struct BoundMerge<'a> {
    pub(super) table: &'a TableState,
    pub(super) version: Version,
    pub(super) schema: &'a StoredSchema,
    source: RecordBatch,
    /// The schema of the frame as it came.
    came: SchemaRef,
    pub(super) on: Vec<usize>,
    /// The rows of the frame by their keys.
    keys: SourceKeys,
    pub(super) range: Option<KeyRange>,
    keys_of_source: RecordBatch,
    nulls_equal: bool,
    /// The rows that may match, as indexes say.
    pub(super) mask: Option<Mask>,
    /// Which rows have expired: they match nothing.
    expiry: Option<Expiry>,
    /// Of both kinds that change rows of the table, one list after the other.
    pub(super) clauses: Vec<Clause>,
    pub(super) matched: usize,
    inserts: Vec<Clause>,
}

/// A frame whose columns take the place of those of a table of `schema`, in the types that these have: as if it were appended, each value
/// must be one of its column's type.
fn as_written(schema: &Schema, source: RecordBatch) -> Result<RecordBatch> {
    let came = source.schema();
    let mut columns = source.columns().to_vec();
    let mut fields = came.fields().to_vec();
    for field in schema.fields() {
        let Some((at, _)) = came.column_with_name(field.name()) else { continue };
        // Whether it takes nulls matters where it is set.
        let wanted = Arc::new(Field::clone(field).with_nullable(true));
        let (own, narrow) = (columns[at].data_type(), wanted.data_type());
        let column = match own.is_integer() && narrow.is_integer() {
            // Lists of Python have wide integers, which are the same in fewer bits if they fit.
            true => cast_exactly(&columns[at], narrow).map_err(|e| {
                let (name, narrow, own) = (field.name(), TypeName(narrow), TypeName(own));
                Error::schema_mismatch(format!("column '{name}': the table has type {narrow}, the data has {own}: {e}"))
            })?,
            false => conform(&source.project(&[at])?, &Arc::new(Schema::new(vec![wanted.clone()])))?.column(0).clone(),
        };
        (columns[at], fields[at]) = (column, wanted);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(source.num_rows()));
    let schema = Arc::new(Schema::new_with_metadata(fields, came.metadata().clone()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

impl<'a> BoundMerge<'a> {
    /// Ties a merge of `source` to the newest version of `table`. `InvalidArgument` if two rows of the frame have the same key,
    /// and for clauses that do not fit the columns; `SchemaMismatch` if keys cannot be compared.
    pub fn new(table: &'a TableState, merge: &Merge, source: RecordBatch) -> Result<Self> {
        let newest = table.newest().ok_or_else(|| Error::invalid("the table has no version yet"))?.version;
        let schema = table.schema_of(newest)?;
        let on = match (merge.on.as_slice(), table.key()) {
            ([], None) => {
                return Err(Error::invalid("the table has no key; name the columns by which rows are compared (`on`)"));
            }
            ([], Some(key)) => key,
            (names, _) => names,
        };
        let updates = merge.matched.iter().any(|(_, what)| matches!(what, WhenMatched::UpdateAll));
        let came = source.schema();
        let source =
            match updates || merge.not_matched.iter().any(|(_, what)| matches!(what, WhenNotMatched::InsertAll)) {
                true => as_written(&schema.0, source)?,
                false => source,
            };
        let places = on.iter().map(|name| find(&schema.0, name)).collect::<Result<Vec<_>>>()?;
        let on: Vec<String> = places.iter().map(|at| schema.0.field(*at).name().clone()).collect();
        let keys_of_source = key_columns(&schema.0, &places, &source)?;
        let keys = SourceKeys::new(&keys_of_source, &on, merge.nulls_equal)?;
        let range = KeyRange::of(std::slice::from_ref(&keys_of_source), &on)?;
        let binder = ClauseBinder { table, schema, source: source.schema(), on: &on };
        let mut clauses = binder.changes(&merge.matched, true)?;
        let matched = clauses.len();
        clauses.extend(binder.changes(&merge.not_matched_by_source, false)?);
        let inserts = binder.inserts(&merge.not_matched)?;
        if clauses.is_empty() && inserts.is_empty() {
            return Err(Error::invalid(
                "the merge has no action; say what to do with rows that match, or with rows that do not",
            ));
        }
        Ok(Self {
            table,
            version: newest,
            schema,
            source,
            came,
            on: places,
            keys,
            range,
            keys_of_source,
            nulls_equal: merge.nulls_equal,
            mask: None,
            expiry: None,
            clauses,
            matched,
            inserts,
        })
    }

    /// The schema after it, if less is said of the columns that it gives values than before.
    pub fn schema_after(&self, merge: &Merge) -> Result<Option<StoredSchema>> {
        let changes = merge.matched.iter().chain(&merge.not_matched_by_source).map(|(_, what)| what);
        let updated = changes.clone().all(|what| matches!(what, WhenMatched::UpdateAll | WhenMatched::Delete));
        let added = merge.not_matched.iter().all(|(_, what)| matches!(what, WhenNotMatched::InsertAll));
        if updated && added {
            return self.table.with_values_of(&self.came);
        }
        let all = !merge.not_matched.is_empty() || changes.clone().any(|what| matches!(what, WhenMatched::UpdateAll));
        let set = self.clauses.iter().flat_map(|clause| clause.set.iter().flatten()).map(|(at, _)| *at);
        match all {
            true => self.table.with_computed(0..self.schema.0.fields().len()),
            false => self.table.with_computed(set),
        }
    }

    /// Whether rows that match may get other times to expire at.
    pub fn sets_expiry(&self) -> bool {
        let ttl = self.schema.ttl_place().map(|(at, _)| at);
        self.clauses.iter().flat_map(|clause| clause.set.iter().flatten()).any(|(at, _)| Some(*at) == ttl)
    }

    /// Leaves out rows that have expired at the instant of `read_point`.
    ///
    /// # Errors
    /// `NotFound` if the version is gone.
    pub fn see(&mut self, read_point: ReadPoint) -> Result<()> {
        self.expiry = Expiry::at(self.table, read_point)?;
        Ok(())
    }

    /// Asks indexes which rows may match rows of the frame, if they say it with fewer bytes than the columns that are compared have.
    ///
    /// # Errors
    /// As reads with a filter.
    pub fn ask_indexes(&mut self, blocks: &BlockReader, pool: &Pool) -> Result<()> {
        // Rows with nulls match where nulls are equal.
        if self.nulls_equal {
            return Ok(());
        }
        let key = |(at, values): (&usize, &ArrayRef)| Filter::one_of(self.schema.0.field(*at).name(), values);
        let keys = self.on.iter().zip(self.keys_of_source.columns()).filter_map(key);
        let Some(filter) = Filter::all_of(keys) else { return Ok(()) };
        let read_as = ReadAs::new(self.schema.0.clone(), Constants::new());
        let (table, version) = (self.table, self.version);
        self.mask = Asked { reader: blocks, pool, table, version, read_as: &read_as, limit: None }.mask(&filter)?;
        Ok(())
    }

    /// What happens to the visible rows of a row group; `None` if nothing does, and no row of the frame matches one.
    pub fn outcome(&self, blocks: &BlockReader, group: &RowGroup) -> Result<Option<Outcome>> {
        let visible = self.table.visible(group, self.version);
        let candidates = match &self.mask {
            Some(mask) => mask.narrowed(group, visible.clone()),
            None => visible.clone(),
        };
        let by_source = self.clauses.len() > self.matched;
        if visible == Rows::None || candidates == Rows::None && !by_source {
            return Ok(None);
        }
        let reader = GroupReader::open(blocks, self.table, self.version, group)?;
        let alive = |rows: Rows| self.expiry.as_ref().map_or(Ok(rows.clone()), |expiry| expiry.alive(&reader, rows));
        let (visible, candidates) = match by_source {
            true => (alive(visible)?, alive(candidates)?),
            false => (visible, candidates),
        };
        let may_match = candidates != Rows::None && self.in_range(&reader);
        if !may_match && !by_source {
            return Ok(None);
        }
        let seen = visible.positions(group.rows);
        let mut pairs = if may_match { self.pairs(&reader, &candidates.positions(group.rows))? } else { Vec::new() };
        if !by_source && self.expiry.is_some() {
            // Of what matches, usually little.
            let matched: RoaringBitmap = pairs.iter().map(|(position, _)| *position).collect();
            let matched = alive(Rows::of(matched, group.rows))?.positions(group.rows);
            pairs.retain(|(position, _)| matched.contains(*position));
        }
        let mut outcome = Outcome { matched: pairs.iter().filter_map(|(_, row)| *row).collect(), ..Outcome::default() };
        outcome.by_clause.resize_with(self.clauses.len(), Vec::new);
        if by_source {
            let paired: RoaringBitmap = pairs.iter().map(|(position, _)| *position).collect();
            let alone: Pairs = (seen - paired).into_iter().map(|position| (position, None)).collect();
            self.decide(&reader, self.matched..self.clauses.len(), alone, &mut outcome)?;
        }
        self.decide(&reader, 0..self.matched, pairs, &mut outcome)?;
        let nothing = outcome.deleted.is_empty() && outcome.updated.is_empty() && outcome.matched.is_empty();
        Ok((!nothing).then_some(outcome))
    }

    /// Whether statistics leave it open that a row of the frame matches one of a row group.
    pub(super) fn in_range(&self, reader: &GroupReader<'_>) -> bool {
        match (&self.range, reader.stats(&self.schema.0, self.on[0])) {
            (Some(range), Some(stats)) => range.may_hold(&stats),
            (range, _) => range.is_some(),
        }
    }

    /// The rows among `seen` that a row of the frame matches.
    fn pairs(&self, reader: &GroupReader<'_>, seen: &RoaringBitmap) -> Result<Pairs> {
        let rows = u64::from(reader.group.rows);
        // Few rows match: to leave others out afterwards takes less.
        if seen.len() * 2 > rows {
            let columns = reader.decode(&self.schema.0, &self.on, Form::Exact)?;
            let found = self.keys.pairs(columns)?.into_iter();
            let seen = |at: &u32| seen.len() == rows || seen.contains(*at);
            return Ok(found.filter(|(at, _)| seen(at)).map(|(at, row)| (at, Some(row))).collect());
        }
        let columns = reader.some_rows(&self.schema.0, &self.on, seen)?;
        let positions: Vec<u32> = seen.iter().collect();
        let found = self.keys.pairs(columns)?.into_iter();
        Ok(found.map(|(at, row)| (positions[at as usize], Some(row))).collect())
    }

    /// Finds the first of some clauses that holds for each row.
    fn decide(
        &self,
        reader: &GroupReader<'_>,
        clauses: std::ops::Range<usize>,
        mut pairs: Pairs,
        outcome: &mut Outcome,
    ) -> Result<()> {
        for at in clauses {
            if pairs.is_empty() {
                break;
            }
            let clause = &self.clauses[at];
            let (held, left) = match &clause.condition {
                None => (pairs, Vec::new()),
                Some(condition) => {
                    let truth = condition.evaluate(&self.batch(reader, &pairs, &clause.condition_needs)?)?;
                    split(pairs, &truth)
                }
            };
            pairs = left;
            let positions = held.iter().map(|(position, _)| *position);
            match clause.set {
                None => outcome.deleted.extend(positions),
                Some(_) => {
                    outcome.updated.extend(positions);
                    self.refuse_others(reader, clause, &held)?;
                    outcome.by_clause[at] = held;
                }
            }
        }
        Ok(())
    }

    /// Fails if a row of the frame has another key than the row that it matches, or other values in the columns of the sort order, and is
    /// to take its place.
    fn refuse_others(&self, reader: &GroupReader<'_>, clause: &Clause, pairs: &Pairs) -> Result<()> {
        if clause.same.is_empty() || pairs.is_empty() || planted(Bug::IgnoreOtherKeys) {
            return Ok(());
        }
        let positions: RoaringBitmap = pairs.iter().map(|(position, _)| *position).collect();
        let places: Vec<usize> = clause.same.iter().map(|(at, _)| *at).collect();
        let there = reader.some_rows(&self.schema.0, &places, &positions)?;
        let came = take_batch(&self.source, pairs.iter().filter_map(|(_, row)| *row))?;
        for ((at, from), there) in clause.same.iter().zip(there) {
            let field = self.schema.0.field(*at).clone().with_nullable(true);
            let schema = Arc::new(Schema::new(vec![field.clone()]));
            let came = conform(&came.project(&[*from])?, &schema)?.column(0).clone();
            let [one, other] =
                [there, came].map(|column| Ok::<_, Error>((KeyRows::new(vec![column.clone()], false)?, column)));
            let ((rows, there), (others, came)) = (one?, other?);
            let differs = |row: &usize| rows.get(*row) != others.get(*row);
            if let Some(row) = (0..pairs.len()).find(differs) {
                let what =
                    if self.table.spec.keyed { "part of the key" } else { "a column that the table is sorted by" };
                return Err(Error::invalid(format!(
                    "row {} of the data has {} in column '{}', but the row that it matches has {}: the column is \
                     {what}, so it cannot be set; leave it out of the data, or delete the row and add the new one",
                    pairs[row].1.unwrap_or_default(),
                    shown(&came, row)?,
                    field.name(),
                    shown(&there, row)?
                )));
            }
        }
        Ok(())
    }

    /// The new values of the rows of a row group.
    pub fn new_values(&self, blocks: &BlockReader, group: &RowGroup, outcome: &Outcome) -> Result<Vec<NewValues>> {
        let reader = GroupReader::open(blocks, self.table, self.version, group)?;
        let mut changes = Vec::new();
        for (clause, pairs) in self.clauses.iter().zip(&outcome.by_clause).filter(|(_, pairs)| !pairs.is_empty()) {
            let batch = self.batch(&reader, pairs, &clause.value_needs)?;
            let rows: RoaringBitmap = pairs.iter().map(|(position, _)| *position).collect();
            for (column, bound) in clause.set.iter().flatten() {
                let values = value_of(self.schema.0.field(*column), bound, &batch)?;
                changes.push(NewValues { column: *column, rows: rows.clone(), values });
            }
        }
        Ok(changes)
    }

    /// The rows to be added, in the order of the frame, given its rows that match some row of the table; `None` if there are none.
    pub fn inserted(&self, matched: &RoaringBitmap, generators: &Generators) -> Result<Option<RecordBatch>> {
        let matched = if planted(Bug::InsertMatched) { &RoaringBitmap::new() } else { matched };
        let alone = (0..self.source.num_rows() as u32).filter(|row| !matched.contains(*row));
        let mut pairs: Pairs = alone.map(|row| (0, Some(row))).collect();
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut places = Vec::new();
        for clause in &self.inserts {
            if pairs.is_empty() {
                break;
            }
            let (held, left) = match &clause.condition {
                None => (pairs, Vec::new()),
                Some(condition) => {
                    let truth = condition.evaluate(&self.source_rows(&pairs)?)?;
                    split(pairs, &truth)
                }
            };
            pairs = left;
            if held.is_empty() {
                continue;
            }
            let batch = self.source_rows(&held)?;
            let set = clause.set.as_deref().unwrap_or_default();
            let column = |(at, field): (usize, &FieldRef)| match set.iter().find(|(column, _)| *column == at) {
                Some((_, bound)) => value_of(field, bound, &batch),
                None => not_null(field, generators.lacking(self.schema, field, held.len())?),
            };
            let columns = self.schema.0.fields().iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
            let rows = held.iter().enumerate().filter_map(|(at, (_, row))| Some(((*row)?, (batches.len(), at))));
            places.extend(rows);
            batches.push(RecordBatch::try_new(self.schema.0.clone(), columns)?);
        }
        if batches.len() < 2 {
            return Ok(batches.pop());
        }
        places.sort_unstable();
        let places: Vec<(usize, usize)> = places.into_iter().map(|(_, place)| place).collect();
        let column =
            |at: usize| interleave(&batches.iter().map(|batch| batch.column(at).clone()).collect::<Vec<_>>(), &places);
        let columns = (0..self.schema.0.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
        Ok(Some(RecordBatch::try_new(self.schema.0.clone(), columns)?))
    }

    /// Rows of both sides, with those columns of the table that are needed.
    fn batch(&self, reader: &GroupReader<'_>, pairs: &Pairs, needs: &[usize]) -> Result<RecordBatch> {
        let positions: RoaringBitmap = pairs.iter().map(|(position, _)| *position).collect();
        let columns = reader.some_rows(&self.schema.0, needs, &positions)?;
        let fields: Fields = needs.iter().map(|at| self.schema.0.fields()[*at].clone()).collect();
        let target = StructArray::try_new_with_length(fields, columns, None, pairs.len())?;
        let mut sides = vec![(TARGET, target)];
        if pairs.first().is_some_and(|(_, row)| row.is_some()) {
            sides.push((SOURCE, self.taken(pairs)?));
        }
        sided(sides, pairs.len())
    }

    fn source_rows(&self, pairs: &Pairs) -> Result<RecordBatch> {
        sided(vec![(SOURCE, self.taken(pairs)?)], pairs.len())
    }

    fn taken(&self, pairs: &Pairs) -> Result<StructArray> {
        let rows = pairs.iter().filter_map(|(_, row)| *row);
        let batch = take_batch(&self.source, rows)?;
        Ok(StructArray::try_new_with_length(
            batch.schema().fields().clone(),
            batch.columns().to_vec(),
            None,
            pairs.len(),
        )?)
    }
}

/// A batch with a struct column for each side.
fn sided(sides: Vec<(&str, StructArray)>, rows: usize) -> Result<RecordBatch> {
    let field = |(name, array): &(&str, StructArray)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(sides.iter().map(field).collect::<Vec<_>>()));
    let columns = sides.into_iter().map(|(_, array)| Arc::new(array) as ArrayRef).collect();
    Ok(RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))?)
}

/// Those for which something is true, and the others.
fn split(pairs: Pairs, truth: &BooleanArray) -> (Pairs, Pairs) {
    let holds = |at: usize| truth.is_valid(at) && truth.value(at);
    let (held, left): (Vec<_>, Vec<_>) = pairs.into_iter().enumerate().partition(|(at, _)| holds(*at));
    let pairs = |found: Vec<(usize, (u32, Option<u32>))>| found.into_iter().map(|(_, pair)| pair).collect();
    (pairs(held), pairs(left))
}

/// Ties clauses to the columns of both sides.
struct ClauseBinder<'a> {
    table: &'a TableState,
    schema: &'a StoredSchema,
    source: SchemaRef,
    on: &'a [String],
}

impl ClauseBinder<'_> {
    /// The columns of the sides.
    fn sides(&self, source: bool, target: bool) -> Schema {
        let side = |name: &str, schema: &Schema| Field::new(name, DataType::Struct(schema.fields().clone()), true);
        let target = target.then(|| side(TARGET, &self.schema.0));
        Schema::new(target.into_iter().chain(source.then(|| side(SOURCE, &self.source))).collect::<Vec<_>>())
    }

    fn changes(&self, clauses: &[(Option<Filter>, WhenMatched)], matched: bool) -> Result<Vec<Clause>> {
        let sides = self.sides(matched, true);
        let clause = |(condition, action): &(Option<Filter>, WhenMatched)| {
            let mut same = Vec::new();
            let set = match action {
                WhenMatched::Update(set) => Some(set.clone()),
                WhenMatched::UpdateAll if !matched => {
                    return Err(Error::invalid(
                        "a row that matches no row of the data cannot be set to the columns of the data; give an \
                         expression for each column instead",
                    ));
                }
                WhenMatched::UpdateAll => {
                    same = self.kept()?;
                    Some(self.all(|name| !self.fixed(name))?)
                }
                WhenMatched::Delete => None,
            };
            Ok(Clause { same, ..self.clause(condition.as_ref(), set, &sides, self.table.order())? })
        };
        clauses.iter().map(clause).collect()
    }

    fn inserts(&self, clauses: &[(Option<Filter>, WhenNotMatched)]) -> Result<Vec<Clause>> {
        let sides = self.sides(true, false);
        let clause = |(condition, action): &(Option<Filter>, WhenNotMatched)| {
            let set = match action {
                WhenNotMatched::Insert(set) => set.clone(),
                WhenNotMatched::InsertAll => self.all(|_| true)?,
            };
            self.clause(condition.as_ref(), Some(set), &sides, &[])
        };
        clauses.iter().map(clause).collect()
    }

    /// Whether a column of a row that matches cannot change.
    fn fixed(&self, name: &str) -> bool {
        self.on.iter().chain(self.table.order()).any(|fixed| fixed == name)
    }

    /// The columns of the table's order that the frame has, and in which rows are not compared.
    fn kept(&self) -> Result<Vec<(usize, usize)>> {
        let others = self.table.order().iter().filter(|name| !self.on.contains(name));
        let both = others.filter_map(|name| Some((name, self.source.index_of(name).ok()?)));
        both.map(|(name, from)| Ok((find(&self.schema.0, name)?, from))).collect()
    }

    /// Columns set to those of the same name of the frame, which may have no others.
    fn all(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Assignment>> {
        let names = || self.source.fields().iter().map(|field| field.name());
        let unknown: Vec<&str> =
            names().filter(|name| self.schema.0.index_of(name).is_err()).map(String::as_str).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join("', '");
            return Err(Error::schema_mismatch(format!("the data has '{unknown}', which the table lacks")));
        }
        Ok(names().filter(|name| wanted(name)).map(|name| (name.clone(), Expression::field(SOURCE, name))).collect())
    }

    fn clause(
        &self,
        condition: Option<&Filter>,
        set: Option<Vec<Assignment>>,
        sides: &Schema,
        fixed: &[String],
    ) -> Result<Clause> {
        let mut names = BTreeSet::new();
        condition.iter().for_each(|filter| names.extend(filter.fields_of(TARGET)));
        let condition_needs = self.places(&names);
        let mut names = BTreeSet::new();
        set.iter().flatten().for_each(|(_, expression)| names.extend(expression.fields_of(TARGET)));
        let value_needs = self.places(&names);
        let bind = |set: Vec<Assignment>| check_set(self.table, &self.schema.0, sides, &set, fixed);
        let (condition, set) = (condition.map(|filter| filter.bind(sides)).transpose()?, set.map(bind).transpose()?);
        Ok(Clause { condition, set, same: Vec::new(), condition_needs, value_needs })
    }

    fn places(&self, names: &BTreeSet<String>) -> Vec<usize> {
        names.iter().filter_map(|name| self.schema.0.index_of(name).ok()).collect()
    }
}
