//! A client that sends what it is given, byte by byte, and a store to ask about.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use drumlin::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use drumlin::{Store, Tables};
use drumlin_ui::{Options, Server, serve};
use serde_json::Value;

/// What the server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A server that shows a store, and its token.
pub struct Shown {
    pub store: Store,
    pub server: Server,
    pub token: String,
}

/// Shows a store in memory with a few tables.
pub fn shown(write: bool) -> Shown {
    let store = Store::memory().unwrap();
    store.write("prices/us/AAPL", rows(0, 1000), &Default::default()).unwrap();
    store.with_message("more of it").unwrap().append("prices/us/AAPL", rows(1000, 500), &Default::default()).unwrap();
    store.write("prices/us/MSFT", rows(0, 10), &Default::default()).unwrap();
    show(store, write)
}

/// Shows a store.
pub fn show(store: Store, write: bool) -> Shown {
    let server = serve(store.clone(), &Options { port: 0, write }).unwrap();
    let token = server.address().split_once("#token=").unwrap().1.to_owned();
    Shown { store, server, token }
}

/// Rows with a number, half of it, and a text.
pub fn rows(from: i64, count: i64) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(from..from + count)) as ArrayRef;
    let halves = Arc::new(Float64Array::from_iter_values((from..from + count).map(|n| n as f64 / 2.0))) as ArrayRef;
    let texts = StringArray::from_iter_values((from..from + count).map(|n| format!("row {n}")));
    RecordBatch::try_from_iter([("n", numbers), ("half", halves), ("text", Arc::new(texts) as ArrayRef)]).unwrap()
}

impl Shown {
    /// Sends bytes and reads to the end.
    pub fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may close before all is sent.
        let _ = stream.write_all(bytes);
        read(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.local()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    pub fn host(&self) -> String {
        self.server.local().to_string()
    }

    /// A request with further header lines, each with its end.
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let host = self.host();
        self.send(
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}{headers}\r\n{body}")
                .as_bytes(),
        )
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// What the page would get.
    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &self.bearer(), "")
    }

    /// A change that the page would make.
    pub fn post(&self, target: &str, body: &str) -> Answer {
        self.ask("POST", target, &format!("{}Content-Type: application/json\r\n", self.bearer()), body)
    }
}

/// Reads an answer to its end.
pub fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes.get(end + 4..).unwrap_or_default().to_vec() }
}
