//! Checking a store, or a bucket for one, and copying what can be read of a damaged store. Trusts nothing that it reads.

pub(super) mod doctor;
pub(super) mod salvage;
pub(super) mod salvage_copy;
pub(super) mod salvage_report;
pub(super) mod verify;
