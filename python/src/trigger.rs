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
    Arc::new(move |call| callback.call(Event::from(call)))
}
