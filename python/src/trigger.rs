//! Triggers: Python callbacks.

use std::sync::Arc;

use drumlin::{Action, Error, Pattern, TriggerFilter, TriggerFn};
use pyo3::prelude::*;

use crate::callbacks::Callback;
use crate::errors::raise;
use crate::event::Event;

/// What a trigger is called for.
pub fn filter(pattern: Pattern, actions: Vec<String>, priority: i32) -> PyResult<TriggerFilter> {
    let action = |name: String| match name.as_str() {
        "create" => Ok(Action::Create),
        "update" => Ok(Action::Update),
        "delete" => Ok(Action::Delete),
        other => Err(raise(Error::invalid(format!(
            "action '{other}' is not known; expected 'create', 'update' or 'delete'"
        )))),
    };
    Ok(TriggerFilter { pattern, actions: actions.into_iter().map(action).collect::<PyResult<_>>()?, priority })
}

/// The trigger's callback, which calls `callback` with an event. An exception is shown, and is a failure of the call.
pub fn function(callback: Arc<Callback>) -> TriggerFn {
    Arc::new(move |call| {
        let said = Python::try_attach(|py| {
            let Some(function) = callback.get(py) else { return Ok(()) };
            let raised = Event::from(call).into_pyobject(py).and_then(|event| function.call1((event,)));
            raised.map(drop).map_err(|raised| {
                let text = traceback(py, &raised).unwrap_or_else(|_| raised.to_string());
                raised.write_unraisable(py, Some(&function));
                text
            })
        });
        // Without an interpreter, there is nothing to call.
        said.unwrap_or(Ok(()))
    })
}

/// What Python prints for an exception.
fn traceback(py: Python<'_>, raised: &PyErr) -> PyResult<String> {
    let parts = (raised.get_type(py), raised.value(py), raised.traceback(py));
    let lines: Vec<String> = py.import("traceback")?.call_method1("format_exception", parts)?.extract()?;
    Ok(lines.concat())
}
