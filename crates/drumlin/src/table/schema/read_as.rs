//! The columns in which a table is read: those of one of its versions, or of a data set that it is part of, which may
//! have columns that the table lacks, and wider types.
//!
//! A column that the table lacks is null, or a constant (a name of its path); what is narrower is cast. The filter is
//! bound to these columns, so it means the same in every table. Statistics prune where they say the same in both types.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Schema, SchemaRef};

use super::arrays::into_type;
use super::conform::as_read;
use crate::base::{Result, TypeName};
use crate::memtable::{Keys, RowBytes};
use crate::segment::{ColumnStats, Stat, plain_type};
use crate::table::TableCodec;

/// Columns that have one value, a text, in all rows of a table: its names in a path.
pub type Constants = BTreeMap<String, String>;

/// The columns in which a table is read. Those that it lacks are constant or null.
#[derive(Clone, Debug)]
pub struct ReadAs {
    schema: SchemaRef,
    /// The same columns in the types in which they are handed out.
    shown: SchemaRef,
    constants: Option<Arc<Constants>>,
}

/// Of a table that is read in its own columns.
pub(in crate::table) static NO_CONSTANTS: Constants = Constants::new();

impl ReadAs {
    /// The columns of `schema`, of which `constants` are no columns of the table.
    pub fn new(schema: SchemaRef, constants: Constants) -> Self {
        let constants = (!constants.is_empty()).then(|| Arc::new(constants));
        Self { shown: schema.clone(), schema, constants }
    }

    /// The same, handed out in the types of `shown`, which hold all values that there are.
    #[must_use]
    pub fn shown_as(self, shown: SchemaRef) -> Self {
        Self { shown, ..self }
    }

    /// The same for a table with the columns `own`: those that no type holds (see [`Union`]), which nobody asks for, have the
    /// table's own type. Its rows may be in their order.
    pub(in crate::table) fn of(self, own: &Schema) -> Self {
        let is_apart = |field: &FieldRef| {
            *field.data_type() == DataType::Null
                && own.field_with_name(field.name()).is_ok_and(|own| *own.data_type() != DataType::Null)
        };
        if !self.schema.fields().iter().any(is_apart) {
            return self;
        }
        let with_own = |schema: &SchemaRef| {
            let field = |field: &FieldRef| match own.field_with_name(field.name()) {
                Ok(own) if is_apart(field) => Arc::new(own.clone()),
                _ => field.clone(),
            };
            let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
            Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
        };
        Self { schema: with_own(&self.schema), shown: with_own(&self.shown), ..self }
    }

    /// The columns in the types in which they are handed out.
    pub fn shown(&self) -> &SchemaRef {
        &self.shown
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Those with one value.
    pub fn constants(&self) -> &Constants {
        self.constants.as_deref().unwrap_or(&NO_CONSTANTS)
    }

    /// Columns of rows written by key, by their places here.
    pub(in crate::table) fn decode_rows(
        &self,
        codec: &TableCodec,
        keys: &Keys,
        rows: &RowBytes,
        columns: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let own = |index: &usize| codec.schema().index_of(self.schema.field(*index).name()).ok();
        let own: Vec<Option<usize>> = columns.iter().map(own).collect();
        let present: Vec<usize> = own.iter().flatten().copied().collect();
        let mut decoded = codec.decode(keys, rows, &present)?.into_iter();
        let array = |(own, index): (Option<usize>, &usize)| {
            let field = self.schema.field(*index);
            match own {
                Some(_) => as_read(decoded.next().expect("one for each present column"), field.data_type()),
                None => missing(field.name(), field.data_type(), keys.len(), self.constants()),
            }
        };
        own.into_iter().zip(columns).map(array).collect()
    }
}

/// A column that the table lacks.
pub(in crate::table) fn missing(
    name: &str,
    data_type: &DataType,
    rows: usize,
    constants: &Constants,
) -> Result<ArrayRef> {
    match constants.get(name) {
        Some(text) if *data_type == text_dictionary() => {
            let values = Arc::new(StringArray::from(vec![text.as_str()]));
            Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(vec![0; rows].into(), values)?))
        }
        Some(text) => into_type(Arc::new(StringArray::new_repeated(text, rows)), data_type),
        None => Ok(new_null_array(data_type, rows)),
    }
}

/// The type in which columns with few texts cost engines least.
pub fn text_dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// What is known of a column that the table lacks, of `rows` rows.
pub(in crate::table) fn missing_stats(name: &str, rows: u64, constants: &Constants) -> ColumnStats {
    match constants.get(name) {
        Some(text) => constant_stats(text),
        None => ColumnStats { nulls: rows, min: None, max: None, exact: true },
    }
}

/// What is known of a column with one value.
pub fn constant_stats(text: &str) -> ColumnStats {
    let value = Some(Stat::Bytes(text.as_bytes().to_vec()));
    ColumnStats { nulls: 0, min: value.clone(), max: value, exact: true }
}

/// Whether statistics of a column of type `own` say the same of its values in type `wanted`.
pub(in crate::table) fn same_stats(own: &DataType, wanted: &DataType) -> bool {
    own == wanted
        || (own.is_integer() && wanted.is_integer())
        || (own.is_floating() && wanted.is_floating())
        || plain_type(own).is_some_and(|plain| plain_type(wanted) == Some(plain))
}

/// The columns of several schemas, by name, in the order in which they first come, each in a type that holds the values of all.
#[derive(Clone, Debug)]
pub struct Union {
    /// The columns.
    pub schema: Schema,
    /// Those for which there is no such type; their type in `schema` is null, and nobody can read them.
    pub apart: Vec<Apart>,
}

/// A column whose values no type holds, and the places of two schemas of which that is so.
#[derive(Clone, Debug)]
pub struct Apart {
    /// Its name.
    pub name: String,
    /// The place of the first schema that has it.
    pub one: usize,
    /// The place of another.
    pub other: usize,
}

/// The columns of all `schemas`.
pub fn union(schemas: &[SchemaRef]) -> Union {
    let Some((first, others)) = schemas.split_first() else {
        return Union { schema: Schema::empty(), apart: Vec::new() };
    };
    let mut columns: Vec<(FieldRef, usize, usize)> = first.fields().iter().map(|field| (field.clone(), 0, 1)).collect();
    let mut places: BTreeMap<String, usize> =
        columns.iter().enumerate().map(|(at, (field, ..))| (field.name().clone(), at)).collect();
    let mut apart: BTreeMap<usize, Apart> = BTreeMap::new();
    for (at, schema) in others.iter().enumerate() {
        // Usually all tables have the same.
        if Arc::ptr_eq(schema, first) || schema.fields() == first.fields() {
            columns.iter_mut().filter(|(_, from, _)| *from == 0).for_each(|(_, _, seen)| *seen += 1);
            continue;
        }
        for field in schema.fields() {
            let Some(place) = places.get(field.name()) else {
                places.insert(field.name().clone(), columns.len());
                columns.push((field.clone(), at + 1, 1));
                continue;
            };
            let (known, from, seen) = &mut columns[*place];
            *seen += 1;
            match super::evolution::common_type::field(known, field) {
                Some(both) => *known = Arc::new(both),
                None => {
                    let first = || Apart { name: field.name().clone(), one: *from, other: at + 1 };
                    apart.entry(*place).or_insert_with(first);
                }
            }
        }
    }
    for place in apart.keys() {
        let (field, ..) = &mut columns[*place];
        *field = Arc::new(Field::new(field.name(), DataType::Null, true));
    }
    let nullable = |(field, _, seen): (FieldRef, usize, usize)| match seen == schemas.len() {
        true => field,
        false => Arc::new(field.as_ref().clone().with_nullable(true)),
    };
    let schema = Schema::new(columns.into_iter().map(nullable).collect::<Vec<_>>());
    Union { schema, apart: apart.into_values().collect() }
}

impl Apart {
    /// What is wrong with it; `place` says which of the schemas one is, such as `in 'prices/AAPL'`.
    pub fn told(&self, schemas: &[SchemaRef], place: impl Fn(usize) -> String) -> String {
        let typed = |at: usize| {
            let data_type = schemas[at].field_with_name(&self.name).map(|field| field.data_type().clone());
            format!("{} {}", TypeName(&data_type.unwrap_or(DataType::Null)), place(at))
        };
        let (one, other) = (typed(self.one), typed(self.other));
        format!("column '{}' is {one} and {other}, and no type holds the values of both", self.name)
    }
}
