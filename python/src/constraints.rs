//! Constraints of a table, to and from Python.

use arrow::datatypes::Field;
use drumlin::{AsOf, Constraints, ConstraintsInfo, Error, Filter, Generator, Result, Table};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::detached;
use crate::errors::raise;
use crate::keyed::defaults_of;
use crate::python_value::to_python;

/// Checks by name, columns that take no nulls, defaults by column, and what makes those that are made.
pub type Known<'py> = (Vec<(String, String)>, Vec<String>, Bound<'py, PyDict>, Vec<(String, String)>);

/// The same as given.
type Given<'py> = (Vec<(String, String)>, Vec<String>, Option<Bound<'py, PyDict>>, Vec<(String, String)>);

/// Constraints as given, for a table.
pub fn given(py: Python<'_>, table: &Table, (checks, not_null, defaults, made): Given<'_>) -> PyResult<Constraints> {
    let defaults = match defaults {
        None => Vec::new(),
        Some(values) => {
            let schema = detached(py, || table.schema(&AsOf::Newest))?;
            let misfit = |error: PyErr| raise(Error::schema_mismatch(error.value(py).to_string()));
            defaults_of(&values, &schema).map_err(misfit)?
        }
    };
    detached(py, move || {
        let checks = checks.into_iter().map(|(name, text)| Ok((name, Filter::parse(&text)?)));
        let made = made.into_iter().map(|(name, text)| match Generator::parse(&text, &name) {
            Some(generator) => Ok((name, generator)),
            None => Err(Error::invalid(format!("column '{name}': '{text}' makes no default"))),
        });
        let (checks, generators) = (checks.collect::<Result<_>>()?, made.collect::<Result<_>>()?);
        Ok(Constraints { checks, not_null, defaults, generators })
    })
}

/// The constraints of a version of a table.
pub fn known<'py>(py: Python<'py>, table: &Table, as_of: &AsOf) -> PyResult<Known<'py>> {
    let read = || Ok((table.constraints(as_of)?, table.schema(as_of)?));
    let (ConstraintsInfo { checks, not_null, defaults, generators }, schema) = detached(py, read)?;
    let values = PyDict::new(py);
    for (name, value) in defaults {
        let plain = Field::new(&name, value.data_type().clone(), true);
        let field = schema.field_with_name(&name).unwrap_or(&plain);
        values.set_item(&name, to_python(py, field, &value, 0)?)?;
    }
    let made = generators.into_iter().map(|(name, generator)| (name, generator.to_string())).collect();
    Ok((checks, not_null, values, made))
}
