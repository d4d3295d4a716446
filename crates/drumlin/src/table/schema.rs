//! A table's schema as it is stored: the Arrow IPC encoding, so that every Arrow type and all metadata survive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::convert::{IpcSchemaEncoder, fb_to_schema};
use arrow::ipc::root_as_schema;
use arrow::ipc::writer::DictionaryTracker;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::base::{Error, Result};

/// An Arrow schema that serialises as an Arrow IPC schema (the flatbuffer alone, without a message around it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSchema(pub SchemaRef);

impl StoredSchema {
    /// Checks that a table can have this schema: at least one column, no name twice, types that can be stored.
    pub fn new(schema: SchemaRef) -> Result<Self> {
        let stored = Self::checked(schema)?;
        if decode(&encode(&stored.0)?).ok().as_ref() != Some(&stored.0) {
            return Err(Error::invalid("the schema has a type that does not come back as it was when stored"));
        }
        Ok(stored)
    }

    /// All but that it can be encoded, which a schema that was decoded can.
    fn checked(schema: SchemaRef) -> Result<Self> {
        if schema.fields().is_empty() {
            return Err(Error::invalid("a table needs at least one column; the schema has none"));
        }
        let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("two columns are called '{}'; names must be unique", pair[0])));
        }
        for field in schema.fields() {
            check_depth(field.data_type(), 0).map_err(|e| e.context(format!("column '{}'", field.name())))?;
        }
        Ok(Self(schema))
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

/// Types nested deeper than this are refused, so that no recursion over a type can overflow the stack.
const DEPTH_MAX: usize = 32;

fn check_depth(data_type: &DataType, depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("the type is nested more than {DEPTH_MAX} deep")));
    }
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => check_depth(field.data_type(), depth + 1),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check_depth(field.data_type(), depth + 1)),
        DataType::Dictionary(_, values) => check_depth(values, depth + 1),
        DataType::Union(..) | DataType::RunEndEncoded(..) => {
            Err(Error::invalid(format!("type {data_type} cannot be stored")))
        }
        _ => Ok(()),
    }
}

/// The Arrow IPC schema.
fn encode(schema: &Schema) -> Result<Vec<u8>> {
    let encode = || {
        let mut tracker = DictionaryTracker::new(false);
        IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker).schema_to_fb(schema).finished_data().to_vec()
    };
    // Arrow panics on types that its format does not have.
    catch_unwind(AssertUnwindSafe(encode)).map_err(|_| Error::invalid("the schema has a type that cannot be stored"))
}

fn decode(bytes: &[u8]) -> Result<SchemaRef> {
    let bad = |e: String| Error::corrupt(format!("not a schema: {e}"));
    let encoded = root_as_schema(bytes).map_err(|e| bad(e.to_string()))?;
    // Arrow panics on a schema that is well-formed but senseless.
    let schema = catch_unwind(AssertUnwindSafe(|| fb_to_schema(encoded)));
    Ok(Arc::new(schema.map_err(|_| bad("it makes no sense".into()))?))
}

impl Serialize for StoredSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&encode(&self.0).map_err(ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for StoredSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <Vec<u8>>::deserialize(deserializer)?;
        decode(&bytes).and_then(Self::checked).map_err(de::Error::custom)
    }
}
