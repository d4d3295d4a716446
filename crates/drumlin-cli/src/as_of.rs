//! `--as-of`: which version to read.

use drumlin::AsOf;

/// What the text stands for, if there is any, as everywhere: see [`AsOf::parse`].
pub fn resolve(text: Option<&str>) -> AsOf {
    text.map_or(AsOf::Newest, AsOf::parse)
}
