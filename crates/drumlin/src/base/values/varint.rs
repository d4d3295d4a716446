//! Numbers of any size in few bytes. LEB128: seven bits per byte, low ones first, the high bit set on all but the last.

/// Appends a number.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at the start of `bytes`, and how many bytes it takes; `None` if they end before it does, or it has more than 64 bits.
pub fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_those_without_an_end_do_not() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            let len = bytes.len();
            assert_eq!(read_varint(&bytes), Some((value, len)));
            assert_eq!(read_varint(&bytes[..len - 1]), None);
        }
        assert_eq!(read_varint(&[0xff; 12]), None);
        let mut over = [0x80; 10];
        over[9] = 2;
        assert_eq!(read_varint(&over), None);
    }
}
