//! How many versions a table keeps. Set on a node, inherited by all below it that set none; versions in snapshots are
//! always kept.

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
        versions: impl DoubleEndedIterator<Item = &'a VersionRecord>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Seq;
    use crate::table::VersionKind;

    #[test]
    fn the_newest_version_never_expires() {
        let record = |n: u64, time: i64| VersionRecord {
            version: Version(n),
            seq: Seq(n),
            time: Timestamp(time),
            kind: VersionKind::Write,
            rows: 0,
            schema: 0,
            metadata: None,
            story: None,
        };
        let all = [record(0, 10), record(1, 20), record(4, 30)];
        let expired = |retention: Retention, now| retention.expired(all.iter(), Timestamp(now));
        assert_eq!(expired(Retention::KeepAll, 1000), []);
        assert_eq!(expired(Retention::KeepLast(2), 1000), [Version(0)]);
        assert_eq!(expired(Retention::KeepLast(0), 1000), [Version(0), Version(1)]);
        // Version 0 was the newest until 20, version 1 until 30.
        assert_eq!(expired(Retention::KeepMicros(5), 24), []);
        assert_eq!(expired(Retention::KeepMicros(5), 26), [Version(0)]);
        assert_eq!(expired(Retention::KeepMicros(5), 1000), [Version(0), Version(1)]);
    }
}
