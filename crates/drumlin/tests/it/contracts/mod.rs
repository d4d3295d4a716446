//! Contracts: lists of checks that every storage, every log and every encoding passes, on real servers too.

pub mod bucket_answers;
pub mod encodings;
pub mod logs;
pub mod servers;
pub mod storage;
pub mod storages;
