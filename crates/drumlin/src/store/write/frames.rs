//! How frames become versions: encoded and on storage first, then one commit for all tables of the call.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::by_key::{ByKey, Gathered};
use super::encoder::Encoder;
use super::numbers::Numbering;
use super::on_item_error::OnItemError;
use crate::base::{BlockId, Error, ErrorKind, Progress, Result, Task, Timestamp, caught};
use crate::block::{BlockWriter, EncodedRowGroup, WrittenBlock};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::filter::column_meant;
use crate::memtable::Keys;
use crate::segment::{Compression, Proof};
use crate::store::commit::blocks::{UncommittedGroups, add_blocks};
use crate::store::commit::call::{Call, retry_conflicts};
use crate::store::commit::in_groups::MemoryScope;
use crate::store::commit::table_changes::TableChanges;
use crate::store::nouns::transaction::OpenTransaction;
use crate::store::parts::{Pin, Proposal, Work, refuse_view};
use crate::store::read::resolve::table_at;
use crate::store::{Frame, Place, Store, VersionInfo, WriteOptions};
use crate::table::{
    Kill, NewGroup, RowsSchema, Schemes, StoredSchema, TableChange, TableCodec, TableSpec, TableState, VersionKind,
    batch_bytes, check_key, encode_group,
};

/// One table of a call, ready to be encoded.
struct TableFrame<'a> {
    /// Its place in the call.
    at: usize,
    path: Path,
    frame: Frame<'a>,
    /// The schema to which the rows are converted.
    rows: RowsSchema,
    sort: Vec<String>,
    footprint: Footprint,
}

/// What was encoded for one table.
#[derive(Clone)]
struct EncodedTable {
    /// Its place in the call.
    at: usize,
    path: Path,
    schema: StoredSchema,
    evolves: bool,
    sort: Vec<String>,
    keyed: bool,
    /// Keys that it must not have yet, if it has a key and is appended to.
    new_keys: Option<NewKeys>,
    groups: Vec<NewGroup>,
    /// What it depends on.
    footprint: Footprint,
}

/// Keys of rows to append.
#[derive(Clone)]
struct NewKeys {
    codec: Arc<TableCodec>,
    keys: Vec<Arc<Keys>>,
}

/// A row group, raw or encoded.
enum PendingGroup {
    Raw { group: Vec<RecordBatch>, like: Arc<Schemes> },
    Encoded(EncodedRowGroup),
}

/// A write whose rows are on storage, waiting for its commit.
pub(in crate::store) struct PreparedWrite {
    tables: Vec<EncodedTable>,
    writer: BlockWriter,
    metadata: Option<String>,
}

/// The tables of a call, to be committed.
struct FramesWrite {
    kind: VersionKind,
    /// The state that they have been checked against, and the pin that keeps its blocks.
    base: Arc<State>,
    _pin: Arc<Pin>,
    tables: Vec<EncodedTable>,
    metadata: Option<String>,
    /// Whether others may have written keys that must be new, or changed the tables.
    check_again: bool,
    /// When the call began.
    began: Timestamp,
}

impl FramesWrite {
    /// What is to be committed.
    fn proposal(&self, blocks: &[WrittenBlock]) -> Proposal {
        let used = used(&self.tables);
        let referred: Vec<WrittenBlock> =
            blocks.iter().filter(|written| used.contains(&written.block)).cloned().collect();
        let (tables, kind, metadata) = (self.tables.clone(), self.kind, self.metadata.clone());
        let build = move |state: &State| effects(state, &tables, &referred, kind, metadata.as_deref());
        let (base, footprint) = (self.base.clone(), footprint(&self.tables));
        Proposal::new(base, footprint, Work::Build(Box::new(build))).since(self.began)
    }
}

impl UncommittedGroups for FramesWrite {
    fn groups(&mut self) -> impl Iterator<Item = &mut NewGroup> {
        self.tables.iter_mut().flat_map(|table| &mut table.groups)
    }
}

impl Place {
    /// Writes or appends frames to many tables; returns a result for each.
    pub(in crate::store) fn write_frames(
        &self,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
        on_error: OnItemError,
    ) -> Result<Vec<Result<Option<VersionInfo>>>> {
        options.check_returns_nothing()?;
        match self {
            Place::Store(store) => {
                let written = store.call()?.write_frames(kind, frames, options, on_error)?;
                Ok(written.into_iter().map(|version| version.map(Some)).collect())
            }
            Place::Transaction(transaction) => {
                if let OnItemError::Collect(_) = on_error {
                    return Err(Error::invalid(
                        "a transaction succeeds or fails as a whole, so it has no errors for single tables; use the \
                         store",
                    ));
                }
                let places = frames.len();
                transaction.change_tables(|store, open| store.write_frames_in(open, kind, frames, options))?;
                Ok((0..places).map(|_| Ok(None)).collect())
            }
        }
    }
}

impl Call<'_> {
    /// Encodes all frames and commits them; returns a result for each.
    fn write_frames(
        self,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
        mut on_error: OnItemError,
    ) -> Result<Vec<Result<VersionInfo>>> {
        let (store, places, began) = (self.store, frames.len(), self.began());
        // The pin keeps the blocks that are searched for keys.
        let (base, _pin) = store.pinned_state()?;
        let PreparedWrite { tables, writer, metadata } =
            store.prepare_write(&base, kind, frames, options, &store.numbering(), &mut on_error)?;
        let check_again = tables.iter().any(|table| table.new_keys.is_some());
        let write = FramesWrite { kind, base, _pin, tables, metadata, check_again, began };
        let (after, tables) = store.commit_placed(write, writer, |write, writer| {
            let after = retry_conflicts(|| {
                if std::mem::take(&mut write.check_again) {
                    store.keep_fitting(write, &mut on_error, &options.task)?;
                }
                let committed = store.commit_frames(write, writer.written());
                let refused = |kind| committed.as_ref().is_err_and(|e| e.kind() == kind);
                let by_one = refused(ErrorKind::AlreadyExists) || refused(ErrorKind::InvalidArgument);
                if by_one && on_error.collects() && store.leave_out_refused(write, writer.written(), &mut on_error)? {
                    return Ok(Err(Error::conflict("tables that break a unique index or fit no view are left out")));
                }
                if refused(ErrorKind::Conflict) {
                    write.check_again = true;
                    let state = store.state()?;
                    let evolving = write.tables.iter().filter(|table| table.evolves);
                    let evolving = evolving.filter_map(|table| state.table_id_at(&table.path));
                    store.settle_rows(&evolving.collect(), true)?;
                }
                Ok(committed)
            })?;
            let used = used(&write.tables);
            writer.abandon(|block| !used.contains(&block));
            Ok((after, std::mem::take(&mut write.tables)))
        })?;
        let mut collected = on_error.into_collected();
        let mut written = tables.into_iter().peekable();
        let answer = |at: usize| match written.next_if(|table| table.at == at) {
            Some(table) => store.newest_info(&after, &table.path),
            None => Err(collected
                .remove(&at)
                .unwrap_or_else(|| Error::closed("the write of the frame ended without a result"))),
        };
        Ok((0..places).map(answer).collect())
    }
}

impl Store {
    /// Leaves out the tables of a write that do not fit what others have committed since.
    fn keep_fitting(&self, write: &mut FramesWrite, on_error: &mut OnItemError, task: &Task) -> Result<()> {
        let fit = self.while_reclaimed(|| {
            let (now, pin) = self.pinned_state()?;
            Ok((self.still_fit(&write.base, &now, write.kind, &write.tables, on_error, task)?, now, pin))
        });
        (write.tables, write.base, write._pin) = fit?;
        Ok(())
    }

    /// Leaves out the tables of a write in which two rows would have the same values of a unique index, or that a view could not be over any more. Returns
    /// whether there are any.
    fn leave_out_refused(
        &self,
        write: &mut FramesWrite,
        blocks: &[WrittenBlock],
        on_error: &mut OnItemError,
    ) -> Result<bool> {
        let all = std::mem::take(&mut write.tables);
        let mut fit = Vec::with_capacity(all.len());
        for table in &all {
            write.tables = vec![table.clone()];
            let proven = self.proven(write.proposal(blocks)).and_then(|proposal| self.with_views(proposal));
            write.tables.clone_from(&all);
            match proven {
                Ok(_) => fit.push(table.clone()),
                Err(e) if [ErrorKind::AlreadyExists, ErrorKind::InvalidArgument].contains(&e.kind()) => {
                    on_error.note(table.at, e)?;
                }
                Err(e) => return Err(e),
            }
        }
        write.tables = fit;
        Ok(write.tables.len() < all.len())
    }

    /// Commits the tables of a write, whose row groups are in `blocks`, beside those of frames that turned out to be bad.
    fn commit_frames(&self, write: &FramesWrite, blocks: &[WrittenBlock]) -> Result<Arc<State>> {
        self.commit(write.proposal(blocks))
    }

    /// The same in a transaction.
    pub(in crate::store) fn write_frames_in(
        &self,
        open: &mut OpenTransaction,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<()> {
        let state = open.draft.state();
        let mut reads = Footprint::default();
        for (path, _) in &frames {
            let path = Path::new(path)?;
            let schema = state.table_id_at(&path).map(Read::Schema);
            reads = reads.with(Read::Binding(path));
            reads.reads.extend(schema);
        }
        let numbering = open.numbering(self);
        let prepared = self.prepare_write(state, kind, frames, options, &numbering, &mut OnItemError::Refuse)?;
        let PreparedWrite { tables, writer, metadata } = prepared;
        for table in &tables {
            if self.refuse_present_keys(open.draft.state(), table, &options.task)? {
                open.delete_expired(self, &table.path, &options.task.cancel)?;
            }
        }
        reads.reads.extend(footprint(&tables).reads);
        let state = open.draft.state();
        let evolving = tables.iter().filter(|table| table.evolves).filter_map(|table| state.table_id_at(&table.path));
        open.with_rows_in_groups(self, &evolving.collect(), MemoryScope::All, |open| {
            let effects = effects(open.draft.state(), &tables, writer.written(), kind, metadata.as_deref())?;
            open.apply(reads, effects, Some(writer))
        })
    }

    /// Those of `tables` that can be written to the state `now`, after all that others have committed since `base`: checks
    /// keys that must be new. Errors are collected, or fail the call.
    fn still_fit(
        &self,
        base: &State,
        now: &State,
        kind: VersionKind,
        tables: &[EncodedTable],
        on_error: &mut OnItemError,
        task: &Task,
    ) -> Result<Vec<EncodedTable>> {
        let mut fit = Vec::with_capacity(tables.len());
        for table in tables {
            let of_keys = |read: &&Read| matches!(read, Read::Keys(..));
            let reads = table.footprint.reads.iter().filter(|read| !of_keys(read)).cloned().collect();
            let checked = Footprint { reads }
                .check(base, now)
                .and_then(|()| effects(now, std::slice::from_ref(table), &[], kind, None))
                .and_then(|_| self.refuse_present_keys(now, table, task))
                .and_then(|expired| if expired { self.delete_expired_now(&table.path, &task.cancel) } else { Ok(()) });
            match checked {
                Ok(()) => fit.push(table.clone()),
                // Not the table's fault: it is checked again, in a newer state.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => return Err(e),
                Err(e) => on_error.note(table.at, e)?,
            }
        }
        Ok(fit)
    }

    /// `AlreadyExists` if keys that must be new exist in `state`. Returns whether rows with some of them have expired, but are still there.
    fn refuse_present_keys(&self, state: &State, table: &EncodedTable, task: &Task) -> Result<bool> {
        let Some(NewKeys { codec, keys }) = &table.new_keys else { return Ok(false) };
        let found = &table_at(state, &table.path)?;
        keys.iter().try_fold(false, |expired, keys| {
            let own = self.refuse_present(state, found, codec, keys, &table.path, &task.cancel)?;
            Ok(expired || !own.is_empty())
        })
    }

    /// Encodes all frames, as they are to be written to the tables of `state`.
    pub(in crate::store) fn prepare_write(
        &self,
        state: &State,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
        numbering: &Numbering,
        on_error: &mut OnItemError,
    ) -> Result<PreparedWrite> {
        self.commits().writable_log()?;
        let mut frames_in = Vec::with_capacity(frames.len());
        let mut keyed = Vec::new();
        for (at, path, frame) in distinct(frames, on_error)? {
            let table = state.table_at(&path)?;
            let new = self.options().of_new_tables();
            match target(at, path, frame, state, kind, options, (new, numbering)) {
                Err(e) => on_error.note(at, e)?,
                Ok(target) => match table.filter(|table| table.key().is_some()) {
                    Some(table) => keyed.push((table, target)),
                    None => frames_in.push(target),
                },
            }
        }
        let encoder = self.encoder();
        let mut writer = self.block_writer()?.inline(self.options().inline_bytes);
        let mut tables = encoder.encode(frames_in, &mut writer, &options.task, on_error)?;
        for (table, target) in keyed {
            let at = target.at;
            match encoder.encode_keyed(&table, kind, target, &mut writer, &options.task) {
                Ok(table) => tables.push(table),
                Err(e) => on_error.note(at, e)?,
            }
        }
        tables.sort_unstable_by_key(|table| table.at);
        writer.finish()?;
        options.task.cancel.check()?;
        Ok(PreparedWrite { tables, writer, metadata: options.metadata.clone() })
    }
}

impl Encoder<'_> {
    /// Encodes rows of a table with a key.
    fn encode_keyed(
        &self,
        table: &TableState,
        kind: VersionKind,
        target: TableFrame<'_>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<EncodedTable> {
        let TableFrame { at, path, frame, rows, sort, mut footprint } = target;
        let RowsSchema { stored: schema, evolves, .. } = rows.clone();
        check_key(&sort, &schema.0).map_err(|e| e.context(format!("'{path}'")))?;
        let codec = Arc::new(TableCodec::new(&schema.0, &sort)?);
        codec.check().map_err(|e| e.context(format!("'{path}'")))?;
        let gathered = Gathered::of_rows(codec.clone(), &rows, frame, &path, self.pool)?;
        let encoded = self.encode_by_key(ByKey::Insert, gathered, writer, task)?;
        let new_keys = (kind == VersionKind::Append).then_some(NewKeys { codec, keys: encoded.keys });
        let keys = new_keys.iter().flat_map(|new_keys| &new_keys.keys);
        footprint.reads.extend(keys.map(|keys| Read::Keys(table.id, keys.clone())));
        Ok(EncodedTable { at, path, schema, evolves, sort, keyed: true, new_keys, groups: encoded.groups, footprint })
    }

    /// Encodes one frame and packs it into the blocks of `writer`. Returns its row groups.
    pub fn encode_one(
        &self,
        path: Path,
        frame: Frame<'_>,
        schema: StoredSchema,
        sort: Vec<String>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Vec<NewGroup>> {
        let footprint = Footprint::default();
        let frame = TableFrame { at: 0, path, frame, rows: RowsSchema::known(schema), sort, footprint };
        let mut tables = self.encode(vec![frame], writer, task, &mut OnItemError::Refuse)?;
        Ok(tables.pop().map_or_else(Vec::new, |table| table.groups))
    }

    /// Encodes frames and packs them into blocks, in order.
    fn encode(
        &self,
        frames_in: Vec<TableFrame<'_>>,
        writer: &mut BlockWriter,
        task: &Task,
        on_error: &mut OnItemError,
    ) -> Result<Vec<EncodedTable>> {
        let mut tables = Vec::with_capacity(frames_in.len());
        let mut parts = Vec::with_capacity(frames_in.len());
        for (index, target) in frames_in.into_iter().enumerate() {
            let TableFrame { at, path, frame, rows, sort, footprint } = target;
            let table = format!("'{path}'");
            let (batches, conform) = (frame.into_batches(self.pool, &table), rows.conform(&table)?);
            let RowsSchema { stored: schema, evolves, .. } = rows;
            parts.push(self.row_groups(batches, conform, &sort).map(move |group| (index, group)));
            let (keyed, new_keys, groups) = (false, None, Vec::new());
            tables.push(EncodedTable { at, path, schema, evolves, sort, keyed, new_keys, groups, footprint });
        }
        let mut done = Progress::default();
        let mut placed: Vec<(usize, usize, NewGroup)> = Vec::new();
        let pool = self.pool;
        let encode = |index: usize, group: Vec<RecordBatch>, like: Option<&Schemes>| {
            let EncodedTable { schema, path, .. } = &tables[index];
            caught(|| encode_group(pool, group, &schema.0, like, Proof::Trusted))
                .map_err(|e| e.context(format!("'{path}'")))
        };
        // The first row group of a schema is encoded here, and the others in the same way: so the result does not
        // depend on which thread was first.
        let mut known: HashMap<SchemaRef, (usize, Arc<Schemes>)> = HashMap::new();
        let mut piece = |index: usize, group: Vec<RecordBatch>| {
            let rows = group.iter().map(RecordBatch::num_rows).sum();
            let schema = &tables[index].schema.0;
            match known.get(schema) {
                Some((enough, like)) if rows <= enough * 2 => Ok(PendingGroup::Raw { group, like: like.clone() }),
                _ => {
                    let (encoded, schemes) = encode(index, group, None)?;
                    known.insert(schema.clone(), (rows, Arc::new(schemes)));
                    Ok(PendingGroup::Encoded(encoded))
                }
            }
        };
        let drawn = parts.into_iter().flatten();
        let items = drawn.map(|(index, group)| {
            let run = group.as_ref().map_or(0, |group| group.run);
            Ok((index, run, group.and_then(|group| piece(index, group.batches))))
        });
        pool.ordered(
            items,
            |(.., piece): &(usize, usize, Result<PendingGroup>)| match piece {
                Ok(PendingGroup::Raw { group, .. }) => group.iter().map(batch_bytes).sum(),
                _ => 0,
            },
            pool.threads() * 2,
            // The other parts go to copies made while encoding, encoded columns, and the block being filled.
            self.memory_bytes / 4,
            |(index, run, piece)| {
                task.cancel.check()?;
                let encoded = piece.and_then(|piece| match piece {
                    PendingGroup::Raw { group, like } => Ok(encode(index, group, Some(&like))?.0),
                    PendingGroup::Encoded(group) => Ok(group),
                });
                Ok((index, run, encoded))
            },
            |(index, run, encoded)| {
                let at = tables[index].at;
                let group = match encoded {
                    Ok(group) if !on_error.has(at) => group,
                    Ok(_) => return Ok(()),
                    Err(e) => return on_error.note(at, e),
                };
                let rows = group.rows;
                let address = writer.push(group)?;
                placed.push((index, run, NewGroup { address, rows, dead: None }));
                done.done += 1;
                done.rows += u64::from(rows);
                done.bytes += address.bytes();
                task.step(done)
            },
        )?;
        for placed in placed.chunk_by(|a, b| a.0 == b.0) {
            let EncodedTable { schema, sort, path, groups, .. } = &mut tables[placed[0].0];
            *groups = self.one_run(placed, schema, sort, writer, task).map_err(|e| e.context(format!("'{path}'")))?;
        }
        tables.retain(|table| !on_error.has(table.at));
        Ok(tables)
    }
}

/// How a frame is to be encoded, in `state`.
fn target<'a>(
    at: usize,
    path: Path,
    frame: Frame<'a>,
    state: &State,
    kind: VersionKind,
    options: &WriteOptions,
    (new, numbering): (Option<Compression>, &Numbering),
) -> Result<TableFrame<'a>> {
    let existing = state.table_at(&path)?;
    existing.as_ref().map_or(Ok(()), |table| refuse_view(state, table.id))?;
    let own = existing.as_ref().map(|table| table.order().to_vec());
    let came = frame.schema();
    let meant = |name: &String| column_meant(name, came).to_owned();
    let asked = options.sort.as_ref().map(|names| names.iter().map(meant).collect());
    let sort = check_own_sort(&path, own, &asked)?;
    let mut footprint = Footprint::default();
    let rows = match kind {
        VersionKind::Append => {
            let table = &table_at(state, &path)?;
            footprint = footprint.with(Read::Binding(path.clone())).with(Read::Schema(table.id));
            RowsSchema::added(table, came, options.schema, &numbering.generators(state, table))
        }
        _ => RowsSchema::whole(existing.as_deref(), came, &sort, options.compression, new),
    };
    let rows = rows.map_err(|e| e.context(format!("'{path}'")))?;
    Ok(TableFrame { at, path, frame, rows, sort, footprint })
}

/// Checks the paths of one call, and that none occurs twice; returns the frames with their places.
fn distinct<'a>(frames: Vec<(String, Frame<'a>)>, on_error: &mut OnItemError) -> Result<Vec<(usize, Path, Frame<'a>)>> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(frames.len());
    for (at, (path, frame)) in frames.into_iter().enumerate() {
        match Path::new(&path) {
            Err(e) => on_error.note(at, e)?,
            Ok(path) if seen.insert(path.clone()) => checked.push((at, path, frame)),
            Ok(path) => return Err(Error::invalid(format!("'{path}' is given twice in one call"))),
        }
    }
    Ok(checked)
}

/// The sort order to write in: the table's own, which a requested order must equal.
fn check_own_sort(path: &Path, own: Option<Vec<String>>, asked: &Option<Vec<String>>) -> Result<Vec<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) if own != *asked => {
            let own = if own.is_empty() {
                "has no sort order".to_owned()
            } else {
                format!("is sorted by '{}'", own.join("', '"))
            };
            let asked = asked.join("', '");
            Err(Error::invalid(format!(
                "'{path}' {own}, but '{asked}' was requested; a table keeps the order that it was created with"
            )))
        }
        (Some(own), _) => Ok(own),
        (None, asked) => Ok(asked.clone().unwrap_or_default()),
    }
}

/// What they depend on.
fn footprint(tables: &[EncodedTable]) -> Footprint {
    Footprint { reads: tables.iter().flat_map(|table| table.footprint.reads.iter().cloned()).collect() }
}

/// The blocks that their row groups lie in.
fn used(tables: &[EncodedTable]) -> BTreeSet<BlockId> {
    tables.iter().flat_map(|table| &table.groups).map(|group| group.address.block).collect()
}

/// The effects of a write or append of `tables`, on the state as it is now.
fn effects(
    state: &State,
    tables: &[EncodedTable],
    blocks: &[WrittenBlock],
    kind: VersionKind,
    metadata: Option<&str>,
) -> Result<Vec<Effect>> {
    let mut changes = TableChanges::on(state, add_blocks(blocks));
    for EncodedTable { path, schema, evolves, sort, keyed, groups, .. } in tables {
        let existing = state.table_at(path)?;
        let existing = existing.as_ref();
        let mut change =
            TableChange { groups: groups.clone(), metadata: metadata.map(str::to_owned), ..TableChange::new(kind) };
        match existing {
            Some(table) if table.order() != sort || table.spec.keyed != *keyed => {
                return Err(Error::conflict(format!("'{path}' was created again with another sort order or key")));
            }
            None if *keyed => return Err(Error::conflict(format!("'{path}' was dropped during the call"))),
            _ => {}
        }
        if kind == VersionKind::Write {
            change.kill = Kill::All;
            let known = existing.and_then(|table| table.schema());
            if !existing.is_none_or(|table| table.takes_in_place(schema)) {
                return Err(Error::conflict(format!("the columns or constraints of '{path}' changed during the call")));
            }
            let differs = known.is_none_or(|known| known != schema);
            change.schema = differs.then(|| schema.clone());
        } else {
            change.schema = evolves.then(|| schema.clone());
        }
        let spec = TableSpec { sort: sort.clone(), keyed: false };
        changes.push(existing.map(|table| table.id), path, spec, change);
    }
    Ok(changes.into_effects())
}
