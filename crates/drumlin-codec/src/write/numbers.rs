//! Integers, and all numbers where they are alike.

use crate::bits::Bits;
use crate::node::*;
use crate::pack::BLOCK;
use crate::proto::{Builder, zigzag};
use crate::word::{Ptype, Word};
use crate::write::built::{Built, scalar};
use crate::write::{Search, distinct, floats, sample, width_of, worth};

/// Trees are not nested more deeply than this.
const DEPTH: usize = 4;

/// With fewer values, distances are not worth trying.
const STEPS_MIN: usize = 512;

/// What a dictionary must save to be worth a look-up for each value, in percent.
pub const DICTIONARY_WORTH: usize = 90;
/// What runs must save. They are read fast.
pub const RUNS_WORTH: usize = 95;
/// What distances must save: summing them takes time, and there is no way to one value alone.
const STEPS_WORTH: usize = 75;

/// More distinct values than this get no dictionary.
const DISTINCT_MAX: usize = 1 << 16;

/// Encodes numbers of a type; what is under nulls is stored too, so it should be like its neighbours. Linear: some passes over the values.
pub fn numbers<W: Word>(values: &[W], ptype: Ptype, nulls: Option<&Bits>, search: &Search) -> Built {
    plain_numbers(values, ptype, search, DEPTH).masked(nulls)
}

/// Encodes integers without nulls.
pub fn integers<W: Word>(values: &[W], ptype: Ptype, search: &Search, depth: usize) -> Built {
    let Some(facts) = Facts::of(values, ptype) else { return Built::primitive(values) };
    if let Some(built) = facts.trivial(values.len(), ptype) {
        return built;
    }
    // Distances that were worth it before are taken without a look at what else there is.
    let known = search.encodings.is_some_and(|some| some & STEPS_BIT != 0) && depth == DEPTH;
    if known && let Some(built) = steps(values, &facts, ptype, search, depth) {
        return built;
    }
    let mut best = packed(values, &facts, ptype, true);
    if depth == 0 {
        return best;
    }
    if search.tries(RUNEND)
        && let Some(runs) = runs(values, &facts, ptype, search, depth, best.size())
    {
        best = best.or_smaller(runs, RUNS_WORTH);
    }
    if search.tries(DICT)
        && let Some(dictionary) = dictionary(values, ptype, search, depth, best.size() * DICTIONARY_WORTH / 100)
    {
        best = best.or_smaller(dictionary, DICTIONARY_WORTH);
    }
    if (search.tries(STEPS) || search.encodings.is_none())
        && !known
        && let Some(steps) = steps(values, &facts, ptype, search, depth)
    {
        best = best.or_smaller(steps, STEPS_WORTH);
    }
    best
}

/// What one pass over values finds.
pub struct Facts<W> {
    least: W,
    runs: usize,
    ascends: bool,
    /// The distance from each to the next, if it is always the same.
    step: Option<W>,
    first: W,
}

/// Numbers as they are ordered.
fn ordered<W: Word>(value: W, ptype: Ptype) -> u64 {
    if ptype.is_signed() { value.signed() as u64 ^ 1 << 63 } else { value.wide() }
}

impl<W: Word> Facts<W> {
    /// `None` of no values.
    pub fn of(values: &[W], ptype: Ptype) -> Option<Self> {
        let first = *values.first()?;
        let mut least = ordered(first, ptype);
        let step = values.get(1).map_or(W::default(), |second| second.minus(first));
        let (mut runs, mut ascends, mut even, mut last) = (1, true, true, first);
        for value in &values[1..] {
            let order = ordered(*value, ptype);
            ascends &= ordered(last, ptype) <= order;
            even &= value.minus(last) == step;
            runs += usize::from(*value != last);
            (least, last) = (least.min(order), *value);
        }
        let back = |order: u64| W::low(if ptype.is_signed() { order ^ 1 << 63 } else { order });
        let step = even.then_some(step);
        Some(Self { least: back(least), runs, ascends, step, first })
    }

    /// Whether all are equal.
    pub fn is_constant(&self) -> bool {
        self.step == Some(W::default())
    }

    /// One value in all rows, or values at equal distances.
    fn trivial(&self, len: usize, ptype: Ptype) -> Option<Built> {
        let step = self.step?;
        if step == W::default() {
            return Some(constant(self.first, len, ptype));
        }
        // None may leave the type on the way.
        let last = self.first.plus(step.times(W::low(len as u64 - 1)));
        let wide = |value: W| if ptype.is_signed() { i128::from(value.signed()) } else { i128::from(value.wide()) };
        let distance = i128::from(step.signed());
        if wide(self.first) + distance * (len as i128 - 1) != wide(last) || len < 3 {
            return None;
        }
        let first = scalar(self.first, ptype);
        let step = Builder::default().some(3, zigzag(step.signed())).finish();
        Some(Built::new(SEQUENCE, len).metadata(Builder::default().bytes(1, &first).bytes(2, &step)))
    }
}

/// One value in all rows.
pub fn constant<W: Word>(value: W, len: usize, ptype: Ptype) -> Built {
    Built::new(CONSTANT, len).buffer(scalar(value, ptype), 0)
}

/// How many numbers, less a base, take how many bits.
struct Widths {
    counts: [usize; 65],
}

impl Widths {
    fn of<W: Word>(values: &[W], base: W) -> Self {
        // Several counts side by side: each is written again before the last write to it is done.
        let mut counts = [[0_u32; 65]; 4];
        for four in values.chunks(4) {
            for (count, value) in counts.iter_mut().zip(four) {
                count[width_of(value.minus(base).wide())] += 1;
            }
        }
        Self { counts: std::array::from_fn(|width| counts.iter().map(|count| count[width] as usize).sum()) }
    }

    /// The width at which numbers take the least, those with more bits as exceptions, what they take, and how many exceptions there are.
    fn best<W: Word>(&self) -> (usize, usize, usize) {
        let len: usize = self.counts.iter().sum();
        let widest = self.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let (mut beyond, mut best) = (0, (W::BITS, usize::MAX, 0));
        for width in (0..=W::BITS).rev() {
            let exceptions = if beyond == 0 {
                0
            } else {
                // Their rows as distances, and they themselves as wide as the widest.
                64 + beyond * (width_of((len / beyond) as u64) + 2 + widest) / 8
            };
            let size = len.div_ceil(BLOCK) * (BLOCK / 8) * width + exceptions;
            if size < best.1 {
                best = (width, size, beyond);
            }
            beyond += self.counts[width];
        }
        best
    }
}

/// Integers in few bits, less a base. The rows of exceptions may be distances if `nested`.
fn packed<W: Word>(values: &[W], facts: &Facts<W>, ptype: Ptype, nested: bool) -> Built {
    let mut some = sample(values, super::SAMPLE);
    some.sort_unstable_by_key(|value| ordered(*value, ptype));
    // The least value; one below which only few lie; and the most frequent one.
    let mut bases = vec![facts.least, some[some.len() / 64]];
    let mode = some.chunk_by(|a, b| a == b).max_by_key(|run| run.len());
    bases.extend(mode.filter(|run| run.len() > some.len() / 2).map(|run| run[0]));
    // No base where it saves nothing.
    if !(ptype.is_signed() && facts.least.signed() < 0) {
        bases.insert(0, W::default());
    }
    bases.dedup();
    // What is best for a sample is taken; how many bits, all values say.
    let mut best: Option<(W, usize)> = None;
    for base in bases {
        let (_, size, _) = Widths::of(&some, base).best::<W>();
        if best.is_none_or(|best| size < best.1) {
            best = Some((base, size));
        }
    }
    let base = best.map_or(facts.least, |best| best.0);
    let (width, size, exceptions) = Widths::of(values, base).best::<W>();
    if size >= values.len() * W::BYTES {
        return Built::primitive(values);
    }
    let built = bitpacked(values, base, width, exceptions, ptype, nested);
    if base == W::default() { built } else { less(built, base, ptype) }
}

/// Numbers that are stored less a base.
fn less<W: Word>(built: Built, base: W, ptype: Ptype) -> Built {
    Built { metadata: scalar(base, ptype), ..Built::new(FOR, built.len).child(built) }
}

/// Integers without exceptions, less the least: what is below exceptions has none, so that trees end.
fn whole<W: Word>(values: &[W], ptype: Ptype) -> Built {
    let Some(facts) = Facts::of(values, ptype) else { return Built::primitive(values) };
    if facts.is_constant() {
        return constant(facts.first, values.len(), ptype);
    }
    let width = values.iter().map(|value| width_of(value.minus(facts.least).wide())).max().unwrap_or(0);
    let packed = less(bitpacked(values, facts.least, width, 0, ptype, false), facts.least, ptype);
    if packed.size() < values.len() * W::BYTES { packed } else { Built::primitive(values) }
}

/// Numbers less a base in `width` bits each, those with more as exceptions, of which there are as many.
pub fn bitpacked<W: Word>(values: &[W], base: W, width: usize, exceptions: usize, ptype: Ptype, nested: bool) -> Built {
    let mut bytes = Vec::with_capacity(crate::pack::packed_bytes(width) * values.len().div_ceil(BLOCK));
    let (mut rows, mut others) = (Vec::with_capacity(exceptions), Vec::with_capacity(exceptions));
    let mut block = [W::default(); BLOCK];
    for (at, part) in values.chunks(BLOCK).enumerate() {
        block.iter_mut().zip(part).for_each(|(slot, value)| *slot = value.minus(base));
        block[part.len()..].fill(W::default());
        if exceptions > 0 {
            for (row, value) in block[..part.len()].iter().enumerate() {
                if width_of(value.wide()) > width {
                    rows.push((at * BLOCK + row) as u32);
                    others.push(*value);
                }
            }
        }
        W::pack(&block, width, &mut bytes);
    }
    let built = Built::new(BITPACKED, values.len()).buffer(bytes, 4);
    let message = Builder::default().number(1, width as u64);
    if rows.is_empty() {
        return built.metadata(message);
    }
    let head = patches_head(rows.len());
    built.metadata(message.bytes(3, &head)).child(patch_rows(&rows, nested)).child(whole(&others, ptype))
}

/// What metadata says of patches whose rows are stored as `u32`.
pub fn patches_head(len: usize) -> Vec<u8> {
    Builder::default().number(1, len as u64).number(3, Ptype::U32 as u64).finish()
}

/// The rows of patches: few as they are, more as distances if `nested`.
pub fn patch_rows(rows: &[u32], nested: bool) -> Built {
    let plain = whole(rows, Ptype::U32);
    if nested && rows.len() >= STEPS_MIN {
        let own: Vec<u32> = rows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if let Some(facts) = Facts::of(&own, Ptype::U32) {
            let steps = stepped(u64::from(rows[0]), rows.len(), packed(&own, &facts, Ptype::U32, false));
            if worth(steps.size(), plain.size(), STEPS_WORTH) {
                return steps;
            }
        }
    }
    plain
}

/// Values by the distances from each to the next.
fn stepped(first: u64, len: usize, distances: Built) -> Built {
    Built { metadata: first.to_le_bytes().to_vec(), ..Built::new(STEPS, len).child(distances) }
}

/// The smallest unsigned type that counts to `most`, of 8, 16 or 32 bits.
pub fn count_type(most: usize) -> Ptype {
    match width_of(most as u64) {
        ..=8 => Ptype::U8,
        9..=16 => Ptype::U16,
        _ => Ptype::U32,
    }
}

/// Counts, of a type that [`count_type`] gave.
pub fn counts(values: &[u32], ptype: Ptype, search: &Search, depth: usize) -> Built {
    match ptype {
        Ptype::U8 => integers(&values.iter().map(|v| *v as u8).collect::<Vec<_>>(), ptype, search, depth),
        Ptype::U16 => integers(&values.iter().map(|v| *v as u16).collect::<Vec<_>>(), ptype, search, depth),
        _ => integers(values, Ptype::U32, search, depth),
    }
}

/// Runs of equal values.
pub fn runs<W: Word>(
    values: &[W],
    facts: &Facts<W>,
    ptype: Ptype,
    search: &Search,
    depth: usize,
    best: usize,
) -> Option<Built> {
    // A run takes some bits of its end, and of its value.
    if facts.runs > values.len() / 3 || facts.runs * 2 > best {
        return None;
    }
    let (mut ends, mut own) = (Vec::with_capacity(facts.runs), Vec::with_capacity(facts.runs));
    for (row, value) in values.iter().enumerate() {
        if own.last() != Some(value) {
            if row > 0 {
                ends.push(row as u32);
            }
            own.push(*value);
        }
    }
    ends.push(values.len() as u32);
    let end_type = count_type(values.len());
    let message = Builder::default().number(1, end_type as u64).number(2, ends.len() as u64);
    let below = search.without(RUNEND);
    let own = plain_numbers(&own, ptype, &below, depth - 1);
    Some(
        Built::new(RUNEND, values.len())
            .metadata(message)
            .child(counts(
                &ends,
                end_type,
                &Search { encodings: None, ..below }.without(RUNEND).without(DICT),
                depth - 1,
            ))
            .child(own),
    )
}

/// Numbers of any type, without nulls.
fn plain_numbers<W: Word>(values: &[W], ptype: Ptype, search: &Search, depth: usize) -> Built {
    if ptype.is_float() { floats::floats(values, ptype, search, depth) } else { integers(values, ptype, search, depth) }
}

/// Distinct values, and which each row has; `None` if that takes more than `most` bytes.
pub fn dictionary<W: Word>(values: &[W], ptype: Ptype, search: &Search, depth: usize, most: usize) -> Option<Built> {
    let most_values = (values.len() / 4).min(DISTINCT_MAX).min(most / W::BYTES.min(2));
    if most_values < 2 {
        return None;
    }
    let (own, places) = distinct(values, most_values, most)?;
    let place_type = count_type(own.len() - 1);
    let message = Builder::default().number(1, own.len() as u64).number(2, place_type as u64).some(3, 0).some(4, 1);
    let below = search.without(DICT);
    // Places are looked up one by one, so they are not put into forms that take more than shifting bits, except runs.
    let places = counts(&places, place_type, &below.without(STEPS), depth - 1);
    Some(Built::new(DICT, values.len()).metadata(message).child(places).child(plain_numbers(
        &own,
        ptype,
        &below.without(RUNEND),
        depth - 1,
    )))
}

/// Ascending integers by their distances.
fn steps<W: Word>(values: &[W], facts: &Facts<W>, ptype: Ptype, search: &Search, depth: usize) -> Option<Built> {
    if values.len() < STEPS_MIN || !facts.ascends {
        return None;
    }
    let own: Vec<W> = values.windows(2).map(|pair| pair[1].minus(pair[0])).collect();
    let below = search.without(STEPS);
    let own = integers(&own, W::PTYPE, &below, depth.saturating_sub(1));
    let first = if ptype.is_signed() { values[0].signed() as u64 } else { values[0].wide() };
    Some(stepped(first, values.len(), own))
}
