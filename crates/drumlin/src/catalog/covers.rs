//! Snapshots of all tables that match a pattern, whose cost does not depend on how many these are.
//!
//! Such a snapshot names no table; it *covers* those that match its pattern, are in the tree and were there when it was taken: it holds the
//! newest version of each. A table leaves its covers before the first change of its versions or of its place after they were taken. What they
//! held of it is *pinned* then, as by a snapshot that names versions. So whether a table is covered follows from what it is now.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result, Seq, TableId, Version};
use crate::catalog::{Path, Pattern};

/// Which cover it is, in the order in which they were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CoverId {
    /// The commit that took it.
    pub seq: Seq,
    /// Its place among those of this commit.
    pub nth: u32,
}

/// What a snapshot covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotCover {
    /// Which it is.
    pub id: CoverId,
    /// Which paths it covers.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub pattern: Pattern,
    /// The last table that there was.
    pub last_table: TableId,
    /// How many tables it held when it was taken.
    pub tables: u64,
}

fn as_text<S: Serializer>(pattern: &Pattern, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(pattern)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Pattern, D::Error> {
    Pattern::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// What a cover held of tables that have left it, by the paths that they had.
pub(super) type CoverPins = OrdMap<(CoverId, Path), (TableId, Version)>;

/// All covers.
#[derive(Clone, Debug, Default)]
pub struct SnapshotCovers {
    /// By the names of their snapshots.
    pub(super) by_name: OrdMap<String, Arc<SnapshotCover>>,
    pub(super) pins: CoverPins,
    /// The newest cover that there was when a table left its covers, by table.
    pub(super) left: OrdMap<TableId, CoverId>,
    /// The same covers in order; derived.
    ordered: OrdMap<CoverId, Arc<SnapshotCover>>,
    /// The last one that this process has seen taken, which may be gone. None of an earlier commit has its id.
    last: CoverId,
}

impl PartialEq for SnapshotCovers {
    /// Which one this process saw taken last is nothing that they have.
    fn eq(&self, other: &Self) -> bool {
        self.are_those_of(other) && self.pins == other.pins && self.left == other.left
    }
}

impl SnapshotCovers {
    /// Those of a catalog snapshot.
    pub(super) fn of(
        by_name: OrdMap<String, Arc<SnapshotCover>>,
        pins: CoverPins,
        left: OrdMap<TableId, CoverId>,
    ) -> Self {
        let ordered: OrdMap<_, _> = by_name.values().map(|cover| (cover.id, cover.clone())).collect();
        let last = ordered.get_max().map_or_else(CoverId::default, |(id, _)| *id);
        Self { by_name, pins, left, ordered, last }
    }

    /// `Corrupt` if they do not go with snapshots, the last commit and the last table that there were, and with the tables that there are, if
    /// these are known.
    pub(super) fn check<S: Clone>(
        &self,
        snapshots: &OrdMap<String, S>,
        (last_seq, last_table): (Seq, TableId),
        tables: Option<&BTreeSet<TableId>>,
    ) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt(format!("catalog: {what}")));
        let forged = |(name, cover): (&String, &Arc<SnapshotCover>)| {
            !snapshots.contains_key(name) || cover.last_table > last_table || cover.id.seq > last_seq
        };
        if self.by_name.iter().any(forged) {
            return bad("tables are covered by a snapshot that does not exist, or that is of later commits");
        }
        let mut before = TableId(0);
        for cover in self.ordered.values() {
            if std::mem::replace(&mut before, cover.last_table) > cover.last_table {
                return bad("snapshots are of fewer tables than those before them");
            }
        }
        if self.ordered.len() != self.by_name.len() || self.pins.keys().any(|(id, _)| !self.ordered.contains_key(id)) {
            return bad("versions are pinned for a snapshot that does not exist");
        }
        if self.left.values().any(|left| left.seq > last_seq) {
            return bad("tables have left snapshots of later commits");
        }
        let missing = |id: &&TableId| tables.is_some_and(|tables| !tables.contains(id));
        match self.left.keys().find(missing) {
            Some(id) => bad(&format!("table {id}, which has left snapshots, does not exist")),
            None => Ok(()),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// What the snapshot of that name covers; `None` if it names its versions.
    pub fn get(&self, name: &str) -> Option<&Arc<SnapshotCover>> {
        self.by_name.get(name)
    }

    /// Whether both have the same covers, whatever has left them.
    pub fn are_those_of(&self, other: &Self) -> bool {
        self.by_name.ptr_eq(&other.by_name) || self.by_name == other.by_name
    }

    /// Takes a cover of the tables up to `last_table`.
    pub(super) fn put(&mut self, name: &str, pattern: Pattern, last_table: TableId, tables: u64, seq: Seq) {
        let nth = if self.last.seq == seq { self.last.nth.saturating_add(1) } else { 0 };
        self.last = CoverId { seq, nth };
        let cover = Arc::new(SnapshotCover { id: self.last, pattern, last_table, tables });
        self.ordered.insert(cover.id, cover.clone());
        self.by_name.insert(name.to_owned(), cover);
    }

    /// Drops a cover; returns what it had pinned. O(what it had pinned).
    pub(super) fn remove(&mut self, name: &str) -> Vec<(TableId, Version)> {
        let Some(cover) = self.by_name.remove(name) else { return Vec::new() };
        self.ordered.remove(&cover.id);
        let paths: Vec<Path> = self.pins_of(&cover).map(|(path, _)| path.clone()).collect();
        let pins: Vec<_> = paths.into_iter().filter_map(|path| self.pins.remove(&(cover.id, path))).collect();
        match self.ordered.get_min().map(|(id, _)| *id) {
            // Nobody asks any more which ones were left.
            None => self.left = OrdMap::new(),
            Some(oldest) => {
                for (table, _) in &pins {
                    if self.left.get(table).is_some_and(|left| *left < oldest) {
                        self.left.remove(table);
                    }
                }
            }
        }
        pins
    }

    /// Forgets a table that is gone.
    pub(super) fn forget(&mut self, table: TableId) {
        self.left.remove(&table);
    }

    /// What a cover has pinned, by path.
    pub fn pins_of(&self, cover: &SnapshotCover) -> impl Iterator<Item = (&Path, &(TableId, Version))> {
        let id = cover.id;
        // No path is less.
        let from = (id, Path::trusted(""));
        self.pins.range(from..).take_while(move |((of, _), _)| *of == id).map(|((_, path), pin)| (path, pin))
    }

    /// What a cover has pinned at a path.
    pub fn pin_at(&self, cover: &SnapshotCover, path: &Path) -> Option<(TableId, Version)> {
        self.pins.get(&(cover.id, path.clone())).copied()
    }

    /// Whether a cover covers a table that is in the tree at `path`.
    pub fn covers(&self, cover: &SnapshotCover, table: TableId, path: &Path) -> bool {
        self.may_cover(cover, table) && cover.pattern.matches_path(path.as_str())
    }

    /// The same, if the path matches.
    pub(super) fn may_cover(&self, cover: &SnapshotCover, table: TableId) -> bool {
        table <= cover.last_table && self.left.get(&table).is_none_or(|left| *left < cover.id)
    }

    /// Whether a table may be under a cover. O(log n).
    pub(super) fn may_cover_any(&self, table: TableId) -> bool {
        // The newest one was taken of the most tables.
        self.ordered.get_max().is_some_and(|(_, newest)| self.may_cover(newest, table))
    }

    /// A table leaves all covers, which held `version` of it if it is in the tree at `path`. Returns how many did.
    pub(super) fn leave(&mut self, table: TableId, at: Option<(&Path, Version)>) -> u32 {
        let Some(newest) = self.ordered.get_max().map(|(id, _)| *id) else { return 0 };
        let mut held = 0;
        if let Some((path, version)) = at {
            let since = self.left.get(&table).copied().unwrap_or_default();
            let of = self.ordered.range(since..).filter(|(_, cover)| self.covers(cover, table, path));
            for id in of.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.pins.insert((id, path.clone()), (table, version));
                held += 1;
            }
        }
        self.left.insert(table, newest);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;
    use crate::catalog::{Effect, State, TransactionRecord};
    use crate::table::TableSpec;

    fn taken(covers: &[(u64, u64)]) -> SnapshotCovers {
        let mut all = SnapshotCovers::default();
        for (n, (seq, last)) in covers.iter().enumerate() {
            all.put(&n.to_string(), Pattern::new("**").unwrap(), TableId(*last), 1, Seq(*seq));
        }
        all
    }

    #[test]
    fn forged_ones_are_refused() {
        let snapshots: OrdMap<String, ()> = ["0", "1"].map(|name| (name.to_owned(), ())).into_iter().collect();
        let check = |covers: &SnapshotCovers| covers.check(&snapshots, (Seq(9), TableId(7)), None);
        let good = taken(&[(5, 3), (5, 4)]);
        check(&good).unwrap();
        for covers in [taken(&[(10, 3)]), taken(&[(5, 8)]), taken(&[(5, 4), (6, 3)]), taken(&[(5, 3), (6, 4), (7, 5)])]
        {
            check(&covers).unwrap_err();
        }
        let with = |change: &dyn Fn(&mut SnapshotCovers)| {
            let mut covers = good.clone();
            change(&mut covers);
            covers
        };
        let (path, later) = (Path::new("t").unwrap(), CoverId { seq: Seq(10), nth: 0 });
        check(&with(&|covers| covers.pins.extend([((later, path.clone()), (TableId(1), Version(0)))]))).unwrap_err();
        check(&with(&|covers| covers.left.extend([(TableId(1), later)]))).unwrap_err();
        let twice = OrdMap::from_iter(["0", "1"].map(|name| (name.to_owned(), good.get("0").unwrap().clone())));
        check(&SnapshotCovers::of(twice, OrdMap::new(), OrdMap::new())).unwrap_err();
        let known = BTreeSet::from([TableId(1)]);
        let left = with(&|covers| covers.left.extend([(TableId(2), CoverId::default())]));
        left.check(&snapshots, (Seq(9), TableId(7)), Some(&known)).unwrap_err();
    }

    /// A forged entry may make a table without a version.
    #[test]
    fn a_table_without_a_version_is_not_held() {
        let path = Path::new("t").unwrap();
        let made = Effect::CreateTable { path, table: TableId(1), spec: TableSpec { sort: Vec::new(), keyed: false } };
        let cover = Effect::CoverTables { name: "s".into(), pattern: "**".into(), tables: 1 };
        let effects = vec![made, cover, Effect::DropTable { table: TableId(1) }];
        let mut state = State::default();
        state.apply(&TransactionRecord { effects }, Seq(1), Timestamp(1)).unwrap();
        assert_eq!(state.held_where("s", |_| true).unwrap(), []);
    }
}
