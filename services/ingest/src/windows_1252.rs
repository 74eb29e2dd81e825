//! Windows-1252 text as UTF-8, when a flag asks for it. A file that is UTF-8 all the same is
//! refused: `é` would become `Ã©`, and nothing after that could tell.

use std::io::{self, Read};

use encoding_rs::WINDOWS_1252;
use encoding_rs_io::DecodeReaderBytesBuilder;

/// The end of a file that is UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the file is UTF-8: leave out --encoding windows-1252")]
pub struct IsUtf8;

/// The text of `bytes`; its end is the error [`IsUtf8`] where they were that.
pub fn decoded(bytes: impl Read + Send) -> impl Read + Send {
    DecodeReaderBytesBuilder::new()
        .encoding(Some(WINDOWS_1252))
        .build(Watched {
            bytes,
            begun: Vec::new(),
            seen: Seen::Ascii,
        })
}

/// Bytes on their way, and whether all of them are UTF-8 of more than ASCII.
struct Watched<R> {
    bytes: R,
    /// A character of which not all bytes have come.
    begun: Vec<u8>,
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The same in both encodings.
    Ascii,
    /// Accents that Windows-1252 would hardly ever make.
    Utf8,
    /// Something that is no UTF-8.
    Other,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.seen == Seen::Utf8 && self.begun.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, IsUtf8));
        }
        self.watch(&buffer[..count]);
        Ok(count)
    }
}

impl<R> Watched<R> {
    fn watch(&mut self, bytes: &[u8]) {
        if self.seen == Seen::Other {
            return;
        }
        self.begun.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                self.seen = Seen::Other;
                return;
            }
        };
        if !self.begun[..valid].is_ascii() {
            self.seen = Seen::Utf8;
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
            let mut watched = Watched { bytes: io::empty(), begun: Vec::new(), seen: Seen::Ascii };
            text.as_bytes().chunks(size).for_each(|chunk| watched.watch(chunk));
            prop_assert_eq!(whole.is_err(), watched.seen == Seen::Utf8);
            prop_assert!(watched.begun.is_empty());
        }
    }
}
