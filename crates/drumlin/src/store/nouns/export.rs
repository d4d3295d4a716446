//! Part of the tree as lines of JSON, and back.
//!
//! A line is an object: `path`, then `payload` with any JSON value, or `bytes` in hexadecimal; `keep_while`, if the node lives on other
//! nodes, a list of pairs of a path and a condition; and `expires`, if it ends by itself: when, in microseconds since 1970 in UTC. Nodes that
//! end with a presence are left out: they say that a program is there, which a file cannot.

use std::io::{BufRead, Write};

use serde_json::{Map, Value};

use crate::base::{Error, Progress, Result, Task, Timestamp, from_hex, to_hex};
use crate::catalog::{Condition, Content, Node, Payload, PutOptions, check_path};
use crate::store::{IntoPattern, Tree};

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Nodes that were created.
    pub created: u64,
    /// Existing nodes that got their payload.
    pub updated: u64,
}

/// A line that was read.
struct Line {
    path: String,
    payload: Payload,
    keep: Vec<(String, Condition)>,
    expires: Option<Timestamp>,
}

impl Tree {
    /// Writes the nodes that match `pattern` and carry a payload, a line of JSON each, in path order, as of one instant; not those that end
    /// with a presence. Returns how many.
    ///
    /// # Errors
    /// `InvalidArgument` if `pattern` is none, `Unavailable` if `to` cannot be written, `Cancelled`.
    pub fn export(&self, pattern: impl IntoPattern, to: &mut dyn Write, task: &Task) -> Result<u64> {
        let (pattern, state) = self.matching(pattern)?;
        let mut walker = state.tree.walk(&pattern);
        let mut done = Progress::default();
        let failed = |e: std::io::Error| Error::unavailable("the export could not be written").with_source(e);
        while let Some((path, node)) = walker.advance() {
            let Some(payload) = node.payload.as_ref().filter(|_| node.presence().is_none()) else { continue };
            serde_json::to_writer(&mut *to, &line(path, payload, node)?).map_err(|e| failed(e.into()))?;
            to.write_all(b"\n").map_err(failed)?;
            done.done += 1;
            task.step(done)?;
        }
        to.flush().map_err(failed)?;
        Ok(done.done)
    }

    /// Puts the nodes that [`Tree::export`] wrote, below the path `under` if one is given: all of them in one commit,
    /// or none.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the line that is no node; `Unavailable` if `from` cannot be read; `Cancelled`.
    pub fn import(&self, from: &mut dyn BufRead, under: Option<&str>, task: &Task) -> Result<ImportReport> {
        under.map_or(Ok(()), check_path)?;
        let mut lines: Vec<Line> = Vec::new();
        let mut text = String::new();
        for number in 1_u64.. {
            text.clear();
            let bytes = from.read_line(&mut text);
            let context = |e: Error| e.context(format!("line {number}"));
            if bytes.map_err(|e| context(Error::invalid(format!("it cannot be read as text: {e}"))))? == 0 {
                break;
            }
            if !text.trim().is_empty() {
                lines.push(parse(&text, under).map_err(context)?);
            }
            task.cancel.check()?;
        }
        let total = lines.len() as u64;
        self.place.change_many(None, |draft| {
            let mut done = Progress { total, ..Progress::default() };
            let mut report = ImportReport::default();
            for line in &lines {
                let change = draft.put(&line.path, line.payload.clone(), &PutOptions::default())?;
                *(if change.before.is_some() { &mut report.updated } else { &mut report.created }) += 1;
                done.done += 1;
                task.step(done)?;
            }
            // Only now does everything exist that a node may live on.
            for line in &lines {
                if !line.keep.is_empty() {
                    draft.keep_while(&line.path, &line.keep)?;
                }
                if let Some(until) = line.expires {
                    draft.end_at(&line.path, until)?;
                }
            }
            Ok(report)
        })
    }
}

fn line(path: &str, payload: &Payload, node: &Node) -> Result<Value> {
    let mut line = Map::new();
    line.insert("path".into(), path.into());
    match payload.content() {
        Content::Json(value) => line.insert("payload".into(), value.to_json()),
        Content::Bytes(bytes) => line.insert("bytes".into(), to_hex(bytes).into()),
    };
    if !node.keep_while().is_empty() {
        let keep = serde_json::to_value(node.keep_while());
        line.insert("keep_while".into(), keep.map_err(|e| Error::invalid(e.to_string()))?);
    }
    if let Some(until) = node.expires() {
        line.insert("expires".into(), until.0.into());
    }
    Ok(line.into())
}

fn parse(text: &str, under: Option<&str>) -> Result<Line> {
    let mut line: Map<String, Value> = serde_json::from_str(text).map_err(|e| Error::invalid(e.to_string()))?;
    let place = |path: &str| under.map_or_else(|| path.to_owned(), |under| format!("{under}/{path}"));
    let path = match line.remove("path") {
        Some(Value::String(path)) => place(&path),
        _ => return Err(Error::invalid("expected an object with a string 'path'")),
    };
    check_path(&path)?;
    let payload = match (line.remove("payload"), line.remove("bytes")) {
        (Some(value), None) => Payload::json(&value)?,
        (None, Some(Value::String(text))) => Payload::bytes(
            &from_hex(&text)
                .ok_or_else(|| Error::invalid("'bytes' is not hexadecimal; expected pairs of hexadecimal digits"))?,
        )?,
        _ => return Err(Error::invalid(format!("'{path}': expected either 'payload' or 'bytes' in hexadecimal"))),
    };
    let keep: Vec<(String, Condition)> = match line.remove("keep_while") {
        Some(keep) => serde_json::from_value(keep).map_err(|e| Error::invalid(format!("'{path}': keep_while: {e}")))?,
        None => Vec::new(),
    };
    let expires = match line.remove("expires").map(|expires| expires.as_i64()) {
        None => None,
        Some(Some(micros)) => Some(Timestamp(micros)),
        Some(None) => return Err(Error::invalid(format!("'{path}': expires: expected microseconds since 1970"))),
    };
    if let Some(unknown) = line.keys().next() {
        return Err(Error::invalid(format!(
            "'{path}': unknown field '{unknown}'; expected 'path', 'payload' or 'bytes', 'keep_while' and 'expires'"
        )));
    }
    let keep = keep.into_iter().map(|(path, condition)| (place(&path), condition)).collect();
    Ok(Line { path, payload, keep, expires })
}
