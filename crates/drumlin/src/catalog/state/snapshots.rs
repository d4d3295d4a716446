//! What snapshots show at a path: what was there when they were taken. A table that has been moved since keeps its snapshots: they show it
//! where it was, and where it is now unless another table was there then.

use super::{Snapshot, State};
use crate::base::planted::{Bug, planted};
use crate::base::{TableId, Version};
use crate::catalog::Path;

impl State {
    /// What a snapshot shows at `path`. O(tables of the snapshot) for a table that was elsewhere.
    pub fn held_at(&self, snapshot: &Snapshot, path: &Path) -> Option<(TableId, Version)> {
        if let Some(there) = snapshot.pins.get(path) {
            return Some(*there);
        }
        let table = self.table_id_at(path).filter(|_| !planted(Bug::ForgetMovedPins))?;
        snapshot.pins.values().find(|(id, _)| *id == table).copied()
    }

    /// What a snapshot shows at the paths that are `wanted`, in their order: a table that was moved only once.
    pub fn held_where(&self, snapshot: &Snapshot, wanted: impl Fn(&Path) -> bool) -> Vec<(Path, (TableId, Version))> {
        let of = |(then, (table, version)): (&Path, &(TableId, Version))| {
            let now = || self.path_of(*table).filter(|now| wanted(now) && !snapshot.pins.contains_key(now));
            let path = if wanted(then) { Some(then) } else { now().filter(|_| !planted(Bug::ForgetMovedPins)) };
            Some((path?.clone(), (*table, *version)))
        };
        let mut held: Vec<_> = snapshot.pins.iter().filter_map(of).collect();
        held.sort_by(|(a, _), (b, _)| a.cmp(b));
        held
    }
}
