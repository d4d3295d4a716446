//! What lies beside the root of a shared log and shows commits that it does not have: the witness, and the names of catalog
//! snapshots and of chunks.
//!
//! It only accuses. A list that is old or incomplete shows less, never more; and since the root may be replaced while the rest is
//! read, a root that is accused is read again before it is judged.

use super::origin::{Point, RESTORE, decode_witness, other_store};
use super::root::{EntryStatus, Role, Root};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, Seq};
use crate::storage::{Storage, Tag, names};

/// What was found beside a root.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The commit that the witness names.
    pub seen: Option<Point>,
    /// What is wrong with the witness.
    pub damage: Option<String>,
    /// Catalog snapshots and chunks, each with the commit that its name tells of.
    catalogs: Vec<(Seq, String)>,
    chunks: Vec<(Seq, String)>,
}

/// Reads the root and what lies beside it, in one round of requests. `NotFound` if there is no root.
pub fn look_around(storage: &dyn Storage) -> Result<(Root, Tag, Evidence)> {
    let survey = storage.survey(names::ROOT, names::WITNESS, &[names::CATALOG, names::LOG]);
    let (bytes, tag) = survey.tagged?.ok_or_else(|| Error::unavailable("the root has no content"))?;
    let root = Root::decode(&bytes)?;
    let mut evidence = Evidence::default();
    match survey.other {
        Ok(bytes) => match decode_witness(&bytes) {
            None => evidence.damage = Some(format!("{}: the checksum does not match", names::WITNESS)),
            seen => evidence.seen = seen,
        },
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mut folders = survey.folders.into_iter().map(|listed| {
        // Without them there is less to be seen.
        let listed = listed.unwrap_or_default().into_iter();
        listed.map(|object| object.name).collect::<Vec<_>>()
    });
    let named = |names: Option<Vec<String>>, parse: fn(&str) -> Option<Seq>| {
        let seq = |name: String| Some((parse(name.rsplit('/').next()?)?, name));
        names.into_iter().flatten().filter_map(seq).collect()
    };
    evidence.catalogs = named(folders.next(), names::parse_catalog);
    evidence.chunks = named(folders.next(), names::parse_log_chunk);
    Ok((root, tag, evidence))
}

impl Evidence {
    /// Fails if it shows a commit that `root` does not have.
    pub fn judge(&self, root: &Root) -> Result<()> {
        if planted(Bug::IgnoreWitness) {
            return Ok(());
        }
        let accused = |what: String| {
            let (name, last) = (names::ROOT, root.seq);
            let what = format!("{name}: it ends with commit {last}, but {what}; {RESTORE}");
            Err(Error::other_history(ErrorKind::Corrupt, what))
        };
        let lost = |by: &str, seq: Seq| {
            let first = root.seq.next();
            let commits = if seq <= first {
                format!("commit {first} was made")
            } else {
                format!("commits {first} to {seq} were made")
            };
            format!("{by} shows that {commits}: the root was replaced by an older one")
        };
        if let Some(seen) = self.seen {
            let forked = root.origin.parent.is_some_and(|parent| parent.store == seen.store);
            if seen.store != root.origin.store && !forked {
                let told = other_store(seen.store, &root.origin);
                return accused(format!("'{}' belongs to another store: {}", names::WITNESS, told.message()));
            }
            if !forked && seen.seq > root.seq {
                return accused(lost(&format!("'{}'", names::WITNESS), seen.seq));
            }
            if !forked && seen.seq.0 > 0 && root.tells(seen.seq, seen.entry) == EntryStatus::NotThere {
                let what = format!("'{}' shows that commit {} was a different one", names::WITNESS, seen.seq);
                return accused(format!("{what}: the root was replaced by another one"));
            }
        }
        match self.later(root).max_by_key(|(seq, _)| *seq) {
            Some((seq, name)) => accused(lost(name, *seq)),
            None => Ok(()),
        }
    }

    /// Objects that were written for later commits. A replica takes over many commits at once, after it has written what they
    /// need.
    fn later<'a>(&'a self, root: &Root) -> impl Iterator<Item = &'a (Seq, String)> + use<'a> {
        let last = if matches!(root.role, Role::Replica { .. }) { Seq(u64::MAX - 1) } else { root.seq };
        let catalogs = self.catalogs.iter().filter(move |(seq, _)| *seq > last);
        // A chunk is written before the commit that it ends with.
        catalogs.chain(self.chunks.iter().filter(move |(seq, _)| *seq > last.next()))
    }

    /// The names of what was written for later commits than `root` has.
    pub fn beyond(&self, root: &Root) -> Vec<String> {
        self.later(root).map(|(_, name)| name.clone()).collect()
    }
}
