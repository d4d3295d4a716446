//! Writing and appending frames: encoded and on storage first, then one commit for all tables of the call.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;

use super::commit::{Proposal, Work};
use super::keyed::{ByKey, Gathered};
use super::{Store, VersionInfo};
use crate::base::{Error, ErrorKind, Progress, Result, Task};
use crate::block::{BlockWriter, EncodedRowGroup, Written};
use crate::catalog::{Effect, Footprint, Inline, Path, Read, State};
use crate::table::{
    Change, Kill, NewGroup, RowGroups, Schemes, StoredSchema, Table, TableCodec, TableSpec, Trust, VersionKind,
    batch_bytes, check_key, check_sort, encode_group, sorted_schema,
};

/// Rows to be written: a schema, and batches that have it.
pub struct Frame<'a> {
    trust: Trust,
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>,
}

impl<'a> Frame<'a> {
    /// A frame from batches as they come; they are drawn once, on the calling thread.
    pub fn new(schema: SchemaRef, batches: impl Iterator<Item = Result<RecordBatch>> + 'a) -> Self {
        Self { trust: Trust::Checked, schema, batches: Box::new(batches) }
    }

    /// The same frame, its arrays checked fully before use, as those that came over the C interface must be.
    #[must_use]
    pub fn foreign(mut self) -> Self {
        self.trust = Trust::Foreign;
        self
    }

    /// Whether the arrays are to be checked.
    pub(super) fn trust(&self) -> Trust {
        self.trust
    }

    /// A frame from an Arrow stream.
    pub fn from_reader(reader: impl RecordBatchReader + 'a) -> Self {
        Self::new(reader.schema(), reader.map(|batch| batch.map_err(Error::from)))
    }

    /// The batches.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Result<RecordBatch>> + 'a {
        self.batches
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl From<RecordBatch> for Frame<'_> {
    fn from(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), std::iter::once(Ok(batch)))
    }
}

/// What a new table is made with.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Columns by which rows are ordered when read. Default: none, rows keep insertion order.
    pub sort: Vec<String>,
    /// The key: columns in which no two rows are equal, and by which rows are ordered. Not together with `sort`. Default:
    /// none.
    pub key: Vec<String>,
}

/// How rows are written.
#[derive(Clone, Default)]
pub struct WriteOptions {
    /// A note kept with the version, as JSON text. Default: none.
    pub metadata: Option<String>,
    /// The sort order, if the table is new; must be the table's own if it is not. Default: the table's own, or none.
    pub sort: Option<Vec<String>>,
    /// Progress in row groups, and cancelling.
    pub task: Task,
}

/// One table of a call, ready to be encoded.
struct Target<'a> {
    path: Path,
    frame: Frame<'a>,
    /// What the rows are brought to.
    schema: SchemaRef,
    sort: Vec<String>,
}

/// What was encoded for one table.
#[derive(Clone)]
struct Landing {
    path: Path,
    schema: SchemaRef,
    sort: Vec<String>,
    keyed: bool,
    groups: Vec<NewGroup>,
}

/// A row group on its way.
enum Piece {
    Raw { group: Vec<RecordBatch>, like: Arc<Schemes> },
    Encoded(EncodedRowGroup),
}

/// A write whose rows are on storage, waiting for its commit.
pub(super) struct Prepared {
    footprint: Footprint,
    landings: Vec<Landing>,
    blocks: Vec<Written>,
    writer: BlockWriter,
    metadata: Option<String>,
}

impl Prepared {
    /// What it rests on, the effects on `state`, and the writer, which deletes its blocks unless it is told to keep them.
    pub fn into_effects(self, state: &State, kind: VersionKind) -> Result<(Footprint, Vec<Effect>, BlockWriter)> {
        let effects = effects(state, &self.landings, &self.blocks, kind, self.metadata.as_deref())?;
        Ok((self.footprint, effects, self.writer))
    }
}

impl Store {
    /// Makes an empty table; its version 0 has no rows.
    pub fn create(&self, path: &str, schema: SchemaRef, options: TableOptions) -> Result<VersionInfo> {
        let path = Path::new(path)?;
        let build = create_table(path.clone(), &schema, options)?;
        let after = self.commit_effects(build)?;
        self.newest_info(&after, &path)
    }

    /// Makes a version of the table at `path` that holds exactly the rows of `frame`; makes the table if needed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    /// let version = store.write("numbers", rows, &Default::default())?;
    /// assert_eq!((version.version.0, version.rows), (0, 3));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn write<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<VersionInfo> {
        let versions = self.write_many(vec![(path.to_owned(), frame.into())], options)?;
        Ok(versions.into_iter().next().expect("one for each frame"))
    }

    /// Writes many tables in one commit: all of them or none. Small ones share blocks.
    pub fn write_many(&self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<Vec<VersionInfo>> {
        self.see_others()?;
        self.land(VersionKind::Write, frames, options)
    }

    /// Makes a version of the table at `path` with the rows of `frame` behind those there are. The columns must be the
    /// table's, in any order; see [`crate::table::conform`] for what is converted. Rows of a keyed table must have keys that
    /// are new, as for [`Store::insert`].
    pub fn append<'a>(&self, path: &str, frame: impl Into<Frame<'a>>, options: &WriteOptions) -> Result<VersionInfo> {
        let checked = Path::new(path)?;
        self.see_others()?;
        if self.state()?.table_at(&checked).is_some_and(|table| table.key().is_some()) {
            return self.append_by_key(&checked, frame.into(), options);
        }
        let versions = self.land(VersionKind::Append, vec![(path.to_owned(), frame.into())], options)?;
        Ok(versions.into_iter().next().expect("one for each frame"))
    }

    /// Appends to many tables in one commit: all of them or none.
    pub fn append_many(&self, frames: Vec<(String, Frame<'_>)>, options: &WriteOptions) -> Result<Vec<VersionInfo>> {
        self.see_others()?;
        self.land(VersionKind::Append, frames, options)
    }

    /// Encodes all frames and commits them.
    fn land(
        &self,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<Vec<VersionInfo>> {
        // The pin keeps the blocks that are searched for keys.
        let (base, _pin) = self.pinned_state()?;
        let prepared = self.prepare_write(&base, kind, frames, options)?;
        let paths: Vec<Path> = prepared.landings.iter().map(|landing| landing.path.clone()).collect();
        let Prepared { footprint, landings, blocks, writer, metadata } = prepared;
        let build = move |state: &State| effects(state, &landings, &blocks, kind, metadata.as_deref());
        let answer = self.commit(Proposal { base, footprint, work: Work::Build(Box::new(build)) });
        let after = settle(answer, writer)?;
        paths.iter().map(|path| self.newest_info(&after, path)).collect()
    }

    /// Encodes all frames, as they are to be written to the tables of `state`.
    pub(super) fn prepare_write(
        &self,
        state: &State,
        kind: VersionKind,
        frames: Vec<(String, Frame<'_>)>,
        options: &WriteOptions,
    ) -> Result<Prepared> {
        self.inner.log()?;
        let mut footprint = Footprint::default();
        let mut targets = Vec::with_capacity(frames.len());
        let mut keyed = Vec::new();
        for (at, (path, frame)) in distinct(frames)?.into_iter().enumerate() {
            let table = state.table_at(&path);
            let sort = check_own_sort(&path, table.map(|table| table.spec.sort.clone()), &options.sort)?;
            let schema = match kind {
                VersionKind::Append => {
                    let table = table_at(state, &path)?;
                    footprint = footprint.with(Read::Binding(path.clone())).with(Read::Schema(table.id));
                    table.schema().expect("every table has a version").0.clone()
                }
                _ => {
                    let schema = StoredSchema::new(sorted_schema(&frame.schema, &sort))?.0;
                    check_sort(&sort, &schema).map_err(|e| e.context(format!("'{path}'")))?;
                    schema
                }
            };
            let target = Target { path, frame, schema, sort };
            match table.filter(|table| table.key().is_some()) {
                Some(table) => keyed.push((at, table, target)),
                None => targets.push(target),
            }
        }
        let (mut landings, mut writer) = self.encode(targets, &options.task)?;
        for (at, table, Target { path, frame, schema, sort }) in keyed {
            check_key(&sort, &schema).map_err(|e| e.context(format!("'{path}'")))?;
            let codec = Arc::new(TableCodec::new(&schema, &sort)?);
            codec.check().map_err(|e| e.context(format!("'{path}'")))?;
            let gathered = Gathered::of_rows(codec.clone(), frame, &path);
            let encoded = self.encode_by_key(ByKey::Insert, gathered, &mut writer, &options.task)?;
            if kind == VersionKind::Append {
                for keys in &encoded.keys {
                    self.refuse_present(state, table, &codec, keys, &path, &options.task.cancel)?;
                    footprint = footprint.with(Read::Keys(table.id, keys.clone()));
                }
            }
            landings.insert(at, Landing { path, schema, sort, keyed: true, groups: encoded.groups });
        }
        let blocks = writer.finish()?.to_vec();
        options.task.cancel.check()?;
        Ok(Prepared { footprint, landings, blocks, writer, metadata: options.metadata.clone() })
    }

    /// Encodes frames and packs them into blocks, in order.
    fn encode(&self, targets: Vec<Target<'_>>, task: &Task) -> Result<(Vec<Landing>, BlockWriter)> {
        let mut landings = Vec::with_capacity(targets.len());
        let mut parts = Vec::with_capacity(targets.len());
        let mut heads = Vec::with_capacity(targets.len());
        for (at, Target { path, frame, schema, sort }) in targets.into_iter().enumerate() {
            heads.push((schema.clone(), sort.clone(), frame.trust));
            let (own, order) = (schema.clone(), sort.clone());
            landings.push(Landing { path, schema: own, sort: order, keyed: false, groups: Vec::new() });
            parts.push(RowGroups::new(frame.batches, schema).map(move |group| Ok((at, group?))));
        }
        let mut writer = self.block_writer()?.inline(self.inner.options.inline_bytes);
        let mut done = Progress::default();
        let mut placed: Vec<(usize, NewGroup)> = Vec::new();
        let pool = &self.inner.env.pool;
        let encode = |at: usize, group: Vec<RecordBatch>, like: Option<&Schemes>| {
            let (schema, sort, trust) = &heads[at];
            encode_group(pool, group, schema, sort, *trust, like)
                .map_err(|e| e.context(format!("'{}'", landings[at].path)))
        };
        // The first row group of a schema is encoded here, the others the way that it was: what they look like does not
        // depend on which thread was first.
        let mut known: HashMap<SchemaRef, (usize, Arc<Schemes>)> = HashMap::new();
        let items = parts.into_iter().flatten().map(|item: Result<(usize, Vec<RecordBatch>)>| {
            let (at, group) = item?;
            let rows = group.iter().map(RecordBatch::num_rows).sum();
            match known.get(&heads[at].0) {
                Some((enough, like)) if rows <= enough * 2 => Ok((at, Piece::Raw { group, like: like.clone() })),
                _ => {
                    let (encoded, schemes) = encode(at, group, None)?;
                    known.insert(heads[at].0.clone(), (rows, Arc::new(schemes)));
                    Ok((at, Piece::Encoded(encoded)))
                }
            }
        });
        pool.ordered(
            items,
            |(_, piece)| match piece {
                Piece::Raw { group, .. } => group.iter().map(batch_bytes).sum(),
                Piece::Encoded(_) => 0,
            },
            pool.threads() * 2,
            // The other parts go to copies made while encoding, encoded columns, and the block being filled.
            self.inner.options.memory_bytes / 4,
            |(at, piece)| {
                task.cancel.check()?;
                match piece {
                    Piece::Raw { group, like } => Ok((at, encode(at, group, Some(&like))?.0)),
                    Piece::Encoded(group) => Ok((at, group)),
                }
            },
            |(at, group)| {
                let rows = group.rows;
                let address = writer.push(group)?;
                placed.push((at, NewGroup { address, rows, dead: None }));
                done.done += 1;
                done.rows += u64::from(rows);
                done.bytes += address.bytes();
                task.step(done)
            },
        )?;
        for (at, group) in placed {
            landings[at].groups.push(group);
        }
        Ok((landings, writer))
    }

    /// A writer for this process's next blocks.
    pub(super) fn block_writer(&self) -> Result<BlockWriter> {
        Ok(BlockWriter::new(self.inner.storage.clone(), self.block_numbers()?, self.inner.options.block_bytes))
    }
}

/// Makes the effects that make an empty table.
pub(super) fn create_table(
    path: Path,
    schema: &SchemaRef,
    mut options: TableOptions,
) -> Result<impl FnMut(&State) -> Result<Vec<Effect>> + use<>> {
    let keyed = !options.key.is_empty();
    if keyed {
        if !options.sort.is_empty() {
            return Err(Error::invalid("give a key or a sort order, not both; rows are ordered by the key"));
        }
        check_key(&options.key, schema)?;
        // That its rows can be held in memory.
        TableCodec::new(schema, &options.key)?.check()?;
        options.sort = options.key;
    }
    let schema = StoredSchema::new(sorted_schema(schema, &options.sort))?;
    check_sort(&options.sort, &schema.0)?;
    Ok(move |state: &State| {
        if state.table_at(&path).is_some() {
            return Err(Error::already_exists(format!("'{path}' holds a table")));
        }
        let table = state.next_table();
        let change = Change { schema: Some(schema.clone()), ..Change::new(VersionKind::Create) };
        let spec = TableSpec { sort: options.sort.clone(), keyed };
        Ok(vec![Effect::CreateTable { path: path.clone(), table, spec }, Effect::ChangeTable { table, change }])
    })
}

/// Whether a commit with this answer is in the log, or may be.
pub(super) fn may_be_there<T>(answer: &Result<T>) -> bool {
    answer.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::InDoubt)
}

/// Keeps a writer's blocks if their commit is there or may be; else deletes them.
pub(super) fn settle<T>(answer: Result<T>, writer: BlockWriter) -> Result<T> {
    if may_be_there(&answer) {
        writer.keep();
    }
    answer
}

/// The effects that make blocks known, and bring those that are not on storage.
pub(super) fn add_blocks(blocks: &[Written]) -> Vec<Effect> {
    let (mut effects, mut stored) = (Vec::new(), Vec::new());
    for Written { block, bytes, inline } in blocks {
        match inline {
            Some(content) => effects.push(Effect::AddInline { block: *block, content: Inline(content.clone()) }),
            None => stored.push((*block, *bytes)),
        }
    }
    effects.extend((!stored.is_empty()).then_some(Effect::AddBlocks { blocks: stored }));
    effects
}

/// The table at `path`, or `NotFound` with what could be meant.
pub(super) fn table_at<'a>(state: &'a State, path: &Path) -> Result<&'a Arc<Table>> {
    state.table_at(path).ok_or_else(|| {
        let node = if state.tree.get(path.as_str()).is_some() { "; the node is there, but holds none" } else { "" };
        Error::not_found(format!("no table at '{path}'{node}"))
    })
}

/// Checks the paths of one call, and that none comes twice.
fn distinct(frames: Vec<(String, Frame<'_>)>) -> Result<Vec<(Path, Frame<'_>)>> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(frames.len());
    for (path, frame) in frames {
        let path = Path::new(&path)?;
        if !seen.insert(path.clone()) {
            return Err(Error::invalid(format!("'{path}' is given twice in one call")));
        }
        checked.push((path, frame));
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
