//! How a payload is put, and what its node lives on from then on.

use crate::base::{Error, Result, Timestamp};
use crate::catalog::{Condition, Keep};

/// Whether the node of a put may exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PutMode {
    /// It may: the node is created if it does not exist.
    #[default]
    Put,
    /// It must not, else `AlreadyExists`.
    Create,
    /// It must, else `NotFound`.
    Update,
}

/// How a payload is put.
#[derive(Clone, Debug, Default)]
pub struct PutOptions {
    /// Whether the node may exist.
    pub mode: PutMode,
    /// What must hold for the node before the put, else `ConditionFailed`.
    pub when: Option<Condition>,
    /// The node's life conditions from now on: conditions on the nodes at other paths, or at its own. An empty list
    /// removes them; `None` leaves them as they are.
    pub keep_while: Option<Vec<(String, Condition)>>,
    /// The number of the presence that the node ends with, see [`crate::Presence`]. If this, `ttl_micros` or `keep_while` is given, what
    /// the node lived on before counts no more.
    pub presence: Option<u64>,
    /// After how many microseconds it ends by itself, unless it is put again before; it is deleted soon after that.
    pub ttl_micros: Option<u64>,
}

impl PutOptions {
    /// Whether it depends on what a node is.
    pub fn reads_node(&self) -> bool {
        self.mode != PutMode::Put || self.when.is_some() || self.sets_life()
    }

    fn sets_life(&self) -> bool {
        self.keep_while.is_some() || self.presence.is_some() || self.ttl_micros.is_some()
    }

    /// What the node lives on from now on, if that is said; `time` is that of the commit.
    pub(super) fn life(&self, time: Timestamp) -> Result<Option<Keep>> {
        if !self.sets_life() {
            return Ok(None);
        }
        if self.ttl_micros == Some(0) {
            return Err(Error::invalid("the time to live of a node must be longer than 0"));
        }
        let keep = Keep::new(self.keep_while.as_deref().unwrap_or_default())?;
        let until = self.ttl_micros.map(|micros| Timestamp(time.0.saturating_add_unsigned(micros)));
        Ok(Some(Keep { presence: self.presence, until, ..keep }))
    }
}
