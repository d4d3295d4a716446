//! Where stores are: what their addresses name.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::storage::{BucketStorage, FileStorage, OsDisk, Storage, is_bucket};
use crate::store::Options;

/// What is written before `://`, or before `:` by mistake.
const SCHEMES: [&str; 13] =
    ["s3", "s3a", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "file", "memory"];

/// Whether a store lives in memory, where no other process reaches it.
pub(in crate::store) fn is_in_memory(uri: &str) -> bool {
    uri == "memory://"
}

/// Whether a store is in a bucket, where each write is a request.
pub(in crate::store) fn is_in_bucket(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(scheme, _)| !["file", "memory"].contains(&scheme))
}

/// The storage of the store at `uri`, to be read or added to beside the process that writes its log.
pub(in crate::store) fn open_storage(uri: &str, options: &Options) -> Result<Arc<dyn Storage>> {
    if is_bucket(uri) {
        return Ok(Arc::new(BucketStorage::open(uri, &options.bucket.0, options.io_threads)?));
    }
    if is_in_memory(uri) {
        return Err(Error::invalid(format!("no other process can open {uri}; use a folder or a bucket")));
    }
    Ok(Arc::new(FileStorage::new(Arc::new(OsDisk::open(&folder_of(uri)?)?))))
}

/// The folder that `uri` names: a path, or `file:` in any of its forms, in which `%20` is a space. What looks like another
/// address is refused, since a folder of that name is not what is meant.
pub(in crate::store) fn folder_of(uri: &str) -> Result<PathBuf> {
    let path = match uri.split_once("://") {
        Some(("file", path)) => decoded(path.strip_prefix("localhost/").map_or(path, |_| &path["localhost".len()..])),
        Some((scheme, _)) => {
            return Err(Error::invalid(format!(
                "'{scheme}://' is not known; expected a path, 'file://', 's3://', 'gs://', 'az://' or 'memory://'"
            )));
        }
        None => match uri.split_once(':') {
            Some(("file", path)) => decoded(path),
            Some(("", "memory:")) | Some(("memory", _)) => return Err(meant(uri, "memory://")),
            Some((scheme, rest)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
                return Err(meant(uri, &format!("{scheme}://{}", rest.trim_start_matches('/'))));
            }
            _ => uri.to_owned(),
        },
    };
    match path.is_empty() {
        true => Err(Error::invalid("the path of the store is empty; give a folder or an address")),
        false => Ok(PathBuf::from(path)),
    }
}

fn meant(uri: &str, address: &str) -> Error {
    Error::invalid(format!("'{uri}' is not an address; expected '{address}', or './{uri}' for a folder of that name"))
}

/// A path in which `%20` is a space; as it is if that is no text.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let coded = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = coded.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn folders_are_named_in_many_ways() {
        for (uri, folder) in [
            ("a/b", "a/b"),
            ("a:b", "a:b"),
            ("./s3:/x", "./s3:/x"),
            ("100%", "100%"),
            ("file:///tmp/a%20b", "/tmp/a b"),
            ("file://localhost/tmp/a", "/tmp/a"),
            ("file:/tmp/a", "/tmp/a"),
            ("file:a", "a"),
            ("file://a/100%", "a/100%"),
            ("file:///%ff", "/%ff"),
        ] {
            assert_eq!(folder_of(uri).unwrap().to_str(), Some(folder), "{uri}");
        }
        for (uri, told) in [
            ("s3:/b/p", "'s3://b/p'"),
            ("S3:b", "'S3://b'"),
            (":memory:", "'memory://'"),
            ("memory:", "'memory://'"),
            ("ftp://x", "'ftp://' is not known"),
            ("", "is empty"),
            ("file:", "is empty"),
        ] {
            let error = folder_of(uri).unwrap_err();
            assert!(error.message().contains(told), "{uri}: {error}");
        }
    }
}
