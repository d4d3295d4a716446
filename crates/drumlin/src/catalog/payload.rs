//! What a node of the tree carries: a JSON value or bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{Error, Result};

/// The most bytes of a payload as stored.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// A node's payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Any JSON value.
    Json(serde_json::Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Payload {
    /// Fails if the payload is larger than [`PAYLOAD_BYTES_MAX`] as stored, or would not come back as it is.
    pub fn check(&self) -> Result<()> {
        if let Payload::Json(value) = self
            && serde_json::from_str::<serde_json::Value>(&value.to_string()).ok().as_ref() != Some(value)
        {
            return Err(Error::invalid("the payload is nested more than 127 deep, or is no JSON value"));
        }
        let bytes = match self {
            Payload::Json(value) => value.to_string().len(),
            Payload::Bytes(bytes) => bytes.len(),
        };
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(Error::invalid(format!("a payload of {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are taken")));
        }
        Ok(())
    }
}

/// On disk: JSON as its text, since the log's encoding does not describe itself.
#[derive(Serialize, Deserialize)]
enum Stored {
    Json(String),
    Bytes(Vec<u8>),
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Payload::Json(value) => Stored::Json(value.to_string()),
            Payload::Bytes(bytes) => Stored::Bytes(bytes.clone()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Json(text) => Payload::Json(serde_json::from_str(&text).map_err(de::Error::custom)?),
            Stored::Bytes(bytes) => Payload::Bytes(bytes),
        })
    }
}
