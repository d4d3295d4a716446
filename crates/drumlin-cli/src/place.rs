//! The store that a command works on: the argument right behind the command's name.

use clap::Args;
use drumlin::Store;
use drumlin::store::{Mode, Options};

use crate::failure::Failure;

/// The store argument of every command.
#[derive(Args)]
pub struct Place {
    /// The store: a folder, or file:// and its path
    #[arg(value_name = "STORE")]
    uri: String,
}

impl Place {
    /// Opens the store for reading, beside whoever writes.
    pub fn read(&self) -> Result<Store, Failure> {
        self.open(Mode::Read)
    }

    /// Opens the store for writing; it must be there.
    pub fn write(&self) -> Result<Store, Failure> {
        self.open(Mode::Write)
    }

    /// Opens the store for writing; makes it if it is not there.
    pub fn create(&self) -> Result<Store, Failure> {
        self.open(Mode::Create)
    }

    /// The store as the user wrote it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    fn open(&self, mode: Mode) -> Result<Store, Failure> {
        Ok(Store::open(&self.uri, Options { mode, ..Options::default() })?)
    }
}
