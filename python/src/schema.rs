//! The schema of a table or result.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use drumlin::embedding::caught;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::errors::raise;
use crate::foreign::GivenSchema;
use drumlin::TypeName;

/// The columns of a table or result: names and Arrow types. `pyarrow.schema(...)` and anything else that takes
/// `__arrow_c_schema__` accept it.
#[pyclass(frozen, eq, module = "drumlin")]
#[derive(PartialEq)]
pub struct Schema(pub SchemaRef);

/// A schema, or a type, as an Arrow capsule.
pub fn capsule<'py, T>(py: Python<'py>, schema: T) -> PyResult<Bound<'py, PyCapsule>>
where
    FFI_ArrowSchema: TryFrom<T, Error = ArrowError>,
{
    // Arrow panics on a name that the interface cannot carry.
    let exported = caught(|| Ok(FFI_ArrowSchema::try_from(schema)?)).map_err(raise)?;
    PyCapsule::new_with_value(py, exported, c"arrow_schema")
}

#[pymethods]
impl Schema {
    /// Converts the schema of anything with `__arrow_c_schema__`.
    #[new]
    #[pyo3(signature = (schema, /))]
    fn new(schema: GivenSchema) -> Self {
        Self(schema.into_inner())
    }

    /// The schema of columns whose types are given as text.
    #[staticmethod]
    fn parse(columns: Vec<(String, String)>) -> PyResult<Self> {
        let field = |(name, text): &(String, String)| {
            let data_type = drumlin::parse_type(text).map_err(|e| e.context(format!("column '{name}'")))?;
            let field = Field::new(name, data_type, true);
            // The name of Arrow's type for them tells libraries more than the bytes do.
            Ok(match text.trim().eq_ignore_ascii_case("uuid") {
                true => field.with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into()),
                false => field,
            })
        };
        let fields = columns.iter().map(field).collect::<drumlin::Result<Vec<_>>>();
        Ok(Self(Arc::new(ArrowSchema::new(fields.map_err(raise)?))))
    }

    /// The names of the columns, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The Arrow types of the columns, as text, in order.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| TypeName(field.data_type()).to_string()).collect()
    }

    /// The schema's metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = PyDict::new(py);
        for (key, value) in self.0.metadata() {
            metadata.set_item(PyBytes::new(py, key.as_bytes()), PyBytes::new(py, value.as_bytes()))?;
        }
        Ok(metadata)
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, &*self.0)
    }

    fn __repr__(&self) -> String {
        let column = |field: &arrow::datatypes::FieldRef| {
            let nulls = if field.is_nullable() { "" } else { " not null" };
            format!("{}: {}{nulls}", field.name(), TypeName(field.data_type()))
        };
        format!("Schema({})", self.0.fields().iter().map(column).collect::<Vec<_>>().join(", "))
    }
}
