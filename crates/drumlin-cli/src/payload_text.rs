//! Payloads of nodes as text.

use drumlin::{Content, Payload};
use serde_json::Value;

use crate::figures;

/// A payload in one line: JSON, or bytes as b"..." with escapes, which is never valid JSON.
pub fn line(payload: &Payload) -> String {
    match payload.content() {
        Content::Json(value) => value.to_json().to_string(),
        Content::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
    }
}

/// Name and value of a payload in a JSON object: `payload`, or `bytes` in hexadecimal.
pub fn member(payload: &Payload) -> (&'static str, Value) {
    match payload.content() {
        Content::Json(value) => ("payload", value.to_json()),
        Content::Bytes(bytes) => ("bytes", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()),
    }
}

/// Parses JSON as a payload.
pub fn parse(text: &str) -> Result<Payload, String> {
    Payload::json(&figures::json(text)?).map_err(|e| e.to_string())
}
