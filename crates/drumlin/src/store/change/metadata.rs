//! The writer's metadata of versions, changed alone.

use crate::base::Result;
use crate::catalog::{Effect, Path, Read};
use crate::store::read::resolve::resolve;
use crate::store::{AsOf, Table};

impl Table {
    /// Changes the writer's metadata of a version, JSON text, without a new version; `None` removes them.
    ///
    /// # Errors
    /// `NotFound` if there is no table, or not that version.
    pub fn set_metadata(&self, as_of: &AsOf, metadata: Option<String>) -> Result<()> {
        let (path, as_of) = (Path::new(&self.path)?, as_of.clone());
        let reads = vec![Read::Binding(path.clone()), Read::Snapshots];
        self.place.change(
            || reads,
            move |draft| {
                let (table, seen) = resolve(draft.state(), &path, &as_of)?;
                let (table, version, metadata) = (table.id, seen.version, metadata.clone());
                draft.apply(vec![Effect::SetMetadata { table, version, metadata }])
            },
        )
    }
}
