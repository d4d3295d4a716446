//! Writers of one log that hand in their entries, so that others add them with their own.
//!
//! The log is only ever made longer, on the condition that it is as long as was read. An offer may arrive late, again and again, and may
//! be gone at any time. A writer that waits looks at the log: if its entry is there, it was added; if an entry that was added since
//! forbids it, it is refused, for good; otherwise it waits on, or adds it itself, with the offers that it has read at some time before. All
//! entries write to one table; some depend on what they have read in it.
//!
//! Each rule that the protocol needs can be left out ([`OfferRule`]); then one of the properties fails.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

type EntryId = u8;

/// An entry that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offer {
    id: EntryId,
    /// How long the log was that it was made on.
    base: usize,
    /// Whether it depends on what it has read.
    reads: bool,
}

/// Entries to be added if the log is still this long.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addition {
    known: usize,
    entries: Vec<EntryId>,
}

/// What a writer is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// How much of the log it knows.
    seen: usize,
    /// What it waits for.
    own: Option<Offer>,
    /// The offers as it has read them.
    read: Option<BTreeSet<Offer>>,
}

/// All that there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OfferState {
    log: Vec<EntryId>,
    /// What was made, by its id.
    made: BTreeMap<EntryId, Offer>,
    /// Offers that may arrive.
    sent: BTreeSet<Offer>,
    /// Those that have.
    there: BTreeSet<Offer>,
    additions: BTreeSet<Addition>,
    writers: Vec<Waiter>,
    acknowledged: BTreeSet<EntryId>,
    refused: BTreeSet<EntryId>,
    /// Whether a writer has added an entry of another one.
    combined: bool,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OfferAction {
    /// A writer makes an entry, which depends on what it has read if the flag says so, and hands it in.
    Make(usize, bool),
    /// An offer arrives.
    Arrive(Offer),
    /// An offer is gone.
    Forget(Offer),
    /// A writer looks at the log.
    Look(usize),
    /// A writer reads the offers.
    Read(usize),
    /// A writer sends its entry with those of others.
    Add(usize),
    /// What was sent arrives.
    Deliver(Addition),
    /// A writer says that it does not know.
    GiveUp(usize),
}

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferRule {
    /// An offer is added only if no entry since what it was made on forbids it.
    Allowed,
    /// An offer is added only if it is not among those entries.
    Once,
    /// What was handed in is refused only if it can never be added.
    RefuseForbidden,
    /// What is added is added on the condition of what was read.
    Condition,
}

/// How much may happen.
#[derive(Clone, Debug)]
pub struct OfferModel {
    /// Writers.
    pub writers: usize,
    /// Entries that they make.
    pub entries: u8,
    /// What is wrong with the protocol.
    pub lacks: Option<OfferRule>,
}

impl OfferModel {
    fn holds(&self, rule: OfferRule) -> bool {
        self.lacks != Some(rule)
    }

    /// Whether an entry can be added behind `log`, what it was made on, and what is added before it.
    fn forbidden(offer: &Offer, log: &[EntryId]) -> bool {
        offer.reads && log.len() > offer.base
    }
}

impl Model for OfferModel {
    type State = OfferState;
    type Action = OfferAction;

    fn init_states(&self) -> Vec<OfferState> {
        vec![OfferState {
            log: Vec::new(),
            made: BTreeMap::new(),
            sent: BTreeSet::new(),
            there: BTreeSet::new(),
            additions: BTreeSet::new(),
            writers: vec![Waiter { seen: 0, own: None, read: None }; self.writers],
            acknowledged: BTreeSet::new(),
            refused: BTreeSet::new(),
            combined: false,
        }]
    }

    fn actions(&self, state: &OfferState, actions: &mut Vec<OfferAction>) {
        for (who, writer) in state.writers.iter().enumerate() {
            if writer.seen < state.log.len() {
                actions.push(OfferAction::Look(who));
            }
            match &writer.own {
                None if state.made.len() < usize::from(self.entries) => {
                    actions.extend([OfferAction::Make(who, false), OfferAction::Make(who, true)]);
                }
                None => {}
                Some(_) => {
                    actions.extend([OfferAction::Read(who), OfferAction::GiveUp(who)]);
                    if writer.read.is_some() {
                        actions.push(OfferAction::Add(who));
                    }
                }
            }
        }
        actions.extend(state.sent.difference(&state.there).copied().map(OfferAction::Arrive));
        actions.extend(state.there.iter().copied().map(OfferAction::Forget));
        actions.extend(state.additions.iter().cloned().map(OfferAction::Deliver));
    }

    fn next_state(&self, last: &OfferState, action: OfferAction) -> Option<OfferState> {
        let mut state = last.clone();
        match action {
            OfferAction::Make(who, reads) => {
                let id = state.made.len() as EntryId + 1;
                let offer = Offer { id, base: last.writers[who].seen, reads };
                state.made.insert(id, offer);
                state.sent.insert(offer);
                state.writers[who].own = Some(offer);
            }
            OfferAction::Arrive(offer) => drop(state.there.insert(offer)),
            OfferAction::Forget(offer) => drop(state.there.remove(&offer)),
            OfferAction::Look(who) => {
                let writer = &mut state.writers[who];
                writer.seen = last.log.len();
                if let Some(own) = writer.own {
                    if last.log[own.base..].contains(&own.id) {
                        state.acknowledged.insert(own.id);
                        (writer.own, writer.read) = (None, None);
                    } else if Self::forbidden(&own, &last.log) || !self.holds(OfferRule::RefuseForbidden) {
                        state.refused.insert(own.id);
                        (writer.own, writer.read) = (None, None);
                    }
                }
            }
            OfferAction::Read(who) => state.writers[who].read = Some(last.there.clone()),
            OfferAction::Add(who) => {
                let Waiter { seen, own: Some(own), read: Some(read) } = last.writers[who].clone() else { return None };
                let mut log = last.log[..seen].to_vec();
                log.push(own.id);
                for offer in read.iter().filter(|offer| offer.id != own.id && offer.base <= seen) {
                    let twice = log[offer.base..].contains(&offer.id);
                    if (!Self::forbidden(offer, &log) || !self.holds(OfferRule::Allowed))
                        && !(twice && self.holds(OfferRule::Once))
                    {
                        log.push(offer.id);
                    }
                }
                state.additions.insert(Addition { known: seen, entries: log.split_off(seen) });
                state.writers[who].read = None;
            }
            OfferAction::Deliver(addition) => {
                state.additions.remove(&addition);
                if last.log.len() == addition.known || !self.holds(OfferRule::Condition) {
                    state.combined |= addition.entries.len() > 1;
                    state.log.extend(addition.entries);
                }
            }
            OfferAction::GiveUp(who) => {
                let writer = &mut state.writers[who];
                (writer.own, writer.read) = (None, None);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("what was acknowledged is in the log, once", |_, state| {
                let times = |id: &EntryId| state.log.iter().filter(|there| *there == id).count();
                state.acknowledged.iter().all(|id| times(id) == 1) && state.made.keys().all(|id| times(id) <= 1)
            }),
            Property::<Self>::always("what was refused is not in the log", |_, state| {
                state.refused.iter().all(|id| !state.log.contains(id))
            }),
            Property::<Self>::always("what an entry depends on was so in its place", |_, state| {
                state.log.iter().enumerate().all(|(at, id)| !state.made[id].reads || state.made[id].base == at)
            }),
            Property::<Self>::sometimes("a writer adds the entry of another", |_, state| {
                state.combined && state.acknowledged.len() >= 2
            }),
            Property::<Self>::sometimes("an entry is refused", |_, state| !state.refused.is_empty()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use stateright::{Checker, HasDiscoveries};

    use super::*;

    fn model(lacks: Option<OfferRule>) -> OfferModel {
        OfferModel { writers: 2, entries: 3, lacks }
    }

    #[test]
    fn what_is_handed_in_is_added_once_or_refused_for_good() {
        let checker = OfferModel { entries: 2, ..model(None) }.checker().threads(2).spawn_bfs().join();
        println!("{} states", checker.unique_state_count());
        checker.assert_properties();
    }

    #[test]
    fn each_rule_of_offers_is_needed() {
        use OfferRule::*;
        for rule in [Allowed, Once, RefuseForbidden, Condition] {
            let checker = model(Some(rule)).checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
            let found = checker.discoveries();
            let failed: Vec<&str> = found.keys().copied().filter(|name| name.starts_with("what")).collect();
            println!("without {rule:?}: {failed:?}");
            assert!(!failed.is_empty(), "nothing fails without {rule:?}");
        }
    }
}
