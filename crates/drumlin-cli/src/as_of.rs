//! `--as-of`: which version to read.

use drumlin::{AsOf, Store, Version};

use crate::failure::Failure;
use crate::figures;

/// The prefix for a snapshot whose name looks like a version or a time.
const SNAPSHOT: &str = "snapshot:";

/// Reads `text`, if there is any: a number is a version; else it is a snapshot if there is one of that name, else a time.
pub fn resolve(store: &Store, text: Option<&str>) -> Result<AsOf, Failure> {
    let Some(text) = text else { return Ok(AsOf::Newest) };
    if let Some(name) = text.strip_prefix(SNAPSHOT) {
        return Ok(AsOf::Snapshot(name.to_owned()));
    }
    if let Ok(version) = text.parse() {
        return Ok(AsOf::Version(Version(version)));
    }
    if store.snapshots()?.iter().any(|snapshot| snapshot.name == text) {
        return Ok(AsOf::Snapshot(text.to_owned()));
    }
    if let Some(time) = figures::parse_time(text) {
        return Ok(AsOf::Time(time));
    }
    Err(Failure::Error(format!(
        "--as-of '{text}' is not a version number, a snapshot of this store or a time; 'drumlin versions' and 'drumlin snapshot list' show the first two, a time looks like 2026-01-31, 2026-01-31T16:00:00Z or 2026-01-31T16:00:00+01:00 (UTC if it has no offset)"
    )))
}
