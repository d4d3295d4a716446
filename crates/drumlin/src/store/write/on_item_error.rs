//! What becomes of a call with many frames if one of them cannot be written.

use std::collections::BTreeMap;

use crate::base::{Error, Result};

/// What happens to a call if one of its tables cannot be written.
pub(in crate::store) enum OnItemError {
    /// The call is refused.
    Refuse,
    /// The others are written; errors are collected, by the frame's place.
    Collect(BTreeMap<usize, Error>),
}

impl OnItemError {
    /// Notes the error of the frame at a place, unless that fails the whole call.
    pub fn note(&mut self, at: usize, error: Error) -> Result<()> {
        match self {
            OnItemError::Collect(noted) if error.kind().is_of_item() => {
                noted.entry(at).or_insert(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    pub fn has(&self, at: usize) -> bool {
        matches!(self, OnItemError::Collect(noted) if noted.contains_key(&at))
    }

    pub fn into_collected(self) -> BTreeMap<usize, Error> {
        match self {
            OnItemError::Refuse => BTreeMap::new(),
            OnItemError::Collect(noted) => noted,
        }
    }

    /// Whether the others are written.
    pub fn collects(&self) -> bool {
        matches!(self, OnItemError::Collect(_))
    }
}
