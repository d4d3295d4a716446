//! A table's schema as stored: in the Arrow IPC encoding, so that every Arrow type and all metadata survive.
//!
//! Invariant: a schema stored here can be exported through Arrow's C interface, wherever it came from: no name and no
//! time zone contains a NUL, sizes are not negative, no type is nested too deeply.
//!
//! A column is known by its id, so that it can have another name in another version. An id is the name that the column
//! was made with, unless another column of the table has been made with that name before.
//!
//! A table is ordered by the columns that it was made with. A schema in which these have other names lists them, so
//! every version has its own names for its order and its key.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
    Field, FieldRef, Schema, SchemaRef,
};
use arrow::ipc::convert::{IpcSchemaEncoder, fb_to_schema};
use arrow::ipc::root_as_schema;
use arrow::ipc::writer::DictionaryTracker;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::column;
use super::column::Column;
use super::compression::compression_of;
use super::constraints::{Check, Checks, ConstraintsInfo};
use crate::base::{Error, Result, TypeName};
use crate::filter::Filter;
use crate::segment::{children, holds};
use crate::table::order::sort_columns::TableSpec;
use crate::table::write::generator::Generator;

/// An Arrow schema that serialises as an Arrow IPC schema (the flatbuffer alone, without a message around it), and what is
/// known beside it: its columns, checks, and the names that the columns of the table's order have in it, if they were renamed.
#[derive(Clone, Debug)]
pub struct StoredSchema(pub SchemaRef, Option<Arc<[Column]>>, Option<Arc<[Check]>>, Option<Arc<[String]>>);

impl PartialEq for StoredSchema {
    fn eq(&self, other: &Self) -> bool {
        // Arrow leaves the order of dictionaries out.
        self.0 == other.0
            && ordered(self.0.fields()) == ordered(other.0.fields())
            && (&self.1, &self.2, &self.3) == (&other.1, &other.2, &other.3)
    }
}

impl Eq for StoredSchema {}

/// Whether each field says that the values of its dictionary are in order, at every depth.
fn ordered(fields: &[FieldRef]) -> Vec<bool> {
    let below = |field: &FieldRef| {
        let own = field.dict_is_ordered() == Some(true);
        [own].into_iter().chain(ordered(children(field.data_type()))).collect::<Vec<_>>()
    };
    fields.iter().flat_map(below).collect()
}

/// The metadata of a stored schema that hold its checks.
const CHECKS: &str = "drumlin.checks";
/// The same for the names of the columns that the table is ordered by.
const ORDER: &str = "drumlin.order";

impl StoredSchema {
    /// A schema whose columns are known by their names.
    pub fn plain(schema: SchemaRef) -> Self {
        Self(schema, None, None, None)
    }

    /// A schema with these columns, one for each field, and checks.
    pub(in crate::table) fn with_columns(schema: SchemaRef, columns: Vec<Column>, checks: Vec<Check>) -> Self {
        let plain = schema.fields().iter().zip(&columns).all(|(field, column)| column.is_plain(field));
        Self(schema, (!plain).then(|| columns.into()), (!checks.is_empty()).then(|| checks.into()), None)
    }

    /// The same in which the columns that the table is ordered by have these names.
    pub(in crate::table) fn with_order(self, names: &[String], spec: &TableSpec) -> Self {
        let renamed = names != spec.sort;
        Self(self.0, self.1, self.2, renamed.then(|| names.into()))
    }

    /// The names here of the columns that a table made as `spec` is ordered by.
    pub fn order<'a>(&'a self, spec: &'a TableSpec) -> &'a [String] {
        self.3.as_deref().unwrap_or(&spec.sort)
    }

    /// Whether it gives the columns of the table's order other names than the table was made with.
    pub fn renames_order(&self) -> bool {
        self.3.is_some()
    }

    /// Its checks.
    pub(in crate::table) fn checks(&self) -> &[Check] {
        self.2.as_deref().unwrap_or_default()
    }

    /// Its checks, tied to it.
    pub fn bound_checks(&self) -> Result<Checks> {
        Checks::new(&self.0, self.checks())
    }

    /// Whether `checks` are its.
    pub fn has_checks(&self, checks: &Checks) -> bool {
        checks.are(self.checks())
    }

    /// Whether both have the same checks.
    pub fn same_checks(&self, other: &StoredSchema) -> bool {
        self.checks() == other.checks()
    }

    /// Whether both ask the same of rows, in the columns that both have, and the other has all that take no nulls here.
    pub fn same_constraints(&self, other: &StoredSchema) -> bool {
        if !self.is_constrained() && !other.is_constrained() {
            return true;
        }
        let (own, others) = (self.columns(), other.columns());
        let same = |(column, field): (&Column, &FieldRef)| {
            other.0.index_of(field.name()).map_or(!column.not_null, |at| {
                column.same_constraints(&others[at], field.data_type() == other.0.field(at).data_type())
            })
        };
        self.same_checks(other) && own.iter().zip(self.0.fields()).all(same)
    }

    /// Whether it has constraints that not all builds know.
    pub fn is_constrained(&self) -> bool {
        self.2.is_some() || self.1.as_ref().is_some_and(|columns| columns.iter().any(Column::is_constrained))
    }

    /// The constraints, by the names of columns.
    pub fn constraints(&self) -> Result<ConstraintsInfo> {
        let checks = self.checks().iter().map(|check| (check.name.clone(), check.text.clone())).collect();
        let fields = self.0.fields().iter();
        let not_null = fields.clone().filter(|field| !field.is_nullable()).map(|field| field.name().clone()).collect();
        let default =
            |field: &FieldRef| Some(self.default_of(field.name())?.map(|value| (field.name().clone(), value)));
        let made = |field: &FieldRef| Some((field.name().clone(), self.generator_of(field.name())?.clone()));
        let generators = fields.clone().filter_map(made).collect();
        Ok(ConstraintsInfo {
            checks,
            not_null,
            defaults: fields.filter_map(default).collect::<Result<_>>()?,
            generators,
        })
    }

    /// The same columns with other metadata of the schema.
    pub(in crate::table) fn with_metadata(&self, metadata: HashMap<String, String>) -> Self {
        let schema = Schema::new_with_metadata(self.0.fields().clone(), metadata);
        Self(Arc::new(schema), self.1.clone(), self.2.clone(), self.3.clone())
    }

    /// Its columns.
    pub(in crate::table) fn columns(&self) -> Vec<Column> {
        match &self.1 {
            Some(columns) => columns.to_vec(),
            None => self.0.fields().iter().map(|field| Column::named(field.name())).collect(),
        }
    }

    /// What is known of its columns beside their fields, if that is anything.
    pub(in crate::table) fn known_columns(&self) -> Option<&[Column]> {
        self.1.as_deref()
    }

    /// The ids of its columns.
    pub(in crate::table) fn ids(&self) -> impl Iterator<Item = &str> {
        (0..self.0.fields().len()).map(|at| self.id(at))
    }

    /// The id of the column called `name`.
    pub(in crate::table) fn id_of(&self, name: &str) -> Option<&str> {
        self.0.index_of(name).ok().map(|at| self.id(at))
    }

    fn id(&self, at: usize) -> &str {
        self.1.as_ref().map_or_else(|| self.0.field(at).name().as_str(), |columns| columns[at].id.as_str())
    }

    /// The place here of the column that `seen`, another schema of the table, calls `name`; `None` if there is no such column
    /// there, or here.
    pub(in crate::table) fn place_of(&self, name: &str, seen: &StoredSchema) -> Option<usize> {
        let at = seen.0.index_of(name).ok()?;
        if std::ptr::eq(self, seen) {
            return Some(at);
        }
        self.place_of_id(seen.id(at))
    }

    /// A filter on its columns, in their ids: it means the same after columns were renamed. `InvalidArgument` if it means nothing here.
    pub fn filter_by_ids(&self, filter: &Filter) -> Result<Filter> {
        let meant = filter.as_meant(&self.0);
        meant.bind(&self.0)?;
        meant
            .renamed(&|name| self.id_of(name).map(str::to_owned))
            .ok_or_else(|| Error::invalid("it refers to no column"))
    }

    /// A filter by ids in the names that its columns have here; `None` if there is one that is not here.
    pub fn filter_by_names(&self, filter: &Filter) -> Option<Filter> {
        filter.renamed(&|id| self.place_of_id(id).map(|at| self.0.field(at).name().clone()))
    }

    /// The place of the column with this id.
    pub(in crate::table) fn place_of_id(&self, id: &str) -> Option<usize> {
        match &self.1 {
            None => self.0.index_of(id).ok(),
            Some(columns) => columns.iter().position(|column| column.id == id),
        }
    }

    /// The value that rows have which are older than the column called `name`; `None` for null.
    pub(in crate::table) fn fill_of(&self, name: &str) -> Option<Result<ArrayRef>> {
        let (columns, at) = (self.1.as_ref()?, self.0.index_of(name).ok()?);
        columns[at].fill_value(self.0.field(at).data_type())
    }

    /// The same, as it is stored.
    pub(in crate::table) fn fill_bytes(&self, name: &str) -> Option<Bytes> {
        self.1.as_ref()?[self.0.index_of(name).ok()?].fill_bytes()
    }

    /// What makes the values that later rows have which lack the column called `name`, if something does.
    pub fn generator_of(&self, name: &str) -> Option<&Generator> {
        let (columns, at) = (self.1.as_ref()?, self.0.index_of(name).ok()?);
        columns[at].generator.as_ref()
    }

    /// Whether rows that lack the column called `name` have something other than null in it.
    pub fn has_default(&self, name: &str) -> bool {
        self.generator_of(name).is_some() || self.default_of(name).is_some()
    }

    /// Whether a column of it has what makes its default.
    pub fn generates(&self) -> bool {
        self.1.as_ref().is_some_and(|columns| columns.iter().any(|column| column.generator.is_some()))
    }

    /// What `rows` rows have that lack the column of `field`: its default if that is a value, or null.
    pub fn lacking(&self, field: &Field, rows: usize) -> Result<ArrayRef> {
        match self.default_of(field.name()) {
            Some(value) => column::repeated(&value?, rows),
            None => Ok(new_null_array(field.data_type(), rows)),
        }
    }

    /// The value that later rows have which lack the column called `name`; `None` for null.
    pub fn default_of(&self, name: &str) -> Option<Result<ArrayRef>> {
        let (columns, at) = (self.1.as_ref()?, self.0.index_of(name).ok()?);
        columns[at].default_value(self.0.field(at).data_type())
    }

    /// Checks that a table can have this schema: at least one column, no name twice, types that can be stored.
    pub fn new(schema: SchemaRef) -> Result<Self> {
        Self::plain(schema).check_new()
    }

    /// The same for a schema with what is known of its columns.
    pub(in crate::table) fn check_new(self) -> Result<Self> {
        let stored = Self(check_schema(self.0)?, self.1, self.2, self.3);
        if let Some(key) = [CHECKS, ORDER].into_iter().find(|key| stored.0.metadata().contains_key(*key)) {
            return Err(Error::invalid(format!(
                "the schema has metadata under the reserved key '{key}'; use another key"
            )));
        }
        compression_of(&stored.0)?;
        for field in stored.0.fields() {
            if let Some(key) = column::RESERVED.into_iter().find(|key| field.metadata().contains_key(*key)) {
                let name = field.name();
                return Err(Error::invalid(format!(
                    "column '{name}' has metadata under the reserved key '{key}'; use another key"
                )));
            }
            if let Some(twice) = twice(field.data_type()) {
                let name = field.name();
                return Err(Error::invalid(format!("column '{name}' has two fields called '{twice}'; rename one")));
            }
            // Arrow loses track of the number of values of size 0.
            let empty = |part: &DataType| matches!(part, DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0));
            if holds(field.data_type(), &empty) {
                let (name, data_type) = (field.name(), TypeName(field.data_type()));
                return Err(Error::invalid(format!(
                    "column '{name}' of type {data_type} cannot be stored: values of the fixed size 0 hold nothing"
                )));
            }
        }
        if decode(&encode(&stored.0)?).ok().as_ref() != Some(&stored.0) {
            return Err(Error::invalid("the schema has a type that cannot be read back as it was stored"));
        }
        Ok(stored)
    }

    /// A schema from storage.
    fn stored(bytes: &[u8]) -> Result<Self> {
        let schema = check_schema(decode(bytes)?)?;
        let mut metadata = schema.metadata().clone();
        let checks: Vec<Check> = taken(&mut metadata, CHECKS)?.unwrap_or_default();
        let order: Option<Vec<String>> = taken(&mut metadata, ORDER)?;
        if order
            .as_ref()
            .is_some_and(|order| order.is_empty() || order.iter().any(|name| schema.index_of(name).is_err()))
        {
            return Err(Error::corrupt("a schema is ordered by columns that it does not have"));
        }
        let schema = match metadata.len() == schema.metadata().len() {
            true => schema,
            false => Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata)),
        };
        if checks.is_empty()
            && order.is_none()
            && !schema
                .fields()
                .iter()
                .any(|field| column::RESERVED.iter().any(|key| field.metadata().contains_key(*key)))
        {
            return Ok(Self::plain(schema));
        }
        let read = schema.fields().iter().map(Column::read);
        let (fields, columns): (Vec<Field>, Vec<Column>) = read.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut ids: Vec<&str> = columns.iter().map(|column| column.id.as_str()).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::corrupt("two columns of a schema have the same id"));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let stored = Self { 3: order.map(Into::into), ..Self::with_columns(schema, columns, checks) };
        stored
            .bound_checks()
            .map_err(|e| Error::corrupt("a check of a schema is damaged").with_source(e.to_string()))?;
        Ok(stored)
    }

    /// What is stored.
    fn to_stored(&self) -> Result<Vec<u8>> {
        if self.1.is_none() && self.2.is_none() && self.3.is_none() {
            return encode(&self.0);
        }
        let fields = self.0.fields().iter().zip(self.columns()).map(|(field, column)| column.write(field));
        let mut metadata = self.0.metadata().clone();
        let text = |text: serde_json::Result<String>| text.map_err(|e| Error::invalid(e.to_string()));
        if let Some(checks) = &self.2 {
            metadata.insert(CHECKS.to_owned(), text(serde_json::to_string(checks))?);
        }
        if let Some(order) = &self.3 {
            metadata.insert(ORDER.to_owned(), text(serde_json::to_string(order))?);
        }
        encode(&Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata))
    }

    /// Whether both have the same columns, in the same order, of the same types; metadata aside.
    pub fn same_columns(&self, other: &Schema) -> bool {
        let (a, b) = (self.0.fields(), other.fields());
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| {
                a.name() == b.name() && a.data_type() == b.data_type() && a.is_nullable() == b.is_nullable()
            })
    }
}

/// The name that two fields of a struct have, at any depth: readers take one for the other.
fn twice(data_type: &DataType) -> Option<&str> {
    if let DataType::Dictionary(_, values) = data_type {
        return twice(values);
    }
    let fields = children(data_type);
    let own =
        fields.iter().enumerate().find(|(at, field)| fields[..*at].iter().any(|other| other.name() == field.name()));
    own.map(|(_, field)| field.name().as_str()).or_else(|| fields.iter().find_map(|field| twice(field.data_type())))
}

/// What the metadata of a stored schema hold under a reserved name, which they lose.
fn taken<T: DeserializeOwned>(metadata: &mut HashMap<String, String>, key: &str) -> Result<Option<T>> {
    let read = |text: String| {
        serde_json::from_str(&text)
            .map_err(|e| Error::corrupt(format!("'{key}' of a schema cannot be read")).with_source(e.to_string()))
    };
    metadata.remove(key).map(read).transpose()
}

/// All checks except that it can be encoded, which a decoded schema always can.
fn check_schema(schema: SchemaRef) -> Result<SchemaRef> {
    if schema.fields().is_empty() {
        return Err(Error::invalid(
            "a table needs at least one column; the schema has none (a table without rows is created with a schema)",
        ));
    }
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::invalid(format!("two columns are called '{}'; names must be unique", pair[0])));
    }
    for field in schema.fields() {
        let checked = check_name("a column name", field.name()).and_then(|()| check_type(field.data_type()));
        checked.map_err(|e| e.context(format!("column '{}'", field.name().escape_debug())))?;
    }
    Ok(schema)
}

/// Types nested more deeply than this are refused, so that no recursion over a type can overflow the stack.
const DEPTH_MAX: usize = 32;

/// A time zone's name is shorter than this.
const ZONE_BYTES_MAX: usize = 256;

/// Checks that values of a type can be stored and returned again. `InvalidArgument` if not.
pub(in crate::table) fn check_type(data_type: &DataType) -> Result<()> {
    check_nested(data_type, 0)
}

fn check_name(what: &str, name: &str) -> Result<()> {
    match name.contains('\0') {
        true => Err(Error::invalid(format!("{what} contains a NUL character: '{}'", name.escape_debug()))),
        false => Ok(()),
    }
}

fn check_nested(data_type: &DataType, depth: usize) -> Result<()> {
    let cannot = |why: &str| Err(Error::invalid(format!("type {} cannot be stored{why}", TypeName(data_type))));
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("the type is nested more than {DEPTH_MAX} levels deep")));
    }
    match data_type {
        DataType::Union(..) | DataType::RunEndEncoded(..) => return cannot(""),
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) if *size < 0 => {
            return cannot(": its size is negative");
        }
        DataType::Dictionary(key, _) if !DataType::is_dictionary_key_type(key) => {
            return cannot(": its keys are not integers");
        }
        DataType::Decimal32(digits, _) if !(1..=DECIMAL32_MAX_PRECISION).contains(digits) => return cannot(""),
        DataType::Decimal64(digits, _) if !(1..=DECIMAL64_MAX_PRECISION).contains(digits) => return cannot(""),
        DataType::Decimal128(digits, _) if !(1..=DECIMAL128_MAX_PRECISION).contains(digits) => return cannot(""),
        DataType::Decimal256(digits, _) if !(1..=DECIMAL256_MAX_PRECISION).contains(digits) => return cannot(""),
        // Whether the zone exists is not checked: other libraries may know newer ones.
        DataType::Timestamp(_, Some(zone)) => {
            if zone.len() > ZONE_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "the name of a time zone has {} bytes; expected at most {ZONE_BYTES_MAX}",
                    zone.len()
                )));
            }
            check_name("the name of a time zone", zone)?;
        }
        _ => {}
    }
    if let DataType::Dictionary(_, values) = data_type {
        return check_nested(values, depth + 1);
    }
    for field in children(data_type) {
        check_name("the name of a nested field", field.name())?;
        check_nested(field.data_type(), depth + 1)?;
    }
    Ok(())
}

/// The Arrow IPC schema.
fn encode(schema: &Schema) -> Result<Vec<u8>> {
    let encode = || {
        let mut tracker = DictionaryTracker::new(false);
        IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker).schema_to_fb(schema).finished_data().to_vec()
    };
    // Arrow panics on types that its format does not support.
    catch_unwind(AssertUnwindSafe(encode)).map_err(|_| Error::invalid("the schema has a type that cannot be stored"))
}

fn decode(bytes: &[u8]) -> Result<SchemaRef> {
    let bad = |e: String| Error::corrupt(format!("the stored schema cannot be decoded: {e}"));
    let encoded = root_as_schema(bytes).map_err(|e| bad(e.to_string()))?;
    // Arrow panics on a schema that is well-formed but makes no sense.
    let schema = catch_unwind(AssertUnwindSafe(|| fb_to_schema(encoded)));
    Ok(Arc::new(schema.map_err(|_| bad("its content is not valid".into()))?))
}

impl Serialize for StoredSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_stored().map_err(ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for StoredSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <Vec<u8>>::deserialize(deserializer)?;
        Self::stored(&bytes).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, TimeUnit};

    use super::*;

    #[test]
    fn an_order_is_of_columns_that_are_there() {
        let fields = vec![Field::new("a", DataType::Int64, true)];
        let stored = |order: &str| {
            let metadata = HashMap::from([(ORDER.to_owned(), order.to_owned())]);
            StoredSchema::stored(&encode(&Schema::new_with_metadata(fields.clone(), metadata)).unwrap())
        };
        let read = stored(r#"["a"]"#).unwrap();
        let spec = TableSpec { sort: vec!["b".into()], keyed: false };
        assert_eq!((read.order(&spec), read.0.metadata().len()), (&["a".to_owned()][..], 0));
        assert_eq!(StoredSchema::stored(&read.to_stored().unwrap()).unwrap(), read);
        for bad in [r#"["b"]"#, "[]", "7", "x"] {
            assert_eq!(stored(bad).unwrap_err().kind(), crate::base::ErrorKind::Corrupt, "{bad}");
        }
    }

    #[test]
    fn what_could_not_be_handed_out_is_refused_from_callers_and_from_storage() {
        let list = |below: DataType| DataType::List(Arc::new(Field::new("item", below, true)));
        let zoned = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
        let deep = (0..40).fold(DataType::Int8, |below, _| list(below));
        let named = DataType::Struct(vec![Field::new("a\0b", DataType::Int8, true)].into());
        let digits = [DataType::Decimal128(39, 0), DataType::Decimal256(0, 0), DataType::Decimal32(10, 0)];
        let bad = [zoned("UTC\0"), list(zoned("\0")), named, deep, DataType::FixedSizeBinary(-1)];
        for data_type in bad.into_iter().chain(digits) {
            let schema = Arc::new(Schema::new(vec![Field::new("c", data_type.clone(), true)]));
            assert!(StoredSchema::new(schema.clone()).is_err(), "{data_type}");
            // As if it had been stored.
            let Ok(bytes) = encode(&schema) else { continue };
            assert!(StoredSchema::stored(&bytes).is_err(), "{data_type} from storage");
        }
        for data_type in [zoned("Mars/Olympus_Mons"), zoned("+01:30"), list(zoned("Europe/Berlin"))] {
            StoredSchema::new(Arc::new(Schema::new(vec![Field::new("c", data_type, true)]))).unwrap();
        }
        let name = Arc::new(Schema::new(vec![Field::new("a\0", DataType::Int8, true)]));
        assert!(StoredSchema::new(name).is_err());
        // Metadata are delimited by lengths, here and in the C interface, so a NUL is allowed.
        let metadata = [("k\0".to_owned(), "v\0".to_owned())].into();
        let field = Field::new("c", DataType::Int8, true).with_metadata(metadata);
        StoredSchema::new(Arc::new(Schema::new(vec![field]))).unwrap();
    }

    #[test]
    fn values_without_size_are_refused_only_when_they_come() {
        let list = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int8, true)), 0);
        for data_type in [DataType::FixedSizeBinary(0), list] {
            let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, true)]));
            let error = StoredSchema::new(schema.clone()).unwrap_err();
            assert!(error.message().contains("'c'") && error.message().contains("size 0"), "{error}");
            StoredSchema::stored(&encode(&schema).unwrap()).unwrap();
        }
    }
}
