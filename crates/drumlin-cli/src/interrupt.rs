//! Ctrl-C during a long command: the first asks it to stop at its next step, the second ends the process at once. A store
//! is never damaged by either.

use std::io::{self, Write};
use std::sync::OnceLock;

use drumlin::Cancel;

static CANCEL: OnceLock<Cancel> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

/// The flag that Ctrl-C sets once a command listens. All that a command waits for ends when it is set.
pub fn flag() -> Cancel {
    CANCEL.get_or_init(Cancel::default).clone()
}

/// The flag that Ctrl-C sets from now on. Before the first call Ctrl-C ends the process, as usual.
pub fn listen() -> Cancel {
    LISTENING.get_or_init(|| {
        let flag = flag();
        let handler = move || {
            if flag.check().is_err() {
                std::process::exit(130);
            }
            flag.cancel();
            let _ = writeln!(io::stderr(), "\ndrumlin: stopping; press Ctrl-C again to end at once");
        };
        // If the process that embeds this has its own handler, that one is used instead.
        let _ = ctrlc::set_handler(handler);
    });
    flag()
}
