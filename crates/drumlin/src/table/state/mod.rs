//! What a table is: its versions and row groups as a value, and the edits that commits make of it. Pure: no bytes of a row group are read
//! here.

pub(super) mod adopt;
pub(super) mod as_of;
pub(super) mod carry;
pub(super) mod change;
pub(super) mod edits;
pub(super) mod erase;
pub(super) mod instants;
pub(super) mod lineage;
pub(super) mod moves;
pub(super) mod restore;
pub(super) mod stories;
pub(super) mod story;
pub(super) mod table;
pub(super) mod update;
