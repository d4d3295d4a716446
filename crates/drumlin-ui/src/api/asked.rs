//! Which rows are asked for: of a version of a table, filtered, in some columns.

use drumlin::{AsOf, Cancel, Error, Filter, Result, ScanOptions, Store, Tables, Timestamp, Version};

use crate::query::Query;

/// The columns of one answer.
pub const COLUMNS_MAX: usize = 100;

/// Which rows are asked for.
pub struct Asked<'a> {
    pub path: &'a str,
    pub as_of: AsOf,
    pub filter: Option<Filter>,
    pub columns: Vec<String>,
}

impl<'a> Asked<'a> {
    /// What a request asks for.
    pub fn new(store: &Store, query: &'a Query) -> Result<Self> {
        let (path, as_of) = (query.need("path")?, as_of(query, "as_of")?);
        let schema = store.table(path).schema(&as_of)?;
        let mut columns: Vec<String> = query.all("column").map(str::to_owned).collect();
        if columns.is_empty() {
            columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        }
        columns.truncate(COLUMNS_MAX);
        Ok(Self { path, as_of, filter: filter(query)?, columns })
    }

    /// What is read of the version.
    pub fn scan(&self, cancel: &Cancel) -> ScanOptions {
        ScanOptions {
            columns: Some(self.columns.clone()),
            filter: self.filter.clone(),
            cancel: cancel.clone(),
            ..ScanOptions::default()
        }
    }
}

/// The filter that is asked for.
pub fn filter(query: &Query) -> Result<Option<Filter>> {
    query.text("where").map(Filter::parse).transpose()
}

/// Which version is asked for: none for the newest, a number, `snapshot:` and a name, `time:` and microseconds.
pub fn as_of(query: &Query, name: &str) -> Result<AsOf> {
    let Some(text) = query.text(name) else { return Ok(AsOf::Newest) };
    if let Some(snapshot) = text.strip_prefix("snapshot:") {
        return Ok(AsOf::Snapshot(snapshot.to_owned()));
    }
    let bad = || {
        Error::invalid(format!(
            "'{name}' is '{text}'; expected the number of a version, 'snapshot:' and a name, or 'time:' and \
             microseconds"
        ))
    };
    if let Some(micros) = text.strip_prefix("time:") {
        return Ok(AsOf::Time(Timestamp(micros.parse().map_err(|_| bad())?)));
    }
    Ok(AsOf::Version(Version(text.parse().map_err(|_| bad())?)))
}
