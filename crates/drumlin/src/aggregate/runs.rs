//! Rows that lie together: what of a group's neighbouring rows is known of all at once.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Float64Type};

use super::best::{BestNumber, Selector, doubles, keys_of};
use super::codes::{CHUNK, all_are};
use super::exact::ExactSum;
use super::state::AggregateState;
use crate::base::Result;
use crate::filter::{float_key, narrow_integers};

/// With at least this many rows a run, on average, rows are added run by run.
const RUN_ROWS_MIN: usize = 8;

/// The best of some floats, several at a time; `None` of none, or if one is NaN.
fn best_of(values: &[f64], is_better: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let pick = |new: f64, old: f64| if is_better(new, old) { new } else { old };
    let (eights, rest) = values.as_chunks::<8>();
    let mut best = [*values.first()?; 8];
    let mut nans = [false; 8];
    for some in eights {
        for ((best, nan), value) in best.iter_mut().zip(&mut nans).zip(some) {
            *best = pick(*value, *best);
            *nan |= value.is_nan();
        }
    }
    if nans.contains(&true) || rest.iter().any(|value| value.is_nan()) {
        return None;
    }
    best.iter().chain(rest).copied().reduce(|old, new| pick(new, old))
}

/// Neighbouring rows of one group.
pub struct GroupRun {
    pub group: usize,
    pub rows: Range<usize>,
}

impl GroupRun {
    /// Those of all rows, if they are long.
    pub fn all(codes: &[u32], groups: &[u32]) -> Option<Vec<Self>> {
        let changes = codes.iter().zip(codes.get(1..)?).filter(|(a, b)| a != b).count();
        if (changes + 1) * RUN_ROWS_MIN > codes.len() {
            return None;
        }
        let mut runs = Vec::with_capacity(changes + 1);
        let (mut begin, mut code) = (0, *codes.first()?);
        let mut end_at = |end: usize, code: u32| {
            runs.push(Self { group: groups[code as usize] as usize, rows: begin..end });
            begin = end;
        };
        for (at, some) in codes.chunks(CHUNK).enumerate() {
            if all_are(some, code) {
                continue;
            }
            for (row, next) in (at * CHUNK..).zip(some) {
                if *next != code {
                    end_at(row, code);
                    code = *next;
                }
            }
        }
        end_at(codes.len(), code);
        Some(runs)
    }
}

impl AggregateState {
    /// Adds rows, run by run; `false`, with nothing added, if that is no faster than one by one, or if some are null.
    pub fn add_runs(&mut self, runs: &[GroupRun], values: &[ArrayRef], rank: u64) -> Result<bool> {
        let array = match values {
            [] => None,
            [array] if array.null_count() == 0 && array.as_any_dictionary_opt().is_none() => Some(array),
            _ => return Ok(false),
        };
        match (self, array) {
            (Self::Count(n), _) if array.is_none_or(|array| !array.data_type().is_null()) => {
                runs.iter().for_each(|run| n[run.group] += run.rows.len() as u64);
            }
            (Self::Integers(sums), Some(array)) => {
                let Some(values) = narrow_integers(array) else { return Ok(false) };
                for run in runs {
                    // Halves of values, of which 2^31 fit into 64 bits.
                    let add = |(low, high): (u64, i64), value: &i64| {
                        (low + u64::from(value.cast_unsigned() as u32), high + (value >> 32))
                    };
                    for some in values[run.rows.clone()].chunks(1 << 30) {
                        let (low, high) = some.iter().fold((0, 0), add);
                        sums[run.group].sum.add((i128::from(high) << 32) + i128::from(low));
                    }
                    sums[run.group].n += run.rows.len() as u64;
                }
            }
            (Self::Floats(sums), Some(array)) => {
                let values = doubles(array)?;
                if values.null_count() > 0 {
                    return Ok(false);
                }
                for run in runs {
                    let (mut even, mut odd) = (ExactSum::default(), ExactSum::default());
                    let (pairs, rest) = values.values()[run.rows.clone()].as_chunks::<2>();
                    for [a, b] in pairs {
                        even.add(*a);
                        odd.add(*b);
                    }
                    rest.iter().for_each(|value| even.add(*value));
                    let sum = &mut sums[run.group];
                    sum.sum.merge(&even);
                    sum.sum.merge(&odd);
                    sum.n += run.rows.len() as u64;
                }
            }
            (Self::Number(best, kind), Some(array)) => {
                // Of the first and the last, most are not looked at.
                if matches!(kind, Selector::First | Selector::Last) {
                    let at = |run: &GroupRun| if *kind == Selector::First { run.rows.start } else { run.rows.end - 1 };
                    let places: Vec<u32> = runs.iter().map(|run| at(run) as u32).collect();
                    let keys = keys_of(&take(array, &UInt32Array::from(places), None)?)?;
                    for (run, key) in runs.iter().zip(&keys) {
                        let new = BestNumber { key: *key, rank: rank + at(run) as u64 };
                        best[run.group] = kind.better(best[run.group], new);
                    }
                    return Ok(true);
                }
                if let DataType::Float64 = array.data_type() {
                    let values = array.as_primitive::<Float64Type>().values();
                    for run in runs {
                        let some = &values[run.rows.clone()];
                        let keys = some.iter().map(|value| float_key(*value));
                        let key = match kind {
                            Selector::Least => {
                                best_of(some, |new, old| new < old).map(float_key).or_else(|| keys.min())
                            }
                            _ => best_of(some, |new, old| new > old).map(float_key).or_else(|| keys.max()),
                        };
                        let new = key.map_or(kind.none(), |key| BestNumber { key, rank: 0 });
                        best[run.group] = kind.better(best[run.group], new);
                    }
                    return Ok(true);
                }
                let keys = keys_of(array)?;
                for run in runs {
                    let some = keys[run.rows.clone()].iter().copied();
                    let key = if *kind == Selector::Least { some.min() } else { some.max() };
                    let new = key.map_or(kind.none(), |key| BestNumber { key, rank: 0 });
                    best[run.group] = kind.better(best[run.group], new);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes::{Combinations, RowCodes};
    use super::*;

    #[test]
    fn the_best_of_floats_is_that_of_their_keys() {
        let mut rng = fastrand::Rng::with_seed(1);
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE, -1.5, 2.5];
        for round in 0..20_000 {
            // Also without NaN.
            let first = if round % 2 == 0 { 2 } else { 0 };
            let values: Vec<f64> = (0..rng.usize(0..40)).map(|_| odd[rng.usize(first..odd.len())]).collect();
            let keys = || values.iter().map(|value| float_key(*value));
            let has_nan = values.iter().any(|value| value.is_nan());
            let found = [best_of(&values, |new, old| new < old), best_of(&values, |new, old| new > old)];
            let expected = if has_nan { [None; 2] } else { [keys().min(), keys().max()] };
            assert_eq!(found.map(|value| value.map(float_key)), expected, "{values:?}");
        }
    }

    #[test]
    fn runs_and_numbers_of_groups_are_those_found_row_by_row() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..2_000 {
            let mut of_rows = Vec::new();
            let longest = rng.usize(1..200);
            for _ in 0..rng.usize(1..20) {
                let code = rng.u32(..6);
                of_rows.extend(std::iter::repeat_n(code, rng.usize(1..=longest)));
            }
            let groups: Vec<u32> = (10..16).collect();
            let mut begin = 0;
            let expected = of_rows.chunk_by(|a, b| a == b).map(|some| {
                begin += some.len();
                (groups[some[0] as usize] as usize, begin - some.len()..begin)
            });
            let expected: Vec<_> = expected.collect();
            let found = GroupRun::all(&of_rows, &groups);
            assert_eq!(found.is_some(), expected.len() * RUN_ROWS_MIN <= of_rows.len());
            if let Some(found) = found {
                assert_eq!(found.into_iter().map(|run| (run.group, run.rows)).collect::<Vec<_>>(), expected);
            }
            let codes = RowCodes { of_rows: of_rows.clone(), distinct: 6 };
            let found = Combinations::of(&[&codes], of_rows.len());
            let mut seen: Vec<u32> = Vec::new();
            for (code, dense) in of_rows.iter().zip(&found.of_rows) {
                if !seen.contains(code) {
                    seen.push(*code);
                }
                assert_eq!(seen.iter().position(|known| known == code), Some(*dense as usize));
            }
            let firsts = seen.iter().map(|code| of_rows.iter().position(|other| other == code).unwrap() as u32);
            assert_eq!(found.first, firsts.collect::<Vec<_>>());
        }
    }
}
