//! Nodes that end with a presence or by themselves: what a draft does about them.

use crate::base::planted::{Bug, planted};
use crate::base::{Result, Timestamp};
use crate::catalog::tree::nodes::refuse_tables;
use crate::catalog::{Cause, Draft, Effect, Keep, Node, NodeEffect, NodeEffects, Path, PresenceChange};

impl Draft {
    /// Sets when the node at `path` ends by itself; what else it lives on stays.
    pub fn end_at(&mut self, path: &str, until: Timestamp) -> Result<()> {
        let keep = self.state.tree.get(path).and_then(Node::keep).map(|keep| Keep::clone(keep)).unwrap_or_default();
        self.keep(path, Keep { until: Some(until), ..keep })
    }

    /// Ends those of some nodes whose time is still the one that was seen. Returns how many were deleted, with those that went along.
    pub fn expire(&mut self, due: &[(Timestamp, Path)]) -> Result<usize> {
        self.atomically(|draft| {
            let still = |(until, path): &&(Timestamp, Path)| {
                let keep = draft.state.tree.get(path.as_str()).and_then(Node::keep);
                keep.is_some_and(|keep| keep.until == Some(*until) || planted(Bug::ExpireRenewed))
            };
            let ended: Vec<Path> = due.iter().filter(still).map(|(_, path)| path.clone()).collect();
            draft.end_nodes(&ended)
        })
    }

    /// Ends those of some presences that have not ended, and the nodes that end with them. Returns how many were deleted, with those that
    /// went along.
    pub fn end_presences(&mut self, numbers: &[u64]) -> Result<usize> {
        let presences = &self.state.presences;
        let numbers: Vec<u64> = numbers.iter().copied().filter(|number| presences.is_open(*number)).collect();
        if numbers.is_empty() {
            return Ok(0);
        }
        self.atomically(|draft| {
            let watches = &draft.state.watches;
            let nodes: Vec<Path> = numbers.iter().flat_map(|number| watches.of_presence(*number)).cloned().collect();
            draft.apply(vec![Effect::Presences(PresenceChange::End(numbers))])?;
            draft.end_nodes(&nodes)
        })
    }

    /// Deletes nodes that have nothing to live on any more, and what depends on them; returns how many. This cannot be refused: a node that holds a table, or
    /// has one below it, loses its payload instead.
    fn end_nodes(&mut self, ended: &[Path]) -> Result<usize> {
        let mut done = NodeEffects::default();
        for path in ended {
            // It may have gone along with another.
            if self.state.tree.get(path.as_str()).is_some() && !planted(Bug::LeaveOrphans) {
                let gone = self.end(path.as_str(), Cause::Ended, &mut done)?;
                self.cascade_to(path.as_str(), false, gone, &mut done, Self::end)?;
            }
        }
        self.record(&done);
        Ok(done.len())
    }

    /// Like [`Draft::remove`], but where there are tables only the payload and the life conditions go.
    fn end(&mut self, path: &str, cause: Cause, done: &mut NodeEffects) -> Result<Vec<Path>> {
        let tables = self.state.tree.get(path).map(|node| refuse_tables(path, node));
        if !matches!(tables, Some(Err(_))) {
            return self.remove(path, cause, done);
        }
        let seq = self.seq;
        if self.state.tree.get(path).is_some_and(|node| node.payload.is_some()) {
            self.state.tree.edit(path, seq, |node| node.set_payload(None));
            done.push(path, NodeEffect::Clear { gone: false });
        }
        self.state.set_keep(path, seq, Keep::default());
        done.push(path, NodeEffect::Keep { keep: &[] });
        Ok(Vec::new())
    }
}
