//! A cell whose rows are objects: a second storage stands for the server, with all that a simulated bucket does to requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::super::{Storage, Tag, WriteMode};
use super::rows::{CellNews, CellPlace, CellRow, CellTurn, LogCell, Row, empty, news, passed};
use crate::base::{EntryId, Env, Error, ErrorKind, Result};

/// The bytes before the content: the stamp, and whether it is a head.
const HEADER_BYTES: usize = 17;

/// A cell in a storage.
pub struct BucketCell {
    storage: Arc<dyn Storage>,
    env: Env,
    folder: String,
}

impl std::fmt::Debug for BucketCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketCell").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl BucketCell {
    /// The cell `id` of a server for which `storage` stands.
    pub fn new(storage: Arc<dyn Storage>, id: u128, env: Env) -> Self {
        Self { storage, env, folder: format!("cell-{id:032x}") }
    }

    fn name(&self, number: u64) -> String {
        format!("{}/{number:020}", self.folder)
    }

    fn offers(&self) -> String {
        format!("{}-offers", self.folder)
    }

    fn offer(&self, id: EntryId) -> String {
        format!("{}/{:032x}", self.offers(), id.0)
    }

    fn numbers(&self) -> Result<BTreeMap<u64, String>> {
        let listed = self.storage.list(&self.folder)?.into_iter();
        Ok(listed.filter_map(|object| Some((object.name.rsplit('/').next()?.parse().ok()?, object.name))).collect())
    }

    /// Those of these rows that are still there.
    fn rows(&self, numbers: &BTreeMap<u64, String>) -> Result<Vec<Row>> {
        let found = numbers.keys().map(|number| self.row(*number));
        Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn row(&self, number: u64) -> Result<Option<Row>> {
        let bytes = match self.storage.get(&self.name(number)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let stamp = bytes.first_chunk::<16>().map(|stamp| u128::from_le_bytes(*stamp));
        let (Some(stamp), Some(head)) = (stamp, bytes.get(16)) else {
            return Err(Error::corrupt(format!("{}: it ends within its header", self.name(number))));
        };
        Ok(Some(Row { place: CellPlace { number, stamp }, head: *head == 1, content: bytes.slice(HEADER_BYTES..) }))
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        match names {
            [] => Ok(()),
            names => self.storage.delete_many(names).into_iter().collect(),
        }
    }
}

impl LogCell for BucketCell {
    fn read(&self, known: Option<&Tag>) -> Result<CellNews> {
        self.env.metrics.log_requests.add(1);
        let known = known.map(CellPlace::of).transpose()?;
        loop {
            let numbers = self.numbers()?;
            let mut rows = self.rows(&numbers)?;
            // What a deletion has left before the newest head is no part of it.
            let head = rows.iter().rposition(|row| row.head).unwrap_or(0);
            let from = known.and_then(|known| rows.iter().position(|row| row.place == known)).unwrap_or(head);
            let whole = rows.len() == numbers.len();
            match news(known, rows.split_off(from)) {
                // Some were deleted while they were read.
                _ if !whole => {}
                Ok(None) if numbers.is_empty() => return Err(empty(self.address())),
                Ok(None) => return Err(Error::corrupt("the log's cell has no head")),
                Ok(Some(news)) => return Ok(news),
                Err(e) => return Err(e),
            }
        }
    }

    fn takes_offers(&self) -> bool {
        true
    }

    /// There are no turns: each process that looks may race for the next row.
    fn read_offering(&self, known: &Tag, id: EntryId, offer: &Bytes) -> Result<CellTurn> {
        // One that is lost is handed in again with the next look.
        drop(self.storage.put(&self.offer(id), std::slice::from_ref(offer), WriteMode::Replace));
        let mut offers = Vec::new();
        for object in self.storage.list(&self.offers())? {
            match self.storage.get(&object.name) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                other => offers.push(other?),
            }
        }
        Ok(CellTurn { news: self.read(Some(known))?, leads: true, offers })
    }

    fn withdraw(&self, offers: &[EntryId]) {
        let names: Vec<String> = offers.iter().map(|id| self.offer(*id)).collect();
        drop(self.delete(&names));
    }

    fn put(&self, row: &CellRow, known: Option<&Tag>, offers: &[EntryId]) -> Result<Tag> {
        self.env.metrics.log_requests.add(1);
        let (known, next) = CellPlace::after(known, &self.env)?;
        match known {
            None if !self.numbers()?.is_empty() => return Err(passed()),
            Some(known) if self.row(known.number)?.map(|row| row.place) != Some(known) => return Err(passed()),
            _ => {}
        }
        let (head, content) = row.parts();
        let header = [&next.stamp.to_le_bytes()[..], &[u8::from(head)]].concat();
        self.storage.put_if_match(&self.name(next.number), &[Bytes::from(header), content.clone()], None)?;
        self.withdraw(offers);
        Ok(next.tag())
    }

    fn trim(&self, head: &Tag) -> Result<()> {
        let before = CellPlace::of(head)?.number;
        let gone: Vec<String> =
            self.numbers()?.into_iter().filter(|(n, _)| *n < before).map(|(_, name)| name).collect();
        self.delete(&gone)?;
        let offers: Vec<String> = self.storage.list(&self.offers())?.into_iter().map(|object| object.name).collect();
        self.delete(&offers)
    }

    fn remains(&self) -> Result<u64> {
        let rows = self.rows(&self.numbers()?)?;
        let before = rows.iter().rposition(|row| row.head).unwrap_or(0);
        Ok((before + self.storage.list(&self.offers())?.len()) as u64)
    }

    fn address(&self) -> &str {
        &self.folder
    }
}
