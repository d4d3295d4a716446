//! How a store is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Env, Warn};
use crate::log::{LogOptions, Movers};
use crate::segment::{Compression, Proof};
use crate::storage::{LogCells, Storage};

/// What a store is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reading and writing; the store is made if it is not there.
    #[default]
    Create,
    /// Reading and writing; the store must be there.
    Write,
    /// Reading, while other processes may write; see [`super::Store::refresh`].
    Read,
}

/// When commits become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before the call returns.
    #[default]
    Commit,
    /// Within about this time: a crash of the machine may lose the commits since the last sync, the last ones first, though
    /// their calls have returned. One of the process alone loses nothing.
    Interval(Duration),
}

/// Settings of a bucket's client, by their names in the `object_store` crate: `endpoint`, `region`,
/// `aws_access_key_id`, … `Debug` leaves out their values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BucketOptions(pub BTreeMap<String, String>);

/// What settings are about that are no secrets, by what their names contain.
const NO_SECRETS: [&str; 6] = ["endpoint", "region", "allow_http", "virtual_hosted", "timeout", "use_emulator"];

impl BucketOptions {
    /// The settings that are no secrets: where the bucket is, and how it is spoken to.
    pub fn told(&self) -> BTreeMap<String, String> {
        let told = |(name, value): &(&String, &String)| {
            NO_SECRETS.iter().any(|part| name.to_lowercase().contains(part)) && !value.contains(['@', '?'])
        };
        self.0.iter().filter(told).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The address of a server that keeps the log: `postgresql://user@host/database` or `etcd://host:2379`. `Debug` leaves out what may be
/// secret in it.
#[derive(Clone, PartialEq, Eq)]
pub struct LogAddress(pub String);

impl fmt::Debug for LogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::storage::told(&self.0).unwrap_or_default())
    }
}

impl<T: Into<String>> From<T> for LogAddress {
    fn from(address: T) -> Self {
        Self(address.into())
    }
}

/// Settings of an open store.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What it is opened for. Default: reading and writing, made if it is not there.
    pub mode: Mode,
    /// Memory that writes, rewrites and their buffers may take, in bytes. Default 1 GiB.
    pub memory_bytes: u64,
    /// Memory for encoded data kept after reading, in bytes. Default 256 MiB.
    pub cache_bytes: u64,
    /// CPU threads, at most 1,024; 0 is one a core. Default 0.
    pub cpu_threads: usize,
    /// A block is closed once it holds this many bytes. Default 8 MiB.
    pub block_bytes: u64,
    /// What a write, append or update adds travels in its commit, without a block of its own, if it takes at most this
    /// many bytes; the next checkpoint moves it to a block. 0 for never. Default 64 KiB.
    pub inline_bytes: u64,
    /// A checkpoint is made in the background once the log has grown past this many bytes, or 50,000 tables have changed; 0 for
    /// never. Default 64 MiB.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint is made in the background once the rows written by key that wait for one take this many bytes of
    /// memory; 0 for never. At four times as many, writers wait for it. Default 64 MiB.
    pub memtable_bytes: u64,
    /// A call that writes rows by key and has more bytes than this writes row groups instead. Default 1 MiB.
    pub row_write_bytes: u64,
    /// In a store that several processes write: how long released blocks stay on storage, in microseconds, for readers of
    /// other processes. Default 10 minutes.
    pub block_grace_micros: u64,
    /// In a store that several processes write: for how long, in microseconds, a commit is retried if the bucket refuses it
    /// because there are too many requests (in the end it fails as `Unavailable`), or does not answer (in the end as
    /// `InDoubt`, with the transaction's id). Counts the pauses between the attempts, which are random and grow. Default 1
    /// minute.
    pub retry_micros: u64,
    /// Whether each call that reads first takes in what other processes have committed. Default: only
    /// [`super::Store::refresh`] and calls that write do.
    pub fresh: bool,
    /// Of a store in a folder: whether many processes write it at a time. This is fixed when the store is created, and found
    /// out when it is opened. Stores in buckets always are. Default: one process writes.
    pub shared: bool,
    /// Of a store in a bucket: settings of its client, and credentials that are not those of the environment. Default none.
    pub bucket: BucketOptions,
    /// Of a store in a bucket: threads that wait for answers, at most 1,024. Default 2.
    pub io_threads: usize,
    /// When commits become durable. Default: before the call returns.
    pub sync: SyncMode,
    /// Whether to open a log that has lost commits at its end that were made, and continue without them, as a store of its own. They
    /// cannot be recovered afterwards, and nobody else may have the store open. Default: such a log is `Corrupt`.
    pub accept_loss: bool,
    /// Whether rows that replace others (in a checkpoint, an update, a purge) are decoded again and compared with these before a
    /// commit puts them in their place. Default: they are; it takes a twentieth more of the processor where rows are encoded
    /// again, and up to two thirds more where a vacuum moves them as they are encoded.
    pub verify_rewrites: bool,
    /// How the rows of tables are compressed that are made here, unless they say. Default: balanced.
    pub compression: Compression,
    /// The name by which versions tell who wrote them. Default: none.
    pub writer: Option<String>,
    /// Takes what the store notices by itself, to be logged. Default: nothing does.
    pub warn: Warn,
    /// The commit log.
    pub log: LogOptions,
    /// Of a store that many processes write: the server that keeps its log. A new store gets its log there; one whose log is there is
    /// found without this, unless the server has another address by now or the address is to carry a user. Default: the store keeps
    /// its log itself.
    pub log_at: Option<LogAddress>,
}

impl Options {
    /// What finds the log of the store in `storage`, and moves it.
    pub(in crate::store) fn movers<'a>(
        &'a self,
        storage: &'a Arc<dyn Storage>,
        cells: &'a dyn LogCells,
        env: &'a Env,
    ) -> Movers<'a> {
        let given = self.log_at.as_ref().map(|address| address.0.as_str());
        Movers { storage, cells, given, env, retry: self.retry_micros }
    }

    /// What new tables say of their compression, if they do not say it themselves.
    pub(super) fn of_new_tables(&self) -> Option<Compression> {
        Some(self.compression).filter(|compression| *compression != Compression::default())
    }

    /// How what replaces other rows is encoded.
    pub(super) fn proof(&self) -> Proof {
        if self.verify_rewrites { Proof::Decoded } else { Proof::Trusted }
    }

    /// Whether a store that was opened with these options is like one opened with `other`.
    pub(super) fn same_settings(&self, other: &Options) -> bool {
        let alike = |options: &Options| Options { mode: Mode::Write, accept_loss: false, ..options.clone() };
        alike(self) == alike(other)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Create,
            memory_bytes: 1 << 30,
            cache_bytes: 256 << 20,
            cpu_threads: 0,
            block_bytes: 8 << 20,
            inline_bytes: 64 << 10,
            checkpoint_log_bytes: 64 << 20,
            memtable_bytes: 64 << 20,
            row_write_bytes: 1 << 20,
            shared: false,
            bucket: BucketOptions::default(),
            io_threads: 2,
            block_grace_micros: 600_000_000,
            retry_micros: 60_000_000,
            fresh: false,
            sync: SyncMode::Commit,
            accept_loss: false,
            verify_rewrites: true,
            compression: Compression::default(),
            writer: None,
            warn: Warn::default(),
            log: LogOptions::default(),
            log_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_bucket_are_not_told() {
        let settings = [
            ("endpoint", "http://127.0.0.1:9000"),
            ("AWS_REGION", "us-east-1"),
            ("aws_endpoint", "http://me:secret@host"),
            ("azure_endpoint", "http://host?sig=secret"),
            ("aws_access_key_id", "secret"),
            ("aws_secret_access_key", "secret"),
            ("aws_session_token", "secret"),
            ("azure_storage_sas_key", "secret"),
            ("google_service_account_key", "secret"),
        ];
        let options = BucketOptions(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let told = options.told();
        assert_eq!(told.keys().collect::<Vec<_>>(), ["AWS_REGION", "endpoint"]);
        assert!(!format!("{told:?} {options:?}").contains("secret\""));
    }
}
