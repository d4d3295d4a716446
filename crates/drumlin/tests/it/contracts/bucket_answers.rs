//! How a client interprets the answers of a server: to a conditional put, and answers that break off.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use drumlin::ErrorKind;
use drumlin::storage::{BucketStorage, Storage, Tag};

/// Reads a request to its end.
fn request(stream: &mut TcpStream) -> Option<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if bytes.len() >= head.len() + 4 + length.unwrap_or(0) {
            return Some(());
        }
    }
}

/// What comes of asking a bucket whose server answers one request so; `None`: the connection is closed without an answer.
fn asked<T>(answer: Option<&str>, ask: impl FnOnce(&str) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            request(&mut stream);
            if let Some(answer) = answer {
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        ask(&format!("http://{address}"))
    })
}

/// The result of a put with this answer; `None`: the connection is closed without an answer.
fn answered(known: Option<&Tag>, answer: Option<(u16, &str)>) -> drumlin::Error {
    let answer = answer.map(|(status, code)| {
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>so it is</Message></Error>");
        let length = body.len();
        format!("HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    });
    asked(answer.as_deref(), |endpoint| put(endpoint, known))
}

fn put(endpoint: &str, known: Option<&Tag>) -> drumlin::Error {
    bucket(endpoint).put_if_match("root", &[Bytes::from_static(b"new")], known).unwrap_err()
}

fn bucket(endpoint: &str) -> BucketStorage {
    let options = [
        ("endpoint", endpoint),
        ("region", "us-east-1"),
        ("aws_access_key_id", "some-key-id"),
        ("aws_secret_access_key", "some-secret"),
    ];
    let options: BTreeMap<String, String> = options.map(|(name, value)| (name.into(), value.into())).into();
    BucketStorage::open("s3://bucket/store", &options, 1).unwrap()
}

// faults: lost answer, throttling, secrets x nodes
#[test]
fn a_refusal_is_distinguished_from_an_answer_that_leaves_it_open() {
    use ErrorKind::{Conflict, InDoubt, NotFound, Unavailable, Unsupported};
    let tag = Tag("\"abc\"\n".into());
    let cases = [
        (Some((429, "SlowDown")), Unavailable, true),
        (Some((429, "rateLimitExceeded")), Unavailable, true),
        (Some((503, "SlowDown")), Unavailable, true),
        (Some((503, "ServerBusy")), Unavailable, true),
        (Some((503, "SlowDownWrite")), InDoubt, false),
        (Some((503, "ServiceUnavailable")), InDoubt, false),
        (Some((500, "InternalError")), InDoubt, false),
        (Some((502, "BadGateway")), InDoubt, false),
        (Some((408, "RequestTimeout")), InDoubt, false),
        (Some((400, "InvalidRequest")), Unavailable, false),
        (Some((403, "AccessDenied")), Unavailable, false),
        (Some((400, "RequestTimeout")), Unavailable, true),
        (Some((501, "NotImplemented")), Unsupported, false),
        (Some((409, "ConditionalRequestConflict")), Conflict, false),
        (Some((409, "OperationAborted")), Conflict, false),
        (Some((412, "PreconditionFailed")), Conflict, false),
        (Some((404, "NoSuchKey")), Conflict, false),
        (None, InDoubt, false),
    ];
    for (answer, kind, throttled) in cases {
        let e = answered(Some(&tag), answer);
        assert_eq!((e.kind(), e.is_throttled()), (kind, throttled), "{answer:?}: {e}");
        assert!(!e.to_string().contains("some-secret"), "{e}");
    }
    let e = answered(None, Some((404, "NoSuchBucket")));
    assert_eq!(e.kind(), NotFound, "{e}");
    // If nothing listens, nothing was done.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let e = put(&format!("http://{nobody}"), Some(&tag));
    assert_eq!((e.kind(), e.is_throttled()), (Unavailable, false), "{e}");
}

const LISTED: &str = "<?xml version=\"1.0\"?><ListBucketResult><CommonPrefixes><Prefix>store/blocks/7/</Prefix></CommonPrefixes>\
    <Contents><Key>store/blocks/a.blk</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"x\"</ETag>\
    <Size>5</Size></Contents></ListBucketResult>";
const DELETED: &str = "<?xml version=\"1.0\"?><DeleteResult><Deleted><Key>store/a</Key></Deleted>\
    <Deleted><Key>store/b</Key></Deleted></DeleteResult>";

/// The result of `ask` if the first `cut` answers, `body`, break off; and how many requests it made. Some servers send the
/// length of an answer, others end it by closing the connection.
fn cut_off<T>(body: &str, cut: usize, says_length: bool, ask: impl FnOnce(&BucketStorage) -> T) -> (T, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, requests) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0.. {
                let (mut stream, _) = listener.accept().unwrap();
                if request(&mut stream).is_none() {
                    break;
                }
                told.send(()).unwrap();
                let length = if says_length { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
                let head = format!("HTTP/1.1 200 OK\r\n{length}ETag: \"x\"\r\nConnection: close\r\n\r\n");
                let sent = if n < cut { &body[..body.len() / 2] } else { body };
                stream.write_all((head + sent).as_bytes()).unwrap();
            }
        });
        let answer = ask(&bucket(&format!("http://{address}")));
        // A connection without a request ends the server.
        drop(TcpStream::connect(address).unwrap());
        (answer, requests.iter().count())
    })
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    for says_length in [true, false] {
        let (listed, requests) = cut_off(LISTED, 2, says_length, |bucket| bucket.list("blocks"));
        assert_eq!((listed.unwrap().len(), requests), (1, 3));
        let (folders, requests) = cut_off(LISTED, 1, says_length, |bucket| bucket.list_folders("blocks"));
        assert_eq!((folders.unwrap(), requests), (vec!["7".to_owned()], 2));
        let names = ["a".to_owned(), "b".to_owned()];
        let (deleted, requests) = cut_off(DELETED, 1, says_length, |bucket| bucket.delete_many(&names));
        assert!(deleted.iter().all(drumlin::Result::is_ok), "{deleted:?}");
        assert_eq!(requests, 2);
    }
}

#[test]
fn answers_that_always_break_off_are_an_error_in_the_end() {
    let (listed, requests) = cut_off(LISTED, usize::MAX, true, |bucket| bucket.list("blocks"));
    let e = listed.unwrap_err();
    assert_eq!((e.kind(), requests), (ErrorKind::Unavailable, 6), "{e}");
}

/// The error of reading ranges of `name` if each request gets this answer.
fn ranges_answered(name: &str, status: u16, head: &str, body: &str) -> drumlin::Error {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let (mut stream, _) = listener.accept().unwrap();
                if request(&mut stream).is_none() {
                    break;
                }
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\n{head}Connection: close\r\n\r\n");
                stream.write_all((head + body).as_bytes()).unwrap();
            }
        });
        let e = bucket(&format!("http://{address}")).get_ranges(name, &[0..1, 20..21]).unwrap_err();
        drop(TcpStream::connect(address).unwrap());
        e
    })
}

#[test]
fn an_object_that_ends_early_is_distinguished_from_one_that_cannot_be_read() {
    // Both ranges are read together, and the second begins beyond the end.
    let part = "Content-Range: bytes 0-9/10\r\nETag: \"x\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
    let denied = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>";
    let beyond = "<?xml version=\"1.0\"?><Error><Code>InvalidRange</Code></Error>";
    for (status, head, body, kind) in [
        (206, part, "0123456789", ErrorKind::Corrupt),
        (416, "", beyond, ErrorKind::Corrupt),
        // The number in the name says nothing.
        (403, "", denied, ErrorKind::Unavailable),
    ] {
        let e = ranges_answered("blocks/416/7.blk", status, head, body);
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.message().contains("blocks/416/7.blk"), "{e}");
    }
}

/// A server of one object; tells how many bytes it sends in each answer.
fn serve_ranges(object: &[u8], listener: &TcpListener, told: &std::sync::mpsc::Sender<usize>) {
    std::thread::scope(|scope| {
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 2048];
            let n = stream.read(&mut head).unwrap_or(0);
            if n == 0 {
                break;
            }
            let head = String::from_utf8_lossy(&head[..n]).to_ascii_lowercase();
            let (_, range) = head.split_once("range: bytes=").unwrap();
            let (first, last) = range.lines().next().unwrap().trim().split_once('-').unwrap();
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            told.send(last + 1 - first).unwrap();
            scope.spawn(move || {
                let head = format!(
                    "HTTP/1.1 206 Part\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{}\r\nETag: \"x\"\r\n\
                     Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n",
                    last + 1 - first,
                    object.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&object[first..=last]).unwrap();
            });
        }
    });
}

/// Parts of an object come with at most twice their bytes and 64 KiB for each, whatever lies between them, and with few requests where
/// they are near each other.
#[test]
fn no_more_is_read_than_twice_what_is_wanted() {
    let object: Vec<u8> = (0..24_u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    crate::seeds::each(0..20, 5, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (gap, size) = [(2_000_000, 20_000), (100_000, 1_000), (8_000, 500), (30_000, 60_000), (1 << 20, 1 << 20)]
            [seed as usize % 5];
        let (mut ranges, mut at) = (Vec::new(), rng.u64(0..1000));
        while at + size < object.len() as u64 && ranges.len() < 40 {
            let end = at + rng.u64(0..=size);
            ranges.push(at..end);
            at = end + rng.u64(0..=gap);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, sent) = std::sync::mpsc::channel();
        let found = std::thread::scope(|scope| {
            let object = &object;
            scope.spawn(move || serve_ranges(object, &listener, &told));
            let found = bucket(&format!("http://{address}")).get_ranges("a", &ranges);
            drop(TcpStream::connect(address).unwrap());
            found
        });
        let found = found.unwrap();
        assert!(
            ranges.iter().zip(&found).all(|(range, part)| *part == object[range.start as usize..range.end as usize])
        );
        let wanted: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let sent: Vec<usize> = sent.iter().collect();
        let bytes = sent.iter().sum::<usize>() as u64;
        assert!(bytes <= 2 * wanted + ranges.len() as u64 * (64 << 10), "{bytes} bytes for {wanted}: {ranges:?}");
        if gap == 8_000 {
            assert_eq!(sent.len(), 1, "{ranges:?}");
        }
    });
}

/// Whether a bucket keeps what is replaced is known by the number that it gives to what was written.
#[test]
fn a_bucket_with_versions_is_known() {
    for (head, keeps) in
        [("x-amz-version-id: 3sL4kqtJlcpXroDTDmJ\r\n", true), ("x-amz-version-id: null\r\n", false), ("", false)]
    {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"x\"\r\n{head}Connection: close\r\n\r\n");
        asked(Some(&answer), |endpoint| {
            let bucket = bucket(endpoint);
            let tag = bucket.put_if_match("root", &[Bytes::from_static(b"new")], None).unwrap();
            assert_eq!(bucket.keeps_replaced(&tag), Some(keeps), "{head}");
        });
    }
}
