//! `tree`: the nodes of a store, drawn.

use std::io::Write;

use clap::Args;
use drumlin::catalog::Payload;
use drumlin::store::ListEntry;

use super::ls::within;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::output::Output;
use crate::place::Place;

/// Draw the tree of nodes, with the tables and payloads they hold
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin tree market.drumlin prices --depth 2")]
pub struct Tree {
    #[command(flatten)]
    place: Place,
    /// Where to begin [default: the top]
    path: Option<String>,
    /// How many levels to draw [default: all]
    #[arg(long, short)]
    depth: Option<usize>,
}

impl Tree {
    /// Draws one line a node.
    pub fn run(self, out: &mut Output) -> Outcome {
        let entries = within(&self.place.read()?, self.path.as_deref())?;
        let above = self.path.as_ref().map_or(0, |path| path.matches('/').count() + 1);
        let depth = |entry: &ListEntry| entry.node.path.matches('/').count() + 1 - above;
        let most = self.depth.unwrap_or(usize::MAX);
        let entries: Vec<(usize, &ListEntry)> =
            entries.iter().map(|entry| (depth(entry), entry)).filter(|(depth, _)| *depth <= most).collect();
        let last = last_siblings(entries.iter().map(|(depth, _)| *depth).collect());
        if self.path.is_none() {
            writeln!(out, "{}", self.place.uri())?;
        }
        // Whether the ancestor of each level has siblings to come, whose line passes by.
        let mut open: Vec<bool> = Vec::new();
        for ((depth, entry), last) in entries.into_iter().zip(last) {
            let name = match depth {
                0 => &entry.node.path,
                _ => entry.node.path.rsplit('/').next().unwrap_or_default(),
            };
            let mut line = String::new();
            if depth > 0 {
                open.truncate(depth - 1);
                open.iter().for_each(|&open| line.push_str(if open { "│   " } else { "    " }));
                line.push_str(if last { "└── " } else { "├── " });
                open.push(!last);
            }
            writeln!(out, "{line}{name}{}", holds(entry))?;
        }
        Ok(())
    }
}

/// Whether each node, of these depths in path order, is its parent's last child.
fn last_siblings(depths: Vec<usize>) -> Vec<bool> {
    // By depth: whether a sibling further down has been seen.
    let mut seen: Vec<bool> = Vec::new();
    let mut last: Vec<bool> = depths
        .into_iter()
        .rev()
        .map(|depth| {
            seen.resize(depth + 1, false);
            !std::mem::replace(&mut seen[depth], true)
        })
        .collect();
    last.reverse();
    last
}

fn holds(entry: &ListEntry) -> String {
    let mut text = String::new();
    if let Some((rows, versions, _)) = entry.table {
        text.push_str(&format!("  [table: {}, {}]", counted(rows, "row"), counted(versions, "version")));
    }
    match &entry.node.payload {
        Some(Payload::Json(_)) => text.push_str("  [JSON]"),
        Some(Payload::Bytes(bytes)) => text.push_str(&format!("  [{}]", counted(bytes.len() as u64, "byte"))),
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_child_of_each_parent_is_known() {
        // a, a/b, a/b/c, a/d, e
        assert_eq!(last_siblings(vec![1, 2, 3, 2, 1]), [false, false, true, true, true]);
        assert_eq!(last_siblings(vec![0, 1, 2, 2, 1, 2]), [true, false, false, true, true, true]);
        assert_eq!(last_siblings(vec![]), [false; 0]);
    }
}
