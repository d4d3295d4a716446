//! Feeds of the rows of tables, and their followers.

pub mod followers;
pub mod row_feeds;
