//! Checks whether a bucket keeps its promises before a store is created in it: a bucket whose conditional writes are
//! not conditional would lose commits.

use std::sync::Arc;
use std::sync::mpsc::channel;

use bytes::Bytes;

use crate::base::waiting::Context;
use crate::base::{Env, Error, ErrorKind, Result, waiting};
use crate::storage::{InlineStorage, Storage, Tag, names, put_patiently};

/// How many puts race for one object.
const RACERS: usize = 16;

fn lies(what: &str) -> Error {
    Error::unsupported(format!(
        "the bucket is not fit for a store: {what}; it must support conditional writes (If-Match, If-None-Match)"
    ))
}

/// Checks that exactly one of racing puts wins, that a put on a stale condition is refused, and so is a conditional put on a
/// missing object. Retries for `retry` microseconds if a put is refused because there are too many.
pub(in crate::store) fn probe(storage: &Arc<InlineStorage>, env: &Env, retry: u64) -> Result<()> {
    let nonce = env.entropy.next()?;
    let (raced, absent) = (format!("{}/{nonce:016x}", names::PROBE), format!("{}/{nonce:016x}-none", names::PROBE));
    let outcome = race(storage, env, retry, &raced).and_then(|first| {
        let kept = |put: Result<Tag>| put.map_err(|e| unfit(e, "a write with the current condition was refused"));
        let body = |text: &'static str| [Bytes::from_static(text.as_bytes())];
        let put = |name: &str, parts: &[Bytes], known: &Tag| {
            put_patiently(env, retry, || storage.put_if_match(name, parts, Some(known)))
        };
        let second = kept(put(&raced, &body("second"), &first))?;
        if second == first {
            return Err(lies("different content has the same tag"));
        }
        refused(put(&raced, &body("third"), &first), "a write with an outdated condition was accepted")?;
        refused(put(&absent, &body("none"), &first), "a conditional write to a missing object was accepted")?;
        let read = storage
            .get_tagged(&raced, Some(&first))
            .map_err(|e| unfit(e, "a read does not find what was written last"));
        match read? {
            Some((bytes, tag)) if bytes == "second" && tag == second => Ok(()),
            _ => Err(lies("a read does not return what was written last")),
        }
    });
    // Best effort: what stays is harmless.
    storage.delete_many(&[raced, absent]);
    let _ = storage.remove_empty_folder(names::PROBE);
    outcome
}

/// A bucket that keeps its promises does not answer with such an error here. One that gives no answer may do so later.
fn unfit(e: Error, what: &str) -> Error {
    match e.kind() {
        ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
            lies(&format!("{what} ({})", e.message()))
        }
        ErrorKind::InDoubt => Error::unavailable(format!("the bucket could not be tested: {}", e.message())),
        _ => e,
    }
}

fn refused(answer: Result<Tag>, otherwise: &str) -> Result<()> {
    match answer {
        Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
        Err(e) => Err(unfit(e, "a write with an outdated condition got an unexpected answer")),
        Ok(_) => Err(lies(otherwise)),
    }
}

/// Puts one object from many threads at once; returns the winner's tag.
fn race(storage: &Arc<InlineStorage>, env: &Env, retry: u64, name: &str) -> Result<Tag> {
    let (told, answers) = channel();
    for racer in 0..RACERS {
        let (storage, own, name, told) = (storage.clone(), env.clone(), name.to_owned(), told.clone());
        let context = Context::current();
        let put = move || {
            let body = [Bytes::from(format!("racer {racer}"))];
            let put = || put_patiently(&own, retry, || storage.put_if_match(&name, &body, None));
            let _ = told.send(context.run(put));
        };
        env.threads.spawn("drumlin-probe", Box::new(put))?;
    }
    drop(told);
    let mut all = Vec::with_capacity(RACERS);
    while let Ok(answer) = waiting::receive(&answers)? {
        all.push(answer);
    }
    let (won, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    if let Some(Err(e)) = lost.into_iter().find(|lost| lost.as_ref().is_err_and(|e| e.kind() != ErrorKind::Conflict)) {
        return Err(unfit(e, "one of several competing writes got an unexpected answer"));
    }
    let mut won: Vec<Tag> = won.into_iter().flatten().collect();
    match (won.pop(), won.len()) {
        (Some(tag), 0) => Ok(tag),
        (None, _) => Err(lies("none of several competing writes succeeded")),
        _ => Err(lies("more than one of several competing writes succeeded")),
    }
}
