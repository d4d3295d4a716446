//! Adds entries to a shared log: in turns, or, where others wait, too, by handing them in.
//!
//! A process that waits hands in its entry as an offer (*offer.rs*), and looks at the log until the entry is there, or has become impossible.
//! The process whose turn it is adds its own entry and, behind it, all offers that the log still allows: those that only write rows, if
//! all entries since what they were made on do nothing else, and none of these writes to a table in which the offered one has looked up
//! rows. So it would have been made in the same way behind them.
//!
//! Nothing depends on offers being kept, or deleted. Whether an entry may be added is seen from the entries after the one that it was made
//! on, which do not change any more: if one of them forbids it, it is never added, and its writer makes another one. An entry has one id,
//! and is not added if that is among those entries. So it is added at most once, however late an offer arrives.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::offer::{Offer, forbids};
use super::{Addition, Beyond, ObjectLog, RootState, chunks, given_up};
use crate::base::planted::{Bug, planted};
use crate::base::{EntryId, Error, ErrorKind, Result, Seq, Timestamp, waiting};
use crate::log::root::EntryStatus;
use crate::log::{Appended, Entry, OfferTerms};

/// A larger entry is added by its writer.
const OFFER_BYTES_MAX: usize = 4 << 10;
/// How much of others' offers is added at a time, in bytes, and how many.
const TAKEN_BYTES_MAX: usize = 64 << 10;
const TAKEN_MAX: usize = 64;

/// Where the place of the root gives no turns: when a process that has handed in an offer takes one itself.
struct Pace {
    /// Whether it has handed it in.
    again: bool,
    /// How often it must find the root as it was.
    left: u32,
}

impl Pace {
    /// At first another process may have a turn already, in which it will take the offer; after one has ended, somebody is to be next.
    fn new(random: u64, first: bool) -> Self {
        let left = (random % 3) as u32 + if first { 4 } else { 1 };
        Self { again: false, left }
    }
}

impl ObjectLog {
    /// Adds an entry after the last one known, or among others if it can be.
    pub fn add(&self, entry: &Entry, terms: Option<&OfferTerms<'_>>) -> Result<Appended> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        let added = self.add_to(&mut tail, entry, terms);
        match &added {
            // It stays in the race until it has won or given up.
            Ok(Appended::Behind(_)) => {}
            Ok(Appended::Done) => self.end_turn(&mut tail, Some(entry.seq)),
            Ok(Appended::Among(seq, _)) => self.end_turn(&mut tail, Some(*seq)),
            Err(_) => self.end_turn(&mut tail, None),
        }
        added
    }

    fn add_to(&self, tail: &mut RootState, entry: &Entry, terms: Option<&OfferTerms<'_>>) -> Result<Appended> {
        if let Some(news) = self.news(tail)? {
            return Ok(Appended::Behind(news));
        }
        let (now, random) = (self.env.clock.now(), self.env.entropy.next()?);
        let pause = tail.turns.begin(tail.root.seq, now, random);
        if !pause.is_zero() && !planted(Bug::NoTurns) {
            if let Some(terms) = terms
                && self.place.takes_offers()
                && (self.place.is_cell() || tail.turns.is_crowded())
                && entry.payload.len() <= OFFER_BYTES_MAX
                && tail.root.origin.store != 0
            {
                return self.hand_in(tail, entry, terms);
            }
            let in_turn = self.place.has_turns();
            if !in_turn {
                waiting::pause(&*self.env.clock, pause)?;
            }
            if self.look_as(tail, in_turn)?
                && let Some(news) = self.news(tail)?
            {
                tail.turns.met_others();
                return Ok(Appended::Behind(news));
            }
        }
        tail.root.role.check()?;
        assert_eq!(entry.seq, tail.known().next(), "entries are numbered without gaps");
        if self.put_entries(tail, std::slice::from_ref(entry), &[])? {
            tail.knows(entry.seq);
            return Ok(Appended::Done);
        }
        // If nothing was added, the root names another catalog snapshot.
        self.news_if_any(tail).map(Appended::Behind)
    }

    /// Adds entries to the root as last seen, the first of which is this process's own. `false` if others came first.
    fn put_entries(&self, tail: &mut RootState, entries: &[Entry], offers: &[EntryId]) -> Result<bool> {
        let (mut next, before) = ((*tail.root).clone(), tail.root.inline_bytes());
        entries.iter().for_each(|entry| next.push(entry));
        let chunk = chunks::spill(&self.place, &*self.storage, &self.env, &mut next)?;
        let added = Addition { entries, spilled: chunk.is_some(), offers };
        let replaced = self.replace(tail, next, Some(&added));
        // A root that was refused for good names nothing. Whether one was made that is in doubt, an audit sees later.
        if let Some(chunk) = chunk
            && replaced.as_ref().map_or_else(|e| e.kind() != ErrorKind::InDoubt, |done| !done)
        {
            self.storage.delete_many(&[chunk]);
        }
        let replaced = replaced?;
        if replaced && self.place.is_due(before, &tail.root) {
            self.seen.folds.store(true, Ordering::SeqCst);
        }
        Ok(replaced)
    }

    /// Hands in an entry, and adds it with those of others if it is this process's turn.
    fn hand_in(&self, tail: &mut RootState, entry: &Entry, terms: &OfferTerms<'_>) -> Result<Appended> {
        let offer = Offer { base: tail.known(), reads: terms.reads.to_vec(), entry: entry.clone() };
        let bytes = Bytes::from(offer.encode()?);
        self.wait_among(tail, &offer, &bytes, terms).map_err(|e| {
            self.place.withdraw(&[entry.id]);
            // Where nothing is added any more, it is known what was.
            let ended = tail.root.role.check().is_err();
            let root = &tail.root;
            match ended && root.number_of(entry.id).is_none() && root.tells_after(offer.base) {
                true => e,
                false if e.kind() == ErrorKind::InDoubt => e,
                false => given_up(true, Some((entry.seq, entry.id)), &e),
            }
        })
    }

    fn wait_among(
        &self,
        tail: &mut RootState,
        offer: &Offer,
        bytes: &Bytes,
        terms: &OfferTerms<'_>,
    ) -> Result<Appended> {
        let own = &offer.entry;
        // What of the log is known to allow the entry, and the time of its last entry.
        let (mut allowed, mut time) = (offer.base, own.time);
        let (mut turn, mut pace) = (None, Pace::new(self.env.entropy.next()?, true));
        loop {
            let before = allowed;
            if let Some(done) = self.follow_offer(tail, offer, terms, &mut allowed, &mut time)? {
                // Nothing is put in a turn that has just begun.
                if turn.is_some() || matches!(done, Appended::Behind(_)) {
                    self.place.withdraw(&[own.id]);
                }
                return Ok(done);
            }
            tail.root.role.check()?;
            if allowed > before {
                pace = Pace { again: pace.again, ..Pace::new(self.env.entropy.next()?, false) };
            }
            let Some(offers) = turn.take() else {
                turn = self.look_offering(tail, (own.id, bytes), &mut pace)?;
                continue;
            };
            let time = if allowed == offer.base { own.time } else { Timestamp(time.0.saturating_add(1)) };
            let (entries, offers) = self.taken(tail, Entry { time, ..own.clone() }, &offers, terms);
            if entries.len() > 1 || allowed > offer.base {
                tail.turns.met_others();
            }
            if self.put_entries(tail, &entries, &offers)? && allowed == offer.base {
                tail.knows(own.seq);
                return Ok(Appended::Done);
            }
        }
    }

    /// Looks at the root with an offer handed in. The offers there are if it is this process's turn.
    fn look_offering(
        &self,
        tail: &mut RootState,
        offer: (EntryId, &Bytes),
        pace: &mut Pace,
    ) -> Result<Option<Vec<Bytes>>> {
        loop {
            let mut turn = None;
            let looked = self.look_with(tail, |tail, again| {
                let known = (&*tail.root, &tail.tag);
                if again {
                    return self.place.read(Some(known));
                }
                let found = self.place.read_offering(known, offer, std::mem::replace(&mut pace.again, true))?;
                turn = found.leads.then_some(found.offers);
                Ok(found.root)
            });
            match looked {
                Err(e) if e.kind() == ErrorKind::Unavailable && self.wait(tail, e.is_throttled())? => {}
                Err(e) => return Err(e),
                Ok(false) if !self.place.is_cell() => {
                    pace.left = pace.left.saturating_sub(1);
                    // Without them it adds its own.
                    let offers = || self.place.offers().unwrap_or_default();
                    return Ok((pace.left == 0).then(offers));
                }
                Ok(_) => return Ok(turn),
            }
        }
    }

    /// Takes in the entries that were added since `allowed`: has an offered entry been added, or become impossible?
    fn follow_offer(
        &self,
        tail: &mut RootState,
        offer: &Offer,
        terms: &OfferTerms<'_>,
        allowed: &mut Seq,
        time: &mut Timestamp,
    ) -> Result<Option<Appended>> {
        let id = offer.entry.id;
        let Some(Beyond { root, reaches, entries }) = self.beyond(tail, *allowed)? else { return Ok(None) };
        tail.turns.met_others();
        if !reaches || entries.iter().any(|entry| entry.id == id) {
            return self.among(tail, id).map(Some);
        }
        if entries.iter().any(|entry| forbids((terms.written)(entry).as_deref(), &offer.reads)) {
            return self.news_if_any(tail).map(Appended::Behind).map(Some);
        }
        *time = entries.iter().map(|entry| entry.time).fold(*time, Timestamp::max);
        *allowed = root.seq;
        Ok(None)
    }

    /// An offered entry is in the log, if that shows it.
    fn among(&self, tail: &mut RootState, id: EntryId) -> Result<Appended> {
        let many = || Error::in_doubt("too many other commits followed for the log to show it");
        let seq = tail.root.number_of(id).ok_or_else(many)?;
        Ok(Appended::Among(seq, self.news_if_any(tail)?))
    }

    /// What is added to the root as last seen: the own entry and those of `offers` that are allowed behind it; and which offers are done
    /// with then.
    fn taken(
        &self,
        tail: &RootState,
        own: Entry,
        offers: &[Bytes],
        terms: &OfferTerms<'_>,
    ) -> (Vec<Entry>, Vec<EntryId>) {
        let root = &tail.root;
        let (mut seq, mut prev, mut time) = (root.seq, root.last_id(), own.time);
        let mut add = |entry: Entry| {
            (seq, time) = (seq.next(), time.max(entry.time));
            let added = Entry { seq, prev, time, ..entry };
            // No two commits have the same time.
            time = Timestamp(time.0.saturating_add(1));
            prev = Some(added.id);
            added
        };
        let offers: Vec<Offer> = offers.iter().filter_map(Offer::decode).collect();
        let mut done = vec![own.id];
        let mut entries = vec![add(own)];
        // What lies between an offer and its place, each decoded once.
        let shown = root.entries.first().map_or(root.seq, |first| Seq(first.seq.0 - 1));
        let oldest = offers.iter().map(|offer| offer.base).filter(|base| *base >= shown).min().unwrap_or(root.seq);
        let seen = |entry: &Entry| (entry.seq, entry.id, (terms.written)(entry));
        let mut between: Vec<_> = root.entries.from(oldest.next()).chain(&entries).map(seen).collect();
        let mut bytes = 0;
        for offer in offers {
            // It was made on what is not seen here.
            if done.contains(&offer.entry.id) || offer.base > root.seq || done.len() >= TAKEN_MAX {
                continue;
            }
            bytes += offer.entry.payload.len();
            if bytes > TAKEN_BYTES_MAX {
                break;
            }
            done.push(offer.entry.id);
            let later = || between.iter().filter(|(seq, ..)| *seq > offer.base);
            let forbidden = later().any(|(.., tables)| forbids(tables.as_deref(), &offer.reads));
            let twice = later().any(|(_, id, _)| *id == offer.entry.id);
            let forbidden = forbidden && !planted(Bug::TakeForbidden) || twice && !planted(Bug::TakeTwice);
            // It was made on this history.
            let proven = offer.entry.prev.is_some_and(|prev| root.tells(offer.base, prev) == EntryStatus::There);
            let tables = (terms.written)(&offer.entry);
            if offer.base >= shown && proven && !forbidden && tables.is_some() {
                let added = add(offer.entry);
                between.push((added.seq, added.id, tables));
                entries.push(added);
            }
        }
        (entries, done)
    }
}
