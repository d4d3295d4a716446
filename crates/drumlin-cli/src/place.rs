//! The store that a command works on: the argument right behind the command's name.

use clap::Args;
use drumlin::Store;
use drumlin::base::Task;
use drumlin::store::{BucketOptions, Diagnosis, Mode, Options, SalvageReport};

use crate::failure::Failure;

/// The store argument of every command.
#[derive(Args)]
pub struct Place {
    /// The store: a folder, or file:// and its path, or s3://bucket/prefix (gs://, az://)
    #[arg(value_name = "STORE")]
    uri: String,
    /// A setting of the bucket's client, such as endpoint=http://localhost:9000; credentials are better left to the
    /// environment
    #[arg(long = "storage-option", value_name = "NAME=VALUE", value_parser = setting, global = false)]
    storage_options: Vec<(String, String)>,
}

/// Takes a setting apart; an error tells no value.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
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

    fn options(&self, mode: Mode) -> Options {
        let bucket = BucketOptions(self.storage_options.iter().cloned().collect());
        Options { mode, bucket, ..Options::default() }
    }

    fn open(&self, mode: Mode) -> Result<Store, Failure> {
        Ok(Store::open(&self.uri, self.options(mode))?)
    }

    /// Copies what can be read of the store into a new one.
    pub fn salvage(&self, new: &str, shared: bool, task: &Task) -> Result<SalvageReport, Failure> {
        let options = Options { shared, ..self.options(Mode::Create) };
        Ok(Store::salvage(&self.uri, new, options, task)?)
    }

    /// Tries the bucket.
    pub fn examine(&self) -> Result<Diagnosis, Failure> {
        Ok(Store::doctor(&self.uri, &self.options(Mode::Read))?)
    }
}
