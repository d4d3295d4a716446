//! Which rows are wanted of those that a version shows: by a filter, by a range of the order, by whether they have expired.

pub mod expiry;
pub mod matches;
pub mod matching;
pub mod range;
pub mod truth;
