//! Fixed-width base62, big-endian: digits, then upper case, then lower case.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the number that `bytes` are (big-endian), modulo 62^`WIDTH`, as `WIDTH` digits. Without an
/// allocation: a checksum is computed for each request.
pub(super) fn digits<const WIDTH: usize, const BYTES: usize>(
    mut bytes: [u8; BYTES],
) -> [u8; WIDTH] {
    let mut digits = [b'0'; WIDTH];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::from(divide(&mut bytes))];
    }
    digits
}

/// Divides the big-endian number by 62 in place and returns the remainder.
fn divide(number: &mut [u8]) -> u8 {
    let mut remainder = 0u16;
    for byte in number {
        let value = remainder << 8 | u16::from(*byte);
        *byte = (value / 62) as u8;
        remainder = value % 62;
    }
    remainder as u8
}
