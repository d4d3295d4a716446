//! How a job is staged, and its tables as it found them: what all its parts must have.

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, TableId};
use crate::catalog::{Path, State};
use crate::filter::column_meant;
use crate::segment::Compression;
use crate::store::read::resolve::table_at;
use crate::table::{RowsSchema, StoredSchema, TableCodec, check_key};

/// What the commit of staged rows does to their table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageMode {
    /// They are added; in a table with a key, their keys must be new.
    #[default]
    Append,
    /// They replace all rows.
    Overwrite,
    /// They replace those with the same keys.
    Upsert,
}

/// How a job is staged.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// The job's name, under which its commit is remembered. Default: a random one.
    pub job: Option<String>,
    /// What its commit does. Default: it appends.
    pub mode: StageMode,
    /// The sort order of tables that do not exist yet. Default: none.
    pub sort: Vec<String>,
    /// How long staged blocks are kept without [`crate::store::Ticket::beat`], in microseconds. Default: an hour.
    pub life_micros: u64,
    /// For how long workers may write, in microseconds. Default: a day.
    pub work_micros: u64,
}

impl Default for StageOptions {
    fn default() -> Self {
        let (job, mode, sort) = (None, StageMode::Append, Vec::new());
        Self { job, mode, sort, life_micros: 3_600_000_000, work_micros: 86_400_000_000 }
    }
}

/// A table of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::store) struct Target {
    pub path: Path,
    pub mode: StageMode,
    /// The table that was there when the job began.
    pub table: Option<TableId>,
    pub schema: StoredSchema,
    pub sort: Vec<String>,
    pub keyed: bool,
}

impl Target {
    pub fn new(
        state: &State,
        path: Path,
        schema: Option<&SchemaRef>,
        options: &StageOptions,
        new: Option<Compression>,
    ) -> Result<Self> {
        let mode = options.mode;
        let named = |e: Error| e.context(format!("'{path}'"));
        let existing = state.table_at(&path)?;
        let existing = existing.as_ref();
        if mode == StageMode::Upsert && table_at(state, &path)?.key().is_none() {
            return Err(Error::invalid(format!(
                "'{path}' has no key, so no rows can be replaced by it; append or overwrite instead"
            )));
        }
        let meant = |name: &String| schema.map_or(name.as_str(), |schema| column_meant(name, schema)).to_owned();
        let (sort, keyed) = match existing {
            Some(table) => (table.order().to_vec(), table.spec.keyed),
            None => (options.sort.iter().map(meant).collect(), false),
        };
        let own = existing.and_then(|table| table.schema()).cloned();
        let schema = match (mode, own, schema) {
            (StageMode::Overwrite, _, Some(came)) | (StageMode::Append, None, Some(came)) => {
                RowsSchema::whole(existing.map(|table| &**table), came, &sort, None, new).map_err(named)?.stored
            }
            (_, Some(own), _) => own,
            (_, None, _) => {
                return Err(Error::invalid(format!("'{path}' does not exist; give the schema of its rows")));
            }
        };
        if keyed {
            check_key(&sort, &schema.0).map_err(named)?;
            TableCodec::new(&schema.0, &sort)?.check().map_err(named)?;
        }
        let table = existing.map(|table| table.id);
        Ok(Self { path, mode, table, schema, sort, keyed })
    }
}
