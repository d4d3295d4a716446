//! The rows in which two versions of a table differ, as a stream.
//!
//! What both versions show is struck out by records alone (*diff.rs* of the table layer). Of a table with a key, the
//! remaining rows of both versions come in its order, and rows of one key are compared as bytes. Of another table, rows
//! that were written again as they were are struck out by their content (*alike.rs*).

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::resolve::{AsOf, resolve};
use super::same_rows::Alike;
use crate::base::{Cancel, Error, ErrorKind, Result, TableId, Version};
use crate::catalog::{Path, State};
use crate::memtable::{Keys, RowBytes};
use crate::store::commit::in_groups::MemoryScope;
use crate::store::parts::Pin;
use crate::store::{Place, Store, Table};
use crate::table::{
    Constants, ReadAs, ReadPoint, Scan, ScanOptions, TableCodec, View, difference, find_column, find_requested,
    is_hidden, union,
};

/// The column that says what happened to a row.
const CHANGE: &str = "_change";
/// The column with the version in which it happened.
const VERSION: &str = "_version";
/// The number of rows of a batch of updates.
const BATCH_ROWS: usize = 8192;

/// The number of batches that one of them is made of, at most.
const SOURCES_MAX: usize = 16;

/// How versions are compared.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The columns to compare and to return, in the order wanted. Default: all.
    pub columns: Option<Vec<String>>,
    /// Whether to tell of each listed version in between what it changed, rather than of all together. Default: not.
    pub each_version: bool,
    /// Stops it. Default: nothing does.
    pub cancel: Cancel,
}

/// The rows in which versions of a table differ, batch by batch: the columns asked for, `_change` (`delete`, `insert`, and of a
/// table with a key `update_before` and `update_after`, one after the other), and `_version`.
///
/// Both versions are read in the columns of both, in which a version has null where it lacks one. Applied to the first version,
/// deleted rows taken out and inserted ones put in, they make the last one. Of a table with a key
/// they come in the order of the key, and rows that are equal in the columns asked for are left out; of another one
/// all deleted rows of a version come before those inserted, in the order in which they are read, and a row that was written
/// again as it was counts as neither, which takes some 40 bytes of memory for each new row, and up to 64 MiB more.
pub struct Diff {
    store: Store,
    view: View,
    /// What both versions are read in; each in its own columns if no columns hold those of both.
    read_as: Option<ReadAs>,
    /// Whether there is no version before.
    first: bool,
    /// Rows that are alike in these are not read.
    compared: Vec<String>,
    /// The columns that are read: those asked for, then the rest of the key.
    read: Vec<String>,
    /// The first of these are handed out.
    width: usize,
    schema: SchemaRef,
    codec: Option<TableCodec>,
    cancel: Cancel,
    name: String,
    /// Pairs of versions still to compare.
    pairs: VecDeque<(ReadPoint, ReadPoint)>,
    open: Option<PairDiff>,
}

/// A pair of versions that is being compared.
struct PairDiff {
    version: Version,
    /// Of rows that are gone, and of new ones.
    sides: [Side; 2],
    /// Of a table without a key: the rows that both sides have.
    alike: Option<Alike>,
}

/// The rows that one of two versions alone shows.
struct Side {
    scan: Scan,
    batch: Option<(RecordBatch, Keys, RowBytes)>,
    /// The next row of the batch.
    at: usize,
    /// Its place among the sources of the batch that is being made.
    source: usize,
}

impl Table {
    /// The rows in which two versions differ: see [`Diff`]. Row groups that both show alike are not read. Rows written by key that
    /// are in memory are made row groups first, if one of the versions has some: that numbers a version for them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use drumlin::{AsOf, Tables, Version};
    /// # let store = drumlin::Store::memory()?;
    /// # let rows = |n: Vec<i64>| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap();
    /// store.write("t", rows(vec![1, 2, 3]), &Default::default())?;
    /// store.append("t", rows(vec![4]), &Default::default())?;
    /// let diff = store.table("t").diff(&AsOf::Version(Version(0)), &AsOf::Newest, &Default::default())?;
    /// assert_eq!(diff.map(|batch| Ok(batch?.num_rows())).sum::<drumlin::Result<usize>>()?, 1);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such table or version; `InvalidArgument` if a column is none of the table's or is called as one
    /// of the two that are added, if the versions are of different tables, or, version by version, not in order;
    /// `SchemaMismatch` if a column has types in them that no other holds; in a transaction `Conflict` if rows
    /// are in memory.
    pub fn diff(&self, since: &AsOf, until: &AsOf, options: &DiffOptions) -> Result<Diff> {
        let reads = |state: &State| {
            let mut reads = self.reads_rows(state, since)?;
            reads.extend(self.reads_rows(state, until)?);
            Ok(reads)
        };
        let compare = |state: &State, pin: &Arc<Pin>| self.compared(state, pin, (since, until), options);
        let (diff, waiting) = self.place.read(reads, compare)?;
        match (&self.place, waiting) {
            (_, None) | (Place::Transaction(_), Some((_, MemoryScope::Numbered))) => Ok(diff),
            (Place::Transaction(_), Some((_, MemoryScope::All))) => {
                Err(Error::conflict("rows written by key are not in row groups yet; checkpoint the store first"))
            }
            (Place::Store(store), Some((table, which))) => {
                store.with_rows_in_groups(&[table].into(), which, |state, pin| Ok(compare(state, pin)?.0))
            }
        }
    }

    /// The difference in `state`; and its table, if rows in memory must become row groups first.
    fn compared(
        &self,
        state: &State,
        pin: &Arc<Pin>,
        (since, until): (&AsOf, &AsOf),
        options: &DiffOptions,
    ) -> Result<(Diff, Option<(TableId, MemoryScope)>)> {
        let path = Path::new(self.path())?;
        let [(table, first), (other, last)] = [resolve(state, &path, since)?, resolve(state, &path, until)?];
        if table.id != other.id {
            return Err(Error::invalid(format!("the table at '{path}' is not the one that the snapshot has")));
        }
        let unnumbered = (first.since || last.since) && table.active().is_some();
        let rests = unnumbered || [first, last].iter().any(|at| table.depends_on_parts(at.version));
        let which = if unnumbered { MemoryScope::All } else { MemoryScope::Numbered };
        let waiting = rests.then_some((table.id, which));
        let pin = Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>);
        let store = self.place.store();
        let [first, last] = [first, last].map(|seen| seen.read_point(store, state, &table));
        let view = View { table, read_point: last, time: None, pin };
        Ok((Diff::new(store.clone(), view, first, path.as_str(), options)?, waiting))
    }
}

impl Diff {
    fn new(store: Store, view: View, from: ReadPoint, path: &str, options: &DiffOptions) -> Result<Self> {
        let (table, first, last) = (&view.table, from.version, view.read_point.version);
        let between: Vec<Version> = match options.each_version {
            true if first > last => {
                return Err(Error::invalid(format!("version {first} is later than {last}; give them in order")));
            }
            true => table.versions.iter().map(|record| record.version).filter(|v| first < *v && *v < last).collect(),
            false => Vec::new(),
        };
        let versions: Vec<Version> = [first].into_iter().chain(between).chain([last]).collect();
        let schemas = versions.iter().map(|version| Ok(table.schema_of(*version)?.0.clone()));
        let schemas: Vec<SchemaRef> = schemas.collect::<Result<_>>()?;
        let union = union(&schemas);
        let whole = &union.schema;
        let mut read: Vec<String> = match &options.columns {
            // Before rows in memory become row groups for it.
            Some(columns) => find_requested(whole, columns).map(|_| columns.clone())?,
            None => whole.fields().iter().filter(|field| !is_hidden(field)).map(|field| field.name().clone()).collect(),
        };
        let width = read.len();
        if let Some(taken) = read.iter().find(|name| [CHANGE, VERSION].contains(&name.as_str())) {
            return Err(Error::invalid(format!(
                "'{path}' has a column '{taken}', a name that the difference uses itself; select other columns"
            )));
        }
        // Rows before and after the key was renamed have none in common.
        let orders = versions.iter().map(|version| table.order_of(*version)).collect::<Result<Vec<_>>>()?;
        let same = orders.windows(2).all(|pair| pair[0] == pair[1]);
        let key = if table.spec.keyed && same { orders[0] } else { &[] };
        read.extend(key.iter().filter(|name| !read.contains(name)).cloned().collect::<Vec<_>>());
        if let Some(apart) = union.apart.iter().find(|apart| read.contains(&apart.name)) {
            let told = apart.told(&schemas, |at| format!("in version {}", versions[at]));
            return Err(Error::schema_mismatch(format!("'{path}': {told}; select other columns")));
        }
        let places = read.iter().map(|name| find_column(whole, name)).collect::<Result<Vec<_>>>()?;
        let shown = Arc::new(whole.project(&places)?);
        let codec = (!key.is_empty()).then(|| TableCodec::new(&shown, key)).transpose()?;
        let added = [Field::new(CHANGE, DataType::Utf8, false), Field::new(VERSION, DataType::UInt64, false)];
        let fields: Vec<FieldRef> = shown.fields()[..width].iter().cloned().chain(added.map(Arc::new)).collect();
        let seen = |(at, version): (usize, &Version)| match at {
            0 => from,
            at if at + 1 == versions.len() => view.read_point,
            _ => ReadPoint { version: *version, instant: table.version(*version).map(|record| record.time), ..from },
        };
        let seen: Vec<ReadPoint> = versions.iter().enumerate().map(seen).collect();
        Ok(Self {
            pairs: seen.windows(2).map(|pair| (pair[0], pair[1])).collect(),
            store,
            read_as: Some(ReadAs::new(Arc::new(whole.clone()), Constants::new())),
            compared: read.clone(),
            first: false,
            read,
            width,
            schema: Arc::new(Schema::new(fields)),
            codec,
            cancel: options.cancel.clone(),
            name: path.to_owned(),
            view,
            open: None,
        })
    }

    /// What a commit changed that made the version of `view` out of the rows at `from`: all of them, whether they have expired or
    /// not. A column that only one of both has makes no row differ by itself.
    pub(in crate::store) fn of_commit(store: &Store, view: View, from: ReadPoint, cancel: &Cancel) -> Result<Self> {
        let (table, last) = (&view.table, view.read_point);
        let schemas = [table.schema_of(from.version)?.0.clone(), table.schema_of(last.version)?.0.clone()];
        let (union, [before, after]) = (union(&schemas), &schemas);
        let names = |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let compared = names(before).into_iter().filter(|name| after.index_of(name).is_ok()).collect();
        let orders = [table.order_of(from.version)?, table.order_of(last.version)?];
        let (shown, apart) = (Arc::new(union.schema), !union.apart.is_empty());
        let keyed = table.spec.keyed && orders[0] == orders[1] && !apart;
        Ok(Self {
            pairs: [(from, last)].into(),
            store: store.clone(),
            first: false,
            compared,
            read: names(&shown),
            width: shown.fields().len(),
            codec: keyed.then(|| TableCodec::new(&shown, orders[0])).transpose()?,
            read_as: (!apart).then(|| ReadAs::new(shown.clone(), Constants::new())),
            schema: shown,
            cancel: cancel.clone(),
            name: String::new(),
            view,
            open: None,
        })
    }

    /// All rows of `view`, as inserted ones.
    pub(in crate::store) fn of_first(store: &Store, view: View, cancel: &Cancel) -> Result<Self> {
        let from = view.read_point;
        Ok(Self { first: true, ..Self::of_commit(store, view, from, cancel)? })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let Some((batch, changes, version)) = self.next_changes()? else { return Ok(None) };
        self.handed(&batch, changes, version).map(Some)
    }

    /// The next rows, in the columns that are read, what happened to each, and in which version.
    pub(in crate::store) fn next_changes(&mut self) -> Result<Option<(RecordBatch, StringArray, Version)>> {
        loop {
            self.cancel.check()?;
            let Some(open) = &mut self.open else {
                let Some((since, until)) = self.pairs.pop_front() else { return Ok(None) };
                self.open = Some(self.compare(since, until)?);
                continue;
            };
            let version = open.version;
            let made = match &self.codec {
                Some(codec) => open.merged(codec)?,
                None => open.next()?,
            };
            match made {
                Some((batch, changes)) => return Ok(Some((batch, changes, version))),
                None => self.open = None,
            }
        }
    }

    fn compare(&self, since: ReadPoint, until: ReadPoint) -> Result<PairDiff> {
        let (reader, pool) = (self.store.reader(), &self.store.env().pool);
        let table = &*self.view.table;
        let [gone, new] = match self.first {
            true => [table.without_groups(), table.clone()],
            false => difference(reader, pool, table, [since, until], &self.compared)?,
        };
        let side = |table: crate::table::TableState, seen: ReadPoint| {
            let read_point = ReadPoint { since: false, seq: self.view.read_point.seq, ..seen };
            let view = View { table: Arc::new(table), read_point, time: None, pin: self.view.pin.clone() };
            let options = ScanOptions {
                columns: self.read_as.as_ref().map(|_| self.read.clone()),
                cancel: self.cancel.clone(),
                name: Some(self.name.clone()),
                ..ScanOptions::default()
            };
            let scan = self.store.scan_view(view, self.read_as.as_ref(), &options, None)?;
            Ok::<_, Error>(Side { scan, batch: None, at: 0, source: 0 })
        };
        let both = self.codec.is_none() && self.read_as.is_some() && !gone.groups.is_empty() && !new.groups.is_empty();
        let alike = match both {
            true => {
                let scan = side(new.clone(), until)?.scan;
                Alike::of(&scan.schema(), scan, &self.cancel)?
            }
            false => None,
        };
        Ok(PairDiff { version: until.version, sides: [side(gone, since)?, side(new, until)?], alike })
    }

    /// A batch as it is handed out.
    fn handed(&self, batch: &RecordBatch, changes: StringArray, version: Version) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = batch.columns()[..self.width].to_vec();
        columns.push(Arc::new(changes));
        columns.push(Arc::new(UInt64Array::from_value(version.0, batch.num_rows())));
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

impl Iterator for Diff {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step().map_err(|e| match e.kind() {
            // Nothing is handed out twice: it would have to begin again.
            ErrorKind::SnapshotExpired => e.context("the versions were deleted while they were compared"),
            _ => e,
        });
        if batch.is_err() {
            self.open = None;
            self.pairs.clear();
        }
        batch.transpose()
    }
}

impl PairDiff {
    /// The next batch of a table without a key: rows that are gone, then new ones.
    fn next(&mut self) -> Result<Option<(RecordBatch, StringArray)>> {
        for (side, change) in self.sides.iter_mut().zip(["delete", "insert"]) {
            loop {
                let next = match (&mut self.alike, change) {
                    (None, _) => side.scan.next().transpose()?,
                    (Some(alike), "delete") => {
                        side.scan.next().transpose()?.map(|batch| alike.gone(&batch)).transpose()?
                    }
                    (Some(alike), _) => alike.next_new(&mut side.scan)?,
                };
                let Some(batch) = next else { break };
                if batch.num_rows() == 0 {
                    continue;
                }
                let changes = StringArray::from_iter_values(std::iter::repeat_n(change, batch.num_rows()));
                return Ok(Some((batch, changes)));
            }
        }
        Ok(None)
    }

    /// The next batch of a table with a key: both sides in the order of the key, rows of the same key compared.
    fn merged(&mut self, codec: &TableCodec) -> Result<Option<(RecordBatch, StringArray)>> {
        let (mut sources, mut picked, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for side in &mut self.sides {
            side.source = usize::MAX;
        }
        // Batches are released from time to time even if all their rows are alike.
        while picked.len() < BATCH_ROWS && (sources.len() < SOURCES_MAX || picked.is_empty()) {
            if sources.len() >= SOURCES_MAX {
                sources.clear();
                self.sides.iter_mut().for_each(|side| side.source = usize::MAX);
            }
            for side in &mut self.sides {
                side.fill(codec, &mut sources)?;
            }
            let [gone, new] = &mut self.sides;
            let order = match (gone.key(), new.key()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(gone), Some(new)) => gone.cmp(&new),
            };
            match order {
                std::cmp::Ordering::Less => {
                    picked.push(gone.pick());
                    changes.push("delete");
                }
                std::cmp::Ordering::Greater => {
                    picked.push(new.pick());
                    changes.push("insert");
                }
                std::cmp::Ordering::Equal => {
                    let same = gone.row() == new.row();
                    let both = [gone.pick(), new.pick()];
                    if !same {
                        picked.extend(both);
                        changes.extend(["update_before", "update_after"]);
                    }
                }
            }
        }
        if picked.is_empty() {
            return Ok(None);
        }
        let sources: Vec<&RecordBatch> = sources.iter().collect();
        Ok(Some((interleave_record_batch(&sources, &picked)?, StringArray::from(changes))))
    }
}

impl Side {
    /// Has a row at hand, if there is one left, and its batch among `sources`.
    fn fill(&mut self, codec: &TableCodec, sources: &mut Vec<RecordBatch>) -> Result<()> {
        while self.batch.as_ref().is_none_or(|(batch, ..)| self.at >= batch.num_rows()) {
            (self.at, self.source) = (0, usize::MAX);
            self.batch = None;
            let Some(batch) = self.scan.next().transpose()? else { return Ok(()) };
            let (keys, rows) = codec.encode(&batch)?;
            self.batch = Some((batch, keys, rows));
        }
        if let Some((batch, ..)) = self.batch.as_ref().filter(|_| self.source == usize::MAX) {
            self.source = sources.len();
            sources.push(batch.clone());
        }
        Ok(())
    }

    fn key(&self) -> Option<crate::memtable::Key<'_>> {
        self.batch.as_ref().map(|(_, keys, _)| keys.get(self.at))
    }

    /// The columns of the row that are not of the key, as bytes.
    fn row(&self) -> Option<&[u8]> {
        self.batch.as_ref().map(|(_, _, rows)| rows.get(self.at))
    }

    /// Takes the row; returns its place among the sources.
    fn pick(&mut self) -> (usize, usize) {
        self.at += 1;
        (self.source, self.at - 1)
    }
}
