//! Values derived from others, computed once.

use std::sync::{Arc, OnceLock};

use crate::base::Result;

/// Something derived from the value that it is part of: computed on first use, shared by clones, and ignored when values are
/// compared.
#[derive(Debug)]
pub struct Memo<T>(OnceLock<Arc<T>>);

impl<T> Memo<T> {
    /// The value, if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.0.get().map(|known| &**known)
    }

    /// The value, computed by `work` if need be; an error is not kept.
    pub fn get_or_try(&self, work: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(known) = self.0.get() {
            return Ok(known);
        }
        let made = Arc::new(work()?);
        Ok(self.0.get_or_init(|| made))
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Memo<T> {}
