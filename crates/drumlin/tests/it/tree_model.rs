//! What the tree should be: a plain dict of paths, with none of the store's ideas. Everything is found by looking at all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A path as its names, so that it orders as the tree does.
pub type Names = Vec<String>;

pub fn names(path: &str) -> Names {
    path.split('/').map(str::to_owned).collect()
}

/// A condition, as these tests draw them.
#[derive(Clone, Debug, PartialEq)]
pub enum Cond {
    Exists(bool),
    Name(String),
    HasPayload(bool),
    Equals(Value),
    FieldBelow(String, i64),
    Contains(String),
    Version(u64),
    ChildrenAtLeast(u64),
    Not(Box<Cond>),
    All(Vec<Cond>),
    Any(Vec<Cond>),
}

/// One part of a pattern.
#[derive(Clone, Debug)]
pub enum Piece {
    Deep,
    Glob(String),
    If(Cond),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelNode {
    pub payload: Option<Value>,
    pub payload_version: u64,
    pub children_version: u64,
    pub keep: Vec<(Names, Cond)>,
}

/// What happened to a node, in order; what went along with others is put in order by path.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelEvent {
    pub path: String,
    pub action: &'static str,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub cause: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTree {
    pub nodes: BTreeMap<Names, ModelNode>,
}

/// Why an operation is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    There,
    Missing,
    Condition,
}

pub fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_at_checked(1) {
        None | Some(("", _)) => name.is_empty(),
        Some(("*", rest)) => (0..=name.len()).any(|at| name.is_char_boundary(at) && glob(rest, &name[at..])),
        Some((first, rest)) => name.strip_prefix(first).is_some_and(|name| glob(rest, name)),
    }
}

impl ModelTree {
    pub fn children(&self, path: &[String]) -> u64 {
        self.nodes.keys().filter(|other| other.len() == path.len() + 1 && other.starts_with(path)).count() as u64
    }

    pub fn holds(&self, condition: &Cond, path: &[String]) -> bool {
        let node = self.nodes.get(path);
        let payload = node.and_then(|node| node.payload.as_ref());
        match condition {
            Cond::Exists(wanted) => node.is_some() == *wanted,
            Cond::Name(pattern) => node.is_some() && glob(pattern, path.last().unwrap()),
            Cond::HasPayload(wanted) => node.is_some() && payload.is_some() == *wanted,
            Cond::Equals(value) => payload == Some(value),
            Cond::FieldBelow(field, n) => {
                payload.and_then(|payload| payload.get(field)?.as_i64()).is_some_and(|found| found < *n)
            }
            Cond::Contains(name) => payload.is_some_and(|payload| payload.get(name).is_some()),
            Cond::Version(n) => node.is_some_and(|node| node.payload_version == *n),
            Cond::ChildrenAtLeast(n) => node.is_some() && self.children(path) >= *n,
            Cond::Not(condition) => !self.holds(condition, path),
            Cond::All(all) => all.iter().all(|condition| self.holds(condition, path)),
            Cond::Any(any) => any.iter().any(|condition| self.holds(condition, path)),
        }
    }

    /// Whether the node at `path`, or `names` of it from `at` on, matches: tried every way.
    fn matches_from(&self, pieces: &[Piece], path: &[String], at: usize) -> bool {
        match pieces.split_first() {
            None => at == path.len(),
            Some((Piece::Deep, [])) => at < path.len(),
            Some((Piece::Deep, rest)) => (at..=path.len()).any(|at| self.matches_from(rest, path, at)),
            Some((_, rest)) if at < path.len() => {
                let fits = match &pieces[0] {
                    Piece::Glob(pattern) => glob(pattern, &path[at]),
                    Piece::If(condition) => self.holds(condition, &path[..=at]),
                    Piece::Deep => false,
                };
                fits && self.matches_from(rest, path, at + 1)
            }
            Some(_) => false,
        }
    }

    pub fn matching(&self, pieces: &[Piece]) -> Vec<Names> {
        self.nodes.keys().filter(|path| self.matches_from(pieces, path, 0)).cloned().collect()
    }

    fn value(&self, path: &[String]) -> Option<Value> {
        self.nodes.get(path)?.payload.clone()
    }

    /// Sets the payload, makes parents.
    fn set(&mut self, path: &Names, payload: Option<Value>, events: &mut Vec<ModelEvent>) {
        self.set_alone(path, payload, events);
        self.cascade(path, false, Vec::new(), events);
    }

    fn set_alone(&mut self, path: &Names, payload: Option<Value>, events: &mut Vec<ModelEvent>) {
        let there = self.nodes.contains_key(path);
        let before = self.value(path);
        for depth in 1..=path.len() {
            let added = !self.nodes.contains_key(&path[..depth]);
            self.nodes.entry(path[..depth].to_vec()).or_default();
            if added && depth > 1 {
                self.nodes.get_mut(&path[..depth - 1]).unwrap().children_version += 1;
            }
        }
        let node = self.nodes.get_mut(path).unwrap();
        node.payload.clone_from(&payload);
        node.payload_version += 1;
        let action = if payload.is_none() && self.is_nothing(path) {
            "delete"
        } else if there {
            "update"
        } else {
            "create"
        };
        events.push(ModelEvent { path: path.join("/"), action, before, after: payload, cause: "asked" });
        self.prune(path);
    }

    fn is_nothing(&self, path: &[String]) -> bool {
        let node = &self.nodes[path];
        node.payload.is_none() && node.keep.is_empty() && self.children(path) == 0
    }

    fn prune(&mut self, path: &[String]) {
        let mut path = path;
        while self.nodes.contains_key(path) && self.is_nothing(path) {
            self.nodes.remove(path);
            path = &path[..path.len() - 1];
            if let Some(parent) = self.nodes.get_mut(path) {
                parent.children_version += 1;
            }
        }
    }

    /// Removes a node and all below it; gives all that is gone.
    fn remove(&mut self, path: &Names, cause: &'static str, events: &mut Vec<ModelEvent>) -> Vec<Names> {
        let gone: Vec<Names> = self.nodes.keys().filter(|other| other.starts_with(path)).cloned().collect();
        for below in &gone {
            let node = self.nodes.remove(below).unwrap();
            let cause = if below == path { cause } else { "above" };
            if below == path || node.payload.is_some() || !node.keep.is_empty() {
                let path = below.join("/");
                events.push(ModelEvent { path, action: "delete", before: node.payload, after: None, cause });
            }
        }
        let parent = &path[..path.len() - 1];
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children_version += 1;
        }
        self.prune(parent);
        gone
    }

    /// Deletes what no longer may live, until nothing changes. What goes is put in order by path.
    fn cascade(&mut self, path: &Names, own: bool, gone: Vec<Names>, events: &mut Vec<ModelEvent>) {
        let above = |path: &Names| (1..=path.len()).map(|depth| path[..depth].to_vec()).collect::<Vec<_>>();
        let mut changed: BTreeSet<Names> = gone.into_iter().chain(above(path)).collect();
        let mut told = Vec::new();
        loop {
            let broken = self.nodes.iter().find(|(name, node)| {
                let looked_at = |watched: &Names| !(own && *name == path && watched == path);
                let broken =
                    |(watched, condition): &(Names, Cond)| looked_at(watched) && !self.holds(condition, watched);
                node.keep.iter().any(|(watched, _)| changed.contains(watched)) && node.keep.iter().any(broken)
            });
            let Some((watcher, _)) = broken else { break };
            let watcher = watcher.clone();
            changed.extend(self.remove(&watcher, "keep_while", &mut told));
            changed.extend(above(&watcher));
        }
        events.extend(told);
    }

    pub fn put(
        &mut self,
        path: &str,
        payload: Value,
        only: Option<bool>,
        when: Option<&Cond>,
        keep: Option<Vec<(Names, Cond)>>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Refused> {
        let path = names(path);
        match only {
            Some(true) if self.nodes.contains_key(&path) => return Err(Refused::There),
            Some(false) if !self.nodes.contains_key(&path) => return Err(Refused::Missing),
            _ => {}
        }
        if when.is_some_and(|when| !self.holds(when, &path)) {
            return Err(Refused::Condition);
        }
        let mut next = self.clone();
        let mut told = Vec::new();
        next.set_alone(&path, Some(payload), &mut told);
        let own = keep.is_some();
        if let Some(keep) = keep {
            if keep.iter().any(|(watched, condition)| *watched != path && !next.holds(condition, watched)) {
                return Err(Refused::Condition);
            }
            next.nodes.get_mut(&path).unwrap().keep = keep;
        }
        next.cascade(&path, own, Vec::new(), &mut told);
        *self = next;
        events.extend(told);
        Ok(())
    }

    pub fn clear(&mut self, path: &str, events: &mut Vec<ModelEvent>) -> Result<(), Refused> {
        let path = names(path);
        match self.nodes.get(&path) {
            None => Err(Refused::Missing),
            Some(node) if node.payload.is_none() => Ok(()),
            Some(_) => {
                self.set(&path, None, events);
                Ok(())
            }
        }
    }

    pub fn delete(&mut self, path: &str, when: Option<&Cond>, events: &mut Vec<ModelEvent>) -> Result<(), Refused> {
        let path = names(path);
        if !self.nodes.contains_key(&path) {
            return Err(Refused::Missing);
        }
        if when.is_some_and(|when| !self.holds(when, &path)) {
            return Err(Refused::Condition);
        }
        let gone = self.remove(&path, "asked", events);
        self.cascade(&path, false, gone, events);
        Ok(())
    }

    /// Does `each` to all that match now and are still there when their turn comes.
    pub fn many(
        &mut self,
        pieces: &[Piece],
        events: &mut Vec<ModelEvent>,
        mut each: impl FnMut(&mut Self, &str, &mut Vec<ModelEvent>),
    ) {
        for path in self.matching(pieces) {
            if self.nodes.contains_key(&path) {
                each(self, &path.join("/"), events);
            }
        }
    }
}
