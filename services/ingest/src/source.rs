//! Bytes from a file, standard input or the generator: hashed and counted as they pass, unpacked
//! where they are gzip, without a byte order mark.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

use crate::windows_1252;

/// Large enough that the header of any table is in the first buffer.
const BUFFER: usize = 256 * 1024;

/// How a file's text is written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark
    #[default]
    #[value(name = "utf-8")]
    Utf8,
    /// What spreadsheets on Windows wrote before UTF-8; it is not guessed
    #[value(name = "windows-1252")]
    Windows1252,
}

/// Where a load's bytes come from.
pub struct Source {
    /// The name that problems are reported under.
    pub name: String,
    /// What the provenance calls it where its loader says nothing.
    pub label: String,
    /// How many bytes there are, where that is known.
    pub length: Option<u64>,
    bytes: Box<dyn Read + Send>,
}

impl Source {
    /// A file, or standard input for `-`.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                name: "stdin".to_owned(),
                label: "stdin".to_owned(),
                length: None,
                bytes: Box::new(io::stdin()),
            });
        }
        let file = File::open(path)?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        Ok(Self {
            label: name.clone(),
            name,
            length: Some(file.metadata()?.len()),
            bytes: Box::new(file),
        })
    }

    /// Bytes that are made, or come from afar, as they are read.
    pub fn stream(name: &str, length: Option<u64>, bytes: impl Read + Send + 'static) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            length,
            bytes: Box::new(bytes),
        }
    }

    /// The same with another label.
    pub fn labelled(self, label: String) -> Self {
        Self { label, ..self }
    }

    /// The text, whose first buffer has the whole first line, and the digest that is complete once
    /// all of it was read.
    pub fn text(self, encoding: Encoding, progress: ProgressBar) -> io::Result<(Text, Digesting)> {
        let digesting = Digesting::default();
        let hashed = Hashed {
            bytes: self.bytes,
            digesting: digesting.clone(),
            progress,
        };
        let packed = FirstLine::of(hashed)?;
        let mut text = if packed.line.starts_with(GZIP_MAGIC) {
            let unpacked: Box<dyn Read + Send> = Box::new(MultiGzDecoder::new(packed.buffered()));
            FirstLine::of(unpacked)?
        } else {
            packed.boxed()
        };
        if encoding == Encoding::Windows1252 {
            let decoded: Box<dyn Read + Send> = Box::new(windows_1252::decoded(text.buffered()));
            text = FirstLine::of(decoded)?;
        } else if text.line.starts_with(BYTE_ORDER_MARK) {
            text.line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok((Box::new(text.buffered()), digesting))
    }
}

/// The first line of some bytes, or as much as a buffer holds, and what follows. Separator, byte
/// order mark and gzip are told by it: a pipe's first read may return a single byte.
struct FirstLine<R> {
    line: Vec<u8>,
    rest: R,
}

impl<R: Read + Send + 'static> FirstLine<R> {
    fn of(mut rest: R) -> io::Result<Self> {
        let (mut line, mut length) = (vec![0; BUFFER], 0);
        while length < BUFFER {
            let count = match rest.read(&mut line[length..]) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let read = length..length + count;
            length = read.end;
            if count == 0 || line[read].contains(&b'\n') {
                break;
            }
        }
        line.truncate(length);
        Ok(Self { line, rest })
    }

    fn buffered(self) -> impl BufRead + Send + 'static {
        BufReader::with_capacity(BUFFER, io::Cursor::new(self.line).chain(self.rest))
    }

    fn boxed(self) -> FirstLine<Box<dyn Read + Send>> {
        FirstLine {
            line: self.line,
            rest: Box::new(self.rest),
        }
    }
}

/// Text that is read line by line.
pub type Text = Box<dyn BufRead + Send>;

/// RFC 1952: what every gzip file begins with.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// U+FEFF in UTF-8, which spreadsheets write before a table.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The SHA-256 of a file while it is read.
#[derive(Clone, Default)]
pub struct Digesting(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    hash: Sha256,
    ended: bool,
}

impl Digesting {
    /// The digest of the file; none before its end was read.
    pub fn digest(&self) -> Option<[u8; 32]> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended.then(|| state.hash.clone().finalize().into())
    }
}

struct Hashed {
    bytes: Box<dyn Read + Send>,
    digesting: Digesting,
    progress: ProgressBar,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let mut state = self
            .digesting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.hash.update(&buffer[..count]);
        state.ended = count == 0 && !buffer.is_empty();
        drop(state);
        self.progress.inc(count as u64);
        Ok(count)
    }
}

/// Whether the bytes themselves are wrong, and not the way to them: gzip that is damaged or cut.
pub fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: Vec<u8>) -> io::Result<(String, [u8; 32])> {
        read_from(io::Cursor::new(bytes))
    }

    fn read_from(bytes: impl Read + Send + 'static) -> io::Result<(String, [u8; 32])> {
        let (mut text, digesting) =
            Source::stream("test", None, bytes).text(Encoding::Utf8, ProgressBar::hidden())?;
        let mut read = String::new();
        text.read_to_string(&mut read)?;
        Ok((read, digesting.digest().unwrap()))
    }

    /// A pipe whose writer flushes after each byte.
    struct ByteByByte(io::Cursor<Vec<u8>>);

    impl Read for ByteByByte {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_gzip_give_the_same_text_without_its_mark() {
        for bytes in [
            b"a,b".to_vec(),
            "\u{feff}a,b".into(),
            gzip("a,b"),
            gzip("\u{feff}a,b"),
        ] {
            assert_eq!(read(bytes).unwrap().0, "a,b");
        }
        let members = [gzip("a,"), gzip("b")].concat();
        assert_eq!(read(members).unwrap().0, "a,b");
    }

    #[test]
    fn a_pipe_that_delivers_single_bytes_is_read_like_a_file() {
        for bytes in ["\u{feff}a;b\n1;2\n".into(), gzip("\u{feff}a;b\n1;2\n")] {
            let piped = ByteByByte(io::Cursor::new(bytes));
            assert_eq!(read_from(piped).unwrap().0, "a;b\n1;2\n");
        }
        let piped = ByteByByte(io::Cursor::new(b"a;b\n1;2\n".to_vec()));
        let (mut text, _) = Source::stream("test", None, piped)
            .text(Encoding::Utf8, ProgressBar::hidden())
            .unwrap();
        assert_eq!(text.fill_buf().unwrap(), b"a;b\n");
    }

    #[test]
    fn a_file_that_was_not_read_to_its_end_has_no_digest() {
        let bytes = io::Cursor::new(vec![b'x'; 2 * BUFFER]);
        let source = Source::stream("test", None, bytes);
        let (_, digesting) = source.text(Encoding::Utf8, ProgressBar::hidden()).unwrap();
        assert_eq!(digesting.digest(), None);
    }

    #[test]
    fn the_digest_is_of_the_bytes_as_they_came() {
        let bytes = gzip("a,b");
        assert_eq!(
            read(bytes.clone()).unwrap().1,
            <[u8; 32]>::from(Sha256::digest(&bytes))
        );
    }

    #[test]
    fn damaged_and_cut_gzip_is_told_from_a_failing_disk() {
        let whole = gzip("dept,stressIndex\n34,3.5\n");
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        for bytes in [whole[..whole.len() - 3].to_vec(), damaged] {
            assert!(is_damage(&read(bytes).unwrap_err()));
        }
    }
}
