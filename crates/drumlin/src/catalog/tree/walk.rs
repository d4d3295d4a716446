//! Walking the tree: finds what matches a pattern, and what differs between two states of it.

use super::map::{Iter, Map};
use super::nodes::{Name, child};
use crate::catalog::patterns::pattern::{Part, PartPositions};
use crate::catalog::{Node, NodeTree, Path, Pattern};

/// Walks the nodes that match a pattern, in path order. Visits only what can match: a name costs a look-up, a glob as
/// much as there are names with its prefix.
pub struct Walker<'a> {
    pattern: &'a Pattern,
    path: String,
    levels: Vec<Level<'a>>,
    /// The number of nodes visited.
    pub visited: u64,
}

struct Level<'a> {
    source: LevelNodes<'a>,
    /// The positions in the pattern before the names of this level.
    positions: PartPositions,
    /// The length of the path above.
    above: usize,
}

enum LevelNodes<'a> {
    One(Option<(&'a str, &'a Node)>),
    Many(Iter<'a, Name, Node>, &'a str),
}

impl<'a> LevelNodes<'a> {
    fn new(pattern: &'a Pattern, positions: PartPositions, children: &'a Map<Name, Node>) -> Self {
        let only = (positions.count_ones() == 1).then(|| pattern.parts().get(positions.trailing_zeros() as usize));
        let prefix = match only.flatten() {
            Some(Part::Name(name)) => return LevelNodes::One(child(children, name).map(|node| (name.as_str(), node))),
            Some(Part::Glob(glob)) => glob.prefix(),
            Some(Part::If(condition)) => condition.name_prefix(),
            Some(Part::Deep) | None => "",
        };
        LevelNodes::Many(children.iter_from(|name| name.as_bytes() < prefix.as_bytes()), prefix)
    }

    fn next(&mut self) -> Option<(&'a str, &'a Node)> {
        match self {
            LevelNodes::One(one) => one.take(),
            LevelNodes::Many(children, prefix) => {
                let (name, node) = children.next()?;
                let name = name.as_str();
                name.starts_with(*prefix).then_some((name, node))
            }
        }
    }
}

impl<'a> Walker<'a> {
    /// The next node, with its path.
    pub fn advance(&mut self) -> Option<(&str, &'a Node)> {
        loop {
            let level = self.levels.last_mut()?;
            self.path.truncate(level.above);
            let Some((name, node)) = level.source.next() else {
                self.levels.pop();
                continue;
            };
            self.visited += 1;
            if !self.path.is_empty() {
                self.path.push('/');
            }
            self.path.push_str(name);
            let holds = |condition: &crate::catalog::Condition| condition.holds(&self.path, Some(&node.info()));
            let positions = self.pattern.step(level.positions, name, holds);
            if self.pattern.goes_on(positions)
                && let Some(below) = node.below()
            {
                let source = LevelNodes::new(self.pattern, positions, below);
                self.levels.push(Level { source, positions, above: self.path.len() });
            }
            if self.pattern.accepts(positions) {
                return Some((&self.path, node));
            }
        }
    }
}

impl NodeTree {
    /// Walks the nodes that match `pattern`, in path order.
    pub fn walk<'a>(&'a self, pattern: &'a Pattern) -> Walker<'a> {
        let positions = pattern.start();
        let source = LevelNodes::new(pattern, positions, self.top());
        Walker { pattern, path: String::new(), levels: vec![Level { source, positions, above: 0 }], visited: 0 }
    }

    /// The nodes that match `pattern`, in path order.
    pub fn matching<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = (Path, &'a Node)> {
        let mut walker = self.walk(pattern);
        std::iter::from_fn(move || walker.advance().map(|(path, node)| (Path::trusted(path), node)))
    }

    /// Calls `found` for all nodes, each before those below it, in path order.
    pub fn each<'a>(&'a self, mut found: impl FnMut(&str, &'a Node)) {
        each_below(&mut String::new(), self.top(), &mut found);
    }

    /// Calls `found` for the nodes from the path `from` on, in path order, until it returns `false`.
    pub(in crate::catalog) fn each_from<'a>(
        &'a self,
        from: Option<&str>,
        mut found: impl FnMut(&str, &'a Node) -> bool,
    ) {
        each_from(&mut String::new(), self.top(), from, &mut found);
    }

    /// Calls `found` for each node that differs between the two or has something below it that does, in path order,
    /// with what it is in `self` and in `other`. Costs as much as differs.
    pub fn diff<'a>(&'a self, other: &'a NodeTree, mut found: impl FnMut(&str, Option<&'a Node>, Option<&'a Node>)) {
        diff_below(&mut String::new(), self.top(), other.top(), &mut found);
    }
}

/// Calls `inner` with the path of a child.
fn with_name<T>(path: &mut String, name: &Name, inner: impl FnOnce(&mut String) -> T) -> T {
    let above = path.len();
    if above > 0 {
        path.push('/');
    }
    path.push_str(name.as_str());
    let answer = inner(path);
    path.truncate(above);
    answer
}

/// Calls `found` for all below `path`, which is empty for the top.
pub(in crate::catalog) fn each_below<'a>(
    path: &mut String,
    children: &'a Map<Name, Node>,
    found: &mut impl FnMut(&str, &'a Node),
) {
    for (name, node) in children.iter() {
        with_name(path, name, |path| {
            found(path, node);
            if let Some(below) = node.below() {
                each_below(path, below, found);
            }
        });
    }
}

/// Calls `found` for all below `path` from the path `from` on, which continues it; `false` once that has returned
/// `false`.
fn each_from<'a>(
    path: &mut String,
    children: &'a Map<Name, Node>,
    from: Option<&str>,
    found: &mut impl FnMut(&str, &'a Node) -> bool,
) -> bool {
    let (first, mut rest) = from.map_or(("", None), |from| match from.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (from, None),
    });
    for (name, node) in children.iter_from(|name| name.as_bytes() < first.as_bytes()) {
        // The node itself comes before what `from` has below it.
        let rest = rest.take().filter(|_| name.as_str() == first);
        let goes_on = with_name(path, name, |path| {
            (rest.is_some() || found(path, node))
                && node.below().is_none_or(|below| each_from(path, below, rest, found))
        });
        if !goes_on {
            return false;
        }
    }
    true
}

fn diff_below<'a>(
    path: &mut String,
    ours: &'a Map<Name, Node>,
    theirs: &'a Map<Name, Node>,
    found: &mut impl FnMut(&str, Option<&'a Node>, Option<&'a Node>),
) {
    ours.diff(theirs, &mut |name, a, b| {
        let alike_below = a.zip(b).is_some_and(|(a, b)| a.same_below(b));
        if alike_below && a.zip(b).is_some_and(|(a, b)| a.own_eq(b)) {
            return;
        }
        with_name(path, name, |path| {
            found(path, a, b);
            if alike_below {
                return;
            }
            match (a.and_then(Node::below), b.and_then(Node::below)) {
                (Some(a), Some(b)) => diff_below(path, a, b, found),
                (Some(a), None) => each_below(path, a, &mut |path, node| found(path, Some(node), None)),
                (None, Some(b)) => each_below(path, b, &mut |path, node| found(path, None, Some(node))),
                (None, None) => {}
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Seq;

    #[test]
    fn matching_visits_only_what_can_match() {
        let mut tree = NodeTree::default();
        for n in 0..2000 {
            let payload = crate::catalog::Payload::from(1);
            tree.edit(&format!("a/n{n:04}/x/y"), Seq(1), |node| node.set_payload(Some(payload)));
        }
        for (pattern, matches, most) in [
            ("a/n0007/x/y", 1, 4),
            ("a/n000*/x/y", 10, 31),
            ("a/*/z", 0, 2001),
            ("b/**", 0, 0),
            ("a/n1*/x", 1000, 2001),
            ("**/y", 2000, 6001),
        ] {
            let pattern = Pattern::new(pattern).unwrap();
            let mut walker = tree.walk(&pattern);
            let mut found = 0;
            while walker.advance().is_some() {
                found += 1;
            }
            assert_eq!(found, matches, "{pattern}");
            assert!(walker.visited <= most, "{pattern}: {} nodes were looked at", walker.visited);
        }
    }
}
