//! A curve through the values of several columns, along which rows that are near each other in all of them are mostly near each other.
//!
//! After G. M. Morton, "A computer oriented geodetic data base and a new technique in file sequencing" (IBM, 1966): the bits of the values
//! take turns. Of a value, its rank among all counts, so that a skewed column, or a text, takes as much part as any.

use arrow::array::{ArrayRef, UInt64Array};
use arrow::row::Rows;

use crate::base::{Pool, Result};
use crate::table::order::sort_columns::comparable;

/// How many columns a curve may have.
pub const CURVE_COLUMNS: std::ops::RangeInclusive<usize> = 2..=4;

/// Bits of the rank of a value.
const BITS: u32 = 16;

/// Where each row of some inputs is on the curve; an input is its columns, as many in each. O(columns x rows x log rows).
pub(in crate::table) fn curve(pool: &Pool, inputs: &[Vec<ArrayRef>]) -> Result<Vec<UInt64Array>> {
    let columns = inputs.first().map_or(0, Vec::len);
    let ranks = pool.map((0..columns).collect(), |column| {
        let keys = inputs.iter().map(|input| comparable(&input[column..=column])).collect::<Result<Vec<_>>>()?;
        Ok(ranks(&keys))
    })?;
    let of_input = |input: usize| {
        let rows = inputs[input][0].len();
        UInt64Array::from_iter_values((0..rows).map(|row| interleaved(ranks.iter().map(|column| column[input][row]))))
    };
    Ok((0..inputs.len()).map(of_input).collect())
}

/// Ranks of values among all, from 0 to 2^[`BITS`] - 1; the same for equal ones.
fn ranks(keys: &[Rows]) -> Vec<Vec<u16>> {
    let of_input = |(at, keys): (usize, &Rows)| (0..keys.num_rows() as u32).map(move |row| (at as u32, row));
    let mut places: Vec<(u32, u32)> = keys.iter().enumerate().flat_map(of_input).collect();
    let key = |(at, row): (u32, u32)| keys[at as usize].row(row as usize);
    places.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
    let mut ranks: Vec<Vec<u16>> = keys.iter().map(|keys| vec![0; keys.num_rows()]).collect();
    let rows = places.len() as u64;
    let mut rank = 0;
    for (at, place) in places.iter().enumerate() {
        if at > 0 && key(places[at - 1]) != key(*place) {
            rank = ((at as u64) << BITS).checked_div(rows).unwrap_or(0) as u16;
        }
        ranks[place.0 as usize][place.1 as usize] = rank;
    }
    ranks
}

/// The bits of numbers in turns, the highest first.
fn interleaved(numbers: impl Iterator<Item = u16> + Clone) -> u64 {
    let bit = |at: u32| numbers.clone().map(move |number| u64::from(number >> at & 1));
    (0..BITS).rev().flat_map(bit).fold(0, |all, bit| all << 1 | bit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn bits_take_turns() {
        assert_eq!(interleaved([0b11, 0b00].into_iter()), 0b1010);
        assert_eq!(interleaved([0b01, 0b11].into_iter()), 0b0111);
        assert_eq!(interleaved([u16::MAX; 4].into_iter()), u64::MAX);
    }

    #[test]
    fn quarters_of_the_plane_are_stretches_of_the_curve() {
        let (a, b): (Vec<i64>, Vec<String>) =
            (0..32).flat_map(|a| (0..32).map(move |b| (a, format!("{b:02}")))).unzip();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(a.clone())), Arc::new(StringArray::from(b.clone()))];
        let half = |columns: &[ArrayRef], at: usize| columns.iter().map(|c| c.slice(at, 512)).collect::<Vec<_>>();
        let pool = Pool::new(1).unwrap();
        let found = curve(&pool, &[half(&columns, 0), half(&columns, 512)]).unwrap();
        let along: Vec<u64> = found.iter().flat_map(|part| part.values().to_vec()).collect();
        let mut order: Vec<usize> = (0..along.len()).collect();
        order.sort_by_key(|at| along[*at]);
        for (quarter, rows) in order.chunks(256).enumerate() {
            let (low, right) = (quarter / 2 == 0, quarter % 2 == 0);
            assert!(rows.iter().all(|at| (a[*at] < 16) == low && (b[*at].as_str() < "16") == right));
        }
    }
}
