//! Erasing rows from all versions: first no version shows them any more, which is one small commit; then their row
//! groups are replaced by others without them.
//!
//! An erased row is one that version 0, and so every version, does not see: a deletion born in version 0 names it. Row
//! groups are known by address here, since several tables, and several records of a table, may name the same bytes.
//!
//! A purge concerns all tables that have rows in common with those that it names: see purge_family.rs. Every physical
//! row is judged, in the names of the versions that show it; in the end values of erased rows leave dictionaries of
//! other row groups, too. After the first commit (`EraseRows`) everything is maintenance that follows from the state
//! (`ShrinkGroups`, emptied blocks, a whole catalog, a cut log), so no job is kept in the log: after a crash the
//! caller, who has the predicate, asks again, and the purge goes on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, UInt8Type};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::moves::{Moved, Order};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Memo, Pool, Result, Seq, Version};
use crate::block::{Address, BlockReader, EncodedRowGroup};
use crate::filter::{BoundFilter, Filter};
use crate::segment::{DictionaryUse, Form, Proof, dictionary_values, filter_batch, holds};
use crate::table::memory::history::{ROW, decode_group};
use crate::table::read::group_reader::GroupReader;
use crate::table::read::select::truth::matching;
use crate::table::schema::arrays::mask;
use crate::table::{
    Deletion, History, MemtablePart, Positions, ROWS_MAX, Reason, Retained, RowGroup, Rows, Standing, StoredSchema,
    TableState, Window, history_schema, part_rows, remap, rewrite,
};

/// A row group without the rows of it that were erased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShrunkGroup {
    /// Where the row group is.
    pub from: Address,
    /// The positions of its erased rows.
    pub erased: Positions,
    /// Where the others are now, and in which order they stand; `None` if there are no others.
    pub to: Option<(Address, Standing)>,
}

/// A filter, in the names of each schema that a version of a table has.
pub struct FilterOfVersions<'a> {
    table: &'a TableState,
    /// For each schema: the versions that have it, and the filter.
    bound: Vec<(u32, Retained, BoundFilter)>,
    /// Why the filter means nothing in the names of the newest of the others.
    unbound: Option<Error>,
}

impl<'a> FilterOfVersions<'a> {
    /// Ties a filter to all schemas of a table's versions.
    pub fn new(table: &'a TableState, filter: &Filter) -> Self {
        let records = table.versions.iter().chain(table.pins.values().map(|pin| &pin.record));
        let schemas: BTreeSet<u32> = records.map(|record| record.schema).collect();
        let (mut bound, mut unbound) = (Vec::new(), None);
        for schema in schemas.into_iter().rev() {
            let versions = table.retained_if(|record| record.schema == schema);
            match filter.bind(&table.schemas[schema as usize].0) {
                Ok(filter) => bound.push((schema, versions, filter)),
                Err(e) => drop(unbound.get_or_insert(e)),
            }
        }
        Self { table, bound, unbound }
    }

    /// Why it means nothing in any version of the table; `None` if it means something in one.
    pub fn nowhere(&self) -> Option<&Error> {
        self.unbound.as_ref().filter(|_| self.bound.is_empty())
    }

    /// Why it means nothing in some versions; `None` if it means something in all.
    pub fn somewhere(&self) -> Option<&Error> {
        self.unbound.as_ref()
    }

    /// The rows of a row group for which the filter is true as some version calls its columns: of the versions that see
    /// a row, or of any if `dead`, rows that no version sees, has it.
    pub fn rows(&self, reader: &BlockReader, group: &RowGroup, dead: &Rows) -> Result<Rows> {
        let (schemas, mut found) = (&self.table.schemas, Rows::None);
        let alone = self.bound.len() == 1 && self.unbound.is_none();
        for (schema, versions, filter) in &self.bound {
            let seen = &schemas[*schema as usize];
            let wanted = match alone {
                true => Rows::All,
                false => dead.or(&versions.needed(group), group.rows),
            };
            if wanted != Rows::None {
                let opened = GroupReader::with_schemas(reader, schemas, seen, group)?;
                found = found.or(&matching(&opened, &seen.0, &wanted, filter)?, group.rows);
            }
        }
        Ok(found)
    }

    /// Whether a history has a row for which the filter is true.
    pub fn any_in_history(&self, reader: &BlockReader, history: &History) -> Result<bool> {
        let schema = &self.table.schemas[history.schema as usize];
        let (own, key) = (&schema.0, schema.order(&self.table.spec));
        let schema = history_schema(own);
        for (_, _, filter) in self.bound.iter().filter(|(schema, ..)| *schema == history.schema) {
            let of_key = filter.columns().iter().all(|index| key.contains(own.field(*index).name()));
            for (address, rows) in &history.groups {
                let batch = decode_group(reader, &schema, address, *rows)?;
                let columns = filter.columns().iter().map(|&index| batch.column(index).clone()).collect();
                let mut found = filter.truth(own, batch.num_rows(), columns)?;
                if !of_key {
                    // Others have only their key.
                    let kinds = batch.column(own.fields().len() + 1).as_primitive::<UInt8Type>().values();
                    found = &found & &kinds.iter().map(|kind| *kind == ROW).collect::<BooleanBuffer>();
                }
                if found.count_set_bits() > 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// How many of the newest rows in memory it is true for.
    pub fn rows_in(&self, part: &MemtablePart) -> Result<u64> {
        let schema = &self.table.schemas[part.schema as usize].0;
        let mut count = 0;
        for (_, _, filter) in self.bound.iter().filter(|(schema, ..)| *schema == part.schema) {
            for batch in part_rows(part, Seq(u64::MAX >> 1)) {
                let batch = batch?;
                let columns = filter.columns().iter().map(|&index| batch.column(index).clone()).collect();
                count += filter.truth(schema, batch.num_rows(), columns)?.count_set_bits() as u64;
            }
        }
        Ok(count)
    }
}

/// A dictionary: the id of its column, and its place among those of the column.
type DictionaryId = (String, usize);

/// Values that erased rows have in dictionary columns. Other row groups of a frame hold them too, since its dictionaries are
/// kept with all their values; and so may the metadata of schemas.
#[derive(Default)]
pub struct DictionaryValues(BTreeMap<DictionaryId, BTreeMap<Vec<u8>, Option<String>>>);

/// Texts, by the id of a column.
pub type TextsOfColumns = BTreeMap<String, BTreeSet<String>>;

/// What a row group has of such values.
#[derive(Default)]
pub struct DictionaryRest {
    /// Whether some are in its dictionaries although no row has them.
    pub unused: bool,
    /// Those that rows have.
    used: BTreeSet<(DictionaryId, Vec<u8>)>,
}

impl DictionaryValues {
    /// Adds those of some rows of a row group.
    pub fn add(
        &mut self,
        reader: &BlockReader,
        table: &TableState,
        group: &RowGroup,
        rows: &RoaringBitmap,
    ) -> Result<()> {
        for (id, found) in dictionaries(reader, table, group, rows)? {
            self.0.entry(id).or_default().extend(found.used);
        }
        Ok(())
    }

    /// What a row group has of them, of whose rows some are erased.
    pub fn rest(
        &self,
        reader: &BlockReader,
        table: &TableState,
        group: &RowGroup,
        erased: &RoaringBitmap,
    ) -> Result<DictionaryRest> {
        let mut rest = DictionaryRest::default();
        if self.0.is_empty() {
            return Ok(rest);
        }
        let kept = Rows::All.without(&Rows::of(erased.clone(), group.rows), group.rows).positions(group.rows);
        for (id, found) in dictionaries(reader, table, group, &kept)? {
            let Some(values) = self.0.get(&id) else { continue };
            for value in found.all.into_iter().filter(|value| values.contains_key(value)) {
                match found.used.contains_key(&value) {
                    true => drop(rest.used.insert((id.clone(), value))),
                    false => rest.unused = true,
                }
            }
        }
        Ok(rest)
    }

    /// The texts among them that no row group has any more, given what all have, by the id of their column.
    pub fn texts_gone<'r>(&self, rests: impl Iterator<Item = &'r DictionaryRest>) -> TextsOfColumns {
        let used: BTreeSet<&(DictionaryId, Vec<u8>)> = rests.flat_map(|rest| &rest.used).collect();
        let mut texts = TextsOfColumns::new();
        for (id, values) in &self.0 {
            let gone = |value: &Vec<u8>| !used.contains(&(id.clone(), value.clone()));
            let own = values.iter().filter(|(value, _)| gone(value)).filter_map(|(_, text)| text.clone());
            texts.entry(id.0.clone()).or_default().extend(own);
        }
        texts
    }
}

/// The dictionaries of a row group, and what of them some of its rows have.
fn dictionaries(
    reader: &BlockReader,
    table: &TableState,
    group: &RowGroup,
    rows: &RoaringBitmap,
) -> Result<Vec<(DictionaryId, DictionaryUse)>> {
    let mut found = Vec::new();
    for (id, column) in dictionary_columns(reader, table, group)? {
        let batch = RecordBatch::try_from_iter([("column", column)])?;
        let batch = filter_batch(&batch, &mask(rows, group.rows))?;
        let values = dictionary_values(batch.column(0))?.into_iter().enumerate();
        found.extend(values.map(|(at, values)| ((id.clone(), at), values)));
    }
    Ok(found)
}

/// The metadata without some texts, by name of a column, among the categories that pandas frames are described with; `None` if
/// there are none.
fn without_categories(metadata: &HashMap<String, String>, texts: &TextsOfColumns) -> Option<HashMap<String, String>> {
    let (mut scrubbed, mut changed) = (metadata.clone(), false);
    for value in scrubbed.values_mut().filter(|value| value.contains("\"categories\"")) {
        let Ok(mut made) = serde_json::from_str::<serde_json::Value>(value) else { continue };
        let mut dropped = false;
        for (column, texts) in texts {
            let described = made.get_mut("columns").and_then(|columns| columns.get_mut(column));
            let list = described.and_then(|made| made.get_mut("categories")).and_then(|made| made.get_mut("texts"));
            let Some(list) = list.and_then(|list| list.as_array_mut()) else { continue };
            let before = list.len();
            list.retain(|text| !text.as_str().is_some_and(|text| texts.contains(text)));
            dropped |= list.len() < before;
        }
        if dropped {
            *value = made.to_string();
            changed = true;
        }
    }
    changed.then_some(scrubbed)
}

impl TableState {
    /// Its schemas, by place, whose metadata have one of `texts` among the categories of that column of a pandas frame, without
    /// them.
    pub fn scrubbed_schemas(&self, texts: &TextsOfColumns) -> Vec<(u32, StoredSchema)> {
        let scrubbed = |(at, schema): (usize, &StoredSchema)| {
            let names = schema.ids().zip(schema.0.fields());
            let by_name = names.filter_map(|(id, field)| Some((field.name().clone(), texts.get(id)?.clone())));
            let metadata = without_categories(schema.0.metadata(), &by_name.collect())?;
            Some((at as u32, schema.with_metadata(metadata)))
        };
        self.schemas.iter().enumerate().filter_map(scrubbed).collect()
    }

    /// The table with other metadata of its schemas. `InvalidArgument` if anything else differs.
    pub fn with_schemas(&self, schemas: &[(u32, StoredSchema)], seq: Seq) -> Result<TableState> {
        let mut next = self.clone();
        for (at, schema) in schemas {
            let own = next.schemas.get_mut(*at as usize).filter(|own| own.0.fields() == schema.0.fields());
            *own.ok_or_else(|| Error::invalid("the table does not have the schema whose metadata is to change"))? =
                schema.clone();
        }
        next.rows_seq = seq;
        Ok(next)
    }
}

/// The columns with dictionaries of a row group, by their ids.
fn dictionary_columns(reader: &BlockReader, table: &TableState, group: &RowGroup) -> Result<Vec<(String, ArrayRef)>> {
    let own = &table.schemas[group.schema as usize];
    let keyed = |part: &DataType| matches!(part, DataType::Dictionary(..));
    let fields = own.0.fields().iter().enumerate();
    let columns: Vec<usize> = fields.filter(|(_, field)| holds(field.data_type(), &keyed)).map(|(at, _)| at).collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let arrays =
        GroupReader::with_schemas(reader, &table.schemas, own, group)?.decode(&own.0, &columns, Form::Exact)?;
    let ids: Vec<&str> = own.ids().collect();
    Ok(columns.into_iter().map(|at| ids[at].to_owned()).zip(arrays).collect())
}

impl RowGroup {
    /// Its rows that were erased.
    pub fn erased(&self) -> RoaringBitmap {
        let mut erased = RoaringBitmap::new();
        self.deletions.iter().filter(|deletion| deletion.born == Version(0)).for_each(|d| erased |= &*d.rows.0);
        erased
    }

    /// The record with more rows erased.
    pub fn with_erased(&self, rows: &Positions) -> Result<RowGroup> {
        if rows.0.max().is_some_and(|max| max >= self.rows) {
            return Err(Error::invalid(format!("a row past the end of row group {} cannot be erased", self.id.0)));
        }
        let erased = self.erased() | &*rows.0;
        let others = self.deletions.iter().filter(|deletion| deletion.born > Version(0));
        // A row is deleted once.
        let others = others.map(|Deletion { born, rows }| Deletion { born: *born, rows: (&*rows.0 - &erased).into() });
        let first = Deletion { born: Version(0), rows: erased.clone().into() };
        let deletions = [first].into_iter().chain(others.filter(|deletion| !deletion.rows.0.is_empty())).collect();
        Ok(RowGroup { deletions, ..self.clone() })
    }
}

impl TableState {
    /// The table without those rows in any version, and without the histories of those versions. Returns it and the
    /// addresses that lost a record. Call [`TableState::shed`] afterwards.
    pub fn erased(
        &self,
        rows: &BTreeMap<Address, &Positions>,
        histories: &[Version],
        seq: Seq,
    ) -> Result<(TableState, Vec<Address>)> {
        let mut next = self.clone();
        for (index, group) in self.groups.iter().enumerate() {
            if let Some(rows) = rows.get(&group.address) {
                let newest = self.newest().map_or(Version(0), |newest| newest.version);
                if planted(Bug::PurgeNewestOnly) && self.visible(group, newest) == Rows::None {
                    continue;
                }
                next.groups.set(index, Arc::new(group.with_erased(rows)?));
            }
        }
        let gone = |history: &History| histories.contains(&history.version);
        let dropped =
            self.instants.histories.iter().filter(|history| gone(history)).flat_map(|history| &history.groups);
        let released = dropped.map(|(address, _)| *address).collect();
        next.drop_histories(|history| gone(history).then(String::new));
        (next.rows_seq, next.bulk_seq, next.layout_seq) = (seq, seq, seq);
        Arc::make_mut(&mut next.lineage).purged = seq;
        next.count_rows(Version(0));
        Ok((next, released))
    }

    /// The versions whose histories name rows that are to be erased from row groups.
    pub fn histories_of(&self, rows: &BTreeMap<Address, &Positions>) -> Vec<Version> {
        let touched = |version: Version| {
            self.groups.iter().any(|group| {
                rows.get(&group.address).is_some_and(|rows| {
                    let mut born = group.spans().filter(|(_, run)| run.born == version);
                    born.any(|(range, _)| rows.0.range_cardinality(range) > 0)
                })
            })
        };
        let versions = self.instants.histories.iter().map(|history| history.version);
        versions.filter(|version| touched(*version)).collect()
    }

    /// Replaces row groups by those without their erased rows, of one layer. Returns the table and, for each, the number of records
    /// that named it, and the addresses of the layers below that lost a record. `Conflict` if a record needs a row that is gone.
    pub fn shrunk(&self, groups: &[ShrunkGroup], seq: Seq) -> Result<(TableState, Vec<u64>, Vec<Address>)> {
        let places: BTreeMap<Address, usize> = groups.iter().enumerate().map(|(at, group)| (group.from, at)).collect();
        let newest = self.newest().map(|newest| newest.version);
        let (mut next, mut records, mut below) = (self.clone(), vec![0; groups.len()], Vec::new());
        let retained = self.retained();
        next.groups.clear();
        for group in &self.groups {
            let Some(&at) = places.get(&group.address) else {
                next.groups.push_back(group.clone());
                continue;
            };
            let ShrunkGroup { erased, to, .. } = &groups[at];
            records[at] += 1;
            below.extend(group.addresses().skip(1));
            if erased.0.max().is_some_and(|max| max >= group.rows) {
                return Err(Error::invalid(format!("a row past the end of row group {} cannot be erased", group.id.0)));
            }
            let kept = Rows::All.without(&Rows::of((*erased.0).clone(), group.rows), group.rows);
            if retained.needed(group).without(&kept, group.rows) != Rows::None {
                return Err(Error::conflict(format!(
                    "rows of row group {} are needed again, so they cannot be erased",
                    group.id.0
                )));
            }
            let rows = kept.count(group.rows) as u32;
            if (rows == 0) != to.is_none() {
                return Err(Error::invalid(format!("row group {} is shrunk to a wrong number of rows", group.id.0)));
            }
            let mut outputs = Vec::new();
            if let Some((address, standing)) = to {
                let id = crate::table::GroupId(next.next_group);
                next.next_group += 1;
                let remapped = remap(std::slice::from_ref(group), &[kept], &[rows]).remove(0);
                let (runs, deletions) = (remapped.runs, remapped.deletions);
                let (address, standing, patched) = (*address, *standing, None);
                let (bounds, ends) = (Memo::default(), Memo::default());
                let own = RowGroup::clone(group);
                let shrunk = RowGroup { id, address, rows, runs, deletions, standing, patched, bounds, ends, ..own };
                shrunk.check(next.schemas.len())?;
                outputs.push(Arc::new(shrunk));
            }
            next.groups.extend(outputs.iter().cloned());
            if let (Some(version), None) = (newest, group.only) {
                let moved = Moved { seq, version, inputs: vec![group.clone()], outputs, order: Order::Kept };
                next.moved.0.push_back(Arc::new(moved));
            }
        }
        next.layout_seq = seq;
        Ok((next, records, below))
    }

    /// Encodes a row group of this table again without `erased` rows, and with nothing that was derived from them. Returns
    /// it and in which order it stands; `None` if no row is left. Memory: as for a vacuum.
    pub fn shrink(
        &self,
        reader: &BlockReader,
        pool: &Pool,
        group: &RowGroup,
        erased: &RoaringBitmap,
        proof: Proof,
    ) -> Result<Option<(EncodedRowGroup, Standing)>> {
        let dead_rows = erased.len();
        let kept = Rows::All.without(&Rows::of(erased.clone(), group.rows), group.rows);
        let rows = kept.count(group.rows);
        debug_assert!(rows <= u64::from(ROWS_MAX), "no more than before");
        let window = Window {
            reason: Reason::Lone,
            inputs: vec![Arc::new(group.clone())],
            kept: vec![kept],
            outputs: u32::from(rows > 0),
            rows,
            dead_rows,
            bytes: group.bytes(),
            dead_bytes: group.dead_bytes(),
            schema: group.schema,
            purge: true,
            group_rows: ROWS_MAX,
        };
        Ok(rewrite(reader, pool, &self.schemas, &self.spec, &window, proof)?.pop())
    }
}
