//! Buffers compressed as Arrow 0.17 did, which no later version says in the same place: Arrow's reader would take the compressed
//! bytes for values.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, Message, root_as_footer, root_as_message};
use drumlin::{Error, Result};

const KEY: &str = "ARROW:experimental_compression";
const TRAILER_BYTES: i64 = 10;
/// A message's head, without the rows, is smaller than this.
const HEAD_BYTES_MAX: usize = 256 << 20;

/// Refuses a message that says so.
pub fn check_message(bytes: &[u8]) -> Result<()> {
    let Ok(message) = root_as_message(bytes) else { return Ok(()) };
    let keys = message.custom_metadata().into_iter().flatten();
    match keys.into_iter().any(|pair| pair.key() == Some(KEY)) {
        false => Ok(()),
        true => Err(Error::unsupported(format!(
            "the {} is compressed in the way of Arrow 0.17, which is not supported; write the file again with a newer \
             version, such as pyarrow.feather.write_feather(pyarrow.feather.read_table(FILE), NEW)",
            what(&message)
        ))),
    }
}

fn what(message: &Message<'_>) -> &'static str {
    if message.header_as_dictionary_batch().is_some() { "dictionary" } else { "data" }
}

/// Refuses a file with such messages.
pub fn check_file(file: &mut (impl Read + Seek)) -> Result<()> {
    let failed = |e: std::io::Error| Error::unavailable(e.to_string());
    let mut trailer = [0; TRAILER_BYTES as usize];
    file.seek(SeekFrom::End(-TRAILER_BYTES)).map_err(failed)?;
    file.read_exact(&mut trailer).map_err(failed)?;
    let length = read_footer_length(trailer)?;
    let back = i64::try_from(length).unwrap_or(i64::MAX).saturating_add(TRAILER_BYTES);
    file.seek(SeekFrom::End(-back)).map_err(failed)?;
    let mut footer = Vec::new();
    file.take(length as u64).read_to_end(&mut footer).map_err(failed)?;
    let footer = root_as_footer(&footer)
        .map_err(|_| Error::invalid("this is not an Arrow file, or it is damaged: its footer cannot be read"))?;
    let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    for block in blocks {
        check_block(file, block)?;
    }
    file.rewind().map_err(failed)
}

fn check_block(file: &mut (impl Read + Seek), block: &Block) -> Result<()> {
    let (Ok(at), Ok(length)) = (u64::try_from(block.offset()), usize::try_from(block.metaDataLength())) else {
        return Ok(());
    };
    let mut head = Vec::new();
    let read = file
        .seek(SeekFrom::Start(at))
        .and_then(|_| file.take(length.min(HEAD_BYTES_MAX) as u64).read_to_end(&mut head));
    read.map_err(|e| Error::unavailable(e.to_string()))?;
    // Its length follows 4 bytes that mark it, since Arrow 0.15.
    let message = if head.starts_with(&[0xff; 4]) { head.get(8..) } else { head.get(4..) };
    check_message(message.unwrap_or_default())
}

/// Passes a stream on, and fails at such a message.
pub struct Checked<R> {
    inner: R,
    /// The head of a message.
    head: Cursor<Vec<u8>>,
    /// What is left of its rows; `None` after the end of the stream.
    body: Option<u64>,
}

impl<R: Read> Checked<R> {
    /// A stream from its start.
    pub fn new(inner: R) -> Self {
        Self { inner, head: Cursor::default(), body: Some(0) }
    }

    fn next_head(&mut self) -> io::Result<()> {
        let mut head = Vec::new();
        self.inner.by_ref().take(8).read_to_end(&mut head)?;
        // Before Arrow 0.15 nothing marked a message but its length.
        let (from, length) = match head.as_slice() {
            [0xff, 0xff, 0xff, 0xff, length @ ..] => (8, length),
            _ => (4, head.get(..4).unwrap_or_default()),
        };
        let length = <[u8; 4]>::try_from(length).map_or(0, u32::from_le_bytes) as usize;
        let more = (from + length.min(HEAD_BYTES_MAX)).saturating_sub(head.len());
        if length > 0 {
            self.inner.by_ref().take(more as u64).read_to_end(&mut head)?;
        }
        let message = head.get(from..).unwrap_or_default();
        check_message(message).map_err(|e| io::Error::other(e.message().to_owned()))?;
        let body = root_as_message(message).ok().filter(|_| length > 0);
        self.body = body.and_then(|message| u64::try_from(message.bodyLength()).ok());
        self.head = Cursor::new(head);
        Ok(())
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.body == Some(0) && self.head.position() == self.head.get_ref().len() as u64 {
            self.next_head()?;
        }
        match self.head.read(buffer)? {
            0 => {}
            n => return Ok(n),
        }
        let Some(left) = &mut self.body else { return self.inner.read(buffer) };
        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.inner.read(&mut buffer[..most])?;
        // Without more bytes, what reads the stream says what it lacks.
        *left = if n == 0 { 0 } else { *left - n as u64 };
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow::ipc::writer::{FileWriter, StreamWriter};

    use super::*;

    /// A message that has nothing but the key, as flatbuffers have it.
    fn legacy() -> Vec<u8> {
        let mut bytes = Vec::new();
        let words = |bytes: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let shorts =
            |bytes: &mut Vec<u8>, words: &[u16]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        // The root; the fields of a message, of which only the fifth is there, and the message.
        words(&mut bytes, &[20]);
        shorts(&mut bytes, &[14, 8, 0, 0, 0, 0, 4, 0]);
        words(&mut bytes, &[16, 4]);
        // A list of one pair; the fields of a pair, and the pair.
        words(&mut bytes, &[1, 12]);
        shorts(&mut bytes, &[8, 12, 4, 8]);
        words(&mut bytes, &[8, 8, 40]);
        words(&mut bytes, &[KEY.len() as u32]);
        bytes.extend(KEY.as_bytes());
        bytes.extend([0, 0]);
        words(&mut bytes, &[3]);
        bytes.extend(*b"lz4\0");
        bytes
    }

    fn batch() -> RecordBatch {
        let (numbers, texts) = (Int64Array::from(vec![1, 2]), StringArray::from(vec!["a", "b"]));
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef), ("t", Arc::new(texts))]).unwrap()
    }

    #[test]
    fn a_file_that_was_compressed_so_is_refused() {
        assert!(check_message(&legacy()).unwrap_err().message().contains("Arrow 0.17"));
        let mut writer = FileWriter::try_new(Vec::new(), &batch().schema()).unwrap();
        writer.write(&batch()).unwrap();
        let mut file = writer.into_inner().unwrap();
        check_file(&mut Cursor::new(&file)).unwrap();
        let end = file.len() - TRAILER_BYTES as usize;
        let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
        let footer = root_as_footer(&file[end - length..end]).unwrap();
        let at = footer.recordBatches().unwrap().get(0).offset() as usize + 8;
        let legacy = legacy();
        file[at..at + legacy.len()].copy_from_slice(&legacy);
        assert!(check_file(&mut Cursor::new(&file)).unwrap_err().message().contains("Arrow 0.17"));
    }

    #[test]
    fn a_stream_that_was_compressed_so_is_refused() {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch().schema()).unwrap();
        writer.write(&batch()).unwrap();
        writer.write(&batch()).unwrap();
        let stream = writer.into_inner().unwrap();
        let read = |bytes: &[u8]| {
            let mut read = Vec::new();
            Checked::new(bytes).read_to_end(&mut read).map(|_| read)
        };
        assert_eq!(read(&stream).unwrap(), stream);
        let schema = 8 + u32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize;
        let mut bad = stream[..schema].to_vec();
        bad.extend([0xff; 4]);
        bad.extend((legacy().len() as u32).to_le_bytes());
        bad.extend(legacy());
        bad.extend(&stream[schema..]);
        assert!(read(&bad).unwrap_err().to_string().contains("Arrow 0.17"));
    }
}
