//! Fixed-width base62, big-endian: digits, then upper case, then lower case.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends the number that `bytes` are (big-endian), modulo 62^`width`, as `width` digits.
pub(super) fn push(text: &mut String, bytes: &[u8], width: usize) {
    let mut number = bytes.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::from(divide(&mut number))];
    }
    text.extend(digits.into_iter().map(char::from));
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
