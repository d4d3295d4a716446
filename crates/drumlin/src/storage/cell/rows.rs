//! Cells: one small value on a server outside the bucket, replaced on a condition, so that commits need no request to the bucket.
//!
//! The value is the root of a shared log. It is kept as rows that are only inserted, numbered without gaps: a *head*, which is the whole
//! value, and what was added to it since. A row is inserted if the one before it is the one that the writer has seen, and none has its
//! number yet; of racing inserts exactly one is done. So an insert that arrives late, or twice, is done at most once, and only if
//! nothing else was. Rows before the newest head are deleted after it.
//!
//! A process that waits can hand in what it wants to be added, as an *offer* beside the rows: the process that inserts a row next may have it in
//! that row. Offers are hints, too: the server may forget them.
//!
//! Servers of two kinds keep them (*postgres.rs*, *etcd.rs*), and, for simulations, another storage (*bucket.rs*).

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::super::Tag;
use crate::base::{EntryId, Env, Error, Result};

/// A row to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellRow {
    /// A whole value, which takes the place of all rows before it.
    Head(Bytes),
    /// What is added to the value.
    Added(Bytes),
}

impl CellRow {
    /// Whether it is a head, and its content.
    pub fn parts(&self) -> (bool, &Bytes) {
        match self {
            Self::Head(content) => (true, content),
            Self::Added(content) => (false, content),
        }
    }
}

/// What a cell has after a row that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellNews {
    /// Nothing.
    Same,
    /// These were added; the tag is that of the last one.
    Added(Vec<Bytes>, Tag),
    /// The whole value: the newest head, what was added to it, and the tag of the last row.
    All(Bytes, Vec<Bytes>, Tag),
}

/// What a process sees that has handed in an offer.
#[derive(Clone, Debug)]
pub struct CellTurn {
    /// What the cell has after the row that it knows.
    pub news: CellNews,
    /// Whether it is its turn to insert a row.
    pub leads: bool,
    /// The offers there are, in no order.
    pub offers: Vec<Bytes>,
}

/// A cell on a server. Calls block, and stop when the call that they belong to is to stop.
pub trait LogCell: Send + Sync + Debug {
    /// What it has after the row `known`; the whole value if that row is gone, or another one. `NotFound` if there is no row at all.
    fn read(&self, known: Option<&Tag>) -> Result<CellNews>;

    /// Whether processes that want to insert a row can be given turns.
    fn has_turns(&self) -> bool {
        false
    }

    /// As [`LogCell::read`], once it is this process's turn, or it has waited for long enough: the process that inserts a row at once then comes
    /// first. The turn ends with the next row that is put, or soon. Only speed depends on it.
    fn read_in_turn(&self, known: Option<&Tag>) -> Result<CellNews> {
        self.read(known)
    }

    /// Lets a turn go in which no row is put.
    fn end_turn(&self) {}

    /// Whether it keeps offers.
    fn takes_offers(&self) -> bool {
        false
    }

    /// Hands in the offer `id`, waits for as long as it is another process's turn, though not for long, and reads what the cell has after
    /// the row `known` then. It is this process's turn only if its offer is still there.
    fn read_offering(&self, known: &Tag, id: EntryId, offer: &Bytes) -> Result<CellTurn> {
        let _ = (id, offer);
        Ok(CellTurn { news: self.read_in_turn(Some(known))?, leads: true, offers: Vec::new() })
    }

    /// Deletes offers. If that fails, others do it.
    fn withdraw(&self, offers: &[EntryId]) {
        let _ = offers;
    }

    /// Inserts a row after the row `known`, or the first one, and deletes offers if it did. Returns its tag. `Conflict`: another one came
    /// first, or `known` is none of its rows. `InDoubt`: it may have been inserted, or may be later, if nothing else is before. Any
    /// other error: it was not.
    fn put(&self, row: &CellRow, known: Option<&Tag>, offers: &[EntryId]) -> Result<Tag>;

    /// Deletes the rows before the head whose tag this is, and all offers.
    fn trim(&self, head: &Tag) -> Result<()>;

    /// How many rows it still has before the newest head, and offers: what [`LogCell::trim`] has not deleted yet.
    fn remains(&self) -> Result<u64>;

    /// What could be better about the server, in words.
    fn advice(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Where the server is, without what is secret.
    fn address(&self) -> &str;
}

/// Reaches cells.
pub trait LogCells: Send + Sync {
    /// The cell `id` on the server at `address`. The server is asked whether it makes durable what
    /// it acknowledges.
    fn open(&self, address: &str, id: u128) -> Result<Arc<dyn LogCell>>;

    /// The address without what is secret.
    fn told(&self, address: &str) -> Result<String> {
        told(address)
    }
}

/// What an address must be.
pub(super) fn unknown(address: &str) -> Error {
    let scheme = address.split_once("://").map_or("no scheme", |(scheme, _)| scheme);
    Error::invalid(format!(
        "the log's address has {scheme:?}; expected postgresql://host/database, etcd://host:2379, or etcds:// for one with TLS"
    ))
}

/// An address without user, password and parameters: what may be written down.
pub fn told(address: &str) -> Result<String> {
    let url = url::Url::parse(address).map_err(|_| unknown(address))?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    match url.scheme() {
        "postgresql" | "postgres" => Ok(format!("postgresql://{host}{port}{path}")),
        scheme @ ("etcd" | "etcds") => Ok(format!("{scheme}://{host}{port}{path}")),
        _ => Err(unknown(address)),
    }
}

/// The number and the stamp of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellPlace {
    pub number: u64,
    pub stamp: u128,
}

impl CellPlace {
    pub fn tag(self) -> Tag {
        Tag(format!("{} {:032x}", self.number, self.stamp))
    }

    /// `Conflict` if the tag is none of a row.
    pub fn of(tag: &Tag) -> Result<Self> {
        let parse = || {
            let (number, stamp) = tag.0.split_once(' ')?;
            Some(Self { number: number.parse().ok()?, stamp: u128::from_str_radix(stamp, 16).ok()? })
        };
        parse().ok_or_else(|| Error::conflict("what was read is no row of the log's cell"))
    }

    /// The row that follows `known`.
    pub fn after(known: Option<&Tag>, env: &Env) -> Result<(Option<Self>, Self)> {
        let known = known.map(Self::of).transpose()?;
        let number = known.map_or(Some(1), |known| known.number.checked_add(1).filter(|number| *number < 1 << 62));
        let number = number.ok_or_else(|| Error::conflict("the log's cell has too many rows"))?;
        Ok((known, Self { number, stamp: env.entropy.id()? }))
    }
}

/// A row as it was read.
pub(super) struct Row {
    pub place: CellPlace,
    pub head: bool,
    pub content: Bytes,
}

/// What rows in order say, if those were asked for that follow `known`, or begin with it; `None` if they lead to no head.
pub(super) fn news(known: Option<CellPlace>, rows: Vec<Row>) -> Result<Option<CellNews>> {
    if rows.windows(2).any(|pair| pair[0].place.number.checked_add(1) != Some(pair[1].place.number)) {
        return Err(Error::corrupt("rows of the log's cell are missing"));
    }
    let Some(last) = rows.last() else { return Ok(None) };
    let tag = last.place.tag();
    let continues = known.is_some() && rows.first().map(|row| row.place) == known;
    let from = match rows.iter().rposition(|row| row.head) {
        // The known row may be a head itself.
        Some(0) if continues => None,
        Some(at) => Some(at),
        None if continues => None,
        None => return Ok(None),
    };
    let mut contents = rows.into_iter().map(|row| row.content);
    Ok(Some(match from {
        None if contents.len() == 1 => CellNews::Same,
        None => CellNews::Added(contents.skip(1).collect(), tag),
        Some(at) => {
            let head = contents.nth(at).unwrap_or_default();
            CellNews::All(head, contents.collect(), tag)
        }
    }))
}

/// The error where another row came first.
pub(super) fn passed() -> Error {
    Error::conflict("the log's cell was changed after it was read")
}

/// The error where a cell has no row.
pub(super) fn empty(address: &str) -> Error {
    Error::not_found(format!("{address}: the log's cell has no rows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, head: bool) -> Row {
        Row { place: CellPlace { number, stamp: u128::from(number) * 7 }, head, content: vec![number as u8].into() }
    }

    fn place(number: u64) -> Option<CellPlace> {
        Some(CellPlace { number, stamp: u128::from(number) * 7 })
    }

    #[test]
    fn news_begin_with_the_last_head_unless_they_continue_what_is_known() {
        let of = |known, rows| news(known, rows).unwrap();
        let bytes = |numbers: &[u8]| numbers.iter().map(|n| Bytes::from(vec![*n])).collect::<Vec<_>>();
        let tag = |number| place(number).unwrap().tag();
        assert_eq!(of(place(3), vec![row(3, false)]), Some(CellNews::Same));
        assert_eq!(of(place(3), vec![row(3, true)]), Some(CellNews::Same));
        assert_eq!(of(place(3), vec![row(3, true), row(4, false)]), Some(CellNews::Added(bytes(&[4]), tag(4))));
        let with_head = vec![row(3, false), row(4, true), row(5, false)];
        assert_eq!(of(place(3), with_head), Some(CellNews::All(bytes(&[4])[0].clone(), bytes(&[5]), tag(5))));
        // Another row has the number of the known one.
        let other = Some(CellPlace { number: 3, stamp: 1 });
        assert_eq!(of(other, vec![row(3, false), row(4, false)]), None);
        assert_eq!(of(other, vec![row(3, true)]), Some(CellNews::All(bytes(&[3])[0].clone(), vec![], tag(3))));
        assert_eq!(of(None, vec![]), None);
        assert!(news(None, vec![row(1, true), row(3, false)]).is_err());
    }

    #[test]
    fn addresses_are_told_without_what_is_secret() {
        let told = |address| told(address).unwrap();
        assert_eq!(
            told("postgres://me:secret@db.example:5433/lake?sslmode=require"),
            "postgresql://db.example:5433/lake"
        );
        assert_eq!(told("etcd://me:secret@db.example:2379/"), "etcd://db.example:2379");
        for bad in ["mysql://host", "host", ""] {
            let e = super::told(bad).unwrap_err();
            assert!(e.to_string().contains("expected postgresql://"), "{e}");
        }
    }

    #[test]
    fn tags_of_rows_come_back() {
        let place = CellPlace { number: 1 << 40, stamp: u128::MAX - 3 };
        assert_eq!(CellPlace::of(&place.tag()).unwrap(), place);
        assert!(CellPlace::of(&Tag("7".into())).is_err() && CellPlace::of(&Tag("7 x".into())).is_err());
    }
}
