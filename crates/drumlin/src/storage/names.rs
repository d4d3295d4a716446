//! Every object name of a store, with formatter and parser side by side. No user's path is ever part of one.
//!
//! ```text
//! format                          what this folder is, and the format's version
//! lock                            held by the process that writes
//! log/<first seq, 20 digits>.log  a segment of the commit log
//! log/synced                      the last entry of the log that is known to be synced
//! catalog/<seq, 20 digits>.cat    a catalog snapshot
//! blocks/<session>/<number>.blk   a block
//!
//! in a store that many processes write, instead of `format`, `lock` and the log's segments:
//! root                                             from here everything else is reached
//! seen                                             a commit that was made, so that an older root is noticed
//! log/<last seq, 20 digits>-<16 hex digits>.log    a chunk of the commit log
//! offers/<32 hex digits>                          in a bucket: an entry that a process has handed in for others to add, by its id
//! archive/<last seq>-<time>-<16 hex digits>.old    in a replica: a root that was replaced, and what it leads to
//! ```

use crate::base::{BlockId, EntryId, Seq, SessionId, Timestamp};

/// The file that says what the folder is.
pub const FORMAT: &str = "format";
/// The file that carries the process lock.
pub const LOCK: &str = "lock";
/// The folder of log segments.
pub const LOG: &str = "log";
/// The file next to the log's segments that says up to where they are synced.
pub const LOG_MARK: &str = "log/synced";
/// Its name within the folder.
const MARK: &str = "synced";
/// The folder of catalog snapshots.
pub const CATALOG: &str = "catalog";
/// The folder of blocks.
pub const BLOCKS: &str = "blocks";
/// The object from which a shared store's log is reached.
pub const ROOT: &str = "root";
/// The object of a shared store that says of a commit that it was made.
pub const WITNESS: &str = "seen";
/// The file under whose lock the root of a store in a folder is replaced.
pub const ROOT_LOCK: &str = "root.lock";
/// The folder of the objects with which a new bucket is tested.
pub const PROBE: &str = "probe";
/// The folder of entries that processes have handed in for others to add.
pub const OFFERS: &str = "offers";
/// The folder of the roots that a replica had, from which earlier commits are restored.
pub const ARCHIVE: &str = "archive";
/// The suffix of a file that is still being written.
const TEMPORARY: &str = ".tmp";

/// The object of an entry that was handed in.
pub fn offer(id: EntryId) -> String {
    format!("{OFFERS}/{:032x}", id.0)
}

/// The temporary file in which a process writes an object before the rename: the `number`-th of that process, which chose `nonce`,
/// since processes in different containers may have the same number.
pub fn temporary(object: &str, process: u32, number: u64, nonce: u64) -> String {
    format!("{object}.{process}-{number}-{nonce:016x}{TEMPORARY}")
}

/// The temporary file in which a segment of the log is made before the rename.
pub fn temporary_segment(segment: &str) -> String {
    format!("{segment}{TEMPORARY}")
}

/// The name, within its folder, of the object that a temporary file was to become.
pub fn parse_temporary(name: &str) -> Option<&str> {
    let object = name.strip_suffix(TEMPORARY)?;
    if parse_log_segment(object).is_some() {
        return Some(object);
    }
    let (object, writer) = object.rsplit_once('.')?;
    let (process, number) = writer.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = match number.split_once('-') {
        Some((number, nonce)) => is_hex(nonce).then_some(number)?,
        // As earlier builds have named it.
        None => number,
    };
    let ours = [FORMAT, ROOT, WITNESS, MARK].contains(&object)
        || parse_log_segment(object).is_some()
        || parse_log_chunk(object).is_some()
        || parse_archived(object).is_some()
        || parse_catalog(object).is_some()
        || parse_block(SessionId(0), object).is_some();
    (ours && digits(process) && digits(number)).then_some(object)
}

/// Whether this is the mark, by its name within its folder.
pub fn is_log_mark(name: &str) -> bool {
    name == MARK
}

/// The log segment that begins with `first`.
pub fn log_segment(first: Seq) -> String {
    format!("{LOG}/{first:020}.log", first = first.0)
}

/// The seq in the name of a log segment within its folder.
pub fn parse_log_segment(name: &str) -> Option<Seq> {
    parse_number(name.strip_suffix(".log")?, 20).map(Seq)
}

/// The chunk of a shared log that ends with `last`.
pub fn log_chunk(last: Seq, nonce: u64) -> String {
    format!("{LOG}/{last:020}-{nonce:016x}.log", last = last.0)
}

/// The last seq in the name of a log chunk within its folder.
pub fn parse_log_chunk(name: &str) -> Option<Seq> {
    let (last, nonce) = name.strip_suffix(".log")?.split_once('-')?;
    parse_number(last, 20).filter(|_| is_hex(nonce)).map(Seq)
}

/// A root whose last entry is `last`, and which was replaced at `at`.
pub fn archived(last: Seq, at: Timestamp, nonce: u64) -> String {
    format!("{ARCHIVE}/{last:020}-{at:020}-{nonce:016x}.old", last = last.0, at = at.0.max(0))
}

/// The last seq and the time in the name of such a root within its folder.
pub fn parse_archived(name: &str) -> Option<(Seq, Timestamp)> {
    let (last, rest) = name.strip_suffix(".old")?.split_once('-')?;
    let (at, nonce) = rest.split_once('-')?;
    let at = parse_number(at, 20).and_then(|at| i64::try_from(at).ok())?;
    parse_number(last, 20).filter(|_| is_hex(nonce)).map(|last| (Seq(last), Timestamp(at)))
}

/// Whether these are 16 hexadecimal digits.
fn is_hex(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The catalog snapshot of the state at `seq`.
pub fn catalog(seq: Seq) -> String {
    format!("{CATALOG}/{seq:020}.cat", seq = seq.0)
}

/// The seq in the name of a catalog snapshot within its folder.
pub fn parse_catalog(name: &str) -> Option<Seq> {
    parse_number(name.strip_suffix(".cat")?, 20).map(Seq)
}

/// The folder of one session's blocks.
pub fn session_folder(session: SessionId) -> String {
    format!("{BLOCKS}/{session}")
}

/// The session in the name of a folder of blocks.
pub fn parse_session(name: &str) -> Option<SessionId> {
    parse_number(name, name.len()).map(SessionId)
}

/// A block.
pub fn block(id: BlockId) -> String {
    format!("{BLOCKS}/{}/{}.blk", id.session, id.number)
}

/// The block's number in its name within its session's folder.
pub fn parse_block(session: SessionId, name: &str) -> Option<BlockId> {
    let number = name.strip_suffix(".blk")?;
    parse_number(number, number.len()).map(|number| BlockId { session, number })
}

/// Digits only, exactly `width` of them, so that each name has one spelling.
fn parse_number(text: &str, width: usize) -> Option<u64> {
    let padded = width == 20 || !text.starts_with('0') || text == "0";
    (text.len() == width && padded && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_have_one_spelling() {
        let id = BlockId { session: SessionId(7), number: 0 };
        assert_eq!(block(id), "blocks/7/0.blk");
        assert_eq!(parse_block(SessionId(7), "0.blk"), Some(id));
        for bad in ["00.blk", "-1.blk", ".blk", "0", "0.blk.tmp", "99999999999999999999999.blk"] {
            assert_eq!(parse_block(SessionId(7), bad), None, "{bad}");
        }
        assert_eq!(log_segment(Seq(12)), "log/00000000000000000012.log");
        assert_eq!(parse_log_segment("00000000000000000012.log"), Some(Seq(12)));
        assert_eq!(parse_log_segment("12.log"), None);
        assert_eq!(parse_catalog("00000000000000000012.cat"), Some(Seq(12)));
        let archived = archived(Seq(12), Timestamp(34), 9);
        assert_eq!(parse_archived(archived.strip_prefix("archive/").unwrap()), Some((Seq(12), Timestamp(34))));
        assert_eq!(parse_archived("00000000000000000012-34-0000000000000009.old"), None);
        assert_eq!(parse_session("10"), Some(SessionId(10)));
        assert_eq!(parse_session("010"), None);
    }

    #[test]
    fn temporary_files_are_told_from_what_is_not_ours() {
        for object in
            ["root", "seen", "format", "synced", "7.blk", "00000000000000000012.cat", "00000000000000000012.log"]
        {
            assert_eq!(parse_temporary(&temporary(object, 31, 7, u64::MAX - 3)), Some(object));
            assert_eq!(parse_temporary(&format!("{object}.31-7.tmp")), Some(object), "of an earlier build");
        }
        assert_ne!(temporary("root", 7, 1, 5), temporary("root", 7, 1, 6), "two containers, one number of a process");
        let chunk = log_chunk(Seq(3), 9);
        let chunk = chunk.strip_prefix("log/").unwrap();
        assert_eq!(parse_temporary(&temporary(chunk, 1, 1, 0)), Some(chunk));
        assert_eq!(parse_temporary(&temporary_segment("00000000000000000012.log")), Some("00000000000000000012.log"));
        for foreign in [
            "x.tmp",
            "root.tmp",
            "notes.1-2.tmp",
            "root.1-.tmp",
            "root.a-1.tmp",
            "7.blk.1-2.tm",
            ".1-2.tmp",
            "root.1-2-3.tmp",
            "root.1-2-00000000000000g0.tmp",
        ] {
            assert_eq!(parse_temporary(foreign), None, "{foreign}");
        }
    }
}
