//! The log of a shared store, with the object that is its root, a cell that it is moved to and back from, and a network that delivers
//! each put at any time, or never.
//!
//! Writers read where the log is, then put an entry on the condition that nothing has changed. If no answer comes, they look: if
//! nothing has changed, they put the same again; if it has, what is there shows whether theirs was done. Movers do what the next step
//! of a move is by what they read, and wait for nothing; so a mover that dies, and several at a time, are the same as one. The server
//! may be put back to any earlier state, once.
//!
//! Each rule that the protocol needs can be left out ([`Planted`]); then one of the properties fails.

use std::collections::BTreeSet;

use stateright::{Model, Property};

/// An entry of the log: which put it is of.
type EntryId = u8;
/// Random in each put.
type Stamp = u8;

/// Where a root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Where {
    /// The object.
    Object,
    /// The cell with this number.
    Cell(u8),
}

/// What a root says of where the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    /// Here.
    Here,
    /// In the cell with this number; the flag says whether it has begun there.
    InCell(u8, bool),
    /// It was in this cell, and is in the object again.
    Returned,
}

/// A root as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Root {
    stamp: Stamp,
    said: Said,
    entries: Vec<EntryId>,
}

/// A put that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Put {
    to: Where,
    /// The stamp that must be there; `None`: nothing must be.
    known: Option<Stamp>,
    root: Root,
    /// The writer that waits, and its entry.
    of: Option<(usize, EntryId)>,
}

/// What a writer is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Writer {
    /// It has not opened the store, or must open it again.
    Closed,
    /// It knows this root.
    Open(Where, Root),
    /// It has sent a put, and waits for the answer.
    Waiting(Where, Root, Put),
    /// The put was answered.
    Answered(Where, Root, Put, bool),
    /// It has found out that commits are gone, and says so.
    Reports,
}

/// All that there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    object: Root,
    /// A cell for each time that the log is moved into one.
    cells: [Option<Root>; 2],
    /// States that the server had.
    earlier: BTreeSet<[Option<Root>; 2]>,
    put_back: bool,
    writers: Vec<Writer>,
    sent: BTreeSet<Put>,
    acknowledged: BTreeSet<EntryId>,
    next_stamp: Stamp,
    next_entry: EntryId,
    moves: u8,
    entered: u8,
    /// Whether a writer opened a log in the cell that lacks what the object knows of.
    unnoticed: bool,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A writer opens the store.
    Open(usize),
    /// A writer sends an entry.
    Send(usize),
    /// A put arrives.
    Deliver(Put),
    /// A writer gets its answer.
    Take(usize),
    /// A writer gives up waiting, and looks.
    Look(usize),
    /// A mover does the next step into the cell.
    MoveIn,
    /// A mover does the next step back.
    MoveBack,
    /// The newest root of the cell is noted in the object.
    Note,
    /// The server is put back to an earlier state.
    PutBack([Option<Root>; 2]),
}

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The log is moved back without ending in the cell first.
    ReturnUnfenced,
    /// What the cell begins with is put whatever is there.
    StartAnyway,
    /// A put without an answer is sent again as a new entry.
    RetryAsNew,
    /// A put is not made on the condition of what was read.
    Unconditional,
    /// The rows of a cell that the log has left are deleted.
    EmptyCell,
    /// What the cell has is not compared with what the object knows of it.
    TrustCell,
}

/// How much may happen.
#[derive(Clone, Debug)]
pub struct CellModel {
    /// Writers.
    pub writers: usize,
    /// Entries that they send.
    pub entries: u8,
    /// Puts of movers.
    pub moves: u8,
    /// Whether the server may be put back.
    pub put_back: bool,
    /// What is wrong with the protocol.
    pub planted: Option<Planted>,
}

impl CellModel {
    fn lacks(&self, rule: Planted) -> bool {
        self.planted == Some(rule)
    }

    /// What is at a place.
    fn at(state: &State, place: Where) -> Option<&Root> {
        match place {
            Where::Object => Some(&state.object),
            Where::Cell(cell) => state.cells[usize::from(cell)].as_ref(),
        }
    }

    /// Where the log is, and what it has, as one who opens the store finds it; `None` while it is being moved.
    fn find(state: &State) -> Option<(Where, &Root)> {
        let place = match state.object.said {
            Said::Here => Where::Object,
            Said::InCell(cell, true) => Where::Cell(cell),
            _ => return None,
        };
        Self::at(state, place).filter(|root| root.said == Said::Here).map(|root| (place, root))
    }

    fn stamp(state: &mut State) -> Stamp {
        state.next_stamp += 1;
        state.next_stamp
    }

    fn send(state: &mut State, to: Where, known: Option<Stamp>, said: Said, entries: Vec<EntryId>) {
        let stamp = Self::stamp(state);
        state.moves += 1;
        state.sent.insert(Put { to, known, root: Root { stamp, said, entries }, of: None });
    }

    /// The step that goes on with a move, if one was begun.
    fn go_on(state: &mut State) -> bool {
        let object = state.object.clone();
        let Said::InCell(cell, begun) = object.said else { return false };
        match (begun, Self::at(state, Where::Cell(cell)).cloned()) {
            (false, None) => Self::send(state, Where::Cell(cell), None, Said::Here, object.entries),
            (false, Some(_)) => {
                Self::send(state, Where::Object, Some(object.stamp), Said::InCell(cell, true), object.entries);
            }
            (true, Some(last)) if last.said == Said::Returned => {
                Self::send(state, Where::Object, Some(object.stamp), Said::Here, last.entries);
            }
            _ => return false,
        }
        true
    }
}

/// Whether one list of entries begins with another.
fn continues(known: &[EntryId], found: &[EntryId]) -> bool {
    found.starts_with(known)
}

impl Model for CellModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            object: Root { stamp: 0, said: Said::Here, entries: Vec::new() },
            cells: [None, None],
            earlier: BTreeSet::new(),
            put_back: false,
            writers: vec![Writer::Closed; self.writers],
            sent: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            next_stamp: 0,
            next_entry: 0,
            moves: 0,
            entered: 0,
            unnoticed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, writer) in state.writers.iter().enumerate() {
            match writer {
                Writer::Closed if Self::find(state).is_some() => actions.push(Action::Open(who)),
                Writer::Open(..) if state.next_entry < self.entries => actions.push(Action::Send(who)),
                Writer::Waiting(..) => actions.push(Action::Look(who)),
                Writer::Answered(..) => actions.extend([Action::Take(who), Action::Look(who)]),
                _ => {}
            }
        }
        actions.extend(state.sent.iter().cloned().map(Action::Deliver));
        if state.moves < self.moves {
            actions.extend([Action::MoveIn, Action::MoveBack]);
        }
        let noted = &state.object.entries;
        if let Some((Where::Cell(_), root)) = Self::find(state)
            && root.entries.len() > noted.len()
            && continues(noted, &root.entries)
        {
            actions.push(Action::Note);
        }
        if self.put_back && !state.put_back {
            actions.extend(state.earlier.iter().cloned().map(Action::PutBack));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Open(who) => {
                let (place, root) = Self::find(last)?;
                let lacks = place != Where::Object && !continues(&last.object.entries, &root.entries);
                state.writers[who] = match lacks && !self.lacks(Planted::TrustCell) {
                    true => Writer::Reports,
                    false => Writer::Open(place, root.clone()),
                };
                state.unnoticed |= lacks && self.lacks(Planted::TrustCell);
            }
            Action::Send(who) => {
                let Writer::Open(place, root) = last.writers[who].clone() else { return None };
                state.next_entry += 1;
                let entry = state.next_entry;
                let mut entries = root.entries.clone();
                entries.push(entry);
                let stamp = Self::stamp(&mut state);
                let known = Some(root.stamp);
                let next = Root { stamp, said: Said::Here, entries };
                let put = Put { to: place, known, root: next, of: Some((who, entry)) };
                state.sent.insert(put.clone());
                state.writers[who] = Writer::Waiting(place, root, put);
            }
            Action::Deliver(put) => {
                state.sent.remove(&put);
                let there = Self::at(last, put.to).map(|root| root.stamp);
                let anyway = match put.of {
                    Some(_) => self.lacks(Planted::Unconditional),
                    None => put.known.is_none() && self.lacks(Planted::StartAnyway),
                };
                let done = there == put.known || anyway;
                if done {
                    match put.to {
                        Where::Object => {
                            if let (Said::InCell(cell, true), Said::Here) = (last.object.said, put.root.said)
                                && self.lacks(Planted::EmptyCell)
                            {
                                state.cells[usize::from(cell)] = None;
                            }
                            state.object = put.root.clone();
                        }
                        Where::Cell(cell) => {
                            if self.put_back {
                                state.earlier.insert(last.cells.clone());
                            }
                            state.cells[usize::from(cell)] = Some(put.root.clone());
                        }
                    }
                }
                if let Some((who, _)) = put.of
                    && let Writer::Waiting(place, root, waiting) = last.writers[who].clone()
                    && waiting == put
                {
                    state.writers[who] = Writer::Answered(place, root, put, done);
                }
            }
            Action::Take(who) => {
                let Writer::Answered(place, _, put, done) = last.writers[who].clone() else { return None };
                match (done, put.of) {
                    (true, Some((_, entry))) => {
                        state.acknowledged.insert(entry);
                        state.writers[who] = Writer::Open(place, put.root);
                    }
                    // It was not done: it looks, as one that has got no answer does.
                    _ => return self.next_state(last, Action::Look(who)),
                }
            }
            Action::Look(who) => {
                let (place, root, put) = match last.writers[who].clone() {
                    Writer::Waiting(place, root, put) | Writer::Answered(place, root, put, _) => (place, root, put),
                    _ => return None,
                };
                let entry = put.of?.1;
                let there = Self::at(last, place);
                let unchanged = there.is_some_and(|there| there.stamp == root.stamp);
                if unchanged && self.lacks(Planted::RetryAsNew) {
                    // It takes another stamp, and the condition of what comes.
                    let stamp = Self::stamp(&mut state);
                    let mut entries = put.root.entries.clone();
                    entries.push(entry);
                    let next = Root { stamp, said: Said::Here, entries };
                    let again = Put { to: place, known: Some(put.root.stamp), root: next, of: put.of };
                    if state.next_stamp > 12 {
                        return None;
                    }
                    state.sent.insert(again.clone());
                    state.writers[who] = Writer::Waiting(place, root, again);
                } else if unchanged {
                    state.sent.insert(put.clone());
                    state.writers[who] = Writer::Waiting(place, root, put);
                } else {
                    state.writers[who] = match there {
                        // What it knows must be there still.
                        Some(there) if !continues(&root.entries, &there.entries) => Writer::Reports,
                        Some(there) => {
                            if there.entries.contains(&entry) {
                                state.acknowledged.insert(entry);
                            }
                            match there.said {
                                Said::Here => Writer::Open(place, there.clone()),
                                _ => Writer::Closed,
                            }
                        }
                        None => Writer::Closed,
                    };
                }
            }
            Action::MoveIn => {
                if !Self::go_on(&mut state) && last.object.said == Said::Here && last.entered < 2 {
                    let object = last.object.clone();
                    let said = Said::InCell(last.entered, false);
                    state.entered += 1;
                    Self::send(&mut state, Where::Object, Some(object.stamp), said, object.entries);
                }
            }
            Action::MoveBack => {
                let there = match Self::find(last) {
                    Some((place @ Where::Cell(_), root)) => Some((place, root.clone())),
                    _ => None,
                };
                match there {
                    Some((_, root)) if self.lacks(Planted::ReturnUnfenced) => {
                        Self::send(&mut state, Where::Object, Some(last.object.stamp), Said::Here, root.entries);
                    }
                    Some((place, root)) if continues(&last.object.entries, &root.entries) => {
                        Self::send(&mut state, place, Some(root.stamp), Said::Returned, root.entries);
                    }
                    _ => drop(Self::go_on(&mut state)),
                }
            }
            Action::Note => {
                let (_, root) = Self::find(last)?;
                let (said, entries) = (last.object.said, root.entries.clone());
                let stamp = Self::stamp(&mut state);
                state.object = Root { stamp, said, entries };
            }
            Action::PutBack(earlier) => {
                state.cells = earlier;
                state.put_back = true;
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn log(state: &State) -> &Root {
            match state.object.said {
                Said::InCell(cell, true) => CellModel::at(state, Where::Cell(cell)).unwrap_or(&state.object),
                _ => &state.object,
            }
        }
        vec![
            Property::<Self>::always("what was acknowledged is in the log", |_, state| {
                // What a server lost when it was put back is not there; each writer that looks says so.
                state.put_back || state.acknowledged.iter().all(|entry| log(state).entries.contains(entry))
            }),
            Property::<Self>::always("no entry is in the log twice", |_, state| {
                let entries = &log(state).entries;
                entries.iter().collect::<BTreeSet<_>>().len() == entries.len()
            }),
            Property::<Self>::always("a server that was put back is noticed", |_, state| !state.unnoticed),
            Property::<Self>::sometimes("the log is moved, written, moved back and written", |_, state| {
                state.moves >= 5 && state.object.said == Said::Here && state.acknowledged.len() >= 2
            }),
            Property::<Self>::sometimes("two entries are in the cell", |_, state| {
                matches!(CellModel::find(state), Some((Where::Cell(_), root)) if root.entries.len() >= 2)
                    && state.acknowledged.len() >= 2
            }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use stateright::{Checker, HasDiscoveries};

    use super::*;

    fn model(planted: Option<Planted>) -> CellModel {
        let put_back = planted == Some(Planted::TrustCell);
        let moves = if matches!(planted, None | Some(Planted::EmptyCell)) { 6 } else { 5 };
        CellModel { writers: 2, entries: 2, moves, put_back, planted }
    }

    fn failing(model: CellModel) -> Vec<&'static str> {
        let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        println!("{} states", checker.unique_state_count());
        let always = ["what was acknowledged is in the log", "no entry is in the log twice", "a server that was put back is noticed"];
        let found = checker.discoveries();
        always.into_iter().filter(|name| found.contains_key(name)).collect()
    }

    #[test]
    fn nothing_that_was_acknowledged_is_lost() {
        let checker = model(None).checker().threads(2).spawn_bfs().join();
        println!("{} states", checker.unique_state_count());
        checker.assert_properties();
    }

    #[test]
    fn a_server_that_was_put_back_loses_nothing_in_silence() {
        let model = CellModel { put_back: true, moves: 3, ..model(None) };
        assert!(failing(model).is_empty());
    }

    #[test]
    fn each_rule_is_needed() {
        use Planted::*;
        for rule in [ReturnUnfenced, StartAnyway, RetryAsNew, Unconditional, EmptyCell, TrustCell] {
            let failed = failing(model(Some(rule)));
            println!("without {rule:?}: {failed:?}");
            assert!(!failed.is_empty(), "nothing fails without {rule:?}");
        }
    }
}
