//! `ui`: shows a store in a browser.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use drumlin::embedding::{Clock, SystemClock};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Output, say};
use crate::place::Place;

/// Show the store in a browser, until interrupted
///
/// Serves a page on 127.0.0.1 with the tree, tables, versions, charts, the layout on storage and the commit log. The address that is
/// printed has a token, without which nothing of the store is shown. Nothing is changed, unless --write lets the page run
/// checkpoints and restore dropped tables; then no other process can write a store in a folder at the same time.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin ui market.drumlin")]
pub struct Ui {
    #[command(flatten)]
    place: Place,
    /// Listen on this port [default: any that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Let the page run checkpoints and restore dropped tables
    #[arg(long)]
    write: bool,
    /// Print the address only, without opening a browser
    #[arg(long)]
    no_open: bool,
}

/// The maximum delay before an interruption is noticed.
const WAIT: Duration = Duration::from_millis(100);

impl Ui {
    /// Prints the address, and waits.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = if self.write { self.place.write()? } else { self.place.read()? };
        let cancel = interrupt::listen();
        let options = drumlin_ui::Options { port: self.port, write: self.write };
        let server = drumlin_ui::serve(store.clone(), &options)?;
        writeln!(out, "{}", server.address())?;
        out.flush()?;
        say("the address is a key to the store: give it to nobody; Ctrl-C ends the server");
        if !self.no_open
            && let Err(e) = server.open_browser()
        {
            say(e.message());
        }
        while cancel.check().is_ok() {
            SystemClock.pause(WAIT);
        }
        server.close();
        store.close()?;
        Err(Failure::Interrupted("the server has ended".into()))
    }
}
