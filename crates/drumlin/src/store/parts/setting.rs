//! What every part of a store knows: where it is, how it was opened, what it runs on, and whether it is still open.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::{Env, Error, Result};
use crate::storage::InlineStorage;
use crate::store::{Mode, Options};

/// See the module.
pub(in crate::store) struct Setting {
    uri: String,
    options: Options,
    env: Env,
    storage: Arc<InlineStorage>,
    /// The process that opened the store.
    process: u32,
    tenure: Tenure,
    closed: AtomicBool,
}

/// How a store is kept.
#[derive(Clone, Copy)]
pub(in crate::store) struct Tenure {
    /// Whether other processes may write it, too.
    pub shared: bool,
    /// Whether the storage belongs to another owner, who keeps using it when the store is closed.
    pub lent: bool,
}

impl Setting {
    /// Of a store that this process has just opened.
    pub fn new(uri: &str, options: Options, env: Env, storage: Arc<InlineStorage>, tenure: Tenure) -> Self {
        let process = std::process::id();
        Self { uri: uri.to_owned(), options, env, storage, process, tenure, closed: AtomicBool::new(false) }
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn storage(&self) -> &Arc<InlineStorage> {
        &self.storage
    }

    /// Whether the storage is to be released when the store is closed.
    pub fn owns_storage(&self) -> bool {
        !self.tenure.lent
    }

    pub fn process(&self) -> u32 {
        self.process
    }

    pub fn is_shared(&self) -> bool {
        self.tenure.shared
    }

    pub fn is_read_only(&self) -> bool {
        self.options.mode == Mode::Read
    }

    /// `Closed` if the store is closed; an error if what lies there now is another history.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        self.storage.check()
    }

    /// The error of what is asked of a closed store.
    pub fn closed(&self) -> Error {
        Error::closed(format!("the store {} is closed; open it again", self.uri))
    }

    /// Also checks that this is the process that opened it, which takes a system call.
    pub fn check(&self) -> Result<()> {
        self.check_open()?;
        check_process(self.process, format_args!("the store {}", self.uri))
    }

    /// `InvalidArgument` if the store is open for reading only.
    pub fn check_writable(&self) -> Result<()> {
        match self.is_read_only() {
            true => Err(Error::invalid(format!(
                "the store {} is open for reading only; open it for writing to change it",
                self.uri
            ))),
            false => Ok(()),
        }
    }

    /// From now on the store is closed. Returns whether that is to be carried out: not a second time, and not by a fork of the
    /// process that opened it.
    pub fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst) && self.process == std::process::id()
    }
}

/// How a process names itself in the lock of a store.
pub(in crate::store) fn holder(process: u32) -> String {
    format!("process {process}")
}

/// `Closed` in a fork of the process that opened something: its threads are not there.
pub(in crate::store) fn check_process(process: u32, what: impl Display) -> Result<()> {
    match process == std::process::id() {
        true => Ok(()),
        false => {
            Err(Error::closed(format!("{what} was opened by process {process}; a forked process must open it again")))
        }
    }
}
