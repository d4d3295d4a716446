//! Floats: as integers times a power of ten (scale.rs), in two parts, by distinct values, or as they are.

use crate::node::*;
use crate::pack::BLOCK;
use crate::proto::Builder;
use crate::scale::Exponents;
use crate::word::{Ptype, Word};
use crate::write::built::Built;
use crate::write::numbers::{
    DICTIONARY_WORTH, Facts, RUNS_WORTH, bitpacked, constant, dictionary, integers, patch_rows, patches_head, runs,
};
use crate::write::{Effort, Search, sample, width_of};

/// Values on which powers of ten are tried.
const EXPONENTS_SAMPLE: usize = 128;

/// Exceptions of more than one in this many make integers not worth it.
const EXCEPTIONS_MAX: usize = 4;

/// What two parts must save, in percent.
const SPLIT_WORTH: usize = 98;

/// The most bits of a first part, and the most distinct ones.
const LEFT_BITS: usize = 16;
const LEFTS: usize = 8;

/// Encodes floats without nulls.
pub fn floats<W: Word>(values: &[W], ptype: Ptype, search: &Search, depth: usize) -> Built {
    // As bits: only whether they are equal counts.
    let bits = ptype.to_unsigned();
    let Some(facts) = Facts::of(values, bits) else { return Built::primitive(values) };
    if facts.is_constant() {
        return constant(values[0], values.len(), ptype);
    }
    let mut best = Built::primitive(values);
    if depth == 0 {
        return best;
    }
    // Powers that are known are worth no search for another form.
    if let Some(exponents) = search.exponents
        && let Some(scaled) = scaled(values, ptype, Some(exponents), search, depth)
    {
        return scaled;
    }
    if let Some(scaled) = scaled(values, ptype, None, search, depth) {
        best = best.or_smaller(scaled, 100);
    }
    if search.tries(RUNEND)
        && let Some(runs) = runs(values, &facts, ptype, search, depth, values.len() * W::BYTES)
    {
        best = best.or_smaller(runs, RUNS_WORTH);
    }
    if search.tries(DICT)
        && let Some(dictionary) = dictionary(values, ptype, search, depth, best.size() * DICTIONARY_WORTH / 100)
    {
        best = best.or_smaller(dictionary, DICTIONARY_WORTH);
    }
    let split_too = search.effort == Effort::Small || search.encodings.is_some_and(|some| some >> ALPRD & 1 == 1);
    if split_too
        && search.tries(ALPRD)
        && let Some(split) = split(values)
    {
        best = best.or_smaller(split, SPLIT_WORTH);
    }
    best
}

/// The power of ten that makes floats the smallest integers, of those of a sample.
fn exponents<W: Word>(values: &[W]) -> Option<Exponents> {
    let max = Exponents::max(W::BITS)?;
    let some = sample(values, EXPONENTS_SAMPLE);
    let mut best: Option<(usize, Exponents)> = None;
    for e in (0..=max).rev() {
        for f in 0..=e {
            let by = Exponents { e, f };
            let size = scaled_bits(&some, by);
            let smaller = |(size_so_far, so_far): (usize, Exponents)| {
                size < size_so_far || size == size_so_far && e - f < so_far.e - so_far.f
            };
            if best.is_none_or(smaller) {
                best = Some((size, by));
            }
        }
    }
    best.map(|(_, by)| by)
}

/// Bits that some values take by a power of ten: those of the range of integers, and of exceptions.
fn scaled_bits<W: Word>(values: &[W], by: Exponents) -> usize {
    let (mut least, mut greatest, mut exceptions) = (i64::MAX, i64::MIN, 0);
    for value in values {
        let integer = value.scaled(by);
        if integer.unscaled(by) == *value {
            (least, greatest) = (least.min(integer.signed()), greatest.max(integer.signed()));
        } else {
            exceptions += 1;
        }
    }
    let range = if least > greatest { 0 } else { greatest.abs_diff(least) };
    values.len() * width_of(range) + exceptions * (W::BITS + 16)
}

/// Floats as integers; `None` if too many are exceptions.
fn scaled<W: Word>(
    values: &[W],
    ptype: Ptype,
    known: Option<Exponents>,
    search: &Search,
    depth: usize,
) -> Option<Built> {
    let max = Exponents::max(W::BITS)?;
    let by = known.filter(|by| by.e <= max && by.f <= max).or_else(|| exponents(values))?;
    let (mut rows, mut others, mut last) = (Vec::<u32>::new(), Vec::new(), None);
    let mut integers_of = vec![W::default(); values.len()];
    let exceptions_max = values.len() / EXCEPTIONS_MAX;
    for (at, (values, integers)) in values.chunks(BLOCK).zip(integers_of.chunks_mut(BLOCK)).enumerate() {
        if W::scale_all(values, by, integers) {
            last = integers.last().copied();
            continue;
        }
        for (row, (value, slot)) in values.iter().zip(integers).enumerate() {
            let integer = value.scaled(by);
            if integer.unscaled(by) == *value {
                last = Some(integer);
                *slot = integer;
            } else {
                if others.len() == exceptions_max {
                    return None;
                }
                rows.push((at * BLOCK + row) as u32);
                others.push(*value);
                // Like its neighbours.
                *slot = last.unwrap_or_default();
            }
        }
    }
    // The first ones, too.
    if let Some(first) = (0..values.len()).find(|row| rows.get(*row) != Some(&(*row as u32))) {
        let like = integers_of[first];
        integers_of[..first].fill(like);
    }
    let integer_type = if W::BYTES == 4 { Ptype::I32 } else { Ptype::I64 };
    let below = Search { exponents: None, ..*search };
    let child = integers(&integers_of, integer_type, &below, depth - 1);
    let message = Builder::default().number(1, by.e.into()).number(2, by.f.into());
    let built = Built { exponents: Some(by), ..Built::new(ALP, values.len()).child(child) };
    if rows.is_empty() {
        return Some(built.metadata(message));
    }
    let head = patches_head(rows.len());
    let others = match Facts::of(&others, ptype.to_unsigned()) {
        Some(facts) if facts.is_constant() => constant(others[0], others.len(), ptype),
        _ => Built::primitive(&others),
    };
    Some(built.metadata(message.bytes(3, &head)).child(patch_rows(&rows, true)).child(others))
}

/// Floats whose first bits are one of few; `None` if they are not.
///
/// The cut is where a sample takes the least: each value takes the bits after the cut, and the place of the bits before it among
/// the most frequent eight, or is an exception.
fn split<W: Word>(values: &[W]) -> Option<Built> {
    if W::BITS < 32 {
        return None;
    }
    let some = sample(values, 4096);
    let mut best: Option<(usize, usize, Vec<u16>)> = None;
    for left_bits in 1..=LEFT_BITS {
        let cut = W::BITS - left_bits;
        let mut lefts: Vec<u16> = some.iter().map(|value| (value.wide() >> cut) as u16).collect();
        lefts.sort_unstable();
        let mut counted: Vec<(usize, u16)> = lefts.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).collect();
        counted.sort_unstable_by_key(|(count, left)| (usize::MAX - count, *left));
        counted.truncate(LEFTS);
        let known: usize = counted.iter().map(|(count, _)| count).sum();
        let place_bits = width_of(counted.len() as u64 - 1).max(1);
        let bits = some.len() * (cut + place_bits) + (some.len() - known) * 32;
        if best.as_ref().is_none_or(|best| bits < best.0) {
            best = Some((bits, cut, counted.into_iter().map(|(_, left)| left).collect()));
        }
    }
    let (bits, cut, lefts) = best?;
    if bits >= some.len() * W::BITS {
        return None;
    }
    let (mut rows, mut others) = (Vec::<u32>::new(), Vec::<u16>::new());
    let mut places = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let left = (value.wide() >> cut) as u16;
        let place = lefts.iter().position(|known| *known == left);
        if place.is_none() {
            rows.push(row as u32);
            others.push(left);
        }
        places.push(place.unwrap_or(0) as u16);
    }
    let place_bits = width_of(lefts.len() as u64 - 1).max(1);
    let mask = if cut == 0 { 0 } else { u64::MAX >> (64 - cut) };
    let left = bitpacked(&places, 0, place_bits, 0, Ptype::U16, false);
    let rights: Vec<W> = values.iter().map(|value| W::low(value.wide() & mask)).collect();
    let right = bitpacked(&rights, W::default(), cut, 0, W::PTYPE, false);
    let message = Builder::default()
        .number(1, cut as u64)
        .number(2, lefts.len() as u64)
        .numbers(3, lefts.iter().map(|left| u64::from(*left)))
        .number(4, Ptype::U16 as u64);
    let built = Built::new(ALPRD, values.len()).child(left).child(right);
    if rows.is_empty() {
        return Some(built.metadata(message));
    }
    let head = patches_head(rows.len());
    Some(built.metadata(message.bytes(5, &head)).child(patch_rows(&rows, true)).child(Built::primitive(&others)))
}
