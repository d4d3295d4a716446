//! What a program holds while it is present.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::base::{Error, Result, Timestamp};
use crate::catalog::{Effect, PresenceChange, PresenceRecord, Read, State};
use crate::store::open::uri::is_in_bucket;
use crate::store::{Store, Transaction, Tree};

/// The longest life of a presence, in microseconds.
const LIFE_MAX: u64 = 30 * 86_400_000_000;
/// The shortest, where a beat is a commit in a folder, and where it is an object in a bucket.
const LIFE_MIN: u64 = 1_000_000;
const LIFE_MIN_BUCKET: u64 = 180_000_000;
/// The default in a folder.
const LIFE: u64 = 30_000_000;

/// How a presence is begun.
#[derive(Clone, Debug, Default)]
pub struct PresenceOptions {
    /// What the program calls itself, for people who look at [`Tree::presences`].
    pub name: String,
    /// How long the presence lasts once the program has fallen silent, in microseconds: at least 1 s in a folder and 3 minutes in a bucket,
    /// where each beat is an object, and at most 30 days. Default: 30 s, and 3 minutes in a bucket.
    pub life_micros: Option<u64>,
}

/// A presence that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceInfo {
    /// Its number.
    pub number: u64,
    /// What its owner calls itself.
    pub name: String,
    /// How long it lasts without a beat, in microseconds.
    pub life_micros: u64,
    /// When it began.
    pub began: Timestamp,
}

/// Says that this program is there, until [`Presence::end`], or until the store is closed, or the program has been silent for the presence's
/// life. Nodes put with it ([`crate::PutOptions::presence`]) are deleted by the commit that ends it.
///
/// A thread of the store renews it by a commit, each third of its life. Once this is dropped it is not renewed any more.
#[derive(Debug)]
pub struct Presence {
    store: Store,
    number: u64,
    life_micros: u64,
}

impl Presence {
    /// Its number. Later presences have higher numbers, and none is given out again: what is outside of the store can refuse by it those
    /// who come late.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How long it lasts without a beat, in microseconds.
    pub fn life_micros(&self) -> u64 {
        self.life_micros
    }

    /// Whether it has not ended, as far as this process knows: what only counts while it lasts is done in a transaction, see
    /// [`Transaction::require`].
    ///
    /// # Errors
    /// `Closed`.
    pub fn is_open(&self) -> Result<bool> {
        Ok(self.store.state()?.presences.is_open(self.number))
    }

    /// Renews it now, by one commit. A thread of the store does so, too, each third of its life.
    ///
    /// # Errors
    /// `ConditionFailed` if it has ended.
    pub fn beat(&self) -> Result<()> {
        let (number, now) = (self.number, self.store.env().clock.steady());
        self.store.commit_effects(move |state| {
            state.presences.check(number)?;
            Ok(vec![Effect::Presences(PresenceChange::Beat(vec![number]))])
        })?;
        self.store.attendance().renewed(&[number], now);
        Ok(())
    }

    /// Ends it, and deletes the nodes that end with it, by one commit. Ending it twice does nothing.
    ///
    /// # Errors
    /// `Unavailable` if the log cannot be written.
    pub fn end(&self) -> Result<()> {
        self.store.end_presences(vec![self.number])
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.store.attendance().remove(self.number);
    }
}

impl Tree {
    /// Says that this program is there, by one commit.
    ///
    /// ```
    /// use drumlin::{PresenceOptions, PutOptions, Tables};
    /// let store = drumlin::Store::memory()?;
    /// let presence = store.tree().presence(&PresenceOptions { name: "worker 7".into(), ..PresenceOptions::default() })?;
    /// let announced = PutOptions { presence: Some(presence.number()), ..PutOptions::default() };
    /// store.tree().put_with("workers/7", "10.0.0.7:4000", announced)?;
    /// presence.end()?;
    /// assert!(!store.tree().exists("workers/7")?);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if its life is too short or too long.
    pub fn presence(&self, options: &PresenceOptions) -> Result<Presence> {
        let store = self.in_store("beginning a presence")?;
        let bucket = is_in_bucket(store.uri());
        let least = if bucket { LIFE_MIN_BUCKET } else { LIFE_MIN };
        let life_micros = options.life_micros.unwrap_or(if bucket { LIFE_MIN_BUCKET } else { LIFE });
        if !(least..=LIFE_MAX).contains(&life_micros) {
            return Err(Error::invalid(format!(
                "a presence cannot last for {} s without a beat; expected {} s to 30 days{}",
                life_micros as f64 / 1e6,
                least / 1_000_000,
                if bucket { ", since each beat is an object in the bucket" } else { "" }
            )));
        }
        let (name, now) = (options.name.clone(), store.env().clock.steady());
        let every = Duration::from_micros(life_micros / 3);
        // The number that it has if the commit succeeds. It is this process's before anybody sees it.
        let given = Arc::new(Mutex::new(None));
        let (last, attendance) = (given.clone(), store.attendance().clone());
        let begin = move |state: &State| {
            let number = state.presences.last + 1;
            last.lock().replace(number).into_iter().for_each(|other| attendance.remove(other));
            attendance.add(number, every, now);
            let change = PresenceChange::Begin { number, name: name.clone(), life_micros };
            Ok((vec![Effect::Presences(change)], number))
        };
        // Its number must never be given out again, whatever is lost.
        let begun = store.commit_built(store.current()?, begin).and_then(|(_, number)| store.sync().map(|()| number));
        match begun {
            Ok(number) => Ok(Presence { store: store.clone(), number, life_micros }),
            Err(e) => {
                given.lock().take().into_iter().for_each(|number| store.attendance().remove(number));
                Err(e)
            }
        }
    }

    /// The presences that have not ended, in the order in which they began.
    ///
    /// # Errors
    /// `Closed`.
    pub fn presences(&self) -> Result<Vec<PresenceInfo>> {
        let state = self.in_store("listing presences")?.state()?;
        let info = |(number, record): (&u64, &PresenceRecord)| PresenceInfo {
            number: *number,
            name: record.name.clone(),
            life_micros: record.life_micros,
            began: record.began,
        };
        Ok(state.presences.open.iter().map(info).collect())
    }
}

impl Transaction {
    /// Has the transaction commit only while a presence has not ended: whatever its owner thinks, what it does as the leader is done while
    /// it is.
    ///
    /// # Errors
    /// `ConditionFailed` if it has ended; the commit is a `Conflict` if it ends before that.
    pub fn require(&self, presence: &Presence) -> Result<()> {
        let number = presence.number();
        self.look(|| Read::Presence(number), |state| state.presences.check(number))
    }
}
