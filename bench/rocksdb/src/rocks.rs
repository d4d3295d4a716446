//! RocksDB through its C API: everything in one memtable, no write-ahead log, with its batched look-up optimization.
//!
//! Batches are looked up by `rocksdb_batched_multi_get_cf_slice`, the fastest that the API has, single keys by
//! `rocksdb_get_into_buffer`; values are copied out.

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use librocksdb_sys as ffi;

use crate::Result;
use crate::data::{Packed, Scanned, Tally, VALUE_BYTES};
use crate::side::{Copied, Reader, Side, Sink, Writer};

/// An open database in a folder of its own, which is deleted with it.
pub struct Rocks {
    db: *mut ffi::rocksdb_t,
    family: *mut ffi::rocksdb_column_family_handle_t,
    read: *mut ffi::rocksdb_readoptions_t,
    write: *mut ffi::rocksdb_writeoptions_t,
    folder: PathBuf,
}

// SAFETY: RocksDB allows any number of threads on a database; handles and options are only read.
unsafe impl Send for Rocks {}
// SAFETY: as above.
unsafe impl Sync for Rocks {}

/// The error that RocksDB returned, if any.
fn check(message: *mut c_char) -> Result<()> {
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB returns a string that ends with a zero, and expects it to be freed.
    let text = unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        ffi::rocksdb_free(message.cast());
        text
    };
    Err(text.into())
}

fn c_text(text: &str) -> Result<CString> {
    Ok(CString::new(text)?)
}

/// A byte string in the form of RocksDB.
fn slice(bytes: &[u8]) -> ffi::rocksdb_slice_t {
    ffi::rocksdb_slice_t { data: bytes.as_ptr().cast(), size: bytes.len() }
}

/// Options for a database that never flushes. The caller destroys them.
fn options(write_buffer_bytes: usize, bloom: bool) -> *mut ffi::rocksdb_options_t {
    const WARNINGS: i32 = 2;
    // SAFETY: the options were just made.
    unsafe {
        let options = ffi::rocksdb_options_create();
        ffi::rocksdb_options_set_create_if_missing(options, 1);
        ffi::rocksdb_options_set_write_buffer_size(options, write_buffer_bytes);
        ffi::rocksdb_options_set_compression(options, ffi::rocksdb_no_compression as i32);
        ffi::rocksdb_options_set_disable_auto_compactions(options, 1);
        ffi::rocksdb_options_set_avoid_flush_during_shutdown(options, 1);
        ffi::rocksdb_options_set_info_log_level(options, WARNINGS);
        ffi::rocksdb_options_set_stats_dump_period_sec(options, 0);
        ffi::rocksdb_options_set_memtable_batch_lookup_optimization(options, 1);
        if bloom {
            ffi::rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.1);
            ffi::rocksdb_options_set_memtable_whole_key_filtering(options, 1);
        }
        options
    }
}

impl Rocks {
    /// An empty database, with a memtable of this size and perhaps a Bloom filter of its keys.
    pub fn open(write_buffer_bytes: usize, bloom: bool) -> Result<Self> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rocksdb-compare-{}-{number}", std::process::id()));
        let path = c_text(&folder.to_string_lossy())?;
        let mut error = null_mut();
        let options = options(write_buffer_bytes, bloom);
        // SAFETY: options and path live through the call; the options are copied.
        let db = unsafe {
            let db = ffi::rocksdb_open(options, path.as_ptr(), &mut error);
            ffi::rocksdb_options_destroy(options);
            db
        };
        check(error)?;
        // SAFETY: the database is open.
        let (family, read, write) = unsafe {
            let write = ffi::rocksdb_writeoptions_create();
            ffi::rocksdb_writeoptions_disable_WAL(write, 1);
            (ffi::rocksdb_get_default_column_family_handle(db), ffi::rocksdb_readoptions_create(), write)
        };
        Ok(Self { db, family, read, write, folder })
    }

    /// A figure that RocksDB reports about itself.
    fn figure(&self, name: &str) -> Result<u64> {
        let name = c_text(name)?;
        let mut figure = 0;
        // SAFETY: the database is open, and the name ends with a zero.
        match unsafe { ffi::rocksdb_property_int(self.db, name.as_ptr(), &mut figure) } {
            0 => Ok(figure),
            _ => Err(format!("RocksDB has no figure {name:?}").into()),
        }
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: they are no longer used, because readers and writers borrow the database.
        unsafe {
            ffi::rocksdb_column_family_handle_destroy(self.family);
            ffi::rocksdb_close(self.db);
            ffi::rocksdb_readoptions_destroy(self.read);
            ffi::rocksdb_writeoptions_destroy(self.write);
        }
        // What is left behind is a few small files in the folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Side for Rocks {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        // SAFETY: only creates an object.
        let batch = unsafe { ffi::rocksdb_writebatch_create() };
        Ok(Box::new(RocksWriter { rocks: self, batch }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        // SAFETY: affects only this thread: disables its counters.
        unsafe { ffi::rocksdb_set_perf_level(ffi::rocksdb_disable as i32) };
        let (slices, values, errors) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Box::new(RocksReader {
            rocks: self,
            slices,
            values,
            errors,
            one: [0; VALUE_BYTES],
            copied: Copied::default(),
        }))
    }

    fn scan(&self) -> Result<Option<Scanned>> {
        let mut sink = Sink::default();
        let mut error = null_mut();
        // SAFETY: the database is open; a value is valid until the iterator moves.
        unsafe {
            let rows = ffi::rocksdb_create_iterator(self.db, self.read);
            ffi::rocksdb_iter_seek_to_first(rows);
            while ffi::rocksdb_iter_valid(rows) != 0 {
                let value = ffi::rocksdb_iter_value_slice(rows);
                sink.put(|out| out.extend_from_slice(std::slice::from_raw_parts(value.data.cast(), value.size)));
                ffi::rocksdb_iter_next(rows);
            }
            ffi::rocksdb_iter_get_error(rows, &mut error);
            ffi::rocksdb_iter_destroy(rows);
        }
        check(error)?;
        Ok(Some(sink.scanned()))
    }

    fn bytes(&self) -> Result<Option<u64>> {
        self.figure("rocksdb.cur-size-all-mem-tables").map(Some)
    }

    fn check_in_memory(&self, rows: usize) -> Result<()> {
        let (flushed, waiting) =
            (self.figure("rocksdb.total-sst-files-size")?, self.figure("rocksdb.num-immutable-mem-table")?);
        let entries = self.figure("rocksdb.num-entries-active-mem-table")?;
        match flushed == 0 && waiting == 0 && entries >= rows as u64 {
            true => Ok(()),
            false => {
                Err(format!("RocksDB flushed: {flushed} bytes in files, {waiting} full memtables, {entries} rows left")
                    .into())
            }
        }
    }
}

struct RocksWriter<'a> {
    rocks: &'a Rocks,
    batch: *mut ffi::rocksdb_writebatch_t,
}

impl Writer for RocksWriter<'_> {
    fn write(&mut self, keys: Packed<'_>, values: Packed<'_>) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the batch copies keys and values.
        unsafe {
            ffi::rocksdb_writebatch_clear(self.batch);
            for (key, value) in keys.iter().zip(values.iter()) {
                let (key, value) = (slice(key), slice(value));
                ffi::rocksdb_writebatch_put(self.batch, key.data, key.size, value.data, value.size);
            }
            ffi::rocksdb_write(self.rocks.db, self.rocks.write, self.batch, &mut error);
        }
        check(error)
    }
}

impl Drop for RocksWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: it is no longer used.
        unsafe { ffi::rocksdb_writebatch_destroy(self.batch) };
    }
}

struct RocksReader<'a> {
    rocks: &'a Rocks,
    slices: Vec<ffi::rocksdb_slice_t>,
    values: Vec<*mut ffi::rocksdb_pinnableslice_t>,
    errors: Vec<*mut c_char>,
    one: [u8; VALUE_BYTES],
    copied: Copied,
}

impl Reader for RocksReader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Tally> {
        let (mut bytes, mut found, mut error) = (0, 0, null_mut());
        let (key, buffer) = (slice(key), self.one.as_mut_ptr().cast());
        let Rocks { db, read, .. } = *self.rocks;
        // SAFETY: the buffer has the given length.
        let copied = unsafe {
            let room = self.one.len();
            ffi::rocksdb_get_into_buffer(db, read, key.data, key.size, buffer, room, &mut bytes, &mut found, &mut error)
        };
        check(error)?;
        self.copied.clear(1);
        match (found, copied) {
            (0, _) => {}
            (_, 0) => return Err("a value longer than any written".into()),
            _ => self.copied.put(0, |out| out.extend_from_slice(&self.one[..bytes])),
        }
        Ok(self.copied.tally())
    }

    fn get_many(&mut self, keys: Packed<'_>) -> Result<Tally> {
        self.slices.clear();
        self.slices.extend(keys.iter().map(slice));
        self.values.resize(keys.len(), null_mut());
        self.errors.resize(keys.len(), null_mut());
        let (slices, values, errors) = (self.slices.as_ptr(), self.values.as_mut_ptr(), self.errors.as_mut_ptr());
        let Rocks { db, read, family, .. } = *self.rocks;
        // SAFETY: the three lists have the given length.
        unsafe { ffi::rocksdb_batched_multi_get_cf_slice(db, read, family, keys.len(), slices, values, errors, false) };
        self.copied.clear(keys.len());
        for (at, (value, error)) in self.values.iter().zip(&self.errors).enumerate() {
            if !value.is_null() {
                let mut bytes = 0;
                // SAFETY: the value was returned by RocksDB, lives until it is destroyed, and is not used afterwards.
                unsafe {
                    let start = ffi::rocksdb_pinnableslice_value(*value, &mut bytes).cast();
                    self.copied.put(at, |out| out.extend_from_slice(std::slice::from_raw_parts(start, bytes)));
                    ffi::rocksdb_pinnableslice_destroy(*value);
                }
            }
            check(*error)?;
        }
        Ok(self.copied.tally())
    }

    fn value(&self, at: usize) -> Option<&[u8]> {
        self.copied.value(at)
    }
}
