//! Test data: keys of several shapes, their values, and look-ups of them with the expected results.

use std::ops::AddAssign;

use crate::Result;

/// Bytes of every value.
pub const VALUE_BYTES: usize = 100;

/// Concatenated byte strings of the same length.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Packed<'a> {
    /// Strings of `width` bytes.
    pub fn new(bytes: &'a [u8], width: usize) -> Self {
        Self { bytes, width }
    }

    /// The number of them.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// The length of each in bytes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One of them.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u8] {
        &self.bytes[at * self.width..(at + 1) * self.width]
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        self.bytes.chunks_exact(self.width)
    }

    /// In chunks of `count`.
    pub fn chunks(&self, count: usize) -> impl Iterator<Item = Packed<'a>> + use<'a> {
        let width = self.width;
        self.bytes.chunks(count * width).map(move |bytes| Packed { bytes, width })
    }
}

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 16 random bytes.
    Random,
    /// Eight zeros, and a number with its most significant byte first.
    Dense,
    /// A number in 16 decimal digits.
    Decimal,
    /// A path of three levels, 45 bytes.
    Path,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 4] = [Shape::Dense, Shape::Decimal, Shape::Random, Shape::Path];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Random => "random 16 bytes",
            Shape::Dense => "dense",
            Shape::Decimal => "16 decimal digits",
            Shape::Path => "45-byte paths",
        }
    }

    /// The length of a key in bytes.
    pub fn width(self) -> usize {
        if self == Shape::Path { 45 } else { 16 }
    }

    /// The key with a number.
    fn key(self, number: u64, rng: &mut fastrand::Rng) -> Vec<u8> {
        match self {
            Shape::Random => rng.u128(..).to_be_bytes().to_vec(),
            Shape::Dense => u128::from(number).to_be_bytes().to_vec(),
            Shape::Decimal => format!("{number:016}").into_bytes(),
            Shape::Path => {
                let (tenant, project) = (number / 20_000, number / 200 % 100);
                format!("tenants/t{tenant:04}/projects/p{project:05}/objects/{number:07}").into_bytes()
            }
        }
    }
}

/// Keys and values, in the order in which they are written.
pub struct Rows {
    pub shape: Shape,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Rows {
    /// `count` rows, in random order.
    pub fn new(shape: Shape, count: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut numbers: Vec<u64> = (0..count as u64).collect();
        rng.shuffle(&mut numbers);
        let keys: Vec<u8> = numbers.iter().flat_map(|number| shape.key(*number, &mut rng)).collect();
        assert_eq!(keys.len(), count * shape.width(), "keys of one length");
        let mut values = vec![0; count * VALUE_BYTES];
        rng.fill(&mut values);
        Self { shape, keys, values }
    }

    /// The number of them.
    pub fn len(&self) -> usize {
        self.keys.len() / self.shape.width()
    }

    /// Their keys.
    pub fn keys(&self) -> Packed<'_> {
        Packed::new(&self.keys, self.shape.width())
    }

    /// Their values.
    pub fn values(&self) -> Packed<'_> {
        Packed::new(&self.values, VALUE_BYTES)
    }

    /// The expected result of a scan of all of them.
    pub fn scanned(&self) -> Scanned {
        let (keys, values) = (self.keys(), self.values());
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|at| keys.get(*at));
        let mut scanned = Scanned::default();
        order.iter().for_each(|at| scanned.add(values.get(*at)));
        scanned
    }

    /// `count` keys and values at random places, to overwrite them with the same values.
    pub fn again(&self, count: usize) -> (Vec<u8>, Vec<u8>) {
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let at = rng.usize(..self.len());
            keys.extend_from_slice(self.keys().get(at));
            values.extend_from_slice(self.values().get(at));
        }
        (keys, values)
    }
}

/// The values found, regardless of order: their number, and a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub found: u64,
    pub sum: u64,
}

impl Tally {
    /// Counts a found value, by its ends; [`Question::verify`] checks the whole value.
    #[inline]
    pub fn add(&mut self, value: &[u8]) {
        self.found += 1;
        self.sum = self.sum.wrapping_add(ends(value));
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The result of a scan: the number of values, and a checksum that depends on them and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub rows: u64,
    hash: u64,
}

impl Scanned {
    /// Counts the next value.
    #[inline]
    pub fn add(&mut self, value: &[u8]) {
        self.rows += 1;
        self.hash = self.hash.wrapping_mul(31).wrapping_add(ends(value));
    }
}

/// The first and the last eight bytes, mixed.
#[inline]
fn ends(value: &[u8]) -> u64 {
    match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(1),
        _ => 1,
    }
}

/// Keys to look up, one after the other and then again from the start, and their rows.
pub struct Question<'a> {
    rows: &'a Rows,
    keys: Vec<u8>,
    /// `None`: there is none.
    asked: Vec<Option<usize>>,
}

impl<'a> Question<'a> {
    /// Random existing keys.
    pub fn present(rows: &'a Rows, count: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(2);
        let asked: Vec<usize> = (0..count).map(|_| rng.usize(..rows.len())).collect();
        let keys = asked.iter().flat_map(|at| rows.keys().get(*at)).copied().collect();
        Self { rows, keys, asked: asked.into_iter().map(Some).collect() }
    }

    /// Keys that no row has.
    pub fn absent(rows: &'a Rows, count: usize) -> Self {
        assert_eq!(rows.shape, Shape::Random, "keys that do not come twice");
        let mut keys = vec![0; count * rows.shape.width()];
        fastrand::Rng::with_seed(4).fill(&mut keys);
        Self { rows, keys, asked: vec![None; count] }
    }

    /// The keys.
    pub fn keys(&self) -> Packed<'_> {
        Packed::new(&self.keys, self.rows.shape.width())
    }

    /// The expected value at a place.
    pub fn value(&self, at: usize) -> Option<&[u8]> {
        self.asked[at].map(|row| self.rows.values().get(row))
    }

    /// Checks that `count` look-ups, from the key at `start` on, found what they should.
    pub fn check(&self, start: usize, count: usize, found: Tally) -> Result<()> {
        let tally = |places: &mut dyn Iterator<Item = usize>| {
            let mut tally = Tally::default();
            places.filter_map(|at| self.value(at)).for_each(|value| tally.add(value));
            tally
        };
        let all = self.asked.len();
        let once = tally(&mut (0..all));
        let mut wanted = tally(&mut (0..count % all).map(|at| (start + at) % all));
        (0..count / all).for_each(|_| wanted += once);
        if found == wanted { Ok(()) } else { Err(format!("found {found:?} instead of {wanted:?}").into()) }
    }
}
