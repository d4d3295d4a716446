//! What callers at the same time see of a storage.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use drumlin::storage::{Storage, Tag, WriteMode};
use drumlin::{ErrorKind, Result};

use super::checks::{put, refused};
use crate::support::SetOnDrop;

const THREADS: usize = 6;

pub fn one_creates(storage: &dyn Storage) {
    for round in 0..12 {
        for on_tag in [false, true] {
            let name = format!("race/{round}-{on_tag}");
            let barrier = Barrier::new(THREADS);
            let race = |thread: usize| {
                let bytes = [Bytes::from(vec![thread as u8; 3000 + thread])];
                barrier.wait();
                match on_tag {
                    false => storage.put(&name, &bytes, WriteMode::Create),
                    true => storage.put_if_match(&name, &bytes, None).map(drop),
                }
            };
            let answers: Vec<Result<()>> = std::thread::scope(|scope| {
                let race = &race;
                let running: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || race(thread))).collect();
                running.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let winners: Vec<usize> = (0..THREADS).filter(|thread| answers[*thread].is_ok()).collect();
            assert_eq!(winners.len(), 1, "{answers:?}");
            assert_eq!(storage.get(&name).unwrap(), vec![winners[0] as u8; 3000 + winners[0]]);
            let kind = if on_tag { ErrorKind::Conflict } else { ErrorKind::AlreadyExists };
            answers.into_iter().filter(Result::is_err).for_each(|answer| refused(answer, kind, &name));
        }
    }
}

pub fn counts(storage: &dyn Storage) {
    const EACH: usize = 12;
    /// With a storage that refuses each try, the test would never end.
    const TRIES_MAX: usize = 5000;
    let name = "count/x";
    put(storage, name, "0");
    let barrier = Barrier::new(THREADS);
    let count = || -> Vec<usize> {
        barrier.wait();
        let (mut written, mut tries) = (Vec::new(), 0);
        while written.len() < EACH {
            let (bytes, tag) = storage.get_tagged(name, None).unwrap().unwrap();
            let next = std::str::from_utf8(&bytes).unwrap().parse::<usize>().unwrap() + 1;
            match storage.put_if_match(name, &[next.to_string().into()], Some(&tag)) {
                Ok(_) => written.push(next),
                Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
            }
            tries += 1;
            assert!(tries < TRIES_MAX);
        }
        written
    };
    let mut written: Vec<usize> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    written.sort_unstable();
    assert_eq!(written, (1..=THREADS * EACH).collect::<Vec<_>>());
    assert_eq!(storage.get(name).unwrap(), (THREADS * EACH).to_string());
}

pub fn one_step(storage: &dyn Storage) {
    let name = "step/x";
    let content = |n: u8| Bytes::from(vec![n; 1 + usize::from(n) * 997 % 70_000]);
    let number = |bytes: &Bytes| {
        assert!(*bytes == content(bytes[0]), "{} bytes, torn", bytes.len());
        bytes[0]
    };
    let look = || storage.get_tagged(name, None).unwrap().unwrap();
    put(storage, name, content(0));
    let done = AtomicBool::new(false);
    let read = || {
        let mut seen = Vec::new();
        while !done.load(Ordering::SeqCst) {
            number(&storage.get(name).unwrap());
            let (bytes, tag) = look();
            seen.push((number(&bytes), tag));
        }
        seen
    };
    let (tags, seen) = std::thread::scope(|scope| {
        let ends = SetOnDrop(&done);
        let readers = [(); 2].map(|()| scope.spawn(read));
        // Nobody else writes, so after each put the tag is that of its content.
        let tags: Vec<Tag> = std::iter::once(look().1)
            .chain((1..80).map(|n| {
                storage.put(name, &[content(n)], WriteMode::Replace).unwrap();
                look().1
            }))
            .collect();
        drop(ends);
        (tags, readers.map(|reader| reader.join().unwrap()).concat())
    });
    assert_eq!(storage.get(name).unwrap(), content(79));
    // A tag of later bytes than those read would let a put go over what was not seen. One of earlier bytes is refused.
    for (n, tag) in seen {
        let of = tags.iter().position(|known| *known == tag).unwrap();
        assert!(of <= usize::from(n), "the bytes of put {n} have the tag of put {of}");
    }
}
