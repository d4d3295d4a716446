//! Texts, or binary: by distinct values, in symbols of up to 8 bytes, or as codes of a dictionary that somebody trained.

use bytes::Bytes;
use fsst::Compressor;
use hashbrown::HashMap;

use crate::bits::Bits;
use crate::node::*;
use crate::proto::Builder;
use crate::word::{Ptype, Word};
use crate::write::built::Built;
use crate::write::numbers::{bitpacked, count_type, counts, integers};
use crate::write::{SAMPLE, Search, sample, width_of, worth};

/// What a dictionary must save, in percent.
const DICTIONARY_WORTH: usize = 90;

/// Fewer bytes than this are not put into symbols.
const SYMBOLS_MIN: usize = 512;

/// How deep the numbers of texts may be nested.
const DEPTH: usize = 2;

/// Encodes texts, which are empty under nulls, by the smallest form there is; `None` if none is smaller than their bytes. `symbols` says
/// whether to try those of up to 8 bytes: finding them takes half a millisecond for any number of bytes.
pub fn texts(values: &[&[u8]], utf8: bool, nulls: Option<&Bits>, search: &Search, symbols: bool) -> Option<Built> {
    let bytes = total(values);
    if let Some(first) = values.first()
        && nulls.is_none()
        && values.iter().all(|value| value == first)
    {
        let message = Builder::default().bytes(if utf8 { 7 } else { 8 }, first);
        return Some(Built::new(CONSTANT, values.len()).buffer(message.finish(), 0));
    }
    let mut best: Option<Built> = None;
    let mut keep = |built: Option<Built>, percent: usize| {
        if let Some(built) = built
            && best.as_ref().is_none_or(|best| worth(built.size(), best.size(), percent))
            && built.size() < bytes
        {
            best = Some(built);
        }
    };
    if symbols && search.tries(FSST) && bytes >= SYMBOLS_MIN {
        keep(in_symbols(values, nulls), 100);
    }
    if search.tries(DICT) {
        keep(dictionary(values, nulls, search, bytes), DICTIONARY_WORTH);
    }
    best
}

fn total(values: &[&[u8]]) -> usize {
    values.iter().map(|value| value.len()).sum()
}

/// Distinct values, and which each row has.
fn dictionary(values: &[&[u8]], nulls: Option<&Bits>, search: &Search, bytes: usize) -> Option<Built> {
    let most = values.len() / 2;
    let mut some = sample(values, SAMPLE);
    let all = some.len();
    some.sort_unstable();
    some.dedup();
    if values.len() > SAMPLE && some.len() > all * 9 / 10 {
        return None;
    }
    let mut found: HashMap<&[u8], u32, foldhash::fast::FixedState> =
        HashMap::with_hasher(foldhash::fast::FixedState::default());
    let (mut own, mut places) = (Vec::new(), Vec::with_capacity(values.len()));
    let mut own_bytes = 0;
    for (row, value) in values.iter().enumerate() {
        if nulls.is_some_and(|nulls| !nulls.get(row)) {
            places.push(places.last().copied().unwrap_or(0));
            continue;
        }
        let next = own.len() as u32;
        let place = *found.entry(value).or_insert(next);
        if place == next {
            own.push(*value);
            own_bytes += value.len();
        }
        if own.len() > most || own_bytes > bytes / 2 {
            return None;
        }
        places.push(place);
    }
    if own.is_empty() {
        return None;
    }
    let place_type = count_type(own.len() - 1);
    let message = Builder::default()
        .number(1, own.len() as u64)
        .number(2, place_type as u64)
        .some(3, nulls.is_some().into())
        .some(4, 1);
    let below = search.without(DICT).without(STEPS);
    let symbols = (search.tries(FSST) && own_bytes >= SYMBOLS_MIN).then(|| in_symbols(&own, None)).flatten();
    let plain = plain(&own);
    let own = symbols.filter(|symbols| worth(symbols.size(), plain.size(), DICTIONARY_WORTH)).unwrap_or(plain);
    let places = counts(&places, place_type, &below, DEPTH).masked(nulls);
    Some(Built::new(DICT, values.len()).metadata(message).child(places).child(own))
}

/// Where parts of these lengths begin, and the end of the last; ascending, so as distances.
fn offsets(lengths: impl ExactSizeIterator<Item = usize>) -> Built {
    let mut end = 0;
    let mut all = Vec::with_capacity(lengths.len() + 1);
    all.push(0);
    for length in lengths {
        end += length as u32;
        all.push(end);
    }
    ascending(&all)
}

/// Ascending counts.
fn ascending(all: &[u32]) -> Built {
    integers(all, Ptype::U32, &Search::ASCENDING, DEPTH)
}

/// Lengths, by what is found without a search.
fn lengths(all: &[u32]) -> Built {
    integers(all, Ptype::U32, &Search::CHEAP, DEPTH)
}

/// Texts one after the other.
fn plain(values: &[&[u8]]) -> Built {
    Built::new(VARBIN, values.len())
        .metadata(Builder::default().number(1, Ptype::U32 as u64))
        .buffer(values.concat(), 0)
        .child(offsets(values.iter().map(|value| value.len())))
}

/// Texts in symbols of up to 8 bytes.
fn in_symbols(values: &[&[u8]], nulls: Option<&Bits>) -> Option<Built> {
    if total(values) > u32::MAX as usize / 2 {
        return None;
    }
    let lines = values.to_vec();
    let compressor = Compressor::train(&lines);
    let codes = compressor.compress_bulk(&lines);
    let symbols: Vec<u8> = compressor.symbol_table().iter().flat_map(|symbol| symbol.to_u64().to_le_bytes()).collect();
    let own: Vec<u32> = values.iter().map(|value| value.len() as u32).collect();
    let built = Built::new(FSST, values.len())
        .metadata(Builder::default().number(1, Ptype::U32 as u64).number(2, Ptype::U32 as u64))
        .buffer(symbols, 3)
        .buffer(compressor.symbol_lengths().to_vec(), 0)
        .buffer(codes.concat(), 0)
        .child(lengths(&own))
        .child(offsets(codes.iter().map(Vec::len)));
    Some(built.valid(nulls))
}

/// Texts as codes of a dictionary, which were made elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct CodedTexts<'a> {
    /// The bytes of the dictionary's symbols, with what its decoders need after them.
    pub symbols: &'a Bytes,
    /// Where each symbol begins, and the end of the last.
    pub symbol_offsets: &'a [u32],
    /// The codes of all rows.
    pub codes: &'a [u16],
    /// Where each row's codes begin, and the end of the last.
    pub offsets: &'a [u32],
    /// Bytes of each row.
    pub lengths: &'a [u32],
}

impl CodedTexts<'_> {
    /// The tree of these texts.
    pub fn build(&self, nulls: Option<&Bits>) -> Built {
        let count = self.symbol_offsets.len().saturating_sub(1);
        let width = width_of((count as u64).saturating_sub(1)).clamp(1, 16);
        let codes = if width < u16::BITS as usize {
            bitpacked(self.codes, 0, width, 0, Ptype::U16, false)
        } else {
            Built::primitive(self.codes)
        };
        let message = Builder::default()
            .number(1, Ptype::U32 as u64)
            .number(3, count as u64)
            .number(4, self.codes.len() as u64)
            .number(5, Ptype::U32 as u64)
            .number(6, <u16 as Word>::PTYPE as u64)
            .number(7, Ptype::U32 as u64);
        let built = Built::new(ONPAIR, self.lengths.len())
            .metadata(message)
            .buffer(self.symbols.clone(), 3)
            .child(ascending(self.symbol_offsets))
            .child(codes)
            .child(ascending(self.offsets))
            .child(lengths(self.lengths));
        built.valid(nulls)
    }
}

/// Parts one after the other.
pub fn chunked(parts: Vec<Built>) -> Built {
    let mut ends = vec![0_u64];
    ends.extend(parts.iter().scan(0, |end, part| {
        *end += part.len as u64;
        Some(*end)
    }));
    let built = Built::new(CHUNKED, parts.iter().map(|part| part.len).sum()).child(Built::primitive(&ends));
    parts.into_iter().fold(built, Built::child)
}
