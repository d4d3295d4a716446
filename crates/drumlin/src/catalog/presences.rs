//! Presences: each says that a program is there, for as long as it goes on saying so. Nodes may live on one; the commit that ends it deletes
//! them.
//!
//! Who owns a presence says so by a beat, one commit, in each third of its life. Every process that writes the store watches the presences
//! of others: one that has had no beat for its life, counted by the watcher's own steady clock from the beat that it saw, has ended. So no
//! clocks are compared, and a presence outlives at most the watcher's start by its life. The number of a presence is never given out again,
//! and later ones have higher numbers: what is outside of the store can refuse those who come late by it.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Timestamp};

/// A presence that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceRecord {
    /// What its owner calls itself.
    pub name: String,
    /// How long it lives without a beat, in microseconds.
    pub life_micros: u64,
    /// When it began.
    pub began: Timestamp,
    /// How many beats it has had.
    pub beats: u64,
}

/// What happens to presences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PresenceChange {
    /// One begins.
    Begin {
        /// Its number: higher than all before.
        number: u64,
        /// What its owner calls itself.
        name: String,
        /// How long it lives without a beat, in microseconds.
        life_micros: u64,
    },
    /// The owners of those with these numbers are there; those that have ended are skipped.
    Beat(Vec<u64>),
    /// Those with these numbers end; those that have ended are skipped.
    End(Vec<u64>),
}

/// All presences that have not ended, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presences {
    /// The last number given out.
    pub last: u64,
    /// Those that have not ended.
    #[serde(with = "crate::base::persistent::ordered_map")]
    pub open: OrdMap<u64, PresenceRecord>,
}

impl Presences {
    /// Whether none was ever begun.
    pub fn is_empty(&self) -> bool {
        self.last == 0
    }

    /// Whether it has not ended.
    pub fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Whether it began, and has ended.
    pub fn has_ended(&self, number: u64) -> bool {
        number <= self.last && !self.is_open(number)
    }

    /// `ConditionFailed` if it has ended.
    pub fn check(&self, number: u64) -> Result<()> {
        match self.is_open(number) {
            true => Ok(()),
            false => Err(Error::condition_failed(format!(
                "presence {number} has ended: it was ended, or no beat came in time; begin another"
            ))),
        }
    }

    /// Applies a change, of a commit at `time`.
    pub(super) fn apply(&mut self, change: &PresenceChange, time: Timestamp) -> Result<()> {
        match change {
            PresenceChange::Begin { number, .. } if *number <= self.last => {
                return Err(Error::conflict(format!("presence {number} has begun already")));
            }
            PresenceChange::Begin { number, name, life_micros } => {
                self.last = *number;
                let record = PresenceRecord { name: name.clone(), life_micros: *life_micros, began: time, beats: 0 };
                self.open.insert(*number, record);
            }
            PresenceChange::Beat(numbers) => {
                for number in numbers {
                    if let Some(presence) = self.open.get_mut(number) {
                        presence.beats = presence.beats.saturating_add(1);
                    }
                }
            }
            PresenceChange::End(numbers) => numbers.iter().for_each(|number| drop(self.open.remove(number))),
        }
        Ok(())
    }
}
