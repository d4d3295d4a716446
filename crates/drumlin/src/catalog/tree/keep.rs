//! Life conditions: a node lives only while its conditions hold, as long as the presence that it has, and until its time.

use serde::{Deserialize, Serialize};

use crate::base::{Error, Result, Timestamp, json_text};
use crate::catalog::{Condition, Path};

/// What must hold for a node to live: each condition, for the node at the condition's path; and what ends it besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keep {
    /// In any order. A condition on the node itself is not checked before the node changes again.
    pub conditions: Vec<(Path, Condition)>,
    /// The number of the presence that it ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<u64>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Keep {
    /// From paths and conditions as given by the caller.
    pub fn new(conditions: &[(String, Condition)]) -> Result<Self> {
        let conditions = conditions.iter().map(|(path, condition)| Ok((Path::new(path)?, condition.clone())));
        let keep = Keep { conditions: conditions.collect::<Result<_>>()?, ..Keep::default() };
        keep.check()?;
        json_text::check(&keep, "a life condition")?;
        Ok(keep)
    }

    /// Whether it asks for nothing: then the node lives until it is deleted.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty() && !self.ends()
    }

    /// Whether it ends with a presence or by itself.
    pub fn ends(&self) -> bool {
        self.presence.is_some() || self.until.is_some()
    }

    /// Fails if a condition is not valid.
    pub fn check(&self) -> Result<()> {
        self.conditions.iter().try_for_each(|(_, condition)| condition.check())
    }

    /// The stored form: JSON text, whose decoder limits nesting.
    pub(in crate::catalog) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::invalid("a life condition could not be encoded").with_source(e))
    }

    pub(in crate::catalog) fn decode(bytes: &[u8]) -> Result<Self> {
        let keep: Keep =
            serde_json::from_slice(bytes).map_err(|e| Error::corrupt(format!("a life condition is damaged: {e}")))?;
        keep.check().map_err(|e| Error::corrupt(e.message()))?;
        Ok(keep)
    }
}
