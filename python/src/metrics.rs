//! What a store counts, and what it warns of, for Python.

use drumlin::{MetricValue, Warn, WarningKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Name, label and help of a metric; its kind; a number, or for a histogram its buckets, count and sum.
pub type Row = (&'static str, Option<(&'static str, &'static str)>, &'static str, &'static str, Value);

/// The numbers of a metric.
#[derive(IntoPyObject)]
pub enum Value {
    /// A counter's or a gauge's.
    Number(u64),
    /// A histogram's.
    Durations(Vec<(f64, u64)>, u64, f64),
}

/// All metrics, and their text for Prometheus.
pub type Metrics = (Vec<Row>, String);

/// The metrics of a store.
pub fn metrics(store: &drumlin::Store) -> drumlin::Result<Metrics> {
    let metrics = drumlin::metrics(store)?;
    let text = drumlin::prometheus(&metrics);
    let row = |metric: drumlin::Metric| {
        let (kind, value) = match metric.value {
            MetricValue::Counter(value) => ("counter", Value::Number(value)),
            MetricValue::Gauge(value) => ("gauge", Value::Number(value)),
            MetricValue::Histogram { buckets, count, sum } => ("histogram", Value::Durations(buckets, count, sum)),
        };
        (metric.name, metric.label, metric.help, kind, value)
    };
    Ok((metrics.into_iter().map(row).collect(), text))
}

/// Hands warnings to the logger `drumlin` of Python's `logging`.
pub fn to_logging() -> Warn {
    Warn::new(|kind: WarningKind, text: &str| {
        // Nothing is logged once the interpreter ends; what logging fails with is shown as such errors are.
        Python::try_attach(|py| {
            if let Err(error) = log(py, kind, text) {
                error.write_unraisable(py, None);
            }
        });
    })
}

fn log(py: Python<'_>, kind: WarningKind, text: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("drumlin",))?;
    let extra = PyDict::new(py);
    extra.set_item("drumlin_kind", kind.name())?;
    let arguments = PyDict::new(py);
    arguments.set_item("extra", extra)?;
    logger.call_method("warning", ("%s", text), Some(&arguments))?;
    Ok(())
}
