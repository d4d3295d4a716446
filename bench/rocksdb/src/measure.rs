//! Times one side in one workload, and checks its results.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use crate::Result;
use crate::data::{Packed, Question, Rows, Tally, VALUE_BYTES};
use crate::side::{Reader, Side};

/// Rows of a written batch.
pub const WRITE_BATCH: usize = 1000;

/// When a run ends, whichever comes first.
#[derive(Clone, Copy)]
pub struct Limits {
    pub lookups: usize,
    pub time: Duration,
}

/// Writes all rows; returns rows per second.
pub fn fill(side: &dyn Side, rows: &Rows) -> Result<f64> {
    let mut writer = side.writer()?;
    let start = Instant::now();
    for (keys, values) in rows.keys().chunks(WRITE_BATCH).zip(rows.values().chunks(WRITE_BATCH)) {
        writer.write(keys, values)?;
    }
    Ok(rows.len() as f64 / start.elapsed().as_secs_f64())
}

/// Reads all rows in order; returns rows per second.
pub fn scan(side: &dyn Side, rows: &Rows) -> Result<Option<f64>> {
    let start = Instant::now();
    let Some(scanned) = side.scan()? else { return Ok(None) };
    let seconds = start.elapsed().as_secs_f64();
    match scanned == rows.scanned() {
        true => Ok(Some(scanned.rows as f64 / seconds)),
        false => Err(format!("the scan gave other values: {scanned:?}").into()),
    }
}

/// Checks every byte of some results.
pub fn verify(side: &dyn Side, question: &Question<'_>, batch: usize) -> Result<()> {
    const LOOKUPS: usize = 4096;
    let mut reader = side.reader()?;
    for (turn, keys) in question.keys().chunks(batch).take(LOOKUPS / batch).enumerate() {
        ask(&mut *reader, keys)?;
        if let Some(at) = (0..keys.len()).find(|at| reader.value(*at) != question.value(turn * batch + at)) {
            return Err(format!("a wrong value for the key {:?}", keys.get(at)).into());
        }
    }
    Ok(())
}

#[inline]
fn ask(reader: &mut dyn Reader, keys: Packed<'_>) -> Result<Tally> {
    if keys.len() == 1 { reader.get(keys.get(0)) } else { reader.get_many(keys) }
}

/// One thread's part of a run.
struct Asked {
    lookups: usize,
    seconds: f64,
}

/// Looks up batches from number `first` on, until a limit is reached.
fn run(
    side: &dyn Side,
    question: &Question<'_>,
    batch: usize,
    first: usize,
    limits: Limits,
    ready: &Barrier,
) -> Result<Asked> {
    const TURNS: usize = 64;
    let keys: Vec<Packed<'_>> = question.keys().chunks(batch).collect();
    let (mut lookups, mut tally) = (0, Tally::default());
    let mut reader = side.reader()?;
    ready.wait();
    let start = Instant::now();
    for (turn, keys) in keys.iter().cycle().skip(first).enumerate() {
        tally += ask(&mut *reader, *keys)?;
        lookups += keys.len();
        if lookups >= limits.lookups || (turn % TURNS == TURNS - 1 && start.elapsed() >= limits.time) {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    question.check(first * batch, lookups, tally)?;
    Ok(Asked { lookups, seconds })
}

/// Looks rows up in batches; returns look-ups per second of all threads together.
pub fn look_up(side: &dyn Side, question: &Question<'_>, batch: usize, threads: usize, limits: Limits) -> Result<f64> {
    verify(side, question, batch)?;
    let ready = Barrier::new(threads);
    let limits = Limits { lookups: limits.lookups / threads, ..limits };
    let batches = question.keys().len() / batch;
    let parts = scope(|scope| {
        let part = |thread: usize| run(side, question, batch, thread * batches / threads, limits, &ready);
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        let own = part(0);
        let others = others.into_iter().map(|other| other.join().map_err(|_| "a reader panicked")?);
        std::iter::once(own).chain(others).collect::<Result<Vec<Asked>>>()
    })?;
    Ok(parts.iter().map(|part| part.lookups as f64 / part.seconds).sum())
}

/// The times of single batches, in seconds, ascending.
pub fn times(side: &dyn Side, question: &Question<'_>, batch: usize, limits: Limits) -> Result<Vec<f64>> {
    let mut reader = side.reader()?;
    let start = Instant::now();
    let mut times = Vec::new();
    for keys in question.keys().chunks(batch).take(limits.lookups / batch) {
        let before = Instant::now();
        ask(&mut *reader, keys)?;
        times.push(before.elapsed().as_secs_f64());
        if start.elapsed() >= limits.time {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The time that the fraction `part` of them does not exceed.
pub fn percentile(times: &[f64], part: f64) -> f64 {
    times[((times.len() - 1) as f64 * part) as usize]
}

/// Look-ups per second for a while, and rows per second that another thread overwrites at the same time, as fast as it
/// can.
pub fn look_up_beside_writer(
    side: &dyn Side,
    question: &Question<'_>,
    batch: usize,
    again: &(Vec<u8>, Vec<u8>),
    time: Duration,
) -> Result<(f64, f64)> {
    let (stop, ready) = (AtomicBool::new(false), Barrier::new(2));
    let write = || -> Result<f64> {
        let (keys, values) = (Packed::new(&again.0, question.keys().width()), Packed::new(&again.1, VALUE_BYTES));
        let batches: Vec<_> = keys.chunks(WRITE_BATCH).zip(values.chunks(WRITE_BATCH)).collect();
        let mut writer = side.writer()?;
        ready.wait();
        let (start, mut rows) = (Instant::now(), 0);
        for (keys, values) in batches.iter().cycle() {
            writer.write(*keys, *values)?;
            rows += keys.len();
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(rows as f64 / start.elapsed().as_secs_f64())
    };
    scope(|scope| {
        let writer = scope.spawn(write);
        let asked = run(side, question, batch, 0, Limits { lookups: usize::MAX, time }, &ready);
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().map_err(|_| "the writer panicked")??;
        let Asked { lookups, seconds } = asked?;
        Ok((lookups as f64 / seconds, written))
    })
}
