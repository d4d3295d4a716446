//! A row group, opened to be read: the directories of its layers are in memory, and its columns are decoded on request.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema, UInt32Type};
use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::base::{Error, Result, TypeName, Version};
use crate::block::{Address, BlockReader, ColumnEntry, Directory, Prefetch};
use crate::filter::ValueRange;
use crate::segment::{
    ColumnStats, Form, Scheme, Segment, decode, decode_rows, decode_with_scheme, filter_batch, measure, within,
};
use crate::table::group::layers::Located;
use crate::table::group::patch::{Layer, NewPatch, PATCHES_MAX};
use crate::table::schema::arrays::{into_type, mask};
use crate::table::schema::column::repeated;
use crate::table::schema::conform::as_read;
use crate::table::schema::read_as::{Constants, NO_CONSTANTS, missing, missing_stats, same_stats, text_dictionary};
use crate::table::{PLACES, RowGroup, Rows, StoredSchema, TableState};

/// Of fewer rows than one in as many, each is decoded by itself.
const FEW_SHARE: u64 = 64;

/// A row group is patched if of its bytes afterwards no more than one in as many is not read.
const PATCH_DEAD_SHARE: u64 = 2;

/// An open row group.
pub(in crate::table) struct GroupReader<'a> {
    pub blocks: &'a BlockReader,
    pub group: &'a RowGroup,
    /// Of its newest layer.
    directory: Arc<Directory>,
    /// What there is of a row group in several layers.
    below: Option<Box<BelowReader<'a>>>,
    /// The schema that it was written with.
    own: &'a StoredSchema,
    /// The schema of the version that is read, in whose names columns are asked for.
    seen: &'a StoredSchema,
    /// Columns that its table lacks and that have one value.
    constants: &'a Constants,
}

/// What there is of a row group in several layers.
struct BelowReader<'a> {
    schemas: &'a [StoredSchema],
    directories: Vec<Arc<Directory>>,
    /// Where each column of the row group's schema is.
    located: Vec<Option<Located>>,
}

/// A segment of an open row group.
#[derive(Clone, Copy)]
struct LocatedSegment<'r> {
    located: Located,
    /// The type that it was written with.
    data_type: &'r DataType,
}

/// Where a column comes from.
enum ColumnSource<'a> {
    /// From nowhere: it does not have a column of this name and type.
    Missing(&'a str, &'a DataType),
    /// From a segment of the first type, to be cast to the second.
    Stored(Bytes, &'a DataType, &'a DataType),
}

impl<'a> GroupReader<'a> {
    /// Reads the directory of a row group of `table`, to be read as `version` calls its columns. `Corrupt` if it is not that of
    /// this row group.
    pub fn open(blocks: &'a BlockReader, table: &'a TableState, version: Version, group: &'a RowGroup) -> Result<Self> {
        Self::with_schemas(blocks, &table.schemas, table.schema_of(version)?, group)
    }

    /// The same, of a table that has had `schemas`, read in the names of `seen`.
    pub fn with_schemas(
        blocks: &'a BlockReader,
        schemas: &'a [StoredSchema],
        seen: &'a StoredSchema,
        group: &'a RowGroup,
    ) -> Result<Self> {
        let open = |layer: Layer<'_>| {
            let directory = blocks.directory(layer.address)?;
            match directory.columns.len() == layer.width(schemas) && directory.rows == group.rows {
                true => Ok(directory),
                false => {
                    let block = layer.address.block;
                    Err(Error::corrupt(format!("block {block}: the directory does not match its row group")))
                }
            }
        };
        let mut layers = group.layers();
        let directory = open(layers.next().expect("the newest"))?;
        let below = match &group.patched {
            None => None,
            Some(_) => {
                let directories = layers.map(open).collect::<Result<_>>()?;
                Some(Box::new(BelowReader { schemas, directories, located: group.located(schemas) }))
            }
        };
        let own = &schemas[group.schema as usize];
        Ok(Self { blocks, group, directory, below, own, seen, constants: &NO_CONSTANTS })
    }

    /// The same, with columns that its table lacks and that have one value.
    pub fn with_constants(self, constants: &'a Constants) -> Self {
        Self { constants, ..self }
    }

    /// The schema in whose names columns are asked for.
    pub fn seen_schema(&self) -> &'a arrow::datatypes::SchemaRef {
        &self.seen.0
    }

    /// Where the column is that the version calls `name`; `None` if no layer has it.
    fn place(&self, name: &str) -> Option<LocatedSegment<'_>> {
        let at = self.own.place_of(name, self.seen)?;
        let Some(below) = &self.below else {
            return Some(LocatedSegment {
                located: Located { layer: 0, index: at },
                data_type: self.own.0.field(at).data_type(),
            });
        };
        let located = below.located[at]?;
        let layer = self.group.layers().nth(located.layer).expect("it was opened");
        let schema = &below.schemas[layer.schema as usize];
        Some(LocatedSegment { located, data_type: schema.0.field(layer.place_in_schema(located.index)).data_type() })
    }

    fn layer(&self, at: usize) -> (&Address, &Arc<Directory>) {
        let address = self.group.addresses().nth(at).expect("a layer of it");
        match (at, &self.below) {
            (1.., Some(below)) => (address, &below.directories[at - 1]),
            _ => (address, &self.directory),
        }
    }

    fn column_at(&self, Located { layer, index }: Located) -> &ColumnEntry {
        &self.layer(layer).1.columns[index]
    }

    /// What the directory says of the column called `name`; `None` if it does not have that column.
    pub fn column(&self, name: &str) -> Option<&ColumnEntry> {
        self.place(name).map(|place| self.column_at(place.located))
    }

    /// What the directory says of the values of a column of `schema`, in the type that it has there; `None` if nothing.
    pub fn stats(&self, schema: &Schema, index: usize) -> Option<ColumnStats> {
        let field = schema.field(index);
        match self.place(field.name()) {
            Some(place) => {
                same_stats(place.data_type, field.data_type()).then(|| self.column_at(place.located).stats.clone())
            }
            None => match self.seen.fill_of(field.name()) {
                Some(value) => into_type(value.ok()?, field.data_type()).ok().map(|value| measure(&value)),
                None => Some(missing_stats(field.name(), u64::from(self.group.rows), self.constants)),
            },
        }
    }

    /// The bytes of those of `columns` (positions in `schema`) that it has.
    pub fn bytes(&self, schema: &Schema, columns: impl IntoIterator<Item = usize>) -> u64 {
        let own = columns.into_iter().filter_map(|index| self.column(schema.field(index).name()));
        own.map(|column| column.bytes).sum()
    }

    /// What a patch of these columns of `schema`, which becomes its own, is made with; `None` if it takes less to write the whole
    /// row group again: now, or soon, because most of what lies below would not be read any more.
    pub fn patch(&self, schema: &Schema, columns: Vec<u32>) -> Option<NewPatch> {
        let (mut read, mut replaced) = (vec![0; self.group.addresses().count()], 0);
        for (at, field) in (0..).zip(schema.fields()) {
            let Some(place) = self.place(field.name()) else { continue };
            let bytes = self.column_at(place.located).bytes;
            match columns.binary_search(&at) {
                Ok(_) => replaced += bytes,
                Err(_) => read[place.located.layer] += bytes,
            }
        }
        let base = read.len() - 1;
        read[base] += self.located_places().map_or(0, |located| self.column_at(located).bytes);
        let stays = read.iter().enumerate().filter(|(layer, read)| *layer == base || **read > 0);
        let (mut layers, mut bytes, mut dead_bytes) = (0, 0, 0);
        for (layer, read) in stays {
            let all: u64 = self.layer(layer).1.columns.iter().map(|column| column.bytes).sum();
            layers += 1;
            bytes += all;
            dead_bytes += all - read;
        }
        let pays = dead_bytes * PATCH_DEAD_SHARE <= bytes + replaced && layers <= PATCHES_MAX;
        pays.then_some(NewPatch { columns, dead_bytes })
    }

    /// What is read for `columns` (positions in `schema`).
    pub fn wanted(&self, schema: &Schema, columns: &[usize]) -> Vec<Prefetch> {
        let mut layers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for Located { layer, index } in
            columns.iter().filter_map(|index| Some(self.place(schema.field(*index).name())?.located))
        {
            layers.entry(layer).or_default().push(index);
        }
        if let Some(Located { layer, index }) = self.located_places() {
            layers.entry(layer).or_default().push(index);
        }
        let part = |(layer, columns)| {
            let (address, directory) = self.layer(layer);
            Prefetch::Columns(*address, directory.clone(), columns)
        };
        layers.into_iter().map(part).collect()
    }

    /// What is read for the filter of its keys.
    pub fn wanted_filter(&self) -> Prefetch {
        let (address, directory) = self.layer(self.group.addresses().count() - 1);
        Prefetch::Filter(*address, directory.clone())
    }

    /// The bytes of the filter of its keys.
    pub fn key_filter_bytes(&self) -> u64 {
        let (_, directory) = self.layer(self.group.addresses().count() - 1);
        directory.filter.map_or(0, |filter| filter.bytes)
    }

    /// The filter of its keys, if it has one.
    pub fn key_filter(&self) -> Result<Option<Bytes>> {
        let (address, directory) = self.layer(self.group.addresses().count() - 1);
        self.blocks.filter(address, directory)
    }

    /// Where the places of its rows are, if it has any: behind all columns of its base, as was checked when it was opened.
    fn located_places(&self) -> Option<Located> {
        self.group.tract()?;
        let layer = self.group.addresses().count() - 1;
        Some(Located { layer, index: self.layer(layer).1.columns.len().checked_sub(1)? })
    }

    /// The places of its rows, encoded, and what its directory says of them; `None` if it is of no tract.
    pub fn stored_places(&self) -> Result<Option<(Bytes, &ColumnEntry)>> {
        let Some(Located { layer, index }) = self.located_places() else { return Ok(None) };
        let (address, directory) = self.layer(layer);
        Ok(Some((self.blocks.segments(address, directory, &[index])?.remove(0), &directory.columns[index])))
    }

    /// The same, to be placed elsewhere.
    pub fn places_segment(&self) -> Result<Option<Segment>> {
        Ok(self.stored_places()?.map(segment_of))
    }

    /// The places of some of its rows, ascending; `None` if it is of no tract.
    pub fn places(&self, rows: &Rows) -> Result<Option<UInt32Array>> {
        let Some((bytes, _)) = self.stored_places()? else { return Ok(None) };
        let all = self.group.rows;
        let decoded = match rows {
            Rows::Some(picked) if picked.len() <= u64::from(all) / FEW_SHARE => {
                decode_rows(bytes, all as usize, &PLACES, &picked.iter().collect::<Vec<u32>>())
            }
            _ => decode(bytes, all as usize, &PLACES, Form::Exact),
        };
        let block = || self.group.addresses().last().map_or_else(String::new, |address| address.block.to_string());
        let places = decoded.map_err(|e| e.context(format!("block {}, the places of rows", block())))?;
        let places = match places.as_primitive_opt::<UInt32Type>() {
            Some(places) if places.null_count() == 0 => places,
            _ => return Err(Error::corrupt(format!("block {}: the places of rows have nulls", block()))),
        };
        Ok(Some(match rows {
            Rows::Some(picked) if places.len() == all as usize => {
                picked.iter().map(|row| places.value(row as usize)).collect::<Vec<_>>().into()
            }
            _ => places.clone(),
        }))
    }

    /// The rows `picked` of columns (positions in `schema`), in the types of `schema`.
    pub fn some_rows(&self, schema: &Schema, columns: &[usize], picked: &RoaringBitmap) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows;
        if picked.len() <= u64::from(rows) / FEW_SHARE {
            return self.pick(schema, columns, &picked.iter().collect::<Vec<u32>>());
        }
        let arrays = self.decode(schema, columns, Form::Exact)?;
        if picked.len() == u64::from(rows) || arrays.is_empty() {
            return Ok(arrays);
        }
        let named = columns.iter().map(|at| schema.field(*at).name()).zip(arrays);
        let batch = RecordBatch::try_from_iter_with_nullable(named.map(|(name, array)| (name, array, true)))?;
        Ok(filter_batch(&batch, &mask(picked, rows))?.columns().to_vec())
    }

    /// Decodes `columns` (positions in `schema`); columns that it does not have are constant or null.
    pub fn decode(&self, schema: &Schema, columns: &[usize], form: Form) -> Result<Vec<ArrayRef>> {
        self.each(schema, columns, |_, source| self.decoded(source, form))
    }

    /// How many bytes of memory a row takes in all columns of `schema`, about. Decodes them.
    pub fn bytes_a_row(&self, schema: &Schema) -> Result<u64> {
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0) as u64;
        let all: u64 = self.decode(schema, &columns, Form::Exact)?.iter().map(bytes).sum();
        Ok((all / u64::from(self.group.rows)).max(1))
    }

    fn decoded(&self, source: ColumnSource<'_>, form: Form) -> Result<ArrayRef> {
        let (rows, keyed) = (self.group.rows as usize, text_dictionary());
        match source {
            ColumnSource::Missing(name, _) if form != Form::Exact && self.constants.contains_key(name) => {
                self.missing(name, &keyed, rows)
            }
            ColumnSource::Missing(name, wanted) => self.missing(name, wanted, rows),
            ColumnSource::Stored(bytes, own, wanted) => {
                // Decimals of few digits are decoded to few bytes, whatever their type, and strings as they are kept.
                let keyed = matches!(wanted, DataType::Dictionary(..));
                let form = if own != wanted && (own.is_decimal() || keyed) { Form::Native } else { form };
                let array = decode(bytes, rows, own, form)?;
                match form == Form::Exact || own != wanted {
                    true => as_read(array, wanted).map_err(|e| misfit(own, wanted, e)),
                    false => Ok(array),
                }
            }
        }
    }

    /// The rows whose values are in all of these ranges of columns of `schema`, tested while they are packed where they are.
    pub fn within(&self, schema: &Schema, ranges: &[ValueRange]) -> Result<BooleanBuffer> {
        let rows = self.group.rows as usize;
        let columns: Vec<usize> = ranges.iter().map(|range| range.column).collect();
        let found = self.each(schema, &columns, |at, source| {
            let range = &ranges[at];
            if let ColumnSource::Stored(bytes, own, wanted) = &source
                && own == wanted
                && let Some(found) = within(bytes.clone(), rows, own, range.low, range.high)?
            {
                return Ok(found);
            }
            range.holds(&self.decoded(source, Form::Stored)?)
        })?;
        Ok(found.into_iter().reduce(|all, own| &all & &own).unwrap_or_else(|| BooleanBuffer::new_set(rows)))
    }

    /// The rows `picked`, ascending, of `columns`.
    pub fn pick(&self, schema: &Schema, columns: &[usize], picked: &[u32]) -> Result<Vec<ArrayRef>> {
        let rows = self.group.rows as usize;
        self.each(schema, columns, |_, source| match source {
            ColumnSource::Missing(name, wanted) => self.missing(name, wanted, picked.len()),
            ColumnSource::Stored(bytes, own, wanted) => {
                as_read(decode_rows(bytes, rows, own, picked)?, wanted).map_err(|e| misfit(own, wanted, e))
            }
        })
    }

    /// A column that it does not have: constant, or null.
    fn missing(&self, name: &str, wanted: &DataType, rows: usize) -> Result<ArrayRef> {
        match self.seen.fill_of(name) {
            Some(value) => as_read(repeated(&value?, rows)?, wanted),
            None => missing(name, wanted, rows, self.constants),
        }
    }

    /// A column as it is encoded, and what the directory says of it; `None` if it has no column of that type.
    pub fn stored(&self, schema: &Schema, index: usize) -> Result<Option<(Bytes, &ColumnEntry)>> {
        let field = schema.field(index);
        let Some(LocatedSegment { located: Located { layer, index }, .. }) =
            self.place(field.name()).filter(|place| place.data_type == field.data_type())
        else {
            return Ok(None);
        };
        let (address, directory) = self.layer(layer);
        Ok(Some((self.blocks.segments(address, directory, &[index])?.remove(0), &directory.columns[index])))
    }

    /// The same, to be placed elsewhere.
    pub fn segment(&self, schema: &Schema, index: usize) -> Result<Option<Segment>> {
        Ok(self.stored(schema, index)?.map(segment_of))
    }

    /// Decodes a column that is to be encoded again, and tells how it was encoded.
    pub fn decode_with_scheme(&self, schema: &Schema, index: usize, form: Form) -> Result<(ArrayRef, Scheme)> {
        match self.stored(schema, index)? {
            Some((bytes, _)) => {
                decode_with_scheme(bytes, self.group.rows as usize, schema.field(index).data_type(), form)
            }
            None => Ok((self.decode(schema, &[index], Form::Exact)?.remove(0), Scheme::default())),
        }
    }

    /// The segments at these places, with one request for each layer.
    fn segments(&self, places: &[Option<LocatedSegment<'_>>]) -> Result<Vec<Option<Bytes>>> {
        let mut found = vec![None; places.len()];
        let layers = places.iter().flatten().map(|place| place.located.layer).max().map_or(0, |last| last + 1);
        for layer in 0..layers {
            let own = |(at, place): (usize, &Option<LocatedSegment<'_>>)| {
                let located = place.as_ref().map(|place| place.located).filter(|located| located.layer == layer)?;
                Some((at, located.index))
            };
            let (wanted, columns): (Vec<usize>, Vec<usize>) = places.iter().enumerate().filter_map(own).unzip();
            let (address, directory) = self.layer(layer);
            for (at, bytes) in wanted.into_iter().zip(self.blocks.segments(address, directory, &columns)?) {
                found[at] = Some(bytes);
            }
        }
        Ok(found)
    }

    /// Reads the segments of columns, and makes something of each.
    fn each<T>(
        &self,
        schema: &Schema,
        columns: &[usize],
        make: impl Fn(usize, ColumnSource<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let places: Vec<Option<LocatedSegment<'_>>> =
            columns.iter().map(|&index| self.place(schema.field(index).name())).collect();
        let segments = self.segments(&places)?;
        let mut made = Vec::with_capacity(columns.len());
        for (at, ((place, bytes), &index)) in places.iter().zip(segments).zip(columns).enumerate() {
            let wanted = schema.field(index).data_type();
            let (Some(place), Some(bytes)) = (place, bytes) else {
                made.push(make(at, ColumnSource::Missing(schema.field(index).name(), wanted))?);
                continue;
            };
            let one = make(at, ColumnSource::Stored(bytes, place.data_type, wanted)).map_err(|e| {
                let (name, (address, _)) = (schema.field(index).name(), self.layer(place.located.layer));
                let offset = self.column_at(place.located).offset;
                e.context(format!("block {}, column '{name}' at offset {offset}", address.block))
            })?;
            made.push(one);
        }
        Ok(made)
    }
}

/// An encoded column, and what the directory says of it, to be placed elsewhere.
fn segment_of((bytes, ColumnEntry { stats, kept, .. }): (Bytes, &ColumnEntry)) -> Segment {
    Segment { bytes: bytes.to_vec(), stats: stats.clone(), kept: *kept }
}

/// The error for a value that the type in which a column is read does not hold, such as a far year in nanoseconds.
fn misfit(own: &DataType, wanted: &DataType, error: Error) -> Error {
    Error::schema_mismatch(format!(
        "a value of type {} does not fit into {}, the type in which the column is read because other rows or the engine \
         need it; read the rows separately, or leave the column out",
        TypeName(own),
        TypeName(wanted)
    ))
    .with_source(error.message())
}
