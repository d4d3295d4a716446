//! The rows of a cell in a database whose statements each see what was there when they began (PostgreSQL, READ COMMITTED).
//!
//! A writer inserts a row behind the last one that it knows, if that is there, and none has the new one's number. The first is what the
//! statement saw when it began, unless it locks that row; the second is as it is when the row is inserted. Rows before a head are
//! deleted after it, all at once.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

/// An entry of the log, and the row that has it.
type EntryId = u8;

/// A row: an entry that is added, or all so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    stamp: EntryId,
    head: bool,
    entries: Vec<EntryId>,
}

/// A statement that inserts a row with this number behind the one with this stamp.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Insert {
    of: usize,
    number: u8,
    behind: EntryId,
    row: Row,
}

/// What a writer is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Writer {
    /// It knows the row with this number and stamp, and the entries up to it.
    Knows(u8, EntryId, Vec<EntryId>),
    /// It waits for its statement.
    Waits,
}

/// All that there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    rows: BTreeMap<u8, Row>,
    writers: Vec<Writer>,
    /// Statements that have begun, and whether they saw the row before theirs.
    begun: BTreeSet<(Insert, bool)>,
    acknowledged: BTreeSet<EntryId>,
    next: EntryId,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A writer's statement begins: it adds an entry, or puts a head with one.
    Begin(usize, bool),
    /// It inserts its row, or does not.
    End(Insert, bool),
    /// The rows before the newest head are deleted.
    Trim,
    /// A writer reads the rows.
    Read(usize),
}

/// How much may happen.
#[derive(Clone, Debug)]
pub struct RowsModel {
    /// Writers.
    pub writers: usize,
    /// Rows that they put.
    pub rows: u8,
    /// Whether the row before a new one is not locked.
    pub unlocked: bool,
}

impl Table {
    /// The number and the stamp of the last row, and all entries; `None` if rows are missing.
    fn value(&self) -> Option<(u8, EntryId, Vec<EntryId>)> {
        let (&from, head) = self.rows.iter().rev().find(|(_, row)| row.head)?;
        let mut value = (from, head.stamp, head.entries.clone());
        for (&number, row) in self.rows.range(from + 1..) {
            value.2.extend(&row.entries);
            (value.0, value.1) = (number, row.stamp);
        }
        let numbers: Vec<u8> = self.rows.keys().copied().collect();
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]).then_some(value)
    }
}

impl Model for RowsModel {
    type State = Table;
    type Action = Step;

    fn init_states(&self) -> Vec<Table> {
        let first = Row { stamp: 0, head: true, entries: Vec::new() };
        vec![Table {
            rows: BTreeMap::from([(1, first)]),
            writers: vec![Writer::Knows(1, 0, Vec::new()); self.writers],
            begun: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            next: 0,
        }]
    }

    fn actions(&self, table: &Table, steps: &mut Vec<Step>) {
        for (who, writer) in table.writers.iter().enumerate() {
            if matches!(writer, Writer::Knows(..)) {
                steps.push(Step::Read(who));
                if table.next < self.rows {
                    steps.extend([Step::Begin(who, false), Step::Begin(who, true)]);
                }
            }
        }
        steps.extend(table.begun.iter().cloned().map(|(insert, saw)| Step::End(insert, saw)));
        steps.push(Step::Trim);
    }

    fn next_state(&self, last: &Table, step: Step) -> Option<Table> {
        let mut table = last.clone();
        match step {
            Step::Begin(of, head) => {
                let Writer::Knows(number, behind, entries) = last.writers[of].clone() else { return None };
                table.next += 1;
                let own = vec![table.next];
                let entries = if head { [entries, own].concat() } else { own };
                let row = Row { stamp: table.next, head, entries };
                let saw = last.rows.get(&number).is_some_and(|row| row.stamp == behind);
                table.begun.insert((Insert { of, number: number + 1, behind, row }, saw));
                table.writers[of] = Writer::Waits;
            }
            Step::End(insert, saw) => {
                table.begun.remove(&(insert.clone(), saw));
                let there = last.rows.get(&(insert.number - 1)).is_some_and(|row| row.stamp == insert.behind);
                let fits = saw && (there || self.unlocked);
                if fits && !last.rows.contains_key(&insert.number) {
                    table.acknowledged.insert(insert.row.stamp);
                    table.rows.insert(insert.number, insert.row);
                }
                let (number, stamp, entries) = table.value().unwrap_or_default();
                table.writers[insert.of] = Writer::Knows(number, stamp, entries);
            }
            Step::Trim => {
                let head = last.rows.iter().rev().find(|(_, row)| row.head).map(|(number, _)| *number)?;
                table.rows.retain(|number, _| *number >= head);
            }
            Step::Read(who) => {
                let (number, stamp, entries) = last.value()?;
                table.writers[who] = Writer::Knows(number, stamp, entries);
            }
        }
        (table != *last).then_some(table)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("what was acknowledged is in the log", |_, table| {
                table.value().is_some_and(|(_, _, entries)| table.acknowledged.iter().all(|id| entries.contains(id)))
            }),
            Property::<Self>::sometimes("rows follow a head that was put", |_, table| {
                table.acknowledged.len() >= 3 && table.rows.len() >= 2 && !table.rows.contains_key(&1)
            }),
            Property::<Self>::sometimes("a row is refused because the one before it was deleted", |_, table| {
                table.begun.iter().any(|(insert, saw)| *saw && !table.rows.contains_key(&(insert.number - 1)))
            }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use stateright::{Checker, HasDiscoveries};

    use super::*;

    #[test]
    fn a_row_follows_the_last_one() {
        let model = RowsModel { writers: 2, rows: 5, unlocked: false };
        let checker = model.checker().threads(2).spawn_bfs().join();
        println!("{} states", checker.unique_state_count());
        checker.assert_properties();
    }

    #[test]
    fn the_row_before_it_must_be_locked() {
        let model = RowsModel { writers: 2, rows: 4, unlocked: true };
        let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(checker.discoveries().contains_key("what was acknowledged is in the log"));
    }
}
