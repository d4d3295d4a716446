//! Transactions: any number of operations on nodes and tables, on a snapshot, that happen together or not at all.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::commit::{Proposal, Work, until_free};
use super::drop::drop_tables;
use super::keyed::{ByKey, Few};
use super::landing::Faults;
use super::nodes::{self, IntoPattern};
use super::versions::{bytes_deleted_from, check_versions, delete_versions};
use super::write::{create_table, may_be_there};
use super::{
    AsOf, DropReport, Frame, LookupOptions, Missing, Pin, ProjectionView, ReadOptions, Store, TableOptions, TableView,
    UpdateOptions, VersionsReport, WriteOptions,
};
use crate::base::{Error, ErrorKind, Result, Seq, TableId, Version};
use crate::block::BlockWriter;
use crate::catalog::{
    Change, Changes, Condition, Draft, Effect, Footprint, NodeInfo, Only, Path, Pattern, Payload, PutOptions, Read,
    State,
};
use crate::filter::Filter;
use crate::table::{Lookup, Renew, Scan, VersionKind, View};

/// A transaction. It sees the state that it began with and its own writes, and nobody sees it before
/// [`Transaction::commit`]. Dropped without that it leaves nothing.
pub struct Transaction {
    store: Store,
    base: Arc<State>,
    pin: Arc<Pin>,
    draft: Draft,
    reads: Footprint,
    writers: Vec<BlockWriter>,
    read_only: bool,
    /// It must be run again: what it rests on had to be changed first.
    doomed: bool,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("base", &self.base.seq).finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a transaction. It holds nobody up; its commit fails with `Conflict` if others have touched meanwhile what it
    /// has read or written.
    pub fn transaction(&self) -> Result<Transaction> {
        self.see_others()?;
        self.begin(false)
    }

    /// Begins a transaction that only reads, on a snapshot that stays as it is.
    pub fn read_transaction(&self) -> Result<Transaction> {
        self.begin(true)
    }

    fn begin(&self, read_only: bool) -> Result<Transaction> {
        let (base, pin) = self.pinned_state()?;
        let time = base.time.max(self.time_now(base.time));
        let draft = Draft::new(State::clone(&base), base.seq.next(), time);
        let reads = Footprint::default();
        Ok(Transaction { store: self.clone(), base, pin, draft, reads, writers: Vec::new(), read_only, doomed: false })
    }

    /// Runs `work` in a transaction and commits it; runs it again where others have touched meanwhile what it has read or
    /// written. An error of `work` leaves nothing, and is the answer.
    ///
    /// ```
    /// # use drumlin::catalog::Payload;
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// store.put("stock", Payload::from(3))?;
    /// let left = store.transact(|tx| -> drumlin::Result<i64> {
    ///     let stock = tx.get("stock")?.and_then(|payload| payload.to_json()?.as_i64()).unwrap_or(0);
    ///     tx.put("stock", Payload::from(stock - 1))?;
    ///     Ok(stock - 1)
    /// })?;
    /// assert_eq!((left, store.get("stock")?), (2, Some(Payload::from(2))));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn transact<T, E: From<Error>>(&self, mut work: impl FnMut(&mut Transaction) -> Result<T, E>) -> Result<T, E> {
        until_free(|| {
            let mut transaction = self.transaction()?;
            let value = work(&mut transaction)?;
            Ok(transaction.commit().map(|_| value))
        })
    }
}

impl Transaction {
    /// The commit that it began with.
    pub fn seq(&self) -> Seq {
        self.base.seq
    }

    /// Commits. Gives the commit's number; that of the newest one seen if there was nothing to commit.
    pub fn commit(self) -> Result<Seq> {
        self.store.inner.check()?;
        if self.doomed {
            return Err(Error::conflict("rows written by key had to be flushed first; run the transaction again"));
        }
        if self.draft.effects().is_empty() {
            return Ok(self.base.seq);
        }
        // The pin stays until the end.
        let Self { store, base, pin: _pin, draft, reads, writers, .. } = self;
        let answer = store.commit(Proposal { base, footprint: reads, work: Work::Done(Box::new(draft)) });
        if may_be_there(&answer) {
            writers.into_iter().for_each(BlockWriter::keep);
            return Ok(answer?.seq);
        }
        if writers.iter().any(|writer| store.session_ended(&answer, writer)) {
            return Err(Error::conflict(
                "another process has ended the session that wrote its rows; run the transaction again",
            ));
        }
        Ok(answer?.seq)
    }

    fn writing(&mut self) -> Result<&mut Draft> {
        self.store.inner.check_open()?;
        if self.read_only {
            return Err(Error::invalid("the transaction was begun for reading only"));
        }
        Ok(&mut self.draft)
    }

    fn read(&mut self, read: Read) {
        if !self.read_only {
            self.reads.reads.push(read);
        }
    }

    /// That an operation was refused may rest on anything that it looked at.
    fn noted<T>(&mut self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            self.read(Read::All);
        }
        done
    }

    /// As [`Store::put`].
    pub fn put(&mut self, path: &str, payload: Payload) -> Result<Change> {
        let done = self.writing()?.put(path, payload, &PutOptions::default());
        self.noted(done)
    }

    /// As [`Store::put_with`].
    pub fn put_with(&mut self, path: &str, payload: Payload, options: &PutOptions) -> Result<Change> {
        self.writing()?;
        for (watched, _) in options.keep_while.iter().flatten() {
            self.read(Read::Node(watched.clone()));
        }
        self.read(Read::Node(path.to_owned()));
        let done = self.writing()?.put(path, payload, options);
        self.noted(done)
    }

    /// Sets what the node at `path` lives on: conditions on the nodes at other paths, or at its own. An empty list is
    /// nothing.
    pub fn keep_while(&mut self, path: &str, conditions: &[(String, Condition)]) -> Result<()> {
        self.writing()?;
        self.read(Read::Node(path.to_owned()));
        conditions.iter().for_each(|(watched, _)| self.read(Read::Node(watched.clone())));
        let done = self.writing()?.keep_while(path, conditions);
        self.noted(done)
    }

    /// As [`Store::create_node`].
    pub fn create_node(&mut self, path: &str, payload: Payload) -> Result<Change> {
        self.put_with(path, payload, &PutOptions { only: Only::New, ..PutOptions::default() })
    }

    /// As [`Store::update_node`].
    pub fn update_node(&mut self, path: &str, payload: Payload) -> Result<Change> {
        self.put_with(path, payload, &PutOptions { only: Only::There, ..PutOptions::default() })
    }

    /// As [`Store::compare_and_swap`].
    pub fn compare_and_swap(&mut self, path: &str, expected: Payload, payload: Payload) -> Result<Change> {
        let when = Some(Condition::payload(expected));
        self.put_with(path, payload, &PutOptions { only: Only::There, when, ..PutOptions::default() })
    }

    /// As [`Store::put_many`].
    pub fn put_many<'a>(&mut self, payloads: impl IntoIterator<Item = (&'a str, Payload)>) -> Result<Changes> {
        let done = self.writing()?.put_many(payloads);
        self.noted(done)
    }

    /// As [`Store::update_many`].
    pub fn update_many(&mut self, pattern: impl IntoPattern, payload: &Payload) -> Result<Changes> {
        let pattern = self.reading(pattern)?;
        let done = self.writing()?.update_many(&pattern, payload);
        self.noted(done)
    }

    /// As [`Store::clear_payload`].
    pub fn clear_payload(&mut self, path: &str, when: Option<&Condition>) -> Result<Change> {
        self.read(Read::Node(path.to_owned()));
        let done = self.writing()?.clear(path, when);
        self.noted(done)
    }

    /// As [`Store::clear_payloads`].
    pub fn clear_payloads(&mut self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = self.reading(pattern)?;
        let done = self.writing()?.clear_many(&pattern);
        self.noted(done)
    }

    /// As [`Store::delete`].
    pub fn delete(&mut self, path: &str, when: Option<&Condition>) -> Result<Change> {
        let done = self.writing()?.delete(path, when);
        self.noted(done)
    }

    /// As [`Store::delete_many`].
    pub fn delete_many(&mut self, pattern: impl IntoPattern) -> Result<Changes> {
        let pattern = self.reading(pattern)?;
        let done = self.writing()?.delete_many(&pattern);
        self.noted(done)
    }

    /// As [`Store::get`].
    pub fn get(&mut self, path: &str) -> Result<Option<Payload>> {
        self.read(Read::Node(path.to_owned()));
        nodes::get(self.state()?, path)
    }

    /// As [`Store::node`].
    pub fn node(&mut self, path: &str) -> Result<Option<NodeInfo>> {
        self.read(Read::Node(path.to_owned()));
        nodes::node(self.state()?, path)
    }

    /// As [`Store::exists`].
    pub fn exists(&mut self, path: &str) -> Result<bool> {
        Ok(self.node(path)?.is_some())
    }

    /// As [`Store::has_payload`].
    pub fn has_payload(&mut self, path: &str) -> Result<bool> {
        Ok(self.get(path)?.is_some())
    }

    /// As [`Store::get_many`].
    pub fn get_many(&mut self, pattern: impl IntoPattern) -> Result<Vec<(String, Payload)>> {
        let pattern = self.reading(pattern)?;
        Ok(nodes::get_many(self.state()?, &pattern))
    }

    /// As [`Store::nodes`].
    pub fn nodes(&mut self, pattern: impl IntoPattern) -> Result<Vec<(String, NodeInfo)>> {
        let pattern = self.reading(pattern)?;
        Ok(nodes::nodes(self.state()?, &pattern))
    }

    /// As [`Store::count`].
    pub fn count(&mut self, pattern: impl IntoPattern) -> Result<u64> {
        let pattern = self.reading(pattern)?;
        Ok(nodes::count(self.state()?, &pattern))
    }

    /// As [`Store::fold`].
    pub fn fold<T>(
        &mut self,
        pattern: impl IntoPattern,
        first: T,
        step: impl FnMut(T, &str, &NodeInfo) -> T,
    ) -> Result<T> {
        let pattern = self.reading(pattern)?;
        Ok(nodes::fold(self.state()?, &pattern, first, step))
    }

    /// A projection, with the transaction's own writes in it.
    pub fn projection(&mut self, name: &str) -> Result<ProjectionView> {
        // What it shows may rest on any node.
        self.read(Read::Tree);
        self.read(Read::Projection(name.to_owned()));
        self.store.inner.check_open()?;
        ProjectionView::new(self.draft.projected(), name)
    }

    fn state(&self) -> Result<&State> {
        self.store.inner.check_open()?;
        Ok(self.draft.state())
    }

    fn reading(&mut self, pattern: impl IntoPattern) -> Result<Pattern> {
        let pattern = pattern.into_pattern()?;
        self.read(Read::Pattern(pattern.clone()));
        Ok(pattern)
    }

    /// As [`Store::create`].
    pub fn create(&mut self, path: &str, schema: SchemaRef, options: TableOptions) -> Result<()> {
        let path = Path::new(path)?;
        let build = create_table(path.clone(), &schema, options)?;
        self.build(Footprint::default().with(Read::Binding(path)), build)
    }

    /// As [`Store::write`]. Versions are numbered at the commit.
    pub fn write<'a>(&mut self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<()> {
        self.write_many(vec![(path.to_owned(), frame.into())], options)
    }

    /// As [`Store::write_many`].
    pub fn write_many(&mut self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<()> {
        self.land(VersionKind::Write, frames, options)
    }

    /// As [`Store::append`].
    pub fn append<'a>(&mut self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<()> {
        self.append_many(vec![(path.to_owned(), frame.into())], options)
    }

    /// As [`Store::append_many`].
    pub fn append_many(&mut self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<()> {
        self.land(VersionKind::Append, frames, options)
    }

    fn land(&mut self, kind: VersionKind, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<()> {
        let done = self.try_land(kind, frames, options);
        self.noted(done)
    }

    fn try_land(&mut self, kind: VersionKind, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<()> {
        self.writing()?;
        let mut bindings = Footprint::default();
        for (path, _) in &frames {
            let path = Path::new(path)?;
            let schema = self.draft.state().table_at(&path).map(|table| Read::Schema(table.id));
            bindings = bindings.with(Read::Binding(path));
            bindings.reads.extend(schema);
        }
        let prepared = self.store.prepare_write(self.draft.state(), kind, frames, options, &mut Faults::Refused)?;
        let (rests_on, effects, writer) = prepared.into_effects(self.draft.state(), kind)?;
        bindings.reads.extend(rests_on.reads);
        self.apply(bindings, effects)?;
        self.writers.push(writer);
        Ok(())
    }

    /// As [`Store::update`].
    pub fn update<'a>(&mut self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<()> {
        let done = self.try_update(path, frame.into(), options);
        self.noted(done)
    }

    fn try_update(&mut self, path: &str, frame: Frame<'_>, options: &WriteOptions) -> Result<()> {
        self.writing()?;
        let path = Path::new(path)?;
        let (replacement, writer) = self.store.prepare_update(self.draft.state(), &path, frame, options)?;
        let change = self.store.replace_rows(self.draft.state(), &replacement, &options.task)?;
        self.apply(change.footprint, change.effects)?;
        self.writers.push(writer);
        Ok(())
    }

    /// As [`Store::delete_rows`]. Gives how many rows.
    pub fn delete_rows(&mut self, path: &str, filter: &str, options: &UpdateOptions) -> Result<u64> {
        let done = self.try_delete_rows(path, filter, options);
        self.noted(done)
    }

    fn try_delete_rows(&mut self, path: &str, filter: &str, options: &UpdateOptions) -> Result<u64> {
        self.writing()?;
        let (path, filter) = (Path::new(path)?, Filter::parse(filter)?);
        let (change, rows) = self.store.find_rows(self.draft.state(), &path, &filter, options)?;
        self.apply(change.footprint, change.effects)?;
        Ok(rows)
    }

    /// As [`Store::upsert`]. Gives how many rows.
    pub fn upsert<'a>(&mut self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<u64> {
        self.by_key(ByKey::Upsert, path, frame.into(), options)
    }

    /// As [`Store::insert`]. Gives how many rows.
    pub fn insert<'a>(&mut self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<u64> {
        self.by_key(ByKey::Insert, path, frame.into(), options)
    }

    /// As [`Store::delete_keys`]. Gives how many keys.
    pub fn delete_keys<'a>(&mut self, path: &str, keys: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<u64> {
        self.by_key(ByKey::Delete, path, keys.into(), options)
    }

    fn by_key(&mut self, what: ByKey, path: &str, frame: Frame<'_>, options: &WriteOptions) -> Result<u64> {
        let done = self.try_by_key(what, path, frame, options);
        self.noted(done)
    }

    fn try_by_key(&mut self, what: ByKey, path: &str, frame: Frame<'_>, options: &WriteOptions) -> Result<u64> {
        self.writing()?;
        let path = Path::new(path)?;
        let (store, state) = (self.store.clone(), self.draft.state());
        let gathered = store.gather(state, what, &path, frame, &options.task.cancel)?;
        let rows = gathered.drawn.iter().map(|batch| batch.num_rows() as u64).sum();
        if gathered.rest.is_none() && options.metadata.is_none() {
            if rows > 0 {
                let few = Few::new(what, &gathered)?;
                let (footprint, effect) = store.few(what, state, &path, &few, &options.task.cancel)?;
                self.apply(footprint, vec![effect])?;
            }
            return Ok(rows);
        }
        let bulk = store.prepare_bulk(what, state, &path, gathered, options)?;
        let rows = bulk.rows;
        self.apply(bulk.footprint, bulk.effects)?;
        self.writers.push(bulk.writer);
        Ok(rows)
    }

    /// As [`Store::get_rows`], with the transaction's own writes.
    pub fn get_rows(&mut self, path: &str, keys: &RecordBatch, options: &LookupOptions) -> Result<Lookup> {
        self.store.inner.check()?;
        let table = self.reads_table(path, &options.as_of)?;
        let (view, renew) = self.view(path, &options.as_of)?;
        let view = TableView::new(self.store.clone(), view, renew, path)?;
        if let Some(table) = table {
            self.read(Read::Schema(table));
            self.read(Read::Keys(table, Arc::new(view.encode_keys(keys)?)));
        }
        view.get_many(keys, options.columns.as_deref(), &options.cancel)
    }

    /// Notes that a table is read; gives it if others may touch it.
    fn reads_table(&mut self, path: &str, as_of: &AsOf) -> Result<Option<TableId>> {
        let path = Path::new(path)?;
        let table = self.state()?.table_at(&path).map(|table| table.id);
        self.read(Read::Binding(path));
        match (as_of, table) {
            (AsOf::Snapshot(name), _) => self.read(Read::Snapshot(name.clone())),
            (AsOf::Version(_) | AsOf::Time(_), Some(table)) => self.read(Read::Versions(table)),
            _ => {}
        }
        Ok(table.filter(|table| *table < self.base.next_table()))
    }

    /// As [`Store::drop`].
    pub fn drop(&mut self, paths: &[String], missing: Missing) -> Result<DropReport> {
        let done = self.try_drop(paths, missing);
        self.noted(done)
    }

    fn try_drop(&mut self, paths: &[String], missing: Missing) -> Result<DropReport> {
        self.writing()?;
        if paths.is_empty() {
            return Err(Error::invalid("no path to drop was given"));
        }
        let patterns: Vec<Pattern> = paths.iter().map(|path| Pattern::new(path)).collect::<Result<_>>()?;
        let (effects, report) = drop_tables(self.draft.state(), &patterns, missing)?;
        let reads = patterns.into_iter().map(Read::Pattern).collect();
        self.apply(Footprint { reads }, effects)?;
        Ok(report)
    }

    /// As [`Store::delete_versions`].
    pub fn delete_versions(&mut self, versions: &[(String, Vec<Version>)], missing: Missing) -> Result<VersionsReport> {
        self.writing()?;
        let checked = check_versions(versions)?;
        let mut reads = Footprint::default();
        for (path, _) in &checked {
            let table = self.draft.state().table_at(path).map(|table| table.id);
            reads = reads.with(Read::Binding(path.clone()));
            reads.reads.extend(table.into_iter().flat_map(|table| [Read::Rows(table), Read::Versions(table)]));
        }
        let again = checked.clone();
        let doing = delete_versions(self.draft.state(), checked, missing);
        let (effects, mut report) = self.noted(doing)?;
        let before = bytes_deleted_from(self.draft.state(), &effects);
        let tables = effects.clone();
        let done = self.apply(reads, effects);
        match self.noted(done) {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                // Of a table with a key, what is taken off again must lie in row groups: it will when this is run again.
                self.store.flush_rows_of(&again)?;
                self.doomed = true;
            }
            done => {
                done?;
                report.bytes = before.saturating_sub(bytes_deleted_from(self.draft.state(), &tables));
            }
        }
        Ok(report)
    }

    /// As [`Store::read`], with the transaction's own writes in it.
    pub fn read_table(&mut self, path: &str, options: &ReadOptions) -> Result<Scan> {
        self.store.inner.check()?;
        if let Some(table) = self.reads_table(path, &options.as_of)? {
            self.read(Read::Rows(table));
        }
        let (view, renew) = self.view(path, &options.as_of)?;
        self.store.scan_with(view, &options.scan, renew).map_err(|e| e.context(format!("'{path}'")))
    }

    /// What is seen of a table, and how it is found again; what was written here nobody else can find.
    fn view(&mut self, path: &str, as_of: &AsOf) -> Result<(View, Option<Renew>)> {
        let pin = self.pin.clone();
        let view = self.store.clone().view_of(self.state()?, &pin, path, as_of)?;
        let begun = self.base.table(view.table.id).is_some_and(|begun| Arc::ptr_eq(begun, &view.table));
        Ok((view, if begun { self.store.renewal() } else { None }))
    }

    /// As [`Store::collect`], with the transaction's own writes in it.
    pub fn collect(&mut self, path: &str, options: &ReadOptions) -> Result<Vec<RecordBatch>> {
        self.read_table(path, options)?.collect()
    }

    fn build(&mut self, reads: Footprint, build: impl FnOnce(&State) -> Result<Vec<Effect>>) -> Result<()> {
        self.writing()?;
        let done = build(self.draft.state()).and_then(|effects| self.apply(reads, effects));
        self.noted(done)
    }

    /// Applies effects on tables. What is read of tables made here cannot be touched by others.
    fn apply(&mut self, reads: Footprint, effects: Vec<Effect>) -> Result<()> {
        let first = self.base.next_table();
        let own = |table: &TableId| *table >= first;
        self.writing()?.apply(effects)?;
        let others = reads.reads.into_iter().filter(|read| match read {
            Read::Schema(table) | Read::Rows(table) | Read::Versions(table) | Read::Keys(table, _) => !own(table),
            _ => true,
        });
        self.reads.reads.extend(others);
        Ok(())
    }
}
