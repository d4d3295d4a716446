//! Reading versions of tables.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::landing::is_of_one;
use super::write::table_at;
use super::{Pin, Store};
use crate::base::{Error, ErrorKind, Result, Seq, Timestamp, Version};
use crate::block::Missing;
use crate::catalog::{Path, State};
use crate::storage::Storage;
use crate::table::{Renew, Rows, Scan, ScanOptions, Sight, Table, View, read_history};

/// So often a read is begun again because another process has reclaimed blocks.
pub(super) const ATTEMPTS: usize = 5;

/// Which state of a table to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsOf {
    /// The newest version.
    #[default]
    Newest,
    /// A version by number.
    Version(Version),
    /// What was the newest at a time: a version and, of a keyed table, the rows written since by the commits up to that time. It
    /// is the same whenever it is asked for, as long as the versions before and after that time are kept; `NotFound` if the
    /// one before is not. A time that has not come yet shows the newest.
    Time(Timestamp),
    /// The version that a snapshot holds.
    Snapshot(String),
}

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Which version. Default: the newest.
    pub as_of: AsOf,
    /// Which columns and rows.
    pub scan: ScanOptions,
}

impl Store {
    /// Reads a version of the table at `path`, lazily: batches of at most 122,880 rows (more where the row groups of a
    /// sorted table overlap), decoded ahead on the CPU pool.
    ///
    /// What commits later does not change what the scan gives, and its blocks are not reclaimed while it lives.
    ///
    /// Where another process has reclaimed blocks meanwhile, the scan goes on with those that hold the same rows now;
    /// `SnapshotExpired` if the version is gone.
    pub fn read(&self, path: &str, options: &ReadOptions) -> Result<Scan> {
        self.while_reclaimed(|| {
            let (state, pin) = self.pinned_state()?;
            self.scan(&state, &pin, path, options)
        })
    }

    /// Reads many tables as of the same instant.
    pub fn read_many(&self, paths: &[String], options: &ReadOptions) -> Result<Vec<Scan>> {
        self.while_reclaimed(|| self.try_read_many(paths, options, false)?.into_iter().collect())
    }

    /// The same, with an answer for each path: a table that cannot be read does not keep the others from it.
    pub fn read_each(&self, paths: &[String], options: &ReadOptions) -> Result<Vec<Result<Scan>>> {
        self.while_reclaimed(|| self.try_read_many(paths, options, true))
    }

    fn try_read_many(&self, paths: &[String], options: &ReadOptions, each: bool) -> Result<Vec<Result<Scan>>> {
        let (state, pin) = self.pinned_state()?;
        let mut scans = Vec::with_capacity(paths.len());
        for path in paths {
            match self.scan(&state, &pin, path, options) {
                Err(e) if !each || !is_of_one(&e) || e.kind() == ErrorKind::SnapshotExpired => return Err(e),
                scan => scans.push(scan),
            }
        }
        if paths.len() > 1 && self.inner.storage.is_remote() {
            // All that is small comes by a few requests, in parallel.
            let views = scans.iter().flatten().map(Scan::view);
            let seen = views.flat_map(|View { table, sight, .. }| {
                table.groups.iter().filter(|group| table.visible(group, sight.version) != Rows::None)
            });
            let addresses = seen.map(|group| group.address);
            self.inner.reader.warm(&self.inner.env.pool, addresses, self.inner.options.cache_bytes / 2)?;
        }
        Ok(scans)
    }

    /// Reads a version of the table at `path` into memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # let store = drumlin::Store::open("memory://", Default::default())?;
    /// # let rows = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    /// # store.write("numbers", rows, &Default::default())?;
    /// let batches = store.collect("numbers", &Default::default())?;
    /// assert_eq!(batches[0].num_rows(), 3);
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    pub fn collect(&self, path: &str, options: &ReadOptions) -> Result<Vec<RecordBatch>> {
        self.read(path, options)?.collect()
    }

    fn scan(&self, state: &State, pin: &Arc<Pin>, path: &str, options: &ReadOptions) -> Result<Scan> {
        let view = self.view_of(state, pin, path, &options.as_of)?;
        let options = ScanOptions { name: Some(path.to_owned()), ..options.scan.clone() };
        self.scan_view(view, &options).map_err(|e| e.context(format!("'{path}'")))
    }

    /// Reads what `view` shows: see [`Scan::view`] and [`Store::find_again`].
    pub fn scan_view(&self, view: View, options: &ScanOptions) -> Result<Scan> {
        self.scan_with(view, options, self.renewal())
    }

    pub(super) fn scan_with(&self, view: View, options: &ScanOptions, renew: Option<Renew>) -> Result<Scan> {
        Scan::new(self.inner.reader.clone(), self.inner.env.pool.clone(), view, options, renew)
    }

    /// How reads go on where another process reclaims.
    pub(super) fn renewal(&self) -> Option<Renew> {
        // Reading on keeps nothing open.
        let store = Store { inner: self.inner.clone(), handle: None };
        let renew = move |view: &View| {
            store.refresh()?;
            let found = store.find_again(view)?;
            match Arc::ptr_eq(&found.table, &view.table) {
                true => Err(Error::corrupt("a block is missing that nobody has let go of")),
                false => Ok(found),
            }
        };
        (self.inner.reader.missing() == Missing::Reclaimed).then(|| Arc::new(renew) as Renew)
    }

    /// What a view shows, in the newest state known; `SnapshotExpired` if it is gone.
    pub fn find_again(&self, view: &View) -> Result<View> {
        let (state, pin) = self.pinned_state()?;
        let table = state.table(view.table.id).ok_or_else(|| view.gone())?;
        if let Some(time) = view.time {
            let found = self.view_at(table, time, state.seq).map_err(|e| match e.kind() {
                ErrorKind::NotFound => view.gone(),
                _ => e,
            })?;
            return Ok(View { pin: Some(pin), ..found });
        }
        Ok(View { sight: view.sight_of(table, state.seq)?, table: table.clone(), time: None, pin: Some(pin) })
    }

    /// What `as_of` shows in `state` of the table at `path`.
    pub(super) fn view_of(&self, state: &State, pin: &Arc<Pin>, path: &str, as_of: &AsOf) -> Result<View> {
        let path = Path::new(path)?;
        let pin = Some(pin.clone() as Arc<dyn std::any::Any + Send + Sync>);
        match as_of {
            // No commit is as young as that.
            AsOf::Time(time) if *time < state.time => {
                let found = self.view_at(table_at(state, &path)?, *time, state.seq);
                Ok(View { pin, ..found.map_err(|e| e.context(format!("'{path}'")))? })
            }
            _ => {
                let (table, sight) = resolve(state, &path, as_of)?;
                Ok(View { table, sight, time: None, pin })
            }
        }
    }

    /// What was seen of a table at a time.
    fn view_at(&self, table: &Arc<Table>, time: Timestamp, seq: Seq) -> Result<View> {
        let inner = &self.inner;
        View::at(table, time, seq, |history| read_history(&inner.reader, &inner.env.pool, table, history))
    }

    /// Runs a read that has handed out nothing yet; again, on what others have committed, where blocks are gone.
    pub(super) fn while_reclaimed<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
            match read() {
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => drop(self.refresh()?),
                done => return done,
            }
        }
        read()
    }
}

/// The table that `path` means in `state`, and the version that `as_of` sees of it; of a time the rows written by key since
/// that version are left out.
pub(super) fn resolve(state: &State, path: &Path, as_of: &AsOf) -> Result<(Arc<Table>, Sight)> {
    if let AsOf::Snapshot(name) = as_of {
        let missing = || {
            // A day, or a day and a time.
            let digits = name.bytes().take(10).filter(u8::is_ascii_digit).count();
            let hint =
                if digits == 8 && name.len() >= 10 { "; a time is given as a datetime, not as a text" } else { "" };
            Error::not_found(format!("snapshot '{name}' does not exist{hint}"))
        };
        let snapshot = state.snapshots.get(name).ok_or_else(missing)?;
        let absent = || Error::not_found(format!("snapshot '{name}' holds no table at '{path}'"));
        let (id, version) = snapshot.pins.get(path).ok_or_else(absent)?;
        let gone = || Error::corrupt(format!("snapshot '{name}' holds table {id}, which is gone"));
        return Ok((state.table(*id).ok_or_else(gone)?.clone(), numbered(state, *version)));
    }
    let table = table_at(state, path)?;
    let listed = |version: &Version| table.versions.iter().any(|record| record.version == *version);
    let sight = match as_of {
        AsOf::Version(version) if listed(version) => numbered(state, *version),
        AsOf::Version(version) => {
            let newest = table.newest().map_or(Version(0), |newest| newest.version);
            let (n, path) = (table.versions.len(), path.as_str());
            return Err(Error::not_found(format!(
                "'{path}' has no version {version}; it has {n} versions, the newest is {newest}"
            )));
        }
        // No commit is as young as that.
        AsOf::Time(time) if *time >= state.time => newest(state, table),
        AsOf::Time(time) => numbered(state, table.at(*time).map_err(|e| e.context(format!("'{path}'")))?.0),
        AsOf::Newest | AsOf::Snapshot(_) => newest(state, table),
    };
    Ok((table.clone(), sight))
}

/// What the newest version sees, and the rows written since.
pub(super) fn newest(state: &State, table: &Table) -> Sight {
    let version = table.newest().expect("every table has a version").version;
    Sight { version, since: true, seq: state.seq }
}

/// What a version sees.
pub(super) fn numbered(state: &State, version: Version) -> Sight {
    Sight { version, since: false, seq: state.seq }
}
