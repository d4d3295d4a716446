//! A transaction being built: a state of its own, and the ordered effects that led to it, each appended in O(1).
//!
//! Pure. The same code works on a snapshot, in a long transaction, and on the newest state, in a commit's turn. If
//! nobody has committed since the draft was begun, the draft of a transaction on nodes *is* the next state. Otherwise
//! the effects that were asked for are done again on the newest state, once the footprint has been checked, and what
//! follows from them (cascades) is found again.

use super::node_effects::Savepoint;
use super::put_options::{PutMode, PutOptions};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, ErrorKind, Result, Seq, TableId, Timestamp, clip};
use crate::catalog::tree::nodes::refuse_tables;
use crate::catalog::tree::walk::each_below;
use crate::catalog::tree::watches::broken;
use crate::catalog::{
    Cause, Change, Changes, Condition, Effect, Keep, Node, NodeEffect, NodeEffects, NodeReader, NodeTree, Path,
    Pattern, Payload, State, TransactionRecord, carry_over, check_path,
};

/// A state, and the effects that lead to it.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(super) state: State,
    effects: Vec<Effect>,
    pub(super) seq: Seq,
    time: Timestamp,
}

/// What a draft was at some time.
pub struct DraftMark {
    state: State,
    effects: usize,
    nodes: Option<Savepoint>,
}

impl Draft {
    /// A draft that continues `state` in the commit `seq`, made at `time`.
    pub fn new(state: State, seq: Seq, time: Timestamp) -> Self {
        Self { state, effects: Vec::new(), seq, time }
    }

    /// The state after the effects.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same, with its projections updated to its tree.
    pub fn projected(&mut self) -> &State {
        self.state.catch_up(None);
        &self.state
    }

    /// Whether it touches only nodes.
    pub fn is_of_nodes(&self) -> bool {
        self.effects.iter().all(|effect| matches!(effect, Effect::Nodes(_)))
    }

    /// The commit that it belongs to.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The effects, in order.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The state and the effects.
    pub fn into_parts(self) -> (State, TransactionRecord) {
        (self.state.seen_now(), TransactionRecord { effects: self.effects })
    }

    /// Applies effects that are not on nodes: all or none.
    pub fn apply(&mut self, effects: Vec<Effect>) -> Result<()> {
        self.atomically(|draft| {
            let mut changed = Vec::new();
            for mut effect in effects {
                if let Effect::WriteRows { table, version, .. } = &mut effect {
                    // Others may have numbered a version since the effect was made.
                    *version = draft.state.table(*table)?.map_or(*version, |table| table.next_version());
                }
                changed.extend(match &effect {
                    Effect::CreateTable { path, .. }
                    | Effect::CopyTable { path, .. }
                    | Effect::MoveTable { path, .. }
                    | Effect::UndropTable { path, .. }
                    | Effect::SetRetention { path, .. } => Some(path.clone()),
                    _ => None,
                });
                if let Effect::AdoptTables { tables } = &effect {
                    changed.extend(tables.iter().map(|(_, path, _)| path.clone()));
                }
                changed.extend(match &effect {
                    Effect::DropTable { table } | Effect::MoveTable { table, .. } => {
                        draft.state.path_of(*table).cloned()
                    }
                    _ => None,
                });
                draft.state.apply_effect(&effect, draft.seq, draft.time)?;
                draft.effects.push(effect);
            }
            let mut done = NodeEffects::default();
            changed.iter().try_for_each(|path| draft.cascade(path.as_str(), false, Vec::new(), &mut done))?;
            draft.record(&done);
            Ok(())
        })
    }

    /// Repeats what another draft did, on this one's state. `base` is the state that the other began with: tables that
    /// it created get numbers that are free here.
    pub fn redo(&mut self, mut effects: Vec<Effect>, base: &State) -> Result<()> {
        carry_over(&mut effects, base, &self.state)?;
        let (first, now) = (base.next_table(), self.state.next_table());
        for mut effect in effects {
            for table in effect.tables_mut().filter(|table| **table >= first) {
                *table = TableId(table.0 - first.0 + now.0);
            }
            match effect {
                Effect::Nodes(nodes) => self.redo_nodes(&nodes)?,
                effect => self.apply(vec![effect])?,
            }
        }
        Ok(())
    }

    /// Whether the same happened to nodes as in `effects`, in the same order.
    pub fn did_the_same(&self, effects: &[Effect]) -> Result<bool> {
        fn readers(effects: &[Effect]) -> impl Iterator<Item = NodeReader<'_>> {
            effects
                .iter()
                .filter_map(|effect| if let Effect::Nodes(nodes) = effect { Some(nodes.reader()) } else { None })
        }
        let (mut ours, mut theirs) = (readers(&self.effects), readers(effects));
        let (mut a, mut b) = (ours.next(), theirs.next());
        loop {
            let x = advance(&mut a, &mut ours)?;
            let y = advance(&mut b, &mut theirs)?;
            if x != y {
                return Ok(false);
            }
            if x.is_none() {
                return Ok(true);
            }
        }
    }

    fn redo_nodes(&mut self, nodes: &NodeEffects) -> Result<()> {
        let mut reader = nodes.reader();
        // A put with life conditions is one operation and two effects.
        let mut put: Option<(String, Payload)> = None;
        while let Some((path, effect)) = reader.advance()? {
            let last = put.take();
            if let NodeEffect::Keep { keep } = effect {
                let keep = if keep.is_empty() { Keep::default() } else { Keep::decode(keep)? };
                match last {
                    Some((last, payload)) if last == path => {
                        self.atomically(|draft| draft.put_alone(path, payload, Some(keep)))?;
                    }
                    last => {
                        last.map_or(Ok(()), |(path, payload)| self.put_again(&path, payload))?;
                        self.state.tree.get(path).ok_or_else(|| no_node(path))?;
                        self.keep(path, keep)?;
                    }
                }
                continue;
            }
            last.map_or(Ok(()), |(path, payload)| self.put_again(&path, payload))?;
            match effect {
                NodeEffect::Put { payload, .. } => put = Some((path.to_owned(), Payload::from_stored(payload)?)),
                NodeEffect::Clear { .. } => drop(self.clear(path, None)?),
                NodeEffect::Delete { cause: Cause::Asked } => drop(self.delete(path, None)?),
                // What was deleted along with others is deleted along with them here, if it still is.
                NodeEffect::Delete { .. } | NodeEffect::Keep { .. } => {}
            }
        }
        put.map_or(Ok(()), |(path, payload)| self.put_again(&path, payload))
    }

    fn put_again(&mut self, path: &str, payload: Payload) -> Result<()> {
        self.put(path, payload, &PutOptions::default()).map(drop)
    }

    fn nodes(&mut self) -> &mut NodeEffects {
        if !matches!(self.effects.last(), Some(Effect::Nodes(_))) {
            self.effects.push(Effect::Nodes(NodeEffects::default()));
        }
        match self.effects.last_mut() {
            Some(Effect::Nodes(nodes)) => nodes,
            _ => unreachable!("it was just pushed"),
        }
    }

    /// Appends effects on nodes; if there are none, there is nothing to commit.
    pub(super) fn record(&mut self, effects: &NodeEffects) {
        if !effects.is_empty() {
            self.nodes().extend(effects);
        }
    }

    /// Sets the payload of the node at `path`.
    pub fn put(&mut self, path: &str, payload: Payload, options: &PutOptions) -> Result<Change> {
        check_path(path)?;
        if options.mode != PutMode::Put || options.when.is_some() {
            let node = self.state.tree.get(path);
            match options.mode {
                PutMode::Create if node.is_some() => {
                    return Err(Error::already_exists(format!("a node at '{path}' already exists")));
                }
                PutMode::Update if node.is_none() => return Err(no_node(path)),
                _ => {}
            }
            check_condition(path, node, options.when.as_ref())?;
        }
        let keep = options.life(self.time)?;
        match keep.is_none() && self.state.watches.is_empty() {
            true => self.put_alone(path, payload, None),
            false => self.atomically(|draft| draft.put_alone(path, payload, keep)),
        }
    }

    /// Sets the life conditions of the node at `path`; an empty list removes them.
    pub fn keep_while(&mut self, path: &str, conditions: &[(String, Condition)]) -> Result<()> {
        check_path(path)?;
        let node = self.state.tree.get(path).ok_or_else(|| no_node(path))?;
        if conditions.is_empty() && node.is_only_kept() {
            // Nothing would be left of the node.
            return self.delete(path, None).map(drop);
        }
        self.keep(path, Keep::new(conditions)?)
    }

    fn put_alone(&mut self, path: &str, payload: Payload, keep: Option<Keep>) -> Result<Change> {
        let seq = self.seq;
        let before_tree = self.watched_tree();
        let effect = payload.clone();
        let (before, after) = self.state.tree.edit(path, seq, |node| {
            let before = (!node.is_nothing()).then(|| node.info());
            node.set_payload(Some(payload));
            (before, Some(node.info()))
        });
        self.nodes().push(path, NodeEffect::Put { created: before.is_none(), payload: effect.stored() });
        let mut change = Change { before, after, indirect: None };
        let own = keep.is_some();
        if let Some(keep) = keep {
            self.keep(path, keep)?;
            change.after = self.state.tree.info(path);
        }
        if let Some(before_tree) = before_tree {
            self.indirect(path, own, Vec::new(), before_tree, NodeEffects::default(), &mut change)?;
            change.after = self.state.tree.info(path);
        }
        Ok(change)
    }

    /// Removes the payload of the node at `path`, and the node if nothing is left of it.
    pub fn clear(&mut self, path: &str, when: Option<&Condition>) -> Result<Change> {
        check_path(path)?;
        let node = self.state.tree.get(path).ok_or_else(|| no_node(path))?;
        check_condition(path, Some(node), when)?;
        let before = node.info();
        if before.payload.is_none() {
            return Ok(Change { after: Some(before.clone()), before: Some(before), indirect: None });
        }
        self.atomically(|draft| {
            let before_tree = draft.watched_tree();
            let seq = draft.seq;
            draft.state.tree.edit(path, seq, |node| node.set_payload(None));
            let after = draft.state.tree.info(path);
            draft.nodes().push(path, NodeEffect::Clear { gone: after.is_none() });
            let mut change = Change { before: Some(before), after, indirect: None };
            if let Some(before_tree) = before_tree {
                draft.indirect(path, false, Vec::new(), before_tree, NodeEffects::default(), &mut change)?;
                change.after = draft.state.tree.info(path);
            }
            Ok(change)
        })
    }

    /// Deletes the node at `path` and all below it, none of which may hold a table.
    pub fn delete(&mut self, path: &str, when: Option<&Condition>) -> Result<Change> {
        check_path(path)?;
        // Usually nothing is below it and no node's life depends on it: then it is found and removed in one step.
        let mut change = Change::default();
        if self.state.watches.are_none() {
            let mut alone = true;
            let removed = self.state.tree.remove(path, |node| {
                check_condition(path, Some(node), when).and_then(|()| refuse_tables(path, node)).map_err(Some)?;
                alone = node.below().is_none();
                change.before = Some(node.info());
                if alone { Ok(()) } else { Err(None) }
            });
            match removed {
                Ok(Some(_)) => {
                    self.nodes().push(path, NodeEffect::Delete { cause: Cause::Asked });
                    return Ok(change);
                }
                Ok(None) => return Err(no_node(path)),
                Err(Some(e)) => return Err(e),
                Err(None) => {}
            }
        } else {
            let node = self.state.tree.get(path).ok_or_else(|| no_node(path))?;
            check_condition(path, Some(node), when)?;
            change.before = Some(node.info());
        }
        let before = self.state.tree.clone();
        self.atomically(|draft| {
            let mut told = NodeEffects::default();
            let gone = draft.remove(path, Cause::Asked, &mut told)?;
            draft.record(&told);
            // The first effect is that on the node itself, which is not indirect.
            draft.indirect(path, false, gone, before, told.behind_first(), &mut change)?;
            Ok(change)
        })
    }

    /// Deletes the nodes that match `pattern`, with all below them.
    pub fn delete_many(&mut self, pattern: &Pattern) -> Result<Changes> {
        self.many(|draft, before, done| {
            let mut walker = before.walk(pattern);
            let mut top = String::new();
            let watched = !draft.state.watches.is_empty();
            while let Some((path, _)) = walker.advance() {
                // What is below a deleted node is deleted with it.
                let within = path.strip_prefix(&top).is_some_and(|rest| rest.starts_with('/')) && !top.is_empty();
                if within || (watched && draft.state.tree.get(path).is_none()) {
                    continue;
                }
                let gone = draft.remove(path, Cause::Asked, done)?;
                path.clone_into(&mut top);
                draft.cascade(path, false, gone, done)?;
            }
            Ok(())
        })
    }

    /// Sets the payloads of many nodes.
    pub fn put_many<'a>(&mut self, payloads: impl IntoIterator<Item = (&'a str, Payload)>) -> Result<Changes> {
        self.many(|draft, _, done| {
            payloads.into_iter().try_for_each(|(path, payload)| {
                check_path(path)?;
                draft.set(path, Some(payload), done)
            })
        })
    }

    /// Sets the payload of all nodes that match `pattern`.
    pub fn update_many(&mut self, pattern: &Pattern, payload: &Payload) -> Result<Changes> {
        self.each_match(pattern, |draft, path, done| draft.set(path, Some(payload.clone()), done))
    }

    /// Removes the payloads of all nodes that match `pattern`.
    pub fn clear_many(&mut self, pattern: &Pattern) -> Result<Changes> {
        self.each_match(pattern, |draft, path, done| {
            match draft.state.tree.get(path).is_some_and(|node| node.payload.is_some()) {
                true => draft.set(path, None, done),
                false => Ok(()),
            }
        })
    }

    fn each_match(
        &mut self,
        pattern: &Pattern,
        mut change: impl FnMut(&mut Self, &str, &mut NodeEffects) -> Result<()>,
    ) -> Result<Changes> {
        self.many(|draft, before, done| {
            let mut walker = before.walk(pattern);
            let watched = !draft.state.watches.is_empty();
            while let Some((path, _)) = walker.advance() {
                // An earlier change may have deleted it.
                if !watched || draft.state.tree.get(path).is_some() {
                    change(draft, path, done)?;
                }
            }
            Ok(())
        })
    }

    /// Changes many nodes; `change` gets the tree as it was, and a list to record what it did.
    fn many(&mut self, change: impl FnOnce(&mut Self, &NodeTree, &mut NodeEffects) -> Result<()>) -> Result<Changes> {
        self.atomically(|draft| {
            let (before, mut effects) = (draft.state.tree.clone(), NodeEffects::default());
            change(draft, &before, &mut effects)?;
            draft.record(&effects);
            Ok(Changes { before, after: draft.state.tree.clone(), effects })
        })
    }

    /// Sets or removes a payload, as part of many changes; what cascades is recorded too.
    fn set(&mut self, path: &str, payload: Option<Payload>, done: &mut NodeEffects) -> Result<()> {
        let seq = self.seq;
        let stored = payload.clone();
        let created = self.state.tree.edit(path, seq, |node| {
            let created = node.is_nothing();
            node.set_payload(payload);
            created
        });
        match &stored {
            Some(payload) => done.push(path, NodeEffect::Put { created, payload: payload.stored() }),
            None => done.push(path, NodeEffect::Clear { gone: self.state.tree.get(path).is_none() }),
        }
        self.cascade(path, false, Vec::new(), done)
    }

    /// Sets the life conditions of the node at `path`.
    pub(in crate::catalog) fn keep(&mut self, path: &str, keep: Keep) -> Result<()> {
        keep.presence.map_or(Ok(()), |number| self.state.presences.check(number))?;
        if let Some(failed) = broken(&keep, &self.state.tree, Some(path)) {
            return Err(Error::condition_failed(format!(
                "'{path}' cannot be kept while a condition on '{failed}' holds, because it does not hold"
            )));
        }
        let stored = if keep.is_empty() { Vec::new() } else { keep.encode()? };
        self.state.set_keep(path, self.seq, keep);
        self.nodes().push(path, NodeEffect::Keep { keep: &stored });
        Ok(())
    }

    /// Removes the node at `path` and all below it, and records each. Returns the removed paths, if other nodes' lives may
    /// depend on them.
    pub(super) fn remove(&mut self, path: &str, cause: Cause, done: &mut NodeEffects) -> Result<Vec<Path>> {
        let watched = !self.state.watches.is_empty();
        let node = self.state.remove_node(path, |node| refuse_tables(path, node))?;
        done.push(path, NodeEffect::Delete { cause });
        let mut gone = Vec::new();
        if let Some(below) = node.below() {
            each_below(&mut path.to_owned(), below, &mut |path, node| {
                // A bare node exists only for those below it.
                if !node.is_bare() {
                    done.push(path, NodeEffect::Delete { cause: Cause::Above });
                }
                if watched {
                    gone.push(Path::trusted(path));
                }
            });
        }
        Ok(gone)
    }

    /// The current tree, if changing it may delete other nodes along.
    fn watched_tree(&self) -> Option<NodeTree> {
        (!self.state.watches.is_empty()).then(|| self.state.tree.clone())
    }

    /// Ends an operation on the node at `path`, with which `gone` were deleted: deletes the nodes that may no longer
    /// live, and records them after those already recorded. Part of [`Draft::atomically`].
    fn indirect(
        &mut self,
        path: &str,
        own: bool,
        gone: Vec<Path>,
        before: NodeTree,
        mut told: NodeEffects,
        change: &mut Change,
    ) -> Result<()> {
        let mut cascaded = NodeEffects::default();
        self.cascade(path, own, gone, &mut cascaded)?;
        self.record(&cascaded);
        told.extend(&cascaded);
        if !told.is_empty() {
            change.indirect = Some(Box::new(Changes { before, after: self.state.tree.clone(), effects: told }));
        }
        Ok(())
    }

    /// Deletes the nodes that may no longer live after the node at `path` has changed and `gone` were deleted with it, and
    /// so on. Each node is deleted at most once, so this ends even if there are cycles. `own` says that the node has just
    /// got its life conditions, of which those on itself are not checked yet.
    fn cascade(&mut self, path: &str, own: bool, gone: Vec<Path>, done: &mut NodeEffects) -> Result<()> {
        self.cascade_to(path, own, gone, done, Self::remove)
    }

    /// The same, with which `end` is done to each of those nodes.
    pub(super) fn cascade_to(
        &mut self,
        path: &str,
        own: bool,
        gone: Vec<Path>,
        done: &mut NodeEffects,
        end: impl Fn(&mut Self, &str, Cause, &mut NodeEffects) -> Result<Vec<Path>>,
    ) -> Result<()> {
        if self.state.watches.is_empty() || planted(Bug::ForgetCascade) {
            return Ok(());
        }
        let mut changed = gone;
        let path = Path::trusted(path);
        let first = path.clone();
        // The lists of children above may have changed too.
        changed.extend(path.ancestors());
        changed.push(path);
        while let Some(path) = changed.pop() {
            let watchers: Vec<Path> = self.state.watches.of(&path).cloned().collect();
            for watcher in watchers {
                let keep = self.state.tree.get(watcher.as_str()).and_then(Node::keep);
                let but = (own && watcher == first).then_some(first.as_str());
                if keep.is_none_or(|keep| broken(keep, &self.state.tree, but).is_none()) {
                    continue;
                }
                let gone = end(self, watcher.as_str(), Cause::KeepWhile, done);
                changed.extend(
                    gone.map_err(|e| e.context(format!("'{watcher}' depends on '{path}' and would be deleted")))?,
                );
                changed.extend(watcher.ancestors());
                changed.push(watcher);
            }
        }
        Ok(())
    }

    /// Applies all of `change` or nothing.
    pub fn atomically<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mark = self.mark();
        change(self).inspect_err(|_| self.rewind(mark))
    }

    /// What it is now, to go back to. O(1).
    pub fn mark(&self) -> DraftMark {
        let nodes = match self.effects.last() {
            Some(Effect::Nodes(nodes)) => Some(nodes.mark()),
            _ => None,
        };
        DraftMark { state: self.state.clone(), effects: self.effects.len(), nodes }
    }

    /// Takes back what was done since.
    pub fn rewind(&mut self, mark: DraftMark) {
        self.state = mark.state;
        self.effects.truncate(mark.effects);
        if let (Some(mark), Some(Effect::Nodes(nodes))) = (mark.nodes, self.effects.last_mut()) {
            nodes.rewind(mark);
        }
    }
}

/// The next effect of several lists.
fn advance<'a>(
    reader: &mut Option<NodeReader<'a>>,
    more: &mut impl Iterator<Item = NodeReader<'a>>,
) -> Result<Option<(String, NodeEffect<'a>)>> {
    while let Some(now) = reader {
        if let Some((path, effect)) = now.advance()? {
            return Ok(Some((path.to_owned(), effect)));
        }
        *reader = more.next();
    }
    Ok(None)
}

fn no_node(path: &str) -> Error {
    Error::not_found(format!("no node at '{path}'"))
}

fn check_condition(path: &str, node: Option<&Node>, when: Option<&Condition>) -> Result<()> {
    let Some(condition) = when else { return Ok(()) };
    condition.check()?;
    let node = node.map(Node::info);
    if condition.holds(path, node.as_ref()) {
        return Ok(());
    }
    let found = match node {
        None => "there is no node".to_owned(),
        Some(node) => match node.payload {
            Some(payload) => {
                format!("its payload, version {}, is {}", node.payload_version, clip(&format!("{payload:?}"), 200))
            }
            None => "it has no payload".to_owned(),
        },
    };
    Err(Error::new(ErrorKind::ConditionFailed, format!("the condition on '{path}' does not hold: {found}")))
}
