//! The nodes of the tree as a list in path order.
//!
//! The names of all nodes are kept as long as no commit comes; so is the list that the last filter and folding gave.

use std::collections::HashSet;
use std::sync::Arc;

use drumlin::{Result, Store, Tables};
use parking_lot::Mutex;

/// The names of all nodes at a commit.
pub struct Names {
    pub seq: u64,
    pub nodes: Vec<Node>,
}

/// A node.
pub struct Node {
    pub path: String,
    /// For filters.
    lower: Option<String>,
    pub depth: u32,
    pub table: bool,
    pub payload: bool,
    pub children: u64,
    /// Tables at and below it.
    pub tables: u32,
}

/// Which nodes hide what is below them: those at the paths, or all but those.
#[derive(Default, PartialEq, Eq)]
pub struct Folding {
    pub all: bool,
    pub except: Vec<String>,
}

/// The nodes that are shown: places among the names.
pub struct Listing {
    pub names: Arc<Names>,
    filter: String,
    folding: Folding,
    pub shown: Vec<u32>,
    pub matches: usize,
}

/// What the last requests asked for.
#[derive(Default)]
pub struct Listings {
    names: Mutex<Option<Arc<Names>>>,
    listing: Mutex<Option<Arc<Listing>>>,
}

impl Listings {
    /// The names at the newest commit.
    pub fn names(&self, store: &Store) -> Result<Arc<Names>> {
        let seq = store.seq()?.0;
        if let Some(names) = self.names.lock().as_ref().filter(|names| names.seq == seq) {
            return Ok(names.clone());
        }
        let mut nodes: Vec<Node> = Vec::new();
        store.tree().for_each("**", |path, node| {
            let lower = path.to_lowercase();
            nodes.push(Node {
                lower: (lower != path).then_some(lower),
                path: path.to_owned(),
                depth: path.bytes().filter(|byte| *byte == b'/').count() as u32,
                table: node.table,
                payload: node.payload.is_some(),
                children: node.children,
                tables: u32::from(node.table),
            });
        })?;
        // The nodes above one come before it.
        let mut above: Vec<usize> = Vec::new();
        for at in 0..nodes.len() {
            above.truncate(nodes[at].depth as usize);
            if nodes[at].table {
                above.iter().for_each(|above| nodes[*above].tables += 1);
            }
            above.push(at);
        }
        let names = Arc::new(Names { seq, nodes });
        *self.names.lock() = Some(names.clone());
        Ok(names)
    }

    /// The nodes that match `filter`, with those above them; without one those that no folded node hides.
    pub fn of(&self, store: &Store, filter: &str, folding: Folding) -> Result<Arc<Listing>> {
        let names = self.names(store)?;
        let same = |listing: &&Arc<Listing>| {
            Arc::ptr_eq(&listing.names, &names) && listing.filter == filter && listing.folding == folding
        };
        if let Some(listing) = self.listing.lock().as_ref().filter(same) {
            return Ok(listing.clone());
        }
        let mut shown = Vec::new();
        let mut matches = 0;
        if filter.is_empty() {
            let except: HashSet<&str> = folding.except.iter().map(String::as_str).collect();
            let mut hidden_below = None;
            for (at, node) in (0..).zip(&names.nodes) {
                if hidden_below.is_some_and(|depth| node.depth > depth) {
                    continue;
                }
                hidden_below = (except.contains(node.path.as_str()) != folding.all).then_some(node.depth);
                shown.push(at);
            }
            matches = names.nodes.len();
        } else {
            let filter = filter.to_lowercase();
            let mut above: Vec<(u32, bool)> = Vec::new();
            for (at, node) in (0..).zip(&names.nodes) {
                above.truncate(node.depth as usize);
                above.push((at, false));
                if node.lower.as_ref().unwrap_or(&node.path).contains(&filter) {
                    matches += 1;
                    shown.extend(above.iter().filter(|(_, listed)| !listed).map(|(at, _)| *at));
                    above.iter_mut().for_each(|(_, listed)| *listed = true);
                }
            }
        }
        let listing = Arc::new(Listing { names, filter: filter.to_owned(), folding, shown, matches });
        *self.listing.lock() = Some(listing.clone());
        Ok(listing)
    }
}

impl Listing {
    /// Where a path is in the list, if it is shown.
    pub fn place(&self, path: &str) -> Option<usize> {
        self.shown.iter().position(|at| self.names.nodes[*at as usize].path == path)
    }
}
