//! The store that a command works on: the argument right behind the command's name.

use std::io::ErrorKind;
use std::path::Path;

use clap::Args;
use drumlin::Store;
use drumlin::store::{BucketOptions, Diagnosis, Mode, Options};

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

fn fail(message: String) -> Result<(), Failure> {
    Err(Failure::Error(message))
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
        self.check_folder(mode)?;
        Ok(Store::open(&self.uri, self.options(mode))?)
    }

    /// Says what is in the way of a store in a folder, where the core would tell the error of the system only.
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
                return fail(format!(
                    "{uri} is not a folder; expected that of a store, which comes before other arguments"
                ));
            }
            Err(e) => matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let above = folder.ancestors().skip(1).find(|above| !above.as_os_str().is_empty() && above.exists());
        match above {
            // What else is wrong, and what an empty path is, the core says.
            _ if !missing || path.is_empty() => Ok(()),
            Some(above) if !above.is_dir() => fail(format!("{uri}: {} is not a folder", above.display())),
            _ if path.starts_with('~') && above.is_none() => fail(format!(
                "there is no folder {uri}; a shell puts the home folder for ~ only at the beginning of an argument without quotes: write it so, or the whole path"
            )),
            _ if mode != Mode::Create => fail(format!(
                "there is no store at {uri}: no such folder; 'drumlin import' and 'drumlin put' make stores"
            )),
            _ => match folder.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
                Some(parent) => {
                    fail(format!("{uri}: there is no folder {} to make the store in; make it first", parent.display()))
                }
                None => Ok(()),
            },
        }
    }

    /// Tries the bucket.
    pub fn examine(&self) -> Result<Diagnosis, Failure> {
        Ok(Store::doctor(&self.uri, &self.options(Mode::Read))?)
    }
}
