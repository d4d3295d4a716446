//! What a table knows of a column beside its field: the id that row groups of all its schemas know it by, and the value that
//! rows have which are older than it. Both are stored in the field's metadata, under names that frames may not use.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use bytes::Bytes;

use super::columns::into_type;
use crate::base::{Error, Result, from_hex, to_hex};
use crate::segment::{self, Form};

/// The metadata that say which column a field is, and what its default is.
pub(super) const RESERVED: [&str; 2] = ["drumlin.column", "drumlin.default"];

/// One column of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// What row groups know it by.
    pub id: String,
    /// A segment of one row with the value that rows have which are older; `None` for null.
    default: Option<Bytes>,
}

impl Column {
    /// A column known by the name that it was made with.
    pub fn named(name: &str) -> Self {
        Self { id: name.to_owned(), default: None }
    }

    /// A new column called `name`, whose id is none of `taken`.
    pub fn fresh(name: &str, taken: &BTreeSet<String>) -> Self {
        let numbered = (1_u64..).map(|n| format!("{name}#{n}"));
        let mut ids = std::iter::once(name.to_owned()).chain(numbered);
        Self { id: ids.find(|id| !taken.contains(id)).expect("there are more numbers than columns"), default: None }
    }

    /// The same with a default, an array of one row, which is not null.
    pub fn with_default(self, value: &ArrayRef) -> Result<Self> {
        Ok(Self { default: Some(segment::encode(value)?.bytes.into()), ..self })
    }

    /// The same after its field has got another type than `came`.
    pub fn widened(self, came: &DataType, field: &Field) -> Result<Self> {
        match self.default_value(came) {
            Some(value) => self.with_default(&into_type(value?, field.data_type())?),
            None => Ok(self),
        }
    }

    /// Whether nothing is known of it beside its field.
    pub fn is_plain(&self, field: &Field) -> bool {
        self.id == *field.name() && self.default.is_none()
    }

    /// The value that older rows have, an array of one row; `None` for null.
    pub fn default_value(&self, data_type: &DataType) -> Option<Result<ArrayRef>> {
        self.default.as_ref().map(|bytes| segment::decode(bytes.clone(), 1, data_type, Form::Exact))
    }

    /// The column of a stored field, and the field without what is stored of it.
    pub fn read(field: &FieldRef) -> Result<(Field, Self)> {
        let mut metadata = field.metadata().clone();
        let [id, default] = RESERVED.map(|key| metadata.remove(key));
        let default = default
            .map(|text| from_hex(&text).ok_or_else(|| Error::corrupt("the default of a column is not hexadecimal")));
        let default = default.transpose()?.map(Bytes::from);
        let column = Self { id: id.unwrap_or_else(|| field.name().clone()), default };
        match column.default_value(field.data_type()) {
            Some(Err(e)) => return Err(Error::corrupt("the default of a column").with_source(e.to_string())),
            Some(Ok(value)) if value.len() != 1 => {
                return Err(Error::corrupt("the default of a column is not one value"));
            }
            _ => {}
        }
        Ok((field.as_ref().clone().with_metadata(metadata), column))
    }

    /// The field as it is stored.
    pub fn write(&self, field: &FieldRef) -> FieldRef {
        if self.is_plain(field) {
            return field.clone();
        }
        let mut metadata = field.metadata().clone();
        metadata.insert(RESERVED[0].to_owned(), self.id.clone());
        metadata.extend(self.default.as_ref().map(|bytes| (RESERVED[1].to_owned(), to_hex(bytes))));
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    }
}

/// The only value of an array of one row, `rows` times.
pub(super) fn repeated(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(value, &UInt32Array::from(vec![0; rows]), None)?)
}
