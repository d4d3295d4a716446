//! Decoding with as little work as the answer needs: some rows, a cheaper type, pieces joined.

pub(super) mod expand;
pub(super) mod export;
pub(super) mod form;
pub(super) mod join;
pub(super) mod pick;
pub(super) mod select;
pub(super) mod types;
pub(super) mod within;
