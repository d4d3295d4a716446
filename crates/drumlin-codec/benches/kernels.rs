//! What it takes to encode, decode, test and pick from 3.1 million numbers: `cargo bench -p drumlin-codec`.

use std::hint::black_box;
#[allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
use std::time::Instant;

use drumlin_codec::{Column, Limit, Ptype, Search, Word, numbers};

const ROWS: usize = 122_880;
const GROUPS: usize = 25;

fn best(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure<W: Word>(name: &str, ptype: Ptype, value: impl Fn(&mut fastrand::Rng, usize) -> u64) {
    let mut rng = fastrand::Rng::with_seed(1);
    let groups: Vec<Vec<W>> =
        (0..GROUPS).map(|_| (0..ROWS).map(|row| W::low(value(&mut rng, row))).collect()).collect();
    let mut built = Vec::new();
    let write = best(|| built = groups.iter().map(|group| numbers(group, ptype, None, &Search::default())).collect());
    let bytes: usize = built.iter().map(|built| built.size()).sum();
    let raws: Vec<_> = built.iter().map(|built| built.raw()).collect();
    let limit = Limit::new(1 << 24, u64::MAX);
    let read = |raw| Column::<W>::read(raw, ptype, ROWS, &limit).unwrap();
    let decode = best(|| raws.iter().for_each(|raw| drop(black_box(read(raw).decode().unwrap()))));
    let mut sorted = groups[0].clone();
    sorted.sort_unstable();
    let span = sorted[ROWS / 50].minus(sorted[0]);
    let test = best(|| raws.iter().for_each(|raw| drop(black_box(read(raw).test(sorted[0], span).unwrap()))));
    let rows: Vec<u32> = (0..ROWS as u32).step_by(50).collect();
    let pick = best(|| raws.iter().for_each(|raw| drop(black_box(read(raw).pick(&rows).unwrap()))));
    let bits = bytes as f64 * 8.0 / (ROWS * GROUPS) as f64;
    println!(
        "{name:>24}: {bits:5.2} bits; encode {write:7.2} ms, decode {decode:6.2}, test {test:6.2}, pick 2 % {pick:6.2}"
    );
}

fn main() {
    measure::<u64>("i64 of 17 bits", Ptype::I64, |rng, _| 1_000_000 + rng.u64(..1 << 17));
    measure::<u32>("i32 of 17 bits", Ptype::I32, |rng, _| 1_000_000 + rng.u64(..1 << 17));
    measure::<u64>("i64, 50 values", Ptype::I64, |rng, _| rng.u64(..50) * 1_000_003);
    measure::<u64>("i64, runs of 50", Ptype::I64, |_, row| (row / 50 * 7919 % 1000) as u64);
    measure::<u64>("i64, ascending", Ptype::I64, |rng, row| row as u64 * 10 + rng.u64(..10));
    measure::<u64>("i64, any", Ptype::I64, |rng, _| rng.u64(..));
    measure::<u64>("f64, cents", Ptype::F64, |rng, _| (rng.i64(0..10_000_000) as f64 / 100.0).to_bits());
    measure::<u64>("f64, any", Ptype::F64, |rng, _| rng.f64().to_bits());
    measure::<u32>("f32, tenths", Ptype::F32, |rng, _| (rng.i32(0..100_000) as f32 / 10.0).to_bits().into());
}
