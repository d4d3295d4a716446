//! What a store does by itself about what has been committed.

use crate::base::Cancel;
use crate::store::Store;
use crate::store::handle::Hooks;

/// See the module.
pub(in crate::store) const HOOKS: Hooks = Hooks {
    committed: |store| {
        store.attend_if_due();
        store.checkpoint_if_due();
    },
    refreshed: Store::attend_if_due,
    catch_up: |store, view, some| store.catch_up_with(view, some, &Cancel::default()).map(drop),
};
