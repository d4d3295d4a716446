//! Rows that many processes write for one job, and the commit that makes them part of their tables.

use std::collections::BTreeMap;

use drumlin::{Aborted, StageMode, StageOptions, StagedCommit, Task, Version};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::{Detached, detached, with_progress};
use crate::errors::raise;
use crate::foreign::GivenSchema;
use crate::input::Input;
use crate::open_store::Store;
use crate::options::{ModeName, Settings, open};
use crate::reports::StagedReport;
use crate::schema::Schema;

/// How a job is staged, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct JobSettings {
    job: Option<String>,
    mode: String,
    sort: Vec<String>,
    life_micros: Option<u64>,
    work_micros: Option<u64>,
}

impl JobSettings {
    fn options(self) -> PyResult<StageOptions> {
        let default = StageOptions::default();
        let mode = match &*self.mode {
            "append" => StageMode::Append,
            "overwrite" => StageMode::Overwrite,
            "upsert" => StageMode::Upsert,
            other => {
                return Err(PyValueError::new_err(format!(
                    "mode '{other}' is not known; expected 'append', 'overwrite' or 'upsert'"
                )));
            }
        };
        Ok(StageOptions {
            job: self.job,
            mode,
            sort: self.sort,
            life_micros: self.life_micros.unwrap_or(default.life_micros),
            work_micros: self.work_micros.unwrap_or(default.work_micros),
        })
    }
}

/// What the workers of a job need to stage rows.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Ticket(drumlin::Ticket);

/// Rows that are on storage but in no table yet.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Token(drumlin::Token);

/// Writes rows to storage for a worker.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Stage(Detached<drumlin::Stage>);

#[pymethods]
impl Ticket {
    #[new]
    fn new(encoded: &[u8]) -> PyResult<Self> {
        Ok(Self(drumlin::Ticket::from_bytes(encoded).map_err(raise)?))
    }

    /// Begins a job.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        store: &Store,
        tables: Vec<(String, Option<GivenSchema>)>,
        settings: JobSettings,
    ) -> PyResult<Self> {
        let options = settings.options()?;
        let tables: Vec<_> =
            tables.into_iter().map(|(path, schema)| (path, schema.map(GivenSchema::into_inner))).collect();
        Ok(Self(detached(py, || drumlin::Ticket::open(&store.core, &tables, &options))?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(raise)?))
    }

    #[getter]
    fn job(&self) -> &str {
        self.0.job()
    }

    #[getter]
    fn uri(&self) -> &str {
        self.0.uri()
    }

    #[getter]
    fn paths(&self) -> Vec<String> {
        self.0.paths()
    }

    #[getter]
    fn life_micros(&self) -> u64 {
        self.0.life_micros()
    }

    fn schema(&self, path: &str) -> Option<Schema> {
        self.0.schema(path).map(Schema)
    }

    fn beat(&self, py: Python<'_>, store: &Store) -> PyResult<()> {
        detached(py, || self.0.beat(&store.core))
    }

    /// Ends the job. Returns whether it ended without a commit.
    fn abort(&self, py: Python<'_>, store: &Store) -> PyResult<bool> {
        Ok(detached(py, || self.0.abort(&store.core))? == Aborted::Aborted)
    }
}

#[pymethods]
impl Token {
    #[new]
    fn new(encoded: &[u8]) -> PyResult<Self> {
        Ok(Self(drumlin::Token::from_bytes(encoded).map_err(raise)?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(raise)?))
    }

    #[getter]
    fn path(&self) -> &str {
        self.0.path()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn job(&self) -> &str {
        self.0.job()
    }

    #[getter]
    fn part(&self) -> Option<(u64, u64)> {
        self.0.part()
    }
}

#[pymethods]
impl Stage {
    #[new]
    fn new(py: Python<'_>, uri: &str, settings: Settings) -> PyResult<Self> {
        let options = open(ModeName::create(), settings)?;
        Ok(Self(Detached::new(detached(py, || drumlin::Stage::open(uri, &options))?)))
    }

    /// The stage of an open store.
    #[staticmethod]
    fn of(store: &Store) -> Self {
        Self(Detached::new(drumlin::Stage::of(&store.core)))
    }

    /// Writes rows for a table of the ticket.
    fn write(
        &self,
        py: Python<'_>,
        ticket: &Ticket,
        path: &str,
        frame: Input,
        part: Option<(u64, u64)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Token> {
        let write = |task: Task| self.0.write(&ticket.0, path, frame.frame(&task.cancel), part, &task);
        Ok(Token(with_progress(py, progress, write)?))
    }
}

/// Writes rows for a table, as a job of their own.
#[pyfunction]
pub fn stage_alone(
    py: Python<'_>,
    store: &Store,
    path: &str,
    frame: Input,
    settings: JobSettings,
    part: Option<(u64, u64)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Token> {
    let options = settings.options()?;
    let write = |task: Task| {
        let frame = frame.frame(&task.cancel);
        let tables = [(path.to_owned(), Some(frame.schema().clone()))];
        drumlin::Ticket::check(&store.core, path, frame.schema(), &options)?;
        let ticket = drumlin::Ticket::open(&store.core, &tables, &options)?;
        let token = drumlin::Stage::of(&store.core).write(&ticket, path, frame, part, &task);
        if token.is_err() {
            // If that fails, it ends by itself.
            let _ = ticket.abort(&store.core);
        }
        token
    };
    Ok(Token(with_progress(py, progress, write)?))
}

/// Commits tokens.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each of the call")]
pub fn commit_staged(
    py: Python<'_>,
    store: &Store,
    ticket: Option<&Ticket>,
    tokens: Vec<PyRef<'_, Token>>,
    job: Option<String>,
    expected: BTreeMap<String, u64>,
    metadata: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<StagedReport> {
    let tokens: Vec<drumlin::Token> = tokens.iter().map(|token| token.0.clone()).collect();
    let expected = expected.into_iter().map(|(path, version)| (path, Version(version))).collect();
    let commit = |task| {
        let options = StagedCommit { job, expected, metadata, task };
        match ticket {
            Some(ticket) => ticket.0.commit(&store.core, tokens, &options),
            None => drumlin::Token::commit(&store.core, tokens, &options),
        }
    };
    Ok(with_progress(py, progress, commit)?.into())
}

/// Ends the jobs of tokens. Returns whether none of them was committed.
#[pyfunction]
pub fn abort_staged(py: Python<'_>, store: &Store, tokens: Vec<PyRef<'_, Token>>) -> PyResult<bool> {
    let tokens: Vec<drumlin::Token> = tokens.iter().map(|token| token.0.clone()).collect();
    Ok(detached(py, || drumlin::Token::abort(&store.core, &tokens))? == Aborted::Aborted)
}
