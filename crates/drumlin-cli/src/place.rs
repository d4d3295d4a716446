//! The store that a command works on: the argument directly after the command's name.

use std::io::ErrorKind;
use std::path::Path;

use clap::Args;
use drumlin::{BucketOptions, Diagnosis, LogAddress, Mode, Options, SalvageReport, Store, Task};

use crate::failure::Failure;

/// The store argument of every command.
#[derive(Args)]
pub struct Place {
    /// The store: a folder, or file:// and its path, or s3://bucket/prefix (gs://, az://)
    #[arg(value_name = "STORE")]
    uri: String,
    /// A setting of the bucket's client, such as endpoint=http://localhost:9000; prefer the environment for credentials
    #[arg(long = "storage-option", value_name = "NAME=VALUE", value_parser = setting, global = false)]
    storage_options: Vec<(String, String)>,
}

/// The store argument of a command that commits something.
#[derive(Args)]
pub struct ChangedPlace {
    #[command(flatten)]
    place: Place,
    /// Note TEXT with the commit: versions and watches show it
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

impl ChangedPlace {
    /// As [`Place::write`].
    pub fn write(&self) -> Result<Store, Failure> {
        self.told(self.place.write()?)
    }

    /// As [`Place::create`].
    pub fn create(&self) -> Result<Store, Failure> {
        self.told(self.place.create()?)
    }

    fn told(&self, store: Store) -> Result<Store, Failure> {
        Ok(match &self.message {
            Some(message) => store.with_message(message)?,
            None => store,
        })
    }
}

/// Splits a setting into name and value; an error never contains the value.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A second store that a command works on.
#[derive(Args)]
pub struct TargetOptions {
    /// As --storage-option, for the second store
    #[arg(long = "target-option", value_name = "NAME=VALUE", value_parser = setting)]
    target_options: Vec<(String, String)>,
}

impl TargetOptions {
    /// How it is opened.
    pub fn options(&self) -> Options {
        Options { bucket: BucketOptions(self.target_options.iter().cloned().collect()), ..Options::default() }
    }
}

fn fail(message: String) -> Result<(), Failure> {
    Err(Failure::Error(message))
}

impl Place {
    /// Opens the store for reading, while another process may write.
    pub fn read(&self) -> Result<Store, Failure> {
        self.open(Mode::Read)
    }

    /// Opens the store for writing; it must exist.
    pub fn write(&self) -> Result<Store, Failure> {
        self.open(Mode::Write)
    }

    /// Opens the store for writing; creates it if it does not exist.
    pub fn create(&self) -> Result<Store, Failure> {
        self.open(Mode::Create)
    }

    /// Opens another store for writing, with the same settings; creates it if it does not exist.
    pub fn other(&self, uri: &str) -> Result<Store, Failure> {
        Place { uri: uri.to_owned(), storage_options: self.storage_options.clone() }.create()
    }

    /// The store as the user wrote it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// How it is opened.
    pub fn options(&self, mode: Mode) -> Options {
        let bucket = BucketOptions(self.storage_options.iter().cloned().collect());
        Options { mode, bucket, ..Options::default() }
    }

    fn open(&self, mode: Mode) -> Result<Store, Failure> {
        self.check_folder(mode)?;
        Ok(Store::open_with(&self.uri, self.options(mode))?)
    }

    /// Explains why there cannot be a store at the path, where the core would report only the system's error.
    fn check_folder(&self, mode: Mode) -> Result<(), Failure> {
        let uri = &self.uri;
        let path = match uri.split_once("://") {
            Some(("file", path)) => path,
            Some(_) => return Ok(()),
            None => uri.as_str(),
        };
        let folder = Path::new(path);
        let missing = match folder.metadata() {
            Ok(there) if there.is_dir() => return Ok(()),
            Ok(_) => {
                return fail(format!("{uri} is not a folder; expected a store's folder as the first argument"));
            }
            Err(e) => matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let above = folder.ancestors().skip(1).find(|above| !above.as_os_str().is_empty() && above.exists());
        match above {
            // The core reports other errors, and an empty path.
            _ if !missing || path.is_empty() => Ok(()),
            Some(above) if !above.is_dir() => fail(format!("{uri}: {} is not a folder", above.display())),
            _ if path.starts_with('~') && above.is_none() => fail(format!(
                "the folder {uri} does not exist; the shell expands ~ only unquoted and at the start of an argument: remove the quotes, or write the full path"
            )),
            _ if mode != Mode::Create => fail(format!(
                "there is no store at {uri}: the folder does not exist; check the path, or create a store with 'drumlin import' or 'drumlin put'"
            )),
            _ => match folder.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
                Some(parent) => {
                    fail(format!("{uri}: the parent folder {} does not exist; create it first", parent.display()))
                }
                None => Ok(()),
            },
        }
    }

    /// Copies what can be read from the store into a new one.
    pub fn salvage(&self, new: &str, shared: bool, log: Option<String>, task: &Task) -> Result<SalvageReport, Failure> {
        let options = Options { shared, log_at: log.map(LogAddress), ..self.options(Mode::Create) };
        Ok(drumlin::salvage(&self.uri, new, options, task)?)
    }

    /// Makes the store in a folder shared, or no longer.
    pub fn turn_shared(&self, shared: bool, task: &Task) -> Result<(), Failure> {
        let turn = if shared { drumlin::share } else { drumlin::unshare };
        Ok(turn(&self.uri, self.options(Mode::Write), task)?)
    }

    /// Tests the bucket.
    pub fn examine(&self) -> Result<Diagnosis, Failure> {
        Ok(Diagnosis::of(&self.uri, &self.options(Mode::Read))?)
    }
}
