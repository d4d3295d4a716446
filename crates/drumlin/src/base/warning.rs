//! What a store notices by itself and nobody asked for, such as a trigger that failed. It goes to a function that the
//! caller gives, which is never called under a lock of the store. The Python package hands warnings to `logging`.

use std::fmt;
use std::sync::Arc;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// A trigger's callback failed.
    TriggerFailed,
    /// An automatic checkpoint failed; if the log has grown far beyond its bound, the next call that writes says so, too.
    CheckpointFailed,
    /// A checkpoint took long.
    SlowCheckpoint,
    /// A commit had to be tried many times, because other processes came first.
    ManyRetries,
    /// A reclaim could not delete everything; the next one tries again.
    ReclaimIncomplete,
    /// Very many nodes were deleted in one commit, because a presence ended.
    LargeCascade,
    /// A view could not be brought up to date after a commit.
    ViewBehind,
    /// A replica could not be brought up to date; it is tried again.
    ReplicaBehind,
}

impl WarningKind {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::TriggerFailed => "trigger_failed",
            WarningKind::CheckpointFailed => "checkpoint_failed",
            WarningKind::SlowCheckpoint => "slow_checkpoint",
            WarningKind::ManyRetries => "many_retries",
            WarningKind::ReclaimIncomplete => "reclaim_incomplete",
            WarningKind::LargeCascade => "large_cascade",
            WarningKind::ViewBehind => "view_behind",
            WarningKind::ReplicaBehind => "replica_behind",
        }
    }
}

/// A function that warnings are handed to; by default they are dropped. It is called by whichever thread notices something, which
/// holds no lock of the store.
#[derive(Clone, Default)]
pub struct Warn(Option<Arc<WarnFn>>);

type WarnFn = dyn Fn(WarningKind, &str) + Send + Sync;

impl Warn {
    /// Hands warnings to `function`: what each is about, and what it says.
    pub fn new(function: impl Fn(WarningKind, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    /// Gives a warning. A panic of the function harms nothing.
    pub fn say(&self, kind: WarningKind, text: impl FnOnce() -> String) {
        if let Some(function) = &self.0 {
            let _ = super::caught(|| {
                function(kind, &text());
                Ok(())
            });
        }
    }
}

impl PartialEq for Warn {
    /// Functions cannot be compared, and change nothing that a store does: all are equal.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Warn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Warn(function)" } else { "Warn(nothing)" })
    }
}
