//! Rows that lie together: what of a group's neighbouring rows is known of all at once.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;

use super::best::{BestNumber, Selector, doubles, keys_of};
use super::exact::ExactSum;
use super::state::AggregateState;
use crate::base::Result;
use crate::filter::narrow_integers;

/// With at least this many rows a run, on average, rows are added run by run.
const RUN_ROWS_MIN: usize = 8;

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
        let mut begin = 0;
        for some in codes.chunk_by(|a, b| a == b) {
            let end = begin + some.len();
            runs.push(Self { group: groups[some[0] as usize] as usize, rows: begin..end });
            begin = end;
        }
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
