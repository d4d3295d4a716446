//! Who is answered at all. Decided by the head of a request alone, before anything of the store is touched.
//!
//! The page itself holds nothing of the store and is given to anybody on this host; what it asks for is given only to those who send
//! the token in a header. A page of another site can send no such header without asking first, and its asking is refused; a page
//! that gets here by a name of its own (DNS rebinding) is refused by that name.

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode, Uri};

use crate::reply::Reply;

/// What those who come from another page say of it (Fetch Metadata).
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// How long a target may be: a path and a filter.
const TARGET_BYTES_MAX: usize = 24 << 10;

/// The rules of one server.
pub struct Guard {
    hosts: [String; 3],
    origins: [String; 3],
    token: String,
}

/// What a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The page's own files.
    Page,
    /// Answers about the store.
    Read,
    /// Changes of the store, if the server was started for that.
    Change,
}

impl Guard {
    /// For a server on `port`.
    pub fn new(port: u16, token: String) -> Self {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let origins = hosts.each_ref().map(|host| format!("http://{host}"));
        Self { hosts, origins, token }
    }

    /// What the request may have, or why nothing.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Admitted, Reply> {
        let refuse = |status, message: &str| Err(Reply::refusal(status, message));
        if uri.authority().is_some() || uri.path_and_query().is_none_or(|t| t.as_str().len() > TARGET_BYTES_MAX) {
            return refuse(StatusCode::URI_TOO_LONG, "the target of the request is not a path, or is too long");
        }
        if !only(headers, HOST.as_str()).is_some_and(|host| self.hosts.iter().any(|known| known == host)) {
            return refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "the server does not answer to this host name; use the address that was printed when it was started",
            );
        }
        if headers.contains_key(ORIGIN)
            && !only(headers, ORIGIN.as_str()).is_some_and(|origin| self.origins.iter().any(|known| known == origin))
        {
            return refuse(StatusCode::FORBIDDEN, "the server does not answer the pages of other sites");
        }
        let of_store = uri.path().starts_with("/api/") || uri.path() == "/metrics";
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if !of_store {
            return match reads {
                true => Ok(Admitted::Page),
                false => refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET for the files of the page"),
            };
        }
        if headers.contains_key(SEC_FETCH_SITE)
            && !only(headers, SEC_FETCH_SITE).is_some_and(|site| matches!(site, "same-origin" | "none"))
        {
            return refuse(StatusCode::FORBIDDEN, "the server does not answer the pages of other sites");
        }
        let given = only(headers, AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        if !given.is_some_and(|given| same(given.as_bytes(), self.token.as_bytes())) {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong; open the address that was printed when the server was started",
            );
        }
        match *method {
            Method::GET | Method::HEAD => Ok(Admitted::Read),
            Method::POST if only(headers, CONTENT_TYPE.as_str()) == Some("application/json") => Ok(Admitted::Change),
            Method::POST => refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected a body of type application/json"),
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "expected GET or POST"),
        }
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

/// Whether both are the same, in a time that depends on their lengths alone.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let differ = given.iter().zip(expected).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
    given.len() == expected.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_as_wholes() {
        assert!(same(b"abc", b"abc"));
        for other in ["abd", "bbc", "ab", "abcd", "", "ABC"] {
            assert!(!same(other.as_bytes(), b"abc"), "{other}");
        }
    }
}
