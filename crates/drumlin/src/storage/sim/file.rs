//! An open file of the simulated disk. It can be read after it has lost its name, as in any file system.

use std::sync::Arc;

use parking_lot::Mutex;

use super::image::{ChangeKind, FileChange, Image, crashed, missing, write};
use crate::base::Result;
use crate::storage::{DiskFile, FileIdentity};

pub(super) struct SimFile {
    image: Arc<Mutex<Image>>,
    id: u64,
    name: String,
    _open: Arc<()>,
}

impl SimFile {
    /// The file `id`, which is called `name` now.
    pub fn new(shared: &Arc<Mutex<Image>>, image: &Image, id: u64, name: &str) -> Self {
        Self { image: shared.clone(), id, name: name.to_owned(), _open: image.files[&id].open.clone() }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut image = self.image.lock();
        if image.dead {
            return Err(crashed());
        }
        let content = &image.files.get(&self.id).ok_or_else(|| missing(&self.name))?.content;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let n = buffer.len().min(content.len() - start);
        buffer[..n].copy_from_slice(&content[start..start + n]);
        image.counters.reads += 1;
        image.counters.bytes_read += n as u64;
        Ok(n)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        Image::change(&self.image, &self.name, ChangeKind::Write, |image, torn| {
            image.counters.bytes_written += bytes.len() as u64;
            let bytes = if torn { &bytes[..bytes.len() / 2] } else { bytes };
            let tracks = image.tracks_durability;
            let file = image.files.get_mut(&self.id).ok_or_else(|| missing(&self.name))?;
            write(&mut file.content, offset, bytes);
            if tracks {
                file.pending.push(FileChange::Write(offset, bytes.to_vec()));
            }
            Ok(())
        })
    }

    fn len(&self) -> Result<u64> {
        let image = self.image.lock();
        if image.dead {
            return Err(crashed());
        }
        Ok(image.files.get(&self.id).ok_or_else(|| missing(&self.name))?.content.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        Image::change(&self.image, &self.name, ChangeKind::Other, |image, torn| {
            let tracks = image.tracks_durability;
            let file = image.files.get_mut(&self.id).ok_or_else(|| missing(&self.name))?;
            if !torn {
                file.content.resize(bytes as usize, 0);
                if tracks {
                    file.pending.push(FileChange::Resize(bytes));
                }
            }
            Ok(())
        })
    }

    fn links(&self) -> Result<u64> {
        // A file here has one name at most.
        let there = self.image.lock().find(&self.name);
        Ok(u64::from(there.is_ok_and(|id| id == self.id)))
    }

    fn identity(&self) -> Result<FileIdentity> {
        Ok(FileIdentity(0, self.id))
    }

    fn sync(&self) -> Result<()> {
        let done = Image::change(&self.image, &self.name, ChangeKind::Other, |image, torn| {
            image.counters.syncs += 1;
            if torn || !image.tracks_durability {
                return Ok(());
            }
            let file = image.files.get_mut(&self.id).ok_or_else(|| missing(&self.name))?;
            // Only pending changes: what an earlier sync could not write counts as clean.
            for change in std::mem::take(&mut file.pending) {
                match change {
                    FileChange::Write(offset, bytes) => write(&mut file.durable, offset, &bytes),
                    FileChange::Resize(bytes) => file.durable.resize(bytes as usize, 0),
                }
            }
            Ok(())
        });
        if done.is_err() {
            let mut image = self.image.lock();
            if !image.dead
                && let Some(file) = image.files.get_mut(&self.id)
            {
                // The page cache drops what it could not write.
                file.pending.clear();
            }
        }
        done
    }
}
