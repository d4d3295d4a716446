//! The file that says what a folder is: a line of text, written last when a store is made.
//!
//! ```text
//! drumlin store, format 6, id <32 hexadecimal digits>, checksum <8 hexadecimal digits>
//! ```
//!
//! In a store that goes ways of its own since a loss was accepted, or since it was salvaged, the id is followed by `, parent`, the id
//! of the store that it was, the number of the last commit that both have, and the id of its entry. Format 5 has no id.

use crate::base::{EntryId, Error, ErrorKind, Result, Seq, checksum};
use crate::log::{Origin, Point};
use crate::storage::{Storage, names};

/// Version of the format as a whole. The parts have versions of their own.
const FORMAT_VERSION: u32 = 6;
/// The version without an id.
const FORMAT_VERSION_MIN: u32 = 5;

pub(in crate::store) fn format_text(origin: &Origin) -> String {
    let Origin { store, parent } = origin;
    let parent = parent.map(|Point { store, seq, entry }| format!(", parent {store:032x} {seq} {:032x}", entry.0));
    let text = match store {
        0 => format!("drumlin store, format {FORMAT_VERSION_MIN}"),
        _ => format!("drumlin store, format {FORMAT_VERSION}, id {store:032x}{}", parent.unwrap_or_default()),
    };
    format!("{text}, checksum {:08x}\n", checksum(text.as_bytes()))
}

/// Checks that the folder is a store that this build can open, and says which; `NotFound` if it is not a store.
pub(in crate::store) fn read_format(storage: &dyn Storage, uri: &str) -> Result<Origin> {
    let bytes = storage.get(names::FORMAT).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::not_found(format!("there is no store at {uri}")),
        _ => e,
    })?;
    let corrupt = || Error::corrupt(format!("{uri}: the file '{}' is damaged", names::FORMAT));
    let text = std::str::from_utf8(&bytes).map_err(|_| corrupt())?;
    let (text, sum) = text.strip_suffix('\n').and_then(|t| t.rsplit_once(", checksum ")).ok_or_else(corrupt)?;
    let rest = text.strip_prefix("drumlin store, format ").ok_or_else(corrupt)?;
    if sum != format!("{:08x}", checksum(text.as_bytes())) {
        return Err(corrupt());
    }
    let (version, more) = rest.split_once(", ").unwrap_or((rest, ""));
    match version.parse() {
        Ok(FORMAT_VERSION_MIN) if more.is_empty() => Ok(Origin::default()),
        Ok(FORMAT_VERSION) => parse_origin(more).ok_or_else(corrupt),
        _ => {
            let known = format!("formats {FORMAT_VERSION_MIN} and {FORMAT_VERSION}");
            Err(Error::unsupported(format!(
                "{uri}: the store has format {version}, and this build reads {known}; open it with the version of \
                 drumlin that wrote it"
            )))
        }
    }
}

fn parse_origin(text: &str) -> Option<Origin> {
    let id = |text: &str| u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    let point = |text: &str| {
        let mut parts = text.split(' ');
        let point = Point {
            store: id(parts.next()?)?,
            seq: Seq(parts.next()?.parse().ok()?),
            entry: EntryId(id(parts.next()?)?),
        };
        parts.next().is_none().then_some(point)
    };
    let text = text.strip_prefix("id ")?;
    let (store, parent) = match text.split_once(", parent ") {
        Some((store, parent)) => (store, Some(point(parent)?)),
        None => (text, None),
    };
    Some(Origin { store: id(store).filter(|id| *id != 0)?, parent })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::{SimBucket, WriteMode};

    #[test]
    fn it_comes_back_and_any_damage_is_reported() {
        let parent = Point { store: 7, seq: Seq(12), entry: EntryId(u128::MAX) };
        for origin in [Origin::default(), Origin { store: 5, parent: None }, Origin::fork(u128::MAX, parent)] {
            let text = format_text(&origin);
            let read = |text: Vec<u8>| {
                let bucket = SimBucket::new();
                bucket.put(names::FORMAT, &[Bytes::from(text)], WriteMode::Create).unwrap();
                read_format(&bucket, "the store")
            };
            assert_eq!(read(text.clone().into_bytes()).unwrap(), origin);
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(read(damaged).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
                assert_eq!(read(text.as_bytes()[..at].to_vec()).unwrap_err().kind(), ErrorKind::Corrupt, "cut at {at}");
            }
            for other in [text.replace("format 6", "format 7"), text.replace("format 5", "format 4")] {
                if other != text {
                    let (text, _) = other.rsplit_once(", checksum ").unwrap();
                    let sealed = format!("{text}, checksum {:08x}\n", checksum(text.as_bytes()));
                    assert_eq!(read(sealed.into_bytes()).unwrap_err().kind(), ErrorKind::Unsupported);
                }
            }
        }
    }
}
