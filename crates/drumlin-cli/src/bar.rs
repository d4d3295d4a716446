//! Shows progress on standard error if that is a terminal.

use std::sync::Arc;

use drumlin::{Cancel, Progress, Task};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::figures;

const KNOWN: &str = "{prefix} [{bar:28}] {percent:>3}%  {msg}  ETA {eta}";
const UNKNOWN: &str = "{prefix} {spinner} {msg}  {elapsed}";

/// One line that shows the progress of a long operation. Removed when dropped.
#[derive(Clone)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows what it is `doing`, in `total` steps; 0 if not known yet.
    pub fn new(doing: &'static str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_prefix(doing);
        let bar = Self(bar);
        bar.set_total(total);
        bar
    }

    /// An invisible bar.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    fn set_total(&self, total: u64) {
        let template = if total > 0 { KNOWN } else { UNKNOWN };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        self.0.set_style(style.progress_chars("=> "));
        self.0.set_length(total);
    }

    /// Steps done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Sets the text next to the bar: rows, if any, and bytes.
    pub fn tell(&self, rows: u64, bytes: u64) {
        let rows = if rows > 0 { format!("{}, ", figures::counted(rows, "row")) } else { String::new() };
        self.0.set_message(format!("{rows}{}", figures::bytes(bytes)));
    }

    /// A task whose steps move the bar.
    pub fn task(&self, cancel: &Cancel) -> Task {
        let bar = self.clone();
        task_of(cancel, move |progress| {
            bar.advance(progress);
            bar.tell(progress.rows, progress.bytes);
        })
    }

    /// A task whose steps move the bar; each step is one `noun`.
    pub fn task_counting(&self, cancel: &Cancel, noun: &'static str) -> Task {
        let bar = self.clone();
        task_of(cancel, move |progress| {
            bar.advance(progress);
            bar.0.set_message(figures::counted(progress.done, noun));
        })
    }

    /// A task that only reports rows and bytes: the bar is moved by other means.
    pub fn task_beside(&self, cancel: &Cancel) -> Task {
        let bar = self.clone();
        task_of(cancel, move |progress| bar.tell(progress.rows, progress.bytes))
    }

    fn advance(&self, progress: Progress) {
        if progress.total > 0 && self.0.length() != Some(progress.total) {
            self.set_total(progress.total);
        }
        self.set(progress.done);
    }

    /// Removes the bar from the screen.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

fn task_of(cancel: &Cancel, step: impl Fn(Progress) + Send + Sync + 'static) -> Task {
    Task { cancel: cancel.clone(), progress: Some(Arc::new(step)) }
}
