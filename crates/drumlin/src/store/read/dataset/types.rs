//! The same rows in the types of Arrow that an engine takes.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::Dataset;
use crate::base::Result;
use crate::segment::{PhysicalForm, engine_type, narrow_decimal, without_views};
use crate::table::{ScanOptions, text_dictionary};

impl Dataset {
    /// The same rows in types that an engine has, and in which it pushes down most: plain strings for views, wider half floats,
    /// decimals of 128 bits; of a single table, strings as dictionaries where all row groups keep them so.
    /// Filters are as before. Reads the directories of a single table's row groups.
    ///
    /// # Errors
    /// As [`Dataset::plan`].
    pub fn for_engines(&self) -> Result<Dataset> {
        let schema = &self.inner.schema;
        let mut types: Vec<DataType> = match self.inner.tables.len() {
            1 => self.scan_table(0, &ScanOptions::default())?.engine_types()?,
            _ => {
                let known = |field: &FieldRef| match field.extension_type_name() {
                    Some(_) => field.data_type().clone(),
                    None => engine_type(field.data_type(), [PhysicalForm::Values].into_iter()),
                };
                schema.fields().iter().map(known).collect()
            }
        };
        let of_paths = types.len() - self.inner.path_columns.len();
        types[of_paths..].fill(text_dictionary());
        Ok(self.in_types(schema, types).unwrap_or_else(|| self.clone()))
    }

    /// The same rows with texts and bytes in offsets of 64 bits in the place of views, with which pyarrow does not compute; `None` if there are
    /// no views.
    pub fn without_views(&self) -> Option<Dataset> {
        self.retyped(without_views)
    }

    /// The same rows with decimals of 128 bits in as few as their digits need, in which an engine computes with them, though it may push none down;
    /// `None` if there are none.
    pub fn with_narrow_decimals(&self) -> Option<Dataset> {
        self.retyped(narrow_decimal)
    }

    /// The same rows in other types; `None` if they are the same.
    fn retyped(&self, to: impl Fn(&DataType) -> DataType) -> Option<Dataset> {
        let to = |field: &FieldRef| match field.extension_type_name() {
            Some(_) => field.data_type().clone(),
            None => to(field.data_type()),
        };
        self.in_types(&self.inner.shown, self.inner.shown.fields().iter().map(to).collect())
    }

    fn in_types(&self, of: &Schema, types: Vec<DataType>) -> Option<Dataset> {
        let retyped = |(field, data_type): (&FieldRef, DataType)| Field::clone(field).with_data_type(data_type);
        let fields: Vec<Field> = of.fields().iter().zip(types).map(retyped).collect();
        let shown = Arc::new(Schema::new_with_metadata(fields, of.metadata().clone()));
        (shown != self.inner.shown)
            .then(|| Dataset { inner: Arc::new(self.inner.with(self.inner.tables.clone(), shown)) })
    }
}
