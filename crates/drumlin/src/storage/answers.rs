//! What the answers of buckets mean, and which parts of them may appear in messages.
//!
//! A conditional put is sent once, so its caller must know which failures mean that it was not done. Only those count that
//! the services document as such; any other leaves it open.
//!
//! ```text
//! not done, the condition fails    412; 409; 404 to a put on a tag
//! not done, try again              429 (all); 503 with code SlowDown (S3) or ServerBusy (Azure); 400 with code RequestTimeout
//!                                  (S3): the body came too slowly
//! not done, refused for good       any other 4xx but 408; no connection could be made
//! open                             5xx otherwise, 408, timeouts, connections that break, answers that make no sense
//! ```
//!
//! A 501, or the code NotImplemented, says that the service does not have what a store needs (`Unsupported`). Of a plain put, a
//! 409 is never that something exists: the service is busy with the same object.
//!
//! A 503 without one of those codes is open: gateways send it for a server that has accepted the request and not answered,
//! and MinIO's SlowDownWrite says that too few of its disks have written.

use std::collections::BTreeMap;

use object_store::client::{HttpError, HttpErrorKind};

use crate::base::{Error, ErrorKind, clip};

/// Shorter values of options are not secrets worth hiding, and hiding them would hide ordinary words.
const SECRET_BYTES_MIN: usize = 6;

/// Why a request was certainly not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The service was busy: the same request may succeed later.
    Busy,
    /// It would be refused again.
    Denied,
}

/// The messages of an error and of all its sources, with a text between them.
pub fn with_causes(e: &dyn std::error::Error, between: &str) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(inner) = source {
        text = format!("{text}{between}{inner}");
        source = inner.source();
    }
    text
}

fn texts(e: &object_store::Error) -> String {
    with_causes(e, "\n")
}

/// The status of the answer, if there was one. The client reports it only in its text.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("non-2xx status code: ")?;
    rest.get(..3)?.parse().ok()
}

fn refusal(e: &object_store::Error) -> Option<Refusal> {
    use object_store::Error as E;
    if matches!(e, E::PermissionDenied { .. } | E::Unauthenticated { .. } | E::NotFound { .. }) {
        return Some(Refusal::Denied);
    }
    let mut source = std::error::Error::source(e);
    while let Some(inner) = source {
        if inner.downcast_ref::<HttpError>().is_some_and(|e| e.kind() == HttpErrorKind::Connect) {
            return Some(Refusal::Denied);
        }
        source = inner.source();
    }
    let text = texts(e);
    let says = |codes: &[&str]| codes.iter().any(|code| text.contains(&format!("<Code>{code}</Code>")));
    match status(&text)? {
        429 => Some(Refusal::Busy),
        503 if says(&["SlowDown", "ServerBusy"]) => Some(Refusal::Busy),
        409 if says(&["OperationAborted", "ConditionalRequestConflict"]) => Some(Refusal::Busy),
        400 if says(&["RequestTimeout"]) => Some(Refusal::Busy),
        501 => Some(Refusal::Denied),
        408 | 409 | 412 => None,
        400..=499 => Some(Refusal::Denied),
        _ => None,
    }
}

/// Whether the service asks for the same request once more, which the client does not do.
pub fn asks_again(e: &object_store::Error) -> bool {
    refusal(e) == Some(Refusal::Busy) && matches!(status(&texts(e)), Some(400 | 409))
}

/// Whether a put without a condition met another one of the same object.
pub fn met_another(e: &object_store::Error) -> bool {
    status(&texts(e)) == Some(409)
}

/// Whether an answer began, so that the client did not retry, and its body broke off or made no sense.
pub fn broke_off(e: &object_store::Error) -> bool {
    // The client's message has these words if it tried again.
    const ASKED_AGAIN: &str = "max_retries: ";
    let object_store::Error::Generic { source, .. } = e else { return false };
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
    let mut broken = false;
    while let Some(inner) = source {
        let text = inner.to_string();
        if text.contains(ASKED_AGAIN) {
            return false;
        }
        broken |= inner.is::<HttpError>() || INVALID_BODIES.iter().any(|words| text.starts_with(words));
        source = inner.source();
    }
    broken
}

/// What the client says about a body that it cannot parse, for example because it was cut short.
const INVALID_BODIES: [&str; 2] = ["Got invalid list response", "Got invalid DeleteObjects response"];

/// Whether an object ends before the requested range begins.
pub fn ends_before(e: &object_store::Error) -> bool {
    let text = texts(e);
    status(&text) == Some(416) || text.contains("<Code>InvalidRange</Code>")
}

/// The meaning of an error of a conditional put, which was sent once.
pub fn put_error(secrets: &[String], name: &str, e: &object_store::Error) -> Error {
    let told = error(secrets, name, e);
    match told.kind() {
        // Others have written it, or are about to: what it holds then shows whether to put it again.
        _ if met_another(e) => Error::conflict(told.message()),
        _ if told.is_throttled() => told,
        ErrorKind::Conflict | ErrorKind::AlreadyExists => Error::conflict(told.message()),
        ErrorKind::Unsupported => told,
        _ if refusal(e).is_some() => told,
        _ => Error::in_doubt(told.message()),
    }
}

/// The meaning of an error of the client.
pub fn error(secrets: &[String], name: &str, e: &object_store::Error) -> Error {
    let missing = ["non-2xx status code: 501", "<Code>NotImplemented</Code>"];
    let kind = match e {
        _ if missing.iter().any(|words| texts(e).contains(words)) => ErrorKind::Unsupported,
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } => ErrorKind::AlreadyExists,
        object_store::Error::Precondition { .. } => ErrorKind::Conflict,
        object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    let mut message = format!("{name}: {e}");
    let mut source = std::error::Error::source(e);
    while let Some(inner) = source {
        let text = inner.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = inner.source();
    }
    let message = redact(secrets, &message);
    if refusal(e) == Some(Refusal::Busy) { Error::throttled(message) } else { Error::new(kind, message) }
}

/// Values that must not appear in messages: those of options and environment variables whose names say so.
pub fn secrets(options: &BTreeMap<String, String>) -> Vec<String> {
    const WORDS: [&str; 6] = ["secret", "token", "key", "password", "credential", "sas"];
    let telling = |name: &str| WORDS.iter().any(|word| name.to_ascii_lowercase().contains(word));
    let environment =
        std::env::vars().filter(|(name, _)| ["AWS", "AZURE", "GOOGLE"].iter().any(|p| name.starts_with(p)));
    let all = options.iter().map(|(name, value)| (name.clone(), value.clone())).chain(environment);
    let mut secrets: Vec<String> =
        all.filter(|(name, value)| telling(name) && value.len() >= SECRET_BYTES_MIN).map(|(_, value)| value).collect();
    // Longer ones first, so that no part of one remains.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// A message without secrets, without names and passwords in addresses, and without what follows the `?` of an address, which
/// may be a signature.
pub fn redact(secrets: &[String], message: &str) -> String {
    let mut told = message.to_owned();
    for secret in secrets {
        told = told.replace(secret.as_str(), "***");
    }
    let told = without_users(&told);
    let mut out = String::with_capacity(told.len());
    let mut rest = told.as_str();
    while let Some(at) = rest.find('?') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let in_address = before.rsplit(|c: char| c.is_whitespace() || "\"'(<".contains(c)).next();
        let end = after.find(|c: char| c.is_whitespace() || "\"')>".contains(c)).unwrap_or(after.len());
        match in_address.is_some_and(|word| word.contains("://")) {
            true => rest = &after[end..],
            false => {
                out.push('?');
                rest = &after[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Text whose addresses (`http://name:password@host`) name nobody.
fn without_users(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // A password may hold anything that does not end an address; the last `@` before a host's end is the one that counts.
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>()".contains(c)).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(user) => {
                out.push_str("***");
                &after[user..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// A server's message, shortened.
pub fn shortened(text: &str) -> String {
    clip(text, 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    // faults: secrets x open
    #[test]
    fn secrets_are_not_told() {
        let options = BTreeMap::from([
            ("aws_secret_access_key".to_owned(), "canary-secret".to_owned()),
            ("aws_session_token".to_owned(), "canary-secret-and-more".to_owned()),
            ("region".to_owned(), "here".to_owned()),
        ]);
        let hidden = secrets(&options);
        let message = "put \"https://x.y/z?sig=abc%2F&se=2\" failed? with canary-secret-and-more (canary-secret) here";
        assert_eq!(redact(&hidden, message), "put \"https://x.y/z\" failed? with *** (***) here");
        for (message, told) in [
            (
                "HTTP error at http://me:canary@10.0.0.1:9000/b/root: refused",
                "HTTP error at http://***@10.0.0.1:9000/b/root: refused",
            ),
            ("(https://canary@host) and https://a:can@ary@host?x=canary", "(https://***@host) and https://***@host"),
            ("s3://bucket/a@b, mail me@x.y", "s3://bucket/a@b, mail me@x.y"),
        ] {
            assert_eq!(redact(&[], message), told);
        }
    }
}
