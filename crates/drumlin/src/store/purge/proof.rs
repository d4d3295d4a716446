//! What shows that a purge has left nothing: all objects of the store, and all rows of the tables in question.

use std::collections::BTreeSet;

use super::family::family;
use super::holds::concerned_holds;
use super::matching::Matching;
use super::report::{Held, PurgeProof, PurgeReceipt, PurgedObject};
use crate::base::{ErrorKind, Result, Seq, SessionId, Task, checksum};
use crate::catalog::{Pattern, State};
use crate::filter::Filter;
use crate::storage::{ObjectMeta, Storage, names};
use crate::store::Store;
use crate::store::upkeep::plans::blocks_with_holes;

impl Store {
    /// Looks at all that is left.
    pub(in crate::store) fn examine(
        &self,
        pattern: &Pattern,
        filter: &Filter,
        begun: Seq,
        task: &Task,
        receipt: &mut PurgeReceipt,
    ) -> Result<()> {
        let (found, state) = self.while_reclaimed(|| {
            let (state, _pin) = self.pinned_state()?;
            let (family, mut found) = (family(&state, pattern)?, Matching::default());
            self.judge(&state, &family, filter, &mut found, task)?;
            Ok((found, state))
        })?;
        for (address, rows) in &found.rows {
            let why =
                format!("{} rows that were written or moved while the purge ran match; purge again", rows.0.len());
            receipt.held.push(Held { what: names::block(address.block), why });
        }
        for block in blocks_with_holes(&state, &BTreeSet::new())? {
            receipt.proof.blocks_with_unused_bytes += 1;
            let why =
                "it has unused bytes and could not be emptied, or others emptied part of it in between; purge again";
            receipt.held.push(Held { what: names::block(block), why: why.to_owned() });
        }
        self.held(&state, pattern, begun, receipt)?;
        let proof = PurgeProof {
            commit: state.seq.0,
            row_groups: found.judged.len() as u64,
            rows: found.rows_judged,
            matching: found.rows.values().map(|rows| rows.0.len()).sum(),
            ..receipt.proof.clone()
        };
        receipt.proof = proof;
        Ok(())
    }

    /// Notes what is kept for readers and other processes, and what is not known.
    fn held(&self, state: &State, pattern: &Pattern, begun: Seq, receipt: &mut PurgeReceipt) -> Result<()> {
        let last = receipt.commits.last().copied().unwrap_or(0).max(begun.0);
        let leases = state.holds.open.values().any(|hold| hold.kind.floor().is_some());
        if self.commits().writable_log()?.base().is_none_or(|base| base.seq.0 < last) {
            let why = "the log was not cut, because other processes wrote the catalog at the same time; purge again";
            receipt.held.push(Held { what: names::LOG.to_owned(), why: why.to_owned() });
        }
        if let Some((server, rows)) = self.commits().writable_log()?.on_server()? {
            if rows > 0 {
                let why = format!("{rows} rows there are from before the newest catalog; purge again");
                receipt.held.push(Held { what: server.clone(), why });
            }
            receipt.not_examined.push(format!(
                "Rows that {server}, which keeps the log, has deleted and not removed yet, its own log, and its backups."
            ));
        }
        let failed: BTreeSet<String> = receipt.held.iter().map(|held| held.what.clone()).collect();
        for (block, _) in state.ledger.condemned().filter(|(block, _)| !failed.contains(&names::block(**block))) {
            let why = match leases {
                true => "a lease keeps it for another process; purge again once it has ended",
                false => {
                    "a reader in this process still uses the state before the purge; purge again once it is closed"
                }
            };
            receipt.held.push(Held { what: names::block(*block), why: why.to_owned() });
        }
        for hold in concerned_holds(state, pattern, Seq(last))? {
            let why = "a job that began while the purge ran may read or have staged such rows; purge again";
            receipt.held.push(Held { what: names::session_folder(hold), why: why.to_owned() });
        }
        for object in self.objects()? {
            receipt.proof.objects += 1;
            receipt.proof.bytes += object.bytes;
            let name = object.name.rsplit('/').next().unwrap_or_default();
            let session = object.name.strip_prefix("blocks/").and_then(|rest| rest.split('/').next());
            let session = session.and_then(|text| text.parse().ok()).map(SessionId);
            let block = session.and_then(|session| names::parse_block(session, name));
            let held = |id: SessionId| state.holds.open.contains_key(&id);
            match (session, block) {
                (Some(session), _) if held(session) => {}
                (Some(_), Some(block)) if state.ledger.knows(block) => {}
                (Some(_), _) => {
                    let why = "no commit refers to it, but a process may be about to; purge again once that process \
                               has closed the store";
                    receipt.held.push(Held { what: object.name, why: why.to_owned() });
                }
                (None, _) => {
                    // A segment is named by its first commit, the others by their last.
                    let of_log = names::parse_log_segment(name).or_else(|| names::parse_log_chunk(name));
                    let old = of_log.or_else(|| names::parse_catalog(name)).is_some_and(|seq| seq.0 <= last);
                    if old && !failed.contains(&object.name) {
                        let why = "it is a part of the log or the catalog from before the purge; purge again";
                        receipt.held.push(Held { what: object.name, why: why.to_owned() });
                    }
                }
            }
        }
        if self.setting().is_shared() {
            let versions =
                "Versions of deleted objects that the bucket keeps, if versioning is switched on, and its backups.";
            receipt.not_examined.push(versions.to_owned());
            let readers = "Memory of other processes that read the store.";
            receipt.not_examined.push(readers.to_owned());
        }
        for other in [
            "Payloads of nodes, metadata of versions and schemas, and defaults of columns; but texts that no row has any more have left \
             the categories of pandas frames.",
            "Replicas that had no lease when it was done, until they come to its last commit, and copies of the store.",
            "Values of rows that were removed before: a checkpoint leaves them in dictionaries and bounds of row groups, unless its \
             dead_share_min is 0.",
        ] {
            receipt.not_examined.push(other.to_owned());
        }
        Ok(())
    }

    /// All objects of the store.
    pub(in crate::store) fn objects(&self) -> Result<Vec<ObjectMeta>> {
        let storage = &self.storage();
        let mut objects = storage.list("")?;
        objects.extend(storage.list(names::LOG)?);
        objects.extend(storage.list(names::CATALOG)?);
        for folder in storage.list_folders(names::BLOCKS)? {
            objects.extend(storage.list(&format!("{}/{folder}", names::BLOCKS))?);
        }
        Ok(objects)
    }

    /// The parts of the log and the catalog, with their checksums.
    pub(in crate::store) fn objects_of_log(&self) -> Result<Vec<PurgedObject>> {
        let storage = &self.storage();
        let (log, catalog) = (storage.list(names::LOG)?, storage.list(names::CATALOG)?);
        let mut objects = Vec::new();
        for object in log.into_iter().chain(catalog) {
            objects.extend(self.sum_of(&object.name)?);
        }
        Ok(objects)
    }

    /// An object's size and checksum; `None` if it is gone.
    pub(in crate::store) fn sum_of(&self, name: &str) -> Result<Option<PurgedObject>> {
        match self.storage().get(name) {
            Ok(bytes) => {
                Ok(Some(PurgedObject { name: name.to_owned(), bytes: bytes.len() as u64, crc32c: checksum(&bytes) }))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}
