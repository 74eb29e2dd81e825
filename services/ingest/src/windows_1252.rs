//! Windows-1252 text as UTF-8, when a flag asks for it. A file that is UTF-8 is refused: `é` would become `Ã©`, which
//! nothing later could detect.

use std::io::{self, Read};

use encoding_rs::WINDOWS_1252;
use encoding_rs_io::DecodeReaderBytesBuilder;

/// Error at the end of a file that is UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the file is UTF-8: leave out --encoding windows-1252")]
pub struct IsUtf8;

/// Decodes Windows-1252; ends with the error [`IsUtf8`] on UTF-8 input.
pub fn decoded(bytes: impl Read + Send) -> impl Read + Send {
    DecodeReaderBytesBuilder::new()
        .encoding(Some(WINDOWS_1252))
        .build(EncodingProbe {
            bytes,
            begun: Vec::new(),
            seen: DetectedEncoding::Ascii,
        })
}

/// Bytes that pass, and whether all of them are UTF-8 of more than ASCII.
struct EncodingProbe<R> {
    bytes: R,
    /// A character of which some bytes have not been read yet.
    begun: Vec<u8>,
    seen: DetectedEncoding,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DetectedEncoding {
    /// ASCII only: the same in both encodings.
    Ascii,
    /// UTF-8 accents, whose bytes Windows-1252 text hardly ever has.
    Utf8,
    /// Something that is no UTF-8.
    Other,
}

impl<R: Read> Read for EncodingProbe<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if count == 0
            && !buffer.is_empty()
            && self.seen == DetectedEncoding::Utf8
            && self.begun.is_empty()
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, IsUtf8));
        }
        self.watch(&buffer[..count]);
        Ok(count)
    }
}

impl<R> EncodingProbe<R> {
    fn watch(&mut self, bytes: &[u8]) {
        if self.seen == DetectedEncoding::Other {
            return;
        }
        self.begun.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                self.seen = DetectedEncoding::Other;
                return;
            }
        };
        if !self.begun[..valid].is_ascii() {
            self.seen = DetectedEncoding::Utf8;
        }
        self.begun.drain(..valid);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        decoded(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn accents_and_the_euro_sign_are_read() {
        assert_eq!(
            read(b"H\xe9rault;\x80;\x8cuf\n").unwrap(),
            "Hérault;€;Œuf\n"
        );
        assert_eq!(read(b"ascii\n").unwrap(), "ascii\n");
    }

    #[test]
    fn a_file_that_is_utf8_is_refused() {
        for text in ["Hérault\n", "\u{feff}dept\n"] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(
                error.get_ref().is_some_and(|why| why.is::<IsUtf8>()),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_verdict_does_not_depend_on_how_the_bytes_come(text in "[a-zé€]{0,40}", size in 1_usize..9) {
            let whole = read(text.as_bytes());
            let mut watched = EncodingProbe { bytes: io::empty(), begun: Vec::new(), seen: DetectedEncoding::Ascii };
            text.as_bytes().chunks(size).for_each(|chunk| watched.watch(chunk));
            prop_assert_eq!(whole.is_err(), watched.seen == DetectedEncoding::Utf8);
            prop_assert!(watched.begun.is_empty());
        }
    }
}
