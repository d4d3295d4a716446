//! The stories of a table's versions: with the versions' records in memory, beside the table in a catalog snapshot.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Version};
use crate::table::{Lineage, Note, Story, TableState, Turnover, VersionRecord};

/// The stories of a table's versions, as they are stored.
type Stories = Vec<(Version, Arc<Story>)>;

/// What a catalog snapshot holds beside a table: where its rows came from, and what its versions tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    lineage: Lineage,
    stories: Stories,
}

impl Past {
    /// That of a table; `None` if there is nothing to tell. O(versions).
    pub fn of(table: &TableState) -> Option<Self> {
        let (lineage, stories) = (&table.lineage, table.stories());
        let stories = if planted(Bug::ForgetStories) { Stories::new() } else { stories };
        let some = !lineage.is_empty() || !stories.is_empty();
        some.then(|| Self { lineage: Lineage::clone(lineage), stories })
    }

    /// Gives it to its table, which was read without it. `Corrupt` if it tells of versions that the table lacks.
    pub fn give(self, table: &mut TableState) -> Result<()> {
        table.lineage = Arc::new(self.lineage);
        table.take_stories(self.stories)
    }
}

impl TableState {
    /// Adds the record of the next version.
    pub(in crate::table) fn add_version(&mut self, record: VersionRecord, rows: Option<Turnover>) {
        let story = rows.map(|_| Arc::new(Story { rows, note: Note::default() }));
        self.versions.push_back(Arc::new(VersionRecord { story, ..record }));
    }

    /// Changes the record of a version, where it is listed and where snapshots hold it.
    pub(in crate::table) fn edit_version(&mut self, version: Version, edit: impl Fn(&mut VersionRecord)) {
        if let Ok(at) = self.versions.binary_search_by_key(&version, |record| record.version) {
            edit(Arc::make_mut(&mut self.versions[at]));
        }
        if let Some(pin) = self.pins.get_mut(&version) {
            edit(Arc::make_mut(&mut pin.record));
        }
    }

    /// Changes the story of a version.
    pub(in crate::table) fn edit_story(&mut self, version: Version, edit: impl Fn(&mut Story)) {
        self.edit_version(version, |record| edit(Arc::make_mut(record.story.get_or_insert_default())));
    }

    /// The table with a note of a version.
    pub fn with_note(&self, version: Version, note: &Note) -> TableState {
        let mut next = self.clone();
        next.edit_story(version, |story| story.note = note.clone());
        next
    }

    /// The table whose newest version has also changed `changed` rows in place.
    pub fn with_changed(&self, changed: u64) -> TableState {
        let mut next = self.clone();
        let Some(version) = self.newest().map(|newest| newest.version) else { return next };
        next.edit_story(version, |story| {
            let rows = story.rows.get_or_insert_default();
            rows.added += changed;
            rows.removed += changed;
        });
        next
    }

    /// The stories of its versions, and of those that only snapshots hold, by version. O(versions).
    fn stories(&self) -> Stories {
        let pinned = self.pins.values().map(|pin| &pin.record);
        let of = |record: &Arc<VersionRecord>| Some((record.version, record.story.clone()?));
        let mut stories: Stories = self.versions.iter().chain(pinned).filter_map(of).collect();
        stories.sort_unstable_by_key(|(version, _)| *version);
        stories.dedup_by_key(|(version, _)| *version);
        stories
    }

    /// Takes over stories that were read.
    fn take_stories(&mut self, stories: Stories) -> Result<()> {
        for (version, story) in stories {
            if self.version(version).is_none() {
                return Err(Error::corrupt(format!(
                    "table {}: it has a record of what version {version} did, but not that version",
                    self.id
                )));
            }
            self.edit_version(version, |record| record.story = Some(story.clone()));
        }
        Ok(())
    }
}
