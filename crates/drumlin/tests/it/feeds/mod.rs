//! Feeds of the rows of tables, followers, and triggers.

pub mod followers;
pub mod row_feeds;
pub mod row_triggers;
