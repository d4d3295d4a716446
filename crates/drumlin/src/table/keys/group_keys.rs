//! The keys of a row group in order, for searching: decoded once, then kept in the cache.

use std::ops::Range;

use crate::base::{Cancel, Error, Pool, Result};
use crate::block::BlockReader;
use crate::memtable::Keys;
use crate::segment::Form;
use crate::table::group::key_bounds::KeyBounds;
use crate::table::read::group_reader::GroupReader;
use crate::table::{NewGroup, StoredSchema, TableCodec};

/// A row group's keys, ascending.
pub(in crate::table) struct GroupKeys {
    list: List,
    /// The row of each key; `None` if they are in row order.
    rows: Option<Vec<u32>>,
}

enum List {
    /// Keys of one word each: their differences from the smallest.
    Near {
        least: u64,
        above: Vec<u32>,
    },
    Words(Vec<u64>),
    Bytes(Keys),
}

impl GroupKeys {
    /// Those of a row group.
    pub fn of(reader: &GroupReader<'_>, codec: &TableCodec) -> Result<std::sync::Arc<GroupKeys>> {
        reader.blocks.derived(&reader.group.address, || {
            let schema = codec.key_schema();
            let columns: Vec<usize> = (0..schema.fields().len()).collect();
            let columns = reader.decode(schema, &columns, Form::Exact)?;
            let keys = codec
                .keys
                .encode(&columns)
                .map_err(|e| Error::corrupt(format!("a stored key is damaged: {}", e.message())))?;
            let keys = Self::new(&keys, codec.keys.is_word());
            let bytes = keys.memory_bytes();
            Ok((keys, bytes))
        })
    }

    fn new(keys: &Keys, words: bool) -> Self {
        let rows = (!keys.is_sorted()).then(|| keys.sorted_places());
        let row = |at: usize| rows.as_ref().map_or(at, |rows| rows[at] as usize);
        let list = if words {
            let words: Vec<u64> = match (&rows, keys.as_words()) {
                (None, Some(words)) => words.to_vec(),
                _ => (0..keys.len()).map(|at| keys.get(row(at)).word()).collect(),
            };
            let least = words.first().copied().unwrap_or(0);
            match words.last().is_none_or(|last| u32::try_from(last - least).is_ok()) {
                true => List::Near { least, above: words.iter().map(|word| (word - least) as u32).collect() },
                false => List::Words(words),
            }
        } else {
            match &rows {
                Some(rows) => List::Bytes(keys.take(rows.iter().map(|row| *row as usize))),
                None => List::Bytes(keys.clone()),
            }
        };
        Self { list, rows }
    }

    fn memory_bytes(&self) -> u64 {
        let list = match &self.list {
            List::Near { above, .. } => above.len() as u64 * 4,
            List::Words(words) => words.len() as u64 * 8,
            List::Bytes(keys) => keys.memory_bytes(),
        };
        list + self.rows.as_ref().map_or(0, |rows| rows.len() as u64 * 4)
    }

    /// Calls `found` for each key of `wanted`, at the places of `range`, ascending, that is in this row group, with its
    /// place and each of its rows. O(wanted x log(keys here / wanted)).
    pub fn find(&self, wanted: &Keys, range: Range<usize>, mut found: impl FnMut(usize, u32)) {
        let mut told = |at: usize, place: usize| {
            found(at, self.rows.as_ref().map_or(place as u32, |rows| rows[place]));
        };
        match &self.list {
            List::Near { least, above } => {
                let wanted = range.map(|at| (at, wanted.get(at).word()));
                let near = wanted.filter_map(|(at, word)| Some((at, u32::try_from(word.checked_sub(*least)?).ok()?)));
                search(above.len(), |place| &above[place], near, &mut told);
            }
            List::Words(words) => {
                let wanted = range.map(|at| (at, wanted.get(at).word()));
                search(words.len(), |place| &words[place], wanted, &mut told);
            }
            List::Bytes(keys) => {
                search(keys.len(), |place| keys.get(place), range.map(|at| (at, wanted.get(at))), &mut told);
            }
        }
    }
}

/// Finds ascending `wanted` in the ascending list of `get`, each search continuing where the last one ended, in doubling
/// steps.
fn search<T, U: std::borrow::Borrow<T>>(
    len: usize,
    get: impl Fn(usize) -> U,
    wanted: impl Iterator<Item = (usize, T)>,
    found: &mut impl FnMut(usize, usize),
) where
    T: Ord,
{
    let mut from = 0;
    for (at, key) in wanted {
        let mut step = 1;
        let mut low = from;
        while low + step < len && *get(low + step).borrow() < key {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(len);
        while low < high {
            let middle = low + (high - low) / 2;
            if *get(middle).borrow() < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        from = low;
        if low == len {
            return;
        }
        // A key occurs more than once if only one of its rows is still visible.
        let mut same = low;
        while same < len && *get(same).borrow() == key {
            found(at, same);
            same += 1;
        }
    }
}

/// The places of those of the ascending `wanted` keys that a row group may hold, by the bounds of its first key column.
pub(in crate::table) fn candidates(
    reader: &GroupReader<'_>,
    codec: &TableCodec,
    wanted: &Keys,
) -> Result<Range<usize>> {
    let bounds = reader.group.bounds.get_or_try(|| {
        let name = codec.key_schema().field(0).name();
        let column = reader
            .column(name)
            .ok_or_else(|| Error::corrupt(format!("a row group does not have the column '{name}'")))?;
        let low = column.stats.min.as_ref().and_then(|min| codec.keys.lower(min));
        let high = column.stats.max.as_ref().and_then(|max| codec.keys.upper(max));
        Ok(KeyBounds::new(low.as_deref(), high.as_deref(), codec.keys.is_word()))
    })?;
    Ok(bounds.among(wanted))
}

/// The keys of row groups that belong to no table yet, one list for each, ascending; without rows that no version sees.
pub fn keys_of_groups(
    blocks: &BlockReader,
    pool: &Pool,
    codec: &TableCodec,
    groups: &[NewGroup],
    cancel: &Cancel,
) -> Result<Vec<Keys>> {
    let own = StoredSchema::plain(codec.schema().clone());
    pool.map(groups.iter().collect(), |group: &NewGroup| {
        cancel.check()?;
        let record = group.alone();
        record.check(1)?;
        let reader = GroupReader::with_schemas(blocks, std::slice::from_ref(&own), &own, &record)?;
        let schema = codec.key_schema();
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let keys = codec.keys.encode(&reader.decode(schema, &columns, Form::Exact)?)?;
        let alive = |at: &usize| group.dead.as_ref().is_none_or(|dead| !dead.0.contains(*at as u32));
        let places: Vec<usize> = keys.sorted_places().into_iter().map(|at| at as usize).filter(alive).collect();
        Ok(keys.take(places.into_iter()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_what_is_there_and_nothing_else() {
        let mut rng = fastrand::Rng::with_seed(4);
        for round in 0..400 {
            let spread = [50, 1 << 20, u64::MAX >> 1][round % 3];
            let mut here: Vec<u64> = (0..rng.usize(..200)).map(|_| rng.u64(..spread)).collect();
            here.extend_from_within(..here.len() / 3);
            rng.shuffle(&mut here);
            let mut asked: Vec<u64> = (0..rng.usize(..100)).map(|_| rng.u64(..spread)).collect();
            asked.extend(here.iter().filter(|_| rng.bool()));
            asked.sort_unstable();
            let (mut keys, mut wanted) = (Keys::default(), Keys::default());
            here.iter().for_each(|key| keys.push_word(*key));
            asked.iter().for_each(|key| wanted.push_word(*key));
            for words in [true, false] {
                let group = GroupKeys::new(&keys, words);
                let from = rng.usize(..=asked.len());
                let mut found = vec![Vec::new(); asked.len()];
                group.find(&wanted, from..asked.len(), |at, row| found[at].push(row as usize));
                for (at, key) in asked.iter().enumerate() {
                    let rows = (0..here.len()).filter(|row| here[*row] == *key && at >= from);
                    assert_eq!(found[at], rows.collect::<Vec<_>>(), "{key}");
                }
            }
        }
    }
}
