//! CRC32C over data and the address it lives at, so that misplaced bytes are as visible as damaged ones.

/// CRC32C (Castagnoli) of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues the CRC32C `sum` over `bytes`.
pub fn checksum_append(sum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(sum, bytes)
}

/// CRC32C of `bytes` continued over the object's name and the offset at which they live.
pub fn checksum_at(bytes: &[u8], object: &str, offset: u64) -> u32 {
    let sum = crc32c::crc32c(bytes);
    let sum = crc32c::crc32c_append(sum, object.as_bytes());
    crc32c::crc32c_append(sum, &offset.to_le_bytes())
}
