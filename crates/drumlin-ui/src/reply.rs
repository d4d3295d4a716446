//! What is answered, with the headers that every answer has.

use bytes::Bytes;
use drumlin::{Error, ErrorKind};
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// Scripts and styles from this server alone, nothing inline, nothing from or to elsewhere, no frame around it, and no text that is
/// taken for HTML.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Further headers of every answer.
const HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    kind: &'static str,
    body: Bytes,
    /// Whether there is more than the answer holds.
    more: Option<bool>,
    /// Of an answer that may wait for something: whether it has it.
    pub found: bool,
}

impl Reply {
    /// A file of the page.
    pub fn file(kind: &'static str, body: &'static [u8]) -> Self {
        Self { status: StatusCode::OK, kind, body: Bytes::from_static(body), more: None, found: false }
    }

    /// An answer as JSON.
    pub fn json(value: &Value) -> Self {
        Self {
            status: StatusCode::OK,
            kind: "application/json",
            body: value.to_string().into(),
            more: None,
            found: false,
        }
    }

    /// Plain text.
    pub fn text(kind: &'static str, body: String) -> Self {
        Self { status: StatusCode::OK, kind, body: body.into(), more: None, found: false }
    }

    /// Rows as an Arrow IPC stream; `more` if there are others.
    pub fn rows(body: Vec<u8>, more: bool) -> Self {
        let kind = "application/vnd.apache.arrow.stream";
        Self { status: StatusCode::OK, kind, body: body.into(), more: Some(more), found: false }
    }

    /// Why there is no answer.
    pub fn refusal(status: StatusCode, message: &str) -> Self {
        let body = json!({ "error": { "kind": "Refused", "message": message } });
        Self { status, ..Self::json(&body) }
    }

    /// That the core refused or failed.
    pub fn error(error: &Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch => StatusCode::BAD_REQUEST,
            ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::ConditionFailed => StatusCode::CONFLICT,
            ErrorKind::SnapshotExpired => StatusCode::GONE,
            ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Locked | ErrorKind::Cancelled => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = json!({ "error": { "kind": format!("{:?}", error.kind()), "message": error.message() } });
        Self { status, ..Self::json(&body) }
    }

    /// The response; without its body if that was not asked for.
    pub fn into_response(self, with_body: bool) -> Response<Full<Bytes>> {
        let body = if with_body { self.body } else { Bytes::new() };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(more) = self.more {
            let value = HeaderValue::from_static(if more { "1" } else { "0" });
            headers.insert(HeaderName::from_static("x-drumlin-more"), value);
        }
        response
    }
}
