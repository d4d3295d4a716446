//! Moves the root of a shared log into a cell, and back. The object that was the root says which of the two holds.
//!
//! *In:* the object is replaced, on the condition that it is the root as it was read: from then on nobody adds to it. It still has all
//! that the log had, and says that the cell has not *begun*. The process that comes next puts that into the cell, if the cell is empty, and then
//! says in the object that it has begun. Only then is anything added.
//!
//! *Back:* the last root in the cell says that it was *returned*: from then on nobody adds to it. Then the object becomes that root. One
//! row stays in the cell, which says so: were it empty, a put that is late could begin it again, for those who still look there.
//!
//! Each step is one put on a condition, and the next process goes on where one has stopped.

use std::sync::Arc;

use bytes::Bytes;

use super::super::root::{Role, Root};
use super::place::{RootPlace, read_root};
use crate::base::planted::{Bug, planted};
use crate::base::{Env, Error, ErrorKind, Patience, Result};
use crate::storage::{CellRow, LogCell, LogCells, Storage, Tag, names};

/// What moving a log needs.
pub struct Movers<'a> {
    /// The store.
    pub storage: &'a Arc<dyn Storage>,
    /// Servers with cells.
    pub cells: &'a dyn LogCells,
    /// The address that was given, if one was.
    pub given: Option<&'a str>,
    /// Clock and randomness.
    pub env: &'a Env,
    /// How long a put waits, in microseconds.
    pub retry: u64,
}

/// Where the log of a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// With the store.
    Store,
    /// On the server at this address.
    Cell(String),
}

/// The root of a new store whose log is in a new cell, where nothing has begun.
pub fn in_new_cell(root: Root, cells: &dyn LogCells, address: &str, env: &Env) -> Result<Root> {
    let cell = env.entropy.id()?;
    // Nothing is changed unless the server can be reached and is fit for it.
    cells.open(address, cell)?;
    Ok(root.with_role(Role::InCell { cell, address: cells.told(address)?, begun: false }))
}

impl Movers<'_> {
    fn open(&self, cell: u128, address: &str) -> Result<Arc<dyn LogCell>> {
        self.cells.open(self.given.unwrap_or(address), cell)
    }

    /// The place in the cell of which the object `root` tells, and the root there.
    pub fn read_cell(&self, root: &Root) -> Result<(RootPlace, Option<(Root, Tag)>)> {
        let Role::InCell { cell, address, .. } = &root.role else {
            return Err(Error::internal("the log of the store is in no cell"));
        };
        let place = RootPlace::in_cell(self.storage.clone(), root.role.clone(), self.open(*cell, address)?);
        let read = place.read(None)?;
        Ok((place, read))
    }

    /// The cell that the log is in, if it is in one.
    pub fn cell(&self) -> Result<Option<Arc<dyn LogCell>>> {
        match self.root()?.0.role {
            Role::InCell { cell, address, .. } => self.open(cell, &address).map(Some),
            _ => Ok(None),
        }
    }

    fn root(&self) -> Result<(Root, Tag)> {
        read_root(&**self.storage, None)?.ok_or_else(|| Error::unavailable("the root has no content"))
    }

    /// Puts the object in the place of the one that was read. `false` if it was another one.
    fn replace(&self, mut next: Root, known: &Tag) -> Result<bool> {
        if next.origin.store == 0 {
            next.origin.store = self.env.entropy.id()?;
        }
        next.stamp = self.env.entropy.next()?;
        let bytes = [Bytes::from(next.encode()?)];
        self.settle(|| self.storage.put_if_match(names::ROOT, &bytes, Some(known)))
    }

    /// Repeats a put, which is done at most once, until it was done or cannot be any more. In both cases the place is read again.
    fn settle(&self, put: impl Fn() -> Result<Tag>) -> Result<bool> {
        let mut patience = Patience::new(self.retry);
        loop {
            match put() {
                Ok(_) => return Ok(true),
                Err(e) if e.kind() == ErrorKind::Conflict => return Ok(false),
                Err(e) if e.is_throttled() || e.kind() == ErrorKind::InDoubt => {
                    if !patience.pause(self.env)? {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Goes on with a move that was begun, if there is one; returns where the log is then.
    pub fn go_on(&self) -> Result<LogPlace> {
        loop {
            let (root, tag) = self.root()?;
            let Role::InCell { cell, address, begun } = root.role.clone() else { return Ok(LogPlace::Store) };
            if !begun {
                let (there, start) = (self.open(cell, &address)?, root.clone().with_role(Role::Written));
                let start = CellRow::Head(start.encode()?.into());
                // Another process may have done it.
                self.settle(|| there.put(&start, None, &[]))?;
                let begun = Role::InCell { cell, address, begun: true };
                self.replace(root.with_role(begun), &tag)?;
                continue;
            }
            let (place, Some((last, its))) = self.read_cell(&root)? else { return Ok(LogPlace::Cell(address)) };
            if last.role != Role::Returned {
                return Ok(LogPlace::Cell(address));
            }
            root.continues(&last)?;
            let left = CellRow::Head(last.clone().left().encode()?.into());
            if self.replace(last.with_role(Role::Written), &tag)? {
                // What is late finds that row, so the cell never seems to be in use again.
                if let Ok(its) = place.put(&left, &its, &[]) {
                    place.trim(&its)?;
                }
            }
        }
    }

    /// Moves the log to the server at `address`.
    pub fn move_in(&self, address: &str) -> Result<()> {
        let told = self.cells.told(address)?;
        loop {
            let (root, tag) = self.root()?;
            match &root.role {
                Role::InCell { address: there, .. } if *there == told => return self.go_on().map(drop),
                Role::InCell { address: there, .. } => {
                    return Err(Error::invalid(format!("the log is at {there}; move it back to the store first")));
                }
                role => role.check()?,
            }
            self.replace(in_new_cell(root, self.cells, address, self.env)?, &tag)?;
        }
    }

    /// Moves the log back to the store.
    pub fn move_back(&self) -> Result<()> {
        loop {
            let (root, tag) = self.root()?;
            let Role::InCell { begun: true, .. } = root.role else {
                match self.go_on()? {
                    LogPlace::Store => return Ok(()),
                    LogPlace::Cell(_) => continue,
                }
            };
            if let (place, Some((last, known))) = self.read_cell(&root)?
                && last.role != Role::Returned
            {
                last.role.check()?;
                // A server that was put back to an older state does not become the store's log.
                root.continues(&last)?;
                if planted(Bug::ReturnUnfenced) {
                    self.replace(last, &tag)?;
                    continue;
                }
                let row = CellRow::Head(last.with_role(Role::Returned).encode()?.into());
                self.settle(|| place.put(&row, &known, &[]))?;
            }
            self.go_on()?;
        }
    }
}
