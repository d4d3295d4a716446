//! How frames come to be versions: encoded and on storage first, then one commit for all tables of the call.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::again::replace_groups;
use super::commit::{Proposal, Work};
use super::keyed::{ByKey, Gathered};
use super::write::{add_blocks, may_be_there, settle, table_at};
use super::{Frame, Store, VersionInfo, WriteOptions};
use crate::base::{BlockId, Error, ErrorKind, Progress, Result, Task, caught};
use crate::block::{BlockWriter, EncodedRowGroup, Written};
use crate::catalog::{Effect, Footprint, Path, Read, State};
use crate::table::{
    Change, Conform, Kill, NewGroup, RowGroups, Schemes, StoredSchema, Table, TableCodec, TableSpec, VersionKind,
    batch_bytes, check_key, check_sort, encode_group, sorted_schema,
};

/// What becomes of a call where a table of it cannot be written.
pub(super) enum Faults {
    /// It is refused.
    Refused,
    /// The others are written; what was wrong is noted, by the frame's place.
    Noted(BTreeMap<usize, Error>),
}

impl Faults {
    /// Notes what is wrong with the frame at a place, unless that is for the whole call to fail at.
    fn note(&mut self, at: usize, error: Error) -> Result<()> {
        match self {
            Faults::Noted(noted) if is_of_one(&error) => {
                noted.entry(at).or_insert(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn has(&self, at: usize) -> bool {
        matches!(self, Faults::Noted(noted) if noted.contains_key(&at))
    }

    fn into_noted(self) -> BTreeMap<usize, Error> {
        match self {
            Faults::Refused => BTreeMap::new(),
            Faults::Noted(noted) => noted,
        }
    }
}

/// Whether an error says something of one item of a call, not of storage, the store or the call.
pub(super) fn is_of_one(error: &Error) -> bool {
    use ErrorKind::*;
    match error.kind() {
        NotFound | AlreadyExists | InvalidArgument | SchemaMismatch | ConditionFailed | Conflict | Corrupt
        | SnapshotExpired | Internal => true,
        Unavailable | InDoubt | Locked | Unsupported | Closed | Cancelled => false,
    }
}

/// One table of a call, ready to be encoded.
struct Target<'a> {
    /// Its place in the call.
    at: usize,
    path: Path,
    frame: Frame<'a>,
    /// What the rows are brought to.
    schema: SchemaRef,
    sort: Vec<String>,
    footprint: Footprint,
}

/// What was encoded for one table.
#[derive(Clone)]
struct Landing {
    /// Its place in the call.
    at: usize,
    path: Path,
    schema: SchemaRef,
    sort: Vec<String>,
    keyed: bool,
    groups: Vec<NewGroup>,
    /// What it rests on.
    footprint: Footprint,
}

/// A row group on its way.
enum Piece {
    Raw { group: Vec<RecordBatch>, like: Arc<Schemes> },
    Encoded(EncodedRowGroup),
}

/// A write whose rows are on storage, waiting for its commit.
pub(super) struct Prepared {
    landings: Vec<Landing>,
    blocks: Vec<Written>,
    writer: BlockWriter,
    metadata: Option<String>,
}

impl Prepared {
    /// What it rests on, the effects on `state`, and the writer, which deletes its blocks unless it is told to keep them.
    pub fn into_effects(self, state: &State, kind: VersionKind) -> Result<(Footprint, Vec<Effect>, BlockWriter)> {
        let effects = effects(state, &self.landings, &self.blocks, kind, self.metadata.as_deref())?;
        Ok((footprint(&self.landings), effects, self.writer))
    }
}

impl Store {
    /// Encodes all frames and commits them; an answer for each.
    pub(super) fn land(
        &self,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
        mut faults: Faults,
    ) -> Result<Vec<Result<VersionInfo>>> {
        let places = frames.len();
        // The pin keeps the blocks that are searched for keys.
        let (base, _pin) = self.pinned_state()?;
        let Prepared { mut landings, mut blocks, mut writer, metadata } =
            self.prepare_write(&base, kind, frames, options, &mut faults)?;
        let answer = loop {
            // What was encoded for frames that turned out to be bad lies in blocks beside the others.
            let used = used(&landings);
            let referred: Vec<Written> =
                blocks.iter().filter(|written| used.contains(&written.block)).cloned().collect();
            let (own, note) = (landings.clone(), metadata.clone());
            let build = move |state: &State| effects(state, &own, &referred, kind, note.as_deref());
            let (base, footprint) = (base.clone(), footprint(&landings));
            let proposal = Proposal { base: base.clone(), footprint, work: Work::Build(Box::new(build)) };
            match self.commit(proposal) {
                Err(e) if e.kind() == ErrorKind::Conflict && matches!(faults, Faults::Noted(_)) => {
                    let fit = self.still_fit(&base, kind, &landings, &mut faults)?;
                    if fit.len() == landings.len() {
                        break Err(e);
                    }
                    landings = fit;
                }
                answer => match self.written_again(&answer, &mut writer)? {
                    Some(replaced) => {
                        landings.iter_mut().for_each(|landing| replace_groups(&mut landing.groups, &replaced));
                        blocks = writer.finish()?.to_vec();
                    }
                    None => break answer,
                },
            }
        };
        if may_be_there(&answer) {
            let used = used(&landings);
            writer.abandon(|block| !used.contains(&block));
        }
        let after = settle(answer, writer)?;
        let mut noted = faults.into_noted();
        let mut landed = landings.into_iter().peekable();
        let answer = |at: usize| match landed.next_if(|landing| landing.at == at) {
            Some(landing) => self.newest_info(&after, &landing.path),
            None => Err(noted.remove(&at).unwrap_or_else(|| Error::closed("the frame has no answer"))),
        };
        Ok((0..places).map(answer).collect())
    }

    /// The landings that others have not touched since `base`; the others are noted.
    fn still_fit(
        &self,
        base: &State,
        kind: VersionKind,
        landings: &[Landing],
        faults: &mut Faults,
    ) -> Result<Vec<Landing>> {
        let now = self.current()?;
        let mut fit = Vec::with_capacity(landings.len());
        for landing in landings {
            let made = || effects(&now, std::slice::from_ref(landing), &[], kind, None);
            match landing.footprint.check(base, &now).and_then(|()| made()) {
                Ok(_) => fit.push(landing.clone()),
                Err(e) => faults.note(landing.at, e)?,
            }
        }
        Ok(fit)
    }

    /// Encodes all frames, as they are to be written to the tables of `state`.
    pub(super) fn prepare_write(
        &self,
        state: &State,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
        faults: &mut Faults,
    ) -> Result<Prepared> {
        self.inner.log()?;
        let mut targets = Vec::with_capacity(frames.len());
        let mut keyed = Vec::new();
        for (at, path, frame) in distinct(frames, faults)? {
            let table = state.table_at(&path);
            match target(at, path, frame, state, kind, options) {
                Err(e) => faults.note(at, e)?,
                Ok(target) => match table.filter(|table| table.key().is_some()) {
                    Some(table) => keyed.push((table, target)),
                    None => targets.push(target),
                },
            }
        }
        let (mut landings, mut writer) = self.encode(targets, &options.task, faults)?;
        for (table, target) in keyed {
            let at = target.at;
            match self.encode_keyed(state, table, kind, target, &mut writer, &options.task) {
                Ok(landing) => landings.push(landing),
                Err(e) => faults.note(at, e)?,
            }
        }
        landings.sort_unstable_by_key(|landing| landing.at);
        let blocks = writer.finish()?.to_vec();
        options.task.cancel.check()?;
        Ok(Prepared { landings, blocks, writer, metadata: options.metadata.clone() })
    }

    /// Encodes rows of a table with a key.
    fn encode_keyed(
        &self,
        state: &State,
        table: &Table,
        kind: VersionKind,
        target: Target<'_>,
        writer: &mut BlockWriter,
        task: &Task,
    ) -> Result<Landing> {
        let Target { at, path, frame, schema, sort, mut footprint } = target;
        check_key(&sort, &schema).map_err(|e| e.context(format!("'{path}'")))?;
        let codec = Arc::new(TableCodec::new(&schema, &sort)?);
        codec.check().map_err(|e| e.context(format!("'{path}'")))?;
        let gathered = Gathered::of_rows(codec.clone(), frame, &path, &self.inner.env.pool);
        let encoded = self.encode_by_key(ByKey::Insert, gathered, writer, task)?;
        if kind == VersionKind::Append {
            for keys in &encoded.keys {
                self.refuse_present(state, table, &codec, keys, &path, &task.cancel)?;
                footprint = footprint.with(Read::Keys(table.id, keys.clone()));
            }
        }
        Ok(Landing { at, path, schema, sort, keyed: true, groups: encoded.groups, footprint })
    }

    /// Encodes frames and packs them into blocks, in order.
    fn encode(
        &self,
        targets: Vec<Target<'_>>,
        task: &Task,
        faults: &mut Faults,
    ) -> Result<(Vec<Landing>, BlockWriter)> {
        let mut landings = Vec::with_capacity(targets.len());
        let mut parts = Vec::with_capacity(targets.len());
        for (index, Target { at, path, frame, schema, sort, footprint }) in targets.into_iter().enumerate() {
            let table = format!("'{path}'");
            let batches = frame.into_batches(&self.inner.env.pool, &table);
            let groups = RowGroups::new(batches, Conform::new(schema.clone()).named(table));
            parts.push(groups.map(move |group| (index, group)));
            landings.push(Landing { at, path, schema, sort, keyed: false, groups: Vec::new(), footprint });
        }
        let mut writer = self.block_writer()?.inline(self.inner.options.inline_bytes);
        let mut done = Progress::default();
        let mut placed: Vec<(usize, NewGroup)> = Vec::new();
        let pool = &self.inner.env.pool;
        let encode = |index: usize, group: Vec<RecordBatch>, like: Option<&Schemes>| {
            let Landing { schema, sort, path, .. } = &landings[index];
            caught(|| encode_group(pool, group, schema, sort, like)).map_err(|e| e.context(format!("'{path}'")))
        };
        // The first row group of a schema is encoded here, the others the way that it was: what they look like does not
        // depend on which thread was first.
        let mut known: HashMap<SchemaRef, (usize, Arc<Schemes>)> = HashMap::new();
        let mut piece = |index: usize, group: Vec<RecordBatch>| {
            let rows = group.iter().map(RecordBatch::num_rows).sum();
            let schema = &landings[index].schema;
            match known.get(schema) {
                Some((enough, like)) if rows <= enough * 2 => Ok(Piece::Raw { group, like: like.clone() }),
                _ => {
                    let (encoded, schemes) = encode(index, group, None)?;
                    known.insert(schema.clone(), (rows, Arc::new(schemes)));
                    Ok(Piece::Encoded(encoded))
                }
            }
        };
        let drawn = parts.into_iter().flatten();
        let items = drawn.map(|(index, group)| Ok((index, group.and_then(|group| piece(index, group)))));
        pool.ordered(
            items,
            |(_, piece): &(usize, Result<Piece>)| match piece {
                Ok(Piece::Raw { group, .. }) => group.iter().map(batch_bytes).sum(),
                _ => 0,
            },
            pool.threads() * 2,
            // The other parts go to copies made while encoding, encoded columns, and the block being filled.
            self.inner.options.memory_bytes / 4,
            |(index, piece)| {
                task.cancel.check()?;
                let encoded = piece.and_then(|piece| match piece {
                    Piece::Raw { group, like } => Ok(encode(index, group, Some(&like))?.0),
                    Piece::Encoded(group) => Ok(group),
                });
                Ok((index, encoded))
            },
            |(index, encoded)| {
                let at = landings[index].at;
                let group = match encoded {
                    Ok(group) if !faults.has(at) => group,
                    Ok(_) => return Ok(()),
                    Err(e) => return faults.note(at, e),
                };
                let rows = group.rows;
                let address = writer.push(group)?;
                placed.push((index, NewGroup { address, rows, dead: None }));
                done.done += 1;
                done.rows += u64::from(rows);
                done.bytes += address.bytes();
                task.step(done)
            },
        )?;
        for (index, group) in placed {
            landings[index].groups.push(group);
        }
        landings.retain(|landing| !faults.has(landing.at));
        Ok((landings, writer))
    }
}

/// What a frame is to be encoded as, in `state`.
fn target<'a>(
    at: usize,
    path: Path,
    frame: Frame<'a>,
    state: &State,
    kind: VersionKind,
    options: &WriteOptions,
) -> Result<Target<'a>> {
    let own = state.table_at(&path).map(|table| table.spec.sort.clone());
    let sort = check_own_sort(&path, own, &options.sort)?;
    let mut footprint = Footprint::default();
    let schema = match kind {
        VersionKind::Append => {
            let table = table_at(state, &path)?;
            footprint = footprint.with(Read::Binding(path.clone())).with(Read::Schema(table.id));
            table.schema().expect("every table has a version").0.clone()
        }
        _ => {
            let schema = StoredSchema::new(sorted_schema(frame.schema(), &sort)).and_then(|schema| {
                check_sort(&sort, &schema.0)?;
                Ok(schema.0)
            });
            schema.map_err(|e| e.context(format!("'{path}'")))?
        }
    };
    Ok(Target { at, path, frame, schema, sort, footprint })
}

/// Checks the paths of one call, and that none comes twice; with their places.
fn distinct<'a>(frames: Vec<(String, Frame<'a>)>, faults: &mut Faults) -> Result<Vec<(usize, Path, Frame<'a>)>> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(frames.len());
    for (at, (path, frame)) in frames.into_iter().enumerate() {
        match Path::new(&path) {
            Err(e) => faults.note(at, e)?,
            Ok(path) if seen.insert(path.clone()) => checked.push((at, path, frame)),
            Ok(path) => return Err(Error::invalid(format!("'{path}' is given twice in one call"))),
        }
    }
    Ok(checked)
}

/// The sort order to write in: the table's own, which an order asked for must equal.
fn check_own_sort(path: &Path, own: Option<Vec<String>>, asked: &Option<Vec<String>>) -> Result<Vec<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) if own != *asked => {
            let own = if own.is_empty() { "has no sort order".to_owned() } else { format!("is sorted by {own:?}") };
            Err(Error::invalid(format!(
                "'{path}' {own}, {asked:?} was asked for; a table keeps the order it was made with"
            )))
        }
        (Some(own), _) => Ok(own),
        (None, asked) => Ok(asked.clone().unwrap_or_default()),
    }
}

/// What they rest on.
fn footprint(landings: &[Landing]) -> Footprint {
    Footprint { reads: landings.iter().flat_map(|landing| landing.footprint.reads.iter().cloned()).collect() }
}

/// The blocks that their row groups lie in.
fn used(landings: &[Landing]) -> BTreeSet<BlockId> {
    landings.iter().flat_map(|landing| &landing.groups).map(|group| group.address.block).collect()
}

/// The effects of a write or append of `landings`, on the state as it is now.
fn effects(
    state: &State,
    landings: &[Landing],
    blocks: &[Written],
    kind: VersionKind,
    metadata: Option<&str>,
) -> Result<Vec<Effect>> {
    let mut effects = add_blocks(blocks);
    let mut next_table = state.next_table();
    for landing in landings {
        let existing = state.table_at(&landing.path);
        let mut change =
            Change { groups: landing.groups.clone(), metadata: metadata.map(str::to_owned), ..Change::new(kind) };
        let table = match existing {
            Some(table) if table.spec.sort != landing.sort || table.spec.keyed != landing.keyed => {
                return Err(Error::conflict(format!("'{}' was made anew with another order or key", landing.path)));
            }
            None if landing.keyed => return Err(Error::conflict(format!("'{}' was dropped meanwhile", landing.path))),
            Some(table) => table.id,
            None => {
                let table = next_table;
                next_table.0 += 1;
                effects.push(Effect::CreateTable {
                    path: landing.path.clone(),
                    table,
                    spec: TableSpec { sort: landing.sort.clone(), keyed: false },
                });
                table
            }
        };
        if kind == VersionKind::Write {
            change.kill = Kill::All;
            let known = existing.and_then(|table| table.schema());
            let differs = known.is_none_or(|known| known.0 != landing.schema);
            change.schema = differs.then(|| StoredSchema(landing.schema.clone()));
        }
        effects.push(Effect::ChangeTable { table, change });
    }
    Ok(effects)
}
