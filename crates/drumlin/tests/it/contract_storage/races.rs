//! Checks of a storage with concurrent callers.

use std::sync::Barrier;

use bytes::Bytes;
use drumlin::storage::{Storage, WriteMode};
use drumlin::{ErrorKind, Result};

use super::checks::{put, refused};

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
    /// A storage that refuses every try would make the test run forever.
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
    put(storage, name, content(0));
    let read = || {
        for _ in 0..80 {
            let bytes = storage.get(name).unwrap();
            assert!(bytes == content(bytes[0]), "{} bytes, torn", bytes.len());
            let (bytes, tag) = storage.get_tagged(name, None).unwrap().unwrap();
            assert!(bytes == content(bytes[0]), "{} bytes, torn", bytes.len());
            // The tag is of these bytes.
            let again = storage.get_tagged(name, Some(&tag)).unwrap();
            assert!(again.is_none_or(|(newer, _)| newer != bytes));
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(read)));
        (1..80).for_each(|n| storage.put(name, &[content(n)], WriteMode::Replace).unwrap());
    });
    assert_eq!(storage.get(name).unwrap(), content(79));
}
