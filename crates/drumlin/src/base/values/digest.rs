//! Digests of numbers.

/// FNV-1a over 128 bits: tells things apart where the numbers that go in are random, or not up to others.
/// Source: draft-eastlake-fnv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u128);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// Of nothing.
    pub fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}
