//! A page that shows a store: its tree, tables, versions, layout and log. A server on loopback, all of whose files are
//! in the binary; it changes nothing unless it is started for that.
//!
//! Rules, each with a test in *tests/rules.rs*: nothing of a store is shown without the token; nothing is shown to a
//! page of another site, or under another name of this host; no file of the disk is served; a store is changed only by
//! a POST that carries the token, on a server that was started to write; sizes and numbers of requests are bounded, and
//! a slow client holds nobody up.
//!
//! *guard.rs* decides by a request's head who is answered, *server.rs* bounds connections and jobs, *api* answers JSON
//! for metadata and Arrow IPC for rows. What the page draws of a store, `Layout` and `Activity` of the core, are
//! functions of one state.

#![deny(unsafe_code, missing_docs)]
#![warn(clippy::all)]

mod api;
mod assets;
mod browser;
mod guard;
mod patient;
mod query;
mod reply;
mod server;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use drumlin::embedding::{Entropy, OsEntropy};
use drumlin::{Cancel, Error, Result, Store};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use guard::Guard;
use server::Shared;

/// How a store is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The port on 127.0.0.1. Default: 0, any that is free.
    pub port: u16,
    /// Whether the page may run checkpoints and restore tables from the trash. Default: it changes nothing.
    pub write: bool,
}

/// A server that shows a store until it is closed or dropped.
pub struct Server {
    runtime: Mutex<Option<Runtime>>,
    closing: Cancel,
    local: SocketAddr,
    address: String,
    /// The file that took a browser to the address.
    opened: Mutex<Option<tempfile::NamedTempFile>>,
}

/// Threads that read requests and write answers; the store's work is done on others.
const THREADS: usize = 2;
/// How long answers under way may take once the server is closed.
const CLOSING: Duration = Duration::from_secs(2);

/// Shows `store` on 127.0.0.1. The store stays open while it is shown.
///
/// ```
/// let store = drumlin::Store::memory()?;
/// let server = drumlin_ui::serve(store, &drumlin_ui::Options::default())?;
/// assert!(server.address().starts_with("http://127.0.0.1:"));
/// server.close();
/// # Ok::<(), drumlin::Error>(())
/// ```
///
/// # Errors
/// `Unavailable` if the port is taken, or the system gives no randomness or thread.
pub fn serve(store: Store, options: &Options) -> Result<Server> {
    let asked = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let unavailable = |what: String| move |e: std::io::Error| Error::unavailable(format!("{what}: {e}"));
    let listener = TcpListener::bind(asked)
        .map_err(unavailable(format!("cannot listen on {asked}; give another port, or 0 for any free one")))?;
    let local = listener.local_addr().map_err(unavailable("cannot find out the address of the server".into()))?;
    listener.set_nonblocking(true).map_err(unavailable("cannot listen without blocking".into()))?;
    let token = token()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(server::JOBS_MAX + 2)
        .thread_name("drumlin-ui")
        .enable_io()
        .enable_time()
        .build()
        .map_err(unavailable("cannot start the threads of the server".into()))?;
    let closing = Cancel::default();
    let guard = Guard::new(local.port(), token.clone());
    let shared = Arc::new(Shared::new(store, guard, options.write, closing.clone()));
    runtime.spawn(server::run(listener, shared));
    // After `#`, so that neither a request nor a referrer nor a log has it.
    let address = format!("http://{local}/#token={token}");
    Ok(Server { runtime: Mutex::new(Some(runtime)), closing, local, address, opened: Mutex::new(None) })
}

/// 256 random bits.
fn token() -> Result<String> {
    let words = (0..4).map(|_| OsEntropy.next());
    Ok(words.collect::<Result<Vec<u64>>>()?.iter().map(|word| format!("{word:016x}")).collect())
}

impl Server {
    /// The address to open, with the token, which is the only key to the store: show it to nobody else.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Opens the address in the user's browser.
    ///
    /// # Errors
    /// `Unavailable` if there is no browser, or it cannot be started; the server goes on.
    pub fn open_browser(&self) -> Result<()> {
        *self.opened.lock() = Some(browser::open(&self.address)?);
        Ok(())
    }

    /// Ends it: no request is answered from now on. A checkpoint that is under way is cancelled.
    pub fn close(&self) {
        let Some(runtime) = self.runtime.lock().take() else { return };
        self.closing.cancel();
        runtime.shutdown_timeout(CLOSING);
        self.opened.lock().take();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}
