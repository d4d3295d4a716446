//! Patterns and conditions as passed from Python: text, or objects of `drumlin.tree`, which are passed as JSON once.

use drumlin::{Error, Part, PutMode, PutOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::raise;
use crate::value::a_type;

/// A parsed pattern.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Pattern(drumlin::Pattern);

#[pymethods]
impl Pattern {
    /// Takes the JSON of a pattern's parts.
    #[new]
    fn new(parts: &str) -> PyResult<Self> {
        let parts: Vec<Part> = serde_json::from_str(parts).and_then(serde_json::from_value).map_err(unreadable)?;
        Ok(Self(drumlin::Pattern::from_parts(parts).map_err(raise)?))
    }
}

/// A parsed condition.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Condition(drumlin::Condition);

#[pymethods]
impl Condition {
    /// Takes the JSON of a condition.
    #[new]
    fn new(condition: &str) -> PyResult<Self> {
        let condition: drumlin::Condition =
            serde_json::from_str(condition).and_then(serde_json::from_value).map_err(unreadable)?;
        condition.check().map_err(raise)?;
        Ok(Self(condition))
    }
}

fn unreadable(error: serde_json::Error) -> PyErr {
    raise(Error::invalid(error.to_string()))
}

/// The parsed form of an object of `drumlin.tree`.
fn parsed<'py, T: pyo3::PyTypeCheck>(object: &Borrowed<'_, 'py, PyAny>, expected: &str) -> PyResult<Bound<'py, T>> {
    let core = object.getattr(intern!(object.py(), "_core")).ok();
    core.and_then(|core| core.cast_into().ok()).ok_or_else(|| match a_type(object) {
        Ok(came) => PyTypeError::new_err(format!("expected {expected}, not {came}")),
        Err(e) => e,
    })
}

/// A pattern: a str, or a `P`.
pub struct PatternLike(pub drumlin::Pattern);

impl<'py> FromPyObject<'_, 'py> for PatternLike {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(drumlin::Pattern::new(text.to_str()?).map_err(raise)?));
        }
        Ok(Self(parsed::<Pattern>(&object, "a pattern (a str or a drumlin.P)")?.get().0.clone()))
    }
}

/// A condition of `drumlin.tree`.
pub struct ConditionLike(pub drumlin::Condition);

impl<'py> FromPyObject<'_, 'py> for ConditionLike {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(parsed::<Condition>(&object, "a condition made with drumlin.tree")?.get().0.clone()))
    }
}

/// Conditions by path: a dict, or pairs.
pub struct KeepWhile(Vec<(String, drumlin::Condition)>);

impl<'py> FromPyObject<'_, 'py> for KeepWhile {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let items = object.getattr_opt(intern!(object.py(), "items"))?;
        let pairs = match items {
            Some(items) => items.call0()?.try_iter()?,
            None => object.try_iter()?,
        };
        let pair = |pair: PyResult<Bound<'py, PyAny>>| {
            let (path, condition): (String, ConditionLike) = pair?.extract()?;
            Ok((path, condition.0))
        };
        Ok(Self(pairs.map(pair).collect::<PyResult<_>>()?))
    }
}

/// How a payload is put.
pub fn put_options(
    mode: Option<&str>,
    when: Option<ConditionLike>,
    keep_while: Option<KeepWhile>,
) -> PyResult<PutOptions> {
    let mode = match mode {
        None => PutMode::Put,
        Some("create") => PutMode::Create,
        Some("update") => PutMode::Update,
        Some(other) => {
            let why = format!("mode='{other}' is not known; expected 'create', 'update' or None");
            return Err(raise(Error::invalid(why)));
        }
    };
    let keep_while = keep_while.map(|keep| keep.0);
    Ok(PutOptions { mode, when: when.map(|when| when.0), keep_while, ..PutOptions::default() })
}
