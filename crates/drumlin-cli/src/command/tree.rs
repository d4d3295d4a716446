//! `tree`: the nodes of a store, drawn.

use std::io::Write;

use clap::Args;
use drumlin::{ListEntry, TableFigures};

use super::ls::within;
use crate::failure::Outcome;
use crate::figures::counted;
use crate::grid::one_line;
use crate::output::Output;
use crate::payload_text;
use crate::place::Place;
use crate::scope::Scope;
use crate::text_form::cut_short;

/// Draw the tree of nodes, with the tables and payloads they hold
///
/// For a pattern, the matching nodes are drawn, with the path to them.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin tree market.drumlin prices --depth 2
  drumlin tree market.drumlin 'config/**' --payloads")]
pub struct Tree {
    #[command(flatten)]
    place: Place,
    /// Where to begin, or a pattern with *, ? and ** [default: the top]
    #[arg(value_name = "PATTERN")]
    path: Option<String>,
    /// How many levels to draw [default: all]
    #[arg(long, short)]
    depth: Option<usize>,
    /// Show the payloads, long ones cut short
    #[arg(long, short)]
    payloads: bool,
}

/// Characters of a payload shown.
const PAYLOAD_CHARS_MAX: usize = 80;

/// A node to draw.
struct Line {
    /// How far below the first node.
    depth: usize,
    name: String,
    holds: String,
}

impl Tree {
    /// Draws one line per node.
    pub fn run(self, out: &mut Output) -> Outcome {
        let scope = Scope::new(self.path.as_deref())?;
        let entries = within(&self.place.read()?, &scope)?;
        let mut lines = lines(&entries, scope.path(), self.payloads);
        lines.retain(|line| self.depth.is_none_or(|most| line.depth <= most));
        let last = last_siblings(lines.iter().map(|line| line.depth).collect());
        if scope.path().is_none() {
            writeln!(out, "{}", self.place.uri())?;
        }
        // For each level, whether the ancestor has later siblings, to which a vertical line leads.
        let mut open: Vec<bool> = Vec::new();
        for (Line { depth, name, holds }, last) in lines.into_iter().zip(last) {
            let mut line = String::new();
            if depth > 0 {
                open.truncate(depth - 1);
                open.iter().for_each(|&open| line.push_str(if open { "│   " } else { "    " }));
                line.push_str(if last { "└── " } else { "├── " });
                open.push(!last);
            }
            writeln!(out, "{line}{name}{holds}")?;
        }
        Ok(())
    }
}

/// The lines of `entries`, which are in path order, and of the nodes between `top` and them.
fn lines(entries: &[ListEntry], top: Option<&str>, payloads: bool) -> Vec<Line> {
    let above = top.map_or(0, |path| path.split('/').count());
    let mut lines = Vec::with_capacity(entries.len());
    let mut drawn: Vec<&str> = Vec::new();
    for entry in entries {
        let names: Vec<&str> = entry.path.split('/').collect();
        let known = names.iter().zip(&drawn).take_while(|(a, b)| a == b).count();
        let own = names.len() - 1;
        for (at, name) in names.iter().enumerate().take(own).skip(known.max(above)) {
            lines.push(Line { depth: at + 1 - above, name: (*name).to_owned(), holds: String::new() });
        }
        let depth = names.len() - above;
        let name = if depth == 0 { &entry.path } else { names[own] };
        lines.push(Line { depth, name: name.to_owned(), holds: holds(entry, payloads) });
        drawn = names;
    }
    lines
}

/// Whether each node, of these depths in path order, is its parent's last child.
fn last_siblings(depths: Vec<usize>) -> Vec<bool> {
    // For each depth, whether a later sibling has been seen.
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

fn holds(entry: &ListEntry, payloads: bool) -> String {
    let mut text = String::new();
    if let Some(TableFigures { rows, versions, .. }) = entry.table {
        text.push_str(&format!("  [table: {}, {}]", counted(rows, "row"), counted(versions, "version")));
    }
    match &entry.node.payload {
        Some(payload) if payloads => {
            text.push_str("  ");
            text.push_str(&cut_short(one_line(&payload_text::line(payload)), PAYLOAD_CHARS_MAX));
        }
        Some(payload) => match payload.as_bytes() {
            Some(bytes) => text.push_str(&format!("  [{}]", counted(bytes.len() as u64, "byte"))),
            None => text.push_str("  [JSON]"),
        },
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
