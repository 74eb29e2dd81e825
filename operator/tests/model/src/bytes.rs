//! The bytes of a state, gathered to be hashed at once.

use std::hash::Hasher;

/// Number of bytes, more than any state has.
const ROOM: usize = 1024;

/// Bytes that were written to it; it hashes nothing. Lengths and variants fit in a byte.
pub struct Bytes {
    room: [u8; ROOM],
    length: usize,
}

impl Default for Bytes {
    fn default() -> Self {
        Self {
            room: [0; ROOM],
            length: 0,
        }
    }
}

impl Bytes {
    pub fn all(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.room[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    fn write_u8(&mut self, byte: u8) {
        self.room[self.length] = byte;
        self.length += 1;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u8(number as u8);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u8(number as u8);
    }

    fn finish(&self) -> u64 {
        unreachable!("its bytes are hashed by another")
    }
}
