//! For `#[serde(with)]`: a value as JSON text. The decoder of JSON limits nesting; a decoder that follows the bytes alone
//! does not.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Fails if `value` could not be decoded from its text, for example because it is nested too deeply.
pub fn check<T: Serialize + DeserializeOwned>(value: &T, what: &str) -> crate::base::Result<()> {
    let text = serde_json::to_string(value).and_then(|text| serde_json::from_str::<T>(&text));
    text.map(drop).map_err(|e| crate::base::Error::invalid(format!("{what} cannot be stored: {e}")))
}

/// As text.
pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(value).map_err(S::Error::custom)?)
}

/// From text.
pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}
