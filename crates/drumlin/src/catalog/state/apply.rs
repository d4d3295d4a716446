//! `apply`: the only way in which the state of a store changes.

use super::{Declared, State};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, Seq, Timestamp};
use crate::catalog::tree::nodes::refuse_tables;
use crate::catalog::{
    Cause, Effect, FEATURES_KEPT, Keep, NodeEffect, NodeEffects, Pattern, Payload, Rule, TransactionRecord, Trigger,
};
use crate::table::TableState;

impl State {
    /// Applies a transaction of the entry `seq`, written at `time`. After an error, the state must be discarded.
    pub fn apply(&mut self, transaction: &TransactionRecord, seq: Seq, time: Timestamp) -> Result<()> {
        transaction.effects.iter().try_for_each(|effect| self.apply_effect(effect, seq, time))
    }

    pub(in crate::catalog) fn apply_effect(&mut self, effect: &Effect, seq: Seq, time: Timestamp) -> Result<()> {
        self.ledger.now = time;
        self.uses |= effect.features() & FEATURES_KEPT;
        if effect.erases() {
            self.erased = seq;
        }
        match effect {
            Effect::OpenSession { session, fence } => {
                if *session < self.next_session() {
                    return Err(Error::conflict(format!("session {session} was already registered")));
                }
                self.sessions.begin(*session, *fence, time);
            }
            Effect::Nodes(nodes) => self.apply_nodes(nodes, seq)?,
            Effect::SetRetention { path, retention } => {
                self.tables.doubted = Some(seq);
                self.tree.edit(path.as_str(), seq, |node| node.edit_extra(|extra| extra.retention = *retention));
            }
            Effect::SetDefaultRetention { retention } => {
                if self.default_retention != *retention {
                    self.tables.doubted = Some(seq);
                }
                self.default_retention = *retention;
            }
            Effect::CreateTable { path, table, spec } => {
                self.number(*table)?;
                self.tables.put(TableState::new(*table, spec.clone()))?;
                self.link(path, *table, seq)?;
            }
            Effect::FenceSessions { sessions } => {
                sessions.iter().for_each(|session| self.sessions.fence(*session, time));
            }
            Effect::ForgetSessions { sessions } => {
                for session in sessions {
                    self.sessions.fenced.remove(session);
                }
            }
            Effect::OpenHold { hold, store, kind, life_micros, work_micros } => {
                self.open_hold(*hold, *store, kind, (*life_micros, *work_micros), (seq, time))?;
            }
            Effect::Beat { hold } => self.holds.beat(*hold, time)?,
            Effect::EndHolds { holds } => self.end_holds(holds, time),
            Effect::PutJob { name, digest, tables, holds } => {
                self.put_job(name, *digest, tables, holds, (seq, time))?;
            }
            Effect::ForgetJobs { names } => names.iter().for_each(|name| drop(self.holds.jobs.remove(name))),
            Effect::AddBlocks { blocks } => {
                for (block, bytes) in blocks {
                    self.check_writer(block.session)?;
                    self.ledger.add_block(*block, *bytes)?;
                }
            }
            Effect::AddInline { block, content } => {
                self.check_writer(block.session)?;
                self.ledger.add_inline(*block, content)?;
            }
            Effect::ChangeTable { table, change } => self.change(*table, change, seq, time)?,
            Effect::UpdateTable { table, update } => self.update(*table, update, &[], seq, time)?,
            Effect::PatchTable { table, update, patches } => self.update(*table, update, patches, seq, time)?,
            Effect::RewriteTable { table, rewrite } => self.rewrite(*table, rewrite, seq)?,
            Effect::ReorderTable { table, reorder } => self.reorder(*table, reorder, seq)?,
            Effect::WriteRows { table, version, rows } => {
                let next = self.changing(*table)?.write_rows(*version, rows, seq, time)?;
                self.tables.put(next)?;
                self.unsettled.insert(*table);
            }
            Effect::FreezeRows { table } => {
                let next = self.changing(*table)?.freeze(seq, time)?;
                self.tables.put(next)?;
            }
            Effect::FlushRows { table, flush } => self.flush(*table, flush, &[], seq)?,
            Effect::FlushWithHistory { table, flush, history } => self.flush(*table, flush, history, seq)?,
            Effect::MoveGroups { table, moves } => {
                self.move_groups(&[*table], moves, seq)?;
            }
            Effect::MoveShared { tables, moves } => self.move_groups(tables, moves, seq)?,
            Effect::SetSchemas { table, schemas } => {
                let next = self.changing(*table)?.with_schemas(schemas, seq)?;
                self.tables.put(next)?;
            }
            Effect::SetMetadata { table, version, metadata } => {
                let next = self.get(*table)?.with_metadata(*version, metadata.as_ref())?;
                self.tables.put(next)?;
            }
            Effect::Tell { note, versions } => {
                for (table, version) in versions {
                    let next = self.get(*table)?.with_note(*version, note);
                    self.tables.put(next)?;
                }
            }
            Effect::AdvanceSequences { table, next } => {
                self.get(*table)?;
                self.sequences.advance(*table, next);
            }
            Effect::PutFollower { table, name, follower } => {
                self.get(*table)?;
                self.followers.put(*table, name, follower.as_ref());
            }
            Effect::PutView { table, definition } => {
                self.get(*table)?;
                self.row_views.put(*table, definition);
            }
            Effect::MarkView { table, sources, behind } => self.row_views.mark(*table, sources, *behind),
            Effect::SetLayout { table, layout } => {
                let next = self.get(*table)?.with_layout(layout.as_ref(), seq);
                self.tables.put(next)?;
            }
            Effect::Presences(change) => self.presences.apply(change, time)?,
            Effect::PutIndex { table, definition } => {
                let next = self.get(*table)?.with_index(definition)?;
                self.tables.put(next)?;
            }
            Effect::ProveIndex { table, index } => {
                let next = self.get(*table)?.with_proven(*index);
                self.tables.put(next)?;
            }
            Effect::DropIndex { table, index } => self.drop_index(*table, *index, seq)?,
            Effect::PutRuns { table, index, add, drop } => self.put_runs(*table, *index, add, drop, seq)?,
            Effect::CountChanged { table, rows } => {
                let next = self.get(*table)?.with_changed(*rows);
                self.tables.put(next)?;
            }
            Effect::EraseRows { tables, rows, histories } => self.erase_rows(tables, rows, histories, seq)?,
            Effect::ShrinkGroups { tables, groups } => self.shrink_groups(tables, groups, seq)?,
            Effect::DeleteVersions { table, versions } => {
                let (mut next, copies) = self.changing(*table)?.delete_versions(versions, seq, time)?;
                copies.iter().for_each(|address| self.ledger.share(address));
                self.shed(&mut next, seq)?;
                self.tables.put(next)?;
            }
            Effect::DropTable { table } => {
                let path = self.unlink(*table, seq)?;
                self.trash.put(*table, path, time);
                self.row_views.forget(*table);
            }
            Effect::CopyTable { from, table, path, version } => self.copy_table(*from, *table, path, *version, seq)?,
            Effect::AdoptTables { tables } => self.adopt_tables(tables, seq, time)?,
            Effect::MoveTable { table, path } => {
                self.unlink(*table, seq)?;
                self.link(path, *table, seq)?;
            }
            Effect::RestoreTable { table, from, version } => self.restore_table(*table, *from, *version, seq, time)?,
            Effect::UndropTable { table, path } => {
                self.take_from_trash(*table)?;
                if planted(Bug::LeaveInTrash) {
                    self.trash.put(*table, path.clone(), time);
                }
                self.link(path, *table, seq)?;
            }
            Effect::Condemn { tables } => {
                for table in tables {
                    self.take_from_trash(*table)?;
                    self.unlinked(*table, seq)?;
                }
            }
            Effect::Reclaimed { blocks } => blocks.iter().for_each(|block| self.ledger.reclaimed(*block)),
            Effect::PutSnapshot { name, pins } => self.put_snapshot(name, pins, time)?,
            Effect::CoverTables { name, pattern, tables } => {
                self.put_snapshot(name, &[], time)?;
                self.covers.put(name, Pattern::new(pattern)?, self.last_table, *tables, seq);
            }
            Effect::PutProjection { name, projection } => {
                let rule = Rule::Fields(projection.clone());
                rule.check()?;
                self.declared.insert(name.clone(), Declared(projection.clone()));
                self.views.put(name, rule);
            }
            Effect::DropProjection { name } => {
                let missing = || Error::not_found(format!("projection '{name}' does not exist"));
                self.declared.remove(name).ok_or_else(missing)?;
                self.views.remove(name);
            }
            Effect::PutTrigger { name, filter, owner } => {
                filter.check()?;
                // A new trigger is called for what comes after it; one that replaces another continues where that was.
                let done = self.triggers.get(name).map_or(seq, |trigger| trigger.done);
                self.triggers.insert(name.clone(), Trigger { filter: filter.clone(), owner: *owner, done });
            }
            Effect::TriggerDone { name, seq: done } => {
                let missing = || Error::not_found(format!("trigger '{name}' does not exist"));
                let trigger = self.triggers.get_mut(name).ok_or_else(missing)?;
                trigger.done = trigger.done.max(*done);
            }
            Effect::DropTrigger { name } => {
                let missing = || Error::not_found(format!("trigger '{name}' does not exist"));
                self.triggers.remove(name).ok_or_else(missing)?;
            }
            Effect::DropSnapshot { name } => {
                let missing = || Error::not_found(format!("snapshot '{name}' does not exist"));
                let snapshot = self.snapshots.remove(name).ok_or_else(missing)?;
                let pinned = self.covers.remove(name);
                for (id, version) in snapshot.pins.values().chain(&pinned) {
                    let mut table = TableState::clone(&*self.get(*id)?);
                    table.unpin(*version);
                    let gone = !self.paths.contains_key(id) && !self.trash.contains(*id);
                    if !gone {
                        self.shed(&mut table, seq)?;
                    }
                    self.tables.put(table)?;
                    if gone {
                        self.unlinked(*id, seq)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Repeats on the tree what was done when the effects were made: nothing is decided again.
    fn apply_nodes(&mut self, nodes: &NodeEffects, seq: Seq) -> Result<()> {
        let mut reader = nodes.reader();
        while let Some((path, effect)) = reader.advance()? {
            match effect {
                NodeEffect::Put { payload, .. } => {
                    let payload = Payload::from_stored(payload)?;
                    self.tree.edit(path, seq, |node| node.set_payload(Some(payload)));
                }
                NodeEffect::Clear { .. } => self.tree.edit(path, seq, |node| node.set_payload(None)),
                // It was deleted with the one above it.
                NodeEffect::Delete { cause: Cause::Above } => {}
                NodeEffect::Delete { .. } => drop(self.remove_node(path, |node| refuse_tables(path, node))?),
                NodeEffect::Keep { keep } => {
                    let keep = if keep.is_empty() { Keep::default() } else { Keep::decode(keep)? };
                    self.set_keep(path, seq, keep);
                }
            }
        }
        Ok(())
    }
}
