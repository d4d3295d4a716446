//! How many versions a table keeps. Set on a node, inherited by all below it that set none; versions in snapshots are
//! always kept.

use std::sync::Arc;

use imbl::Vector;
use serde::{Deserialize, Serialize};

use crate::base::planted::{Bug, planted};
use crate::base::{Timestamp, Version};
use crate::table::VersionRecord;

/// Which versions of a table stay listed. The newest one always does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retention {
    /// All of them.
    #[default]
    KeepAll,
    /// The newest `n`; at least 1.
    KeepLast(u64),
    /// Those that were the newest at some time in the last `n` microseconds.
    KeepMicros(u64),
}

impl Retention {
    /// The versions among `versions` (ascending) that expire at `now`.
    pub fn expired<'a>(
        &self,
        versions: impl DoubleEndedIterator<Item = &'a Arc<VersionRecord>>,
        now: Timestamp,
    ) -> Vec<Version> {
        let newest_first = versions.rev();
        let mut expired: Vec<Version> = match *self {
            Retention::KeepAll => Vec::new(),
            Retention::KeepLast(n) => {
                let n = usize::try_from(n.max(1)).unwrap_or(usize::MAX);
                newest_first.skip(n).map(|record| record.version).collect()
            }
            Retention::KeepMicros(micros) => {
                let since = now.0.saturating_sub(i64::try_from(micros).unwrap_or(i64::MAX));
                let mut superseded = i64::MAX;
                newest_first
                    .filter(|record| {
                        // It was the newest until the next one came.
                        let until = std::mem::replace(&mut superseded, record.time.0);
                        if planted(Bug::ExpireByBirth) {
                            record.time.0 < since && until < i64::MAX
                        } else {
                            until < since
                        }
                    })
                    .map(|record| record.version)
                    .collect()
            }
        };
        expired.reverse();
        expired
    }
}

impl Retention {
    /// Of `versions`, ascending, when the next one expires: once the time has passed. O(1).
    pub fn due(&self, versions: &Vector<Arc<VersionRecord>>) -> Option<Timestamp> {
        let superseded = versions.get(1)?.time;
        match *self {
            Retention::KeepAll => None,
            Retention::KeepLast(n) => (versions.len() as u64 > n.max(1)).then_some(Timestamp(i64::MIN)),
            Retention::KeepMicros(micros) => {
                Some(Timestamp(superseded.0.saturating_add(i64::try_from(micros).unwrap_or(i64::MAX))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Seq;
    use crate::table::VersionKind;

    #[test]
    fn the_newest_version_never_expires() {
        let record = |n: u64, time: i64| {
            Arc::new(VersionRecord {
                version: Version(n),
                seq: Seq(n),
                time: Timestamp(time),
                kind: VersionKind::Write,
                rows: 0,
                schema: 0,
                metadata: None,
                story: None,
            })
        };
        let all = [record(0, 10), record(1, 20), record(4, 30)];
        let expired = |retention: Retention, now| retention.expired(all.iter(), Timestamp(now));
        assert_eq!(expired(Retention::KeepAll, 1000), []);
        assert_eq!(expired(Retention::KeepLast(2), 1000), [Version(0)]);
        assert_eq!(expired(Retention::KeepLast(0), 1000), [Version(0), Version(1)]);
        let due = |retention: Retention, n: usize| retention.due(&all.iter().take(n).cloned().collect());
        assert_eq!(due(Retention::KeepAll, 3), None);
        assert_eq!(due(Retention::KeepLast(2), 2), None);
        assert!(due(Retention::KeepLast(2), 3) < Some(Timestamp(0)));
        assert_eq!(due(Retention::KeepMicros(5), 1), None);
        assert_eq!(due(Retention::KeepMicros(5), 3), Some(Timestamp(25)));
        for now in 0..60 {
            for retention in [Retention::KeepLast(1), Retention::KeepLast(3), Retention::KeepMicros(5)] {
                let is_due = due(retention, 3).is_some_and(|due| due < Timestamp(now));
                assert_eq!(is_due, !expired(retention, now).is_empty(), "{retention:?} at {now}");
            }
        }
        // Version 0 was the newest until 20, version 1 until 30.
        assert_eq!(expired(Retention::KeepMicros(5), 24), []);
        assert_eq!(expired(Retention::KeepMicros(5), 26), [Version(0)]);
        assert_eq!(expired(Retention::KeepMicros(5), 1000), [Version(0), Version(1)]);
    }
}
