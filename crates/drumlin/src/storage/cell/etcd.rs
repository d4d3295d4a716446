//! Cells in etcd, through the JSON interface that each member has (`/v3/kv`).
//!
//! A row is two keys, which one transaction makes: its stamp, compared by the process that adds the next one, and its content. Requests are sent
//! once; one without an answer is in doubt.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Tag;
use super::super::threads::NoAnswer;
use super::rows::{CellNews, CellPlace, CellRow, CellTurn, LogCell, Row, empty, news, passed, told};
use super::wait::ServerThread;
use crate::base::{EntryId, Env, Error, ErrorKind, Result};

/// The largest content of a row: etcd takes requests of 1.5 MiB, and carries bytes as text.
const BYTES_MAX: usize = 1 << 20;
/// How many offers are read: etcd takes transactions of up to 128 parts.
const OFFERS_MAX: usize = 64;

/// A cell in etcd.
pub struct EtcdCell {
    told: String,
    base: String,
    user: Option<(String, String)>,
    id: u128,
    env: Env,
    client: Client,
    thread: ServerThread,
    token: Mutex<Option<String>>,
}

impl std::fmt::Debug for EtcdCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdCell").field("address", &self.told).field("id", &self.id).finish_non_exhaustive()
    }
}

/// A key and its value, in base64.
#[derive(Deserialize)]
struct Pair {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EtcdRange {
    kvs: Vec<Pair>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TxnAnswer {
    succeeded: bool,
    responses: Vec<Response>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    response_range: EtcdRange,
}

/// Why a request has no result.
enum RequestFailure {
    /// The server says that it did not do it: the status and the text.
    Refused(u16, String),
    Silent(NoAnswer),
}

impl RequestFailure {
    fn error(self, told: &str) -> Error {
        match self {
            Self::Refused(status, text) => Error::unavailable(format!("{told}: status {status}: {text}")),
            Self::Silent(none) => none.error().context(told),
        }
    }
}

impl EtcdCell {
    /// The cell `id` at `etcd://host:2379`, or `etcds://` for a server with TLS. A user and a password come from the address, or
    /// from `ETCDCTL_USER` (`user:password`, or with `ETCDCTL_PASSWORD`).
    ///
    /// # Errors
    /// `InvalidArgument` for an address that makes no sense, `Unavailable` if it cannot be reached.
    pub fn open(address: &str, id: u128, env: Env) -> Result<Self> {
        let bad = |e| Error::invalid(format!("the log's address cannot be parsed: {e}; expected etcd://host:2379"));
        let url = url::Url::parse(address).map_err(bad)?;
        let told = told(address)?;
        if url.query().is_some() {
            return Err(Error::invalid("the log's address has parameters; expected etcd://host:2379"));
        }
        let (scheme, rest) = told.split_once("://").unwrap_or_default();
        let port = if url.port().is_some() { "" } else { ":2379" };
        let base = format!("{}://{rest}{port}", if scheme == "etcds" { "https" } else { "http" });
        // One installed earlier is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().connect_timeout(Duration::from_secs(10)).build();
        let client = client.map_err(|e| Error::unavailable("no client for etcd could be made").with_source(e))?;
        let user = user(&url);
        let (thread, token) = (ServerThread::start()?, Mutex::new(None));
        let cell = Self { told, base, user, id, env, client, thread, token };
        // Whether anything answers there.
        cell.ask("/v3/maintenance/status", &json!({}))
            .map_err(|failure| failure.error(&cell.told).context("the server of the log cannot be reached"))?;
        Ok(cell)
    }

    fn prefix(&self, kind: char) -> String {
        format!("drumlin/{:032x}/{kind}/", self.id)
    }

    fn key(&self, kind: char, number: u64) -> String {
        base64(format!("{}{number:016x}", self.prefix(kind)).as_bytes())
    }

    /// The rows of one kind from a number on.
    fn from(&self, kind: char, number: u64) -> Value {
        json!({ "key": self.key(kind, number), "range_end": self.end(kind) })
    }

    /// The first key behind all rows of a kind.
    fn end(&self, kind: char) -> String {
        let mut end = self.prefix(kind).into_bytes();
        end.pop();
        // It follows '/'.
        end.push(b'0');
        base64(&end)
    }

    /// Sends a request, with the token of the user if there is one, and returns the answer.
    fn ask(&self, path: &str, body: &Value) -> Result<Vec<u8>, RequestFailure> {
        if self.user.is_some() && self.token.lock().is_none() {
            self.log_in()?;
        }
        match self.send(path, body) {
            // The token has expired. Nothing was done.
            Err(RequestFailure::Refused(401, _)) if self.user.is_some() => {
                self.log_in()?;
                self.send(path, body)
            }
            other => other,
        }
    }

    fn log_in(&self) -> Result<(), RequestFailure> {
        #[derive(Deserialize)]
        struct Token {
            token: String,
        }
        let Some((name, password)) = &self.user else { return Ok(()) };
        *self.token.lock() = None;
        let answer = self.send("/v3/auth/authenticate", &json!({ "name": name, "password": password }))?;
        let token: Token = serde_json::from_slice(&answer)
            .map_err(|_| RequestFailure::Refused(200, "the answer has no token for the user".to_owned()))?;
        *self.token.lock() = Some(token.token);
        Ok(())
    }

    fn send(&self, path: &str, body: &Value) -> Result<Vec<u8>, RequestFailure> {
        let mut request = self.client.post(format!("{}{path}", self.base)).body(body.to_string());
        if let Some(token) = &*self.token.lock() {
            request = request.header("Authorization", token);
        }
        self.env.metrics.log_requests.add(1);
        let asked = async move {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        };
        match self.thread.wait(asked) {
            Ok(Ok((200, bytes))) => Ok(bytes.to_vec()),
            Ok(Ok((status, bytes))) => {
                let text: String = String::from_utf8_lossy(&bytes).chars().take(300).collect();
                Err(RequestFailure::Refused(status, text))
            }
            Ok(Err(e)) => {
                let unsent = e.is_connect() || e.is_builder();
                let e = Error::unavailable(format!("no answer: {}", e.without_url()));
                Err(RequestFailure::Silent(if unsent { NoAnswer::Unsent(e) } else { NoAnswer::Sent(e) }))
            }
            Err(none) => Err(RequestFailure::Silent(none)),
        }
    }

    fn bad(&self) -> Error {
        Error::corrupt(format!("{}: the log's cell has a row of another kind", self.told))
    }

    /// The rows from a number on, as they are together.
    fn rows(&self, from: u64) -> Result<Vec<Row>> {
        self.parsed(&self.requested(&self.ranges(from))?)
    }

    fn ranges(&self, from: u64) -> Vec<Value> {
        ['s', 'r'].map(|kind| json!({ "requestRange": self.from(kind, from) })).into()
    }

    /// The answers to requests that are done together; they are sent again if the answer is lost.
    fn requested(&self, requests: &[Value]) -> Result<Vec<Response>> {
        let requests = json!({ "success": requests });
        let answer = match self.ask("/v3/kv/txn", &requests) {
            Err(RequestFailure::Silent(NoAnswer::Sent(e))) if e.kind() != ErrorKind::Cancelled => {
                self.ask("/v3/kv/txn", &requests)
            }
            other => other,
        };
        let answer = answer.map_err(|failure| failure.error(&self.told))?;
        let answer: TxnAnswer = serde_json::from_slice(&answer).map_err(|_| self.bad())?;
        Ok(answer.responses)
    }

    /// The rows of which these are the stamps and the contents.
    fn parsed(&self, responses: &[Response]) -> Result<Vec<Row>> {
        let [stamps, contents] = responses else { return Err(self.bad()) };
        let number = |pair: &Pair| {
            let key = String::from_utf8(unbase64(&pair.key)?).ok()?;
            u64::from_str_radix(key.rsplit('/').next()?, 16).ok()
        };
        let stamp = |pair: &Pair| Some(u128::from_be_bytes(unbase64(&pair.value)?.try_into().ok()?));
        let stamps = stamps.response_range.kvs.iter().map(|pair| Some((number(pair)?, stamp(pair)?)));
        let stamps: BTreeMap<u64, u128> = stamps.collect::<Option<_>>().ok_or_else(|| self.bad())?;
        let row = |pair: &Pair| {
            let number = number(pair)?;
            let place = CellPlace { number, stamp: *stamps.get(&number)? };
            let content = Bytes::from(unbase64(&pair.value)?);
            Some(Row { place, head: *content.first()? == 1, content: content.slice(1..) })
        };
        let rows: Option<Vec<Row>> = contents.response_range.kvs.iter().map(row).collect();
        rows.filter(|rows| rows.len() == stamps.len()).ok_or_else(|| self.bad())
    }

    /// What rows say that were found from `known` on; the whole value if that is not enough.
    fn news_of(&self, known: Option<(CellPlace, Vec<Row>)>) -> Result<CellNews> {
        if let Some((known, rows)) = known
            && let Some(news) = news(Some(known), rows)?
        {
            return Ok(news);
        }
        news(None, self.rows(0)?)?.ok_or_else(|| empty(&self.told))
    }

    /// All offers.
    fn offers(&self) -> Value {
        json!({ "key": base64(self.prefix('o').as_bytes()), "range_end": self.end('o') })
    }

    fn offer(&self, id: EntryId) -> String {
        base64(format!("{}{:032x}", self.prefix('o'), id.0).as_bytes())
    }

    fn deleting(&self, offer: EntryId) -> Value {
        json!({ "requestDeleteRange": { "key": self.offer(offer) } })
    }

    /// Deletes the rows before a number, and all offers.
    fn delete(&self, before: u64) -> Result<()> {
        let range = |kind| json!({ "key": self.key(kind, 0), "range_end": self.key(kind, before) });
        let deleted = json!({ "success": [
            { "requestDeleteRange": range('s') },
            { "requestDeleteRange": range('r') },
            { "requestDeleteRange": self.offers() },
        ] });
        self.ask("/v3/kv/txn", &deleted).map(drop).map_err(|failure| failure.error(&self.told))
    }
}

/// Who asks.
fn user(url: &url::Url) -> Option<(String, String)> {
    if !url.username().is_empty() {
        return Some((percent(url.username())?, percent(url.password().unwrap_or_default())?));
    }
    let user = std::env::var("ETCDCTL_USER").ok().filter(|user| !user.is_empty())?;
    Some(match user.split_once(':') {
        Some((name, password)) => (name.to_owned(), password.to_owned()),
        None => (user, std::env::var("ETCDCTL_PASSWORD").unwrap_or_default()),
    })
}

/// A text of an address without its escapes.
fn percent(text: &str) -> Option<String> {
    Some(percent_encoding::percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

impl LogCell for EtcdCell {
    fn read(&self, known: Option<&Tag>) -> Result<CellNews> {
        let known = known.map(CellPlace::of).transpose()?;
        self.news_of(known.map(|known| Ok::<_, Error>((known, self.rows(known.number)?))).transpose()?)
    }

    fn takes_offers(&self) -> bool {
        true
    }

    /// There are no turns: each process that looks may race for the next row.
    fn read_offering(&self, known: &Tag, id: EntryId, offer: &Bytes) -> Result<CellTurn> {
        let known = CellPlace::of(known)?;
        let mut requests = self.ranges(known.number);
        let mut range = self.offers();
        range["limit"] = OFFERS_MAX.to_string().into();
        requests.push(json!({ "requestRange": range }));
        requests.push(json!({ "requestPut": { "key": self.offer(id), "value": base64(offer) } }));
        let responses = self.requested(&requests)?;
        let [rows @ .., offers, _] = &responses[..] else { return Err(self.bad()) };
        let offers = offers.response_range.kvs.iter().filter_map(|pair| unbase64(&pair.value));
        let offers = offers.map(Bytes::from).chain([offer.clone()]).collect();
        Ok(CellTurn { news: self.news_of(Some((known, self.parsed(rows)?)))?, leads: true, offers })
    }

    fn withdraw(&self, offers: &[EntryId]) {
        let deleted: Vec<Value> = offers.iter().map(|id| self.deleting(*id)).collect();
        drop(self.ask("/v3/kv/txn", &json!({ "success": deleted })));
    }

    fn put(&self, row: &CellRow, known: Option<&Tag>, offers: &[EntryId]) -> Result<Tag> {
        let (known, next) = CellPlace::after(known, &self.env)?;
        let (head, content) = row.parts();
        if content.len() > BYTES_MAX {
            return Err(Error::invalid(format!(
                "the commit takes {} bytes of the log; etcd takes {BYTES_MAX} at most; do it in parts",
                content.len()
            )));
        }
        let absent = |key: String, end: Option<String>| {
            let mut absent = json!({ "target": "CREATE", "key": key, "createRevision": "0" });
            if let Some(end) = end {
                absent["range_end"] = end.into();
            }
            absent
        };
        let compare = match known {
            // Of no row at all.
            None => vec![absent(self.key('s', 0), Some(self.end('s')))],
            Some(known) => vec![
                absent(self.key('s', next.number), None),
                json!({ "target": "VALUE", "key": self.key('s', known.number), "value": base64(&known.stamp.to_be_bytes()) }),
            ],
        };
        let content = base64(&[&[u8::from(head)][..], content].concat());
        let stamp = base64(&next.stamp.to_be_bytes());
        let mut done = vec![
            json!({ "requestPut": { "key": self.key('s', next.number), "value": stamp } }),
            json!({ "requestPut": { "key": self.key('r', next.number), "value": content } }),
        ];
        done.extend(offers.iter().map(|id| self.deleting(*id)));
        let put = json!({ "compare": compare, "success": done });
        let answer = match self.ask("/v3/kv/txn", &put) {
            Ok(answer) => answer,
            Err(RequestFailure::Silent(NoAnswer::Unsent(e))) => return Err(e.context(&self.told)),
            // It was not taken.
            Err(RequestFailure::Refused(status @ (400 | 401 | 403), text)) => {
                return Err(Error::unavailable(format!("{}: status {status}: {text}", self.told)));
            }
            Err(failure) => {
                let e = failure.error(&self.told);
                return Err(Error::in_doubt(e.message()));
            }
        };
        match serde_json::from_slice::<TxnAnswer>(&answer) {
            Ok(TxnAnswer { succeeded: true, .. }) => Ok(next.tag()),
            Ok(_) => Err(passed()),
            Err(_) => Err(Error::in_doubt(format!("{}: the answer cannot be read", self.told))),
        }
    }

    fn trim(&self, head: &Tag) -> Result<()> {
        self.delete(CellPlace::of(head)?.number)
    }

    fn remains(&self) -> Result<u64> {
        let mut requests = self.ranges(0);
        requests.push(json!({ "requestRange": self.offers() }));
        let found = self.requested(&requests)?;
        let [rows @ .., offers] = &found[..] else { return Err(self.bad()) };
        let before = self.parsed(rows)?.iter().rposition(|row| row.head).unwrap_or(0);
        Ok((before + offers.response_range.kvs.len()) as u64)
    }

    fn advice(&self) -> Result<Vec<String>> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            members: Vec<Value>,
        }
        let answer = self.ask("/v3/cluster/member/list", &json!({})).map_err(|failure| failure.error(&self.told))?;
        let Members { members } = serde_json::from_slice(&answer).map_err(|_| self.bad())?;
        let advice = "the cluster has one member: if its disk is lost, so are the last commits; let it have three";
        Ok((members.len() < 2).then(|| advice.to_owned()).into_iter().collect())
    }

    fn address(&self) -> &str {
        &self.told
    }
}
