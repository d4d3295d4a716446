//! Where stores are: what their addresses name.

use std::path::Path as FilePath;

use crate::base::{Error, Result};

/// Whether a store lives in memory, where no other process reaches it.
pub(in crate::store) fn is_in_memory(uri: &str) -> bool {
    uri == "memory://"
}

/// The folder that `uri` names.
pub(in crate::store) fn folder_of(uri: &str) -> Result<&FilePath> {
    let path = match uri.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            return Err(Error::invalid(format!(
                "'{scheme}://' is not known; expected a path, 'file://', 's3://', 'gs://', 'az://' or 'memory://'"
            )));
        }
        None => uri,
    };
    match path.is_empty() {
        true => Err(Error::invalid("the path of the store is empty; give a folder or an address")),
        false => Ok(FilePath::new(path)),
    }
}
