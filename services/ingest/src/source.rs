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

use crate::windows_1252::{self, IsUtf8};

/// Large enough that the header of any table is in the first buffer.
const BUFFER: usize = 256 * 1024;

/// Encoding of a file's text.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark
    #[default]
    #[value(name = "utf-8")]
    Utf8,
    /// Encoding of older spreadsheets on Windows; it is not guessed
    #[value(name = "windows-1252")]
    Windows1252,
}

/// Source of a load's bytes.
pub struct Source {
    /// The name that problems are reported under.
    pub name: String,
    /// Name in the provenance, unless the loader gives one.
    pub label: String,
    /// Number of bytes, where it is known.
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
        let metadata = file.metadata()?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        Ok(Self {
            label: name.clone(),
            name,
            // A pipe that has a name is a pipe.
            length: metadata.is_file().then_some(metadata.len()),
            bytes: Box::new(file),
        })
    }

    /// Bytes that are generated or fetched while they are read.
    pub fn stream(name: &str, length: Option<u64>, bytes: impl Read + Send + 'static) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            length,
            bytes: Box::new(bytes),
        }
    }

    /// Replaces the label.
    pub fn labelled(self, label: String) -> Self {
        Self { label, ..self }
    }

    /// Returns the text, whose first buffer has the whole first line that is not empty, and the digest, which is complete
    /// once all of it was read.
    pub fn text(self, encoding: Encoding, progress: ProgressBar) -> io::Result<(Text, Digesting)> {
        let digesting = Digesting::default();
        let hashed = DigestingReader {
            bytes: self.bytes,
            digesting: digesting.clone(),
            progress,
        };
        let packed = FirstLine::peek(hashed)?;
        let mut text = if packed.line.starts_with(GZIP_MAGIC) {
            let unpacked: Box<dyn Read + Send> = Box::new(MultiGzDecoder::new(packed.buffered()));
            FirstLine::peek(unpacked)?
        } else {
            packed.boxed()
        };
        if encoding == Encoding::Windows1252 {
            let decoded: Box<dyn Read + Send> = Box::new(windows_1252::decoded(text.buffered()));
            text = FirstLine::peek(decoded)?;
        } else if text.line.starts_with(BYTE_ORDER_MARK) {
            text.line.drain(..BYTE_ORDER_MARK.len());
        }
        let lines = Lines {
            bytes: io::Cursor::new(text.line).chain(text.rest),
            digesting: digesting.clone(),
        };
        Ok((Box::new(BufReader::with_capacity(BUFFER, lines)), digesting))
    }
}

/// The first line of some bytes that is not empty, or as much as a buffer holds, and the rest. Separator, byte order mark and gzip are
/// recognised in it: a pipe's first read may return a single byte.
struct FirstLine<R> {
    line: Vec<u8>,
    rest: R,
}

impl<R: Read + Send + 'static> FirstLine<R> {
    fn peek(mut rest: R) -> io::Result<Self> {
        let (mut line, mut length, mut start) = (vec![0; BUFFER], 0, 0);
        while length < BUFFER {
            let count = match rest.read(&mut line[length..]) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let read = length;
            length += count;
            // A mark may come alone, or in parts.
            if start == 0 && line.starts_with(BYTE_ORDER_MARK) {
                start = BYTE_ORDER_MARK.len();
            }
            let text = &line[start..length];
            start += text.len() - text.trim_ascii_start().len();
            if count == 0 || line[start.max(read)..length].contains(&b'\n') {
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

/// Problem of a pipe whose last value may be cut, and the remedy.
pub const CUT_OFF: &str = "the last line has no end, so the input may be cut off: end it with a line feed, or load it from a file";

/// Remark on a file that may be cut in its last value.
pub const MAY_BE_CUT_OFF: &str = "the last line has no end, so it may be cut off";

/// Text that is read line by line.
pub type Text = Box<dyn BufRead + Send>;

/// First bytes of every gzip file (RFC 1952).
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
    /// Number of lines of the text that have an end.
    line_ends: u64,
    /// The beginning of the text after the last line end.
    tail: Vec<u8>,
    /// First byte that is no white space.
    first: Option<u8>,
}

impl Digesting {
    /// The digest of the file; `None` before its end was read.
    pub fn digest(&self) -> Option<[u8; 32]> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended.then(|| state.hash.clone().finalize().into())
    }

    /// Number and beginning of a table's last line, where it has no end and all others have one: its last value may be
    /// cut. A JSON object has its own end, without which it cannot be read.
    pub fn line_without_end(&self) -> Option<(u64, String)> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = state.tail.trim_ascii();
        let is_object = state.first == Some(b'{') && tail.starts_with(b"{");
        let open = state.line_ends > 0 && !tail.is_empty() && !is_object;
        open.then(|| {
            let text = String::from_utf8_lossy(tail).into_owned();
            (state.line_ends + 1, text)
        })
    }
}

/// Text whose last line is remembered as it passes.
struct Lines<R> {
    bytes: R,
    digesting: Digesting,
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let read = &buffer[..count];
        let mut state = self
            .digesting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let first = read.iter().find(|byte| !byte.is_ascii_whitespace());
        state.first = state.first.or(first.copied());
        state.line_ends += read.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let tail = match read.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => {
                state.tail.clear();
                &read[end + 1..]
            }
            None => read,
        };
        let room = TAIL.saturating_sub(state.tail.len()).min(tail.len());
        state.tail.extend_from_slice(&tail[..room]);
        Ok(count)
    }
}

/// Largest number of bytes of a last line that are shown.
const TAIL: usize = 512;

struct DigestingReader {
    bytes: Box<dyn Read + Send>,
    digesting: Digesting,
    progress: ProgressBar,
}

impl Read for DigestingReader {
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

/// Whether the bytes themselves are wrong, and not their transport: gzip that is damaged or cut, or UTF-8 in place of
/// Windows-1252.
pub fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

/// Describes the damage as a problem of the file.
pub fn damage(error: &io::Error) -> String {
    match error.get_ref() {
        Some(cause) if cause.is::<IsUtf8>() => cause.to_string(),
        _ => "the gzip data is damaged or cut off".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
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

    /// A pipe whose writer flushes after each of these.
    struct Chunks(VecDeque<Vec<u8>>);

    impl Read for Chunks {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let chunk = self.0.pop_front().unwrap_or_default();
            buffer[..chunk.len()].copy_from_slice(&chunk);
            Ok(chunk.len())
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
    }

    #[test]
    fn the_first_line_that_is_not_empty_is_read_whole_whatever_a_pipe_delivers_at_once() {
        for chunks in [
            &["\r\n\na;b\n1;2\n".as_bytes()][..],
            &[b"\r\n\na;b\n", b"1;2\n"],
            &[b"\xef\xbb\xbf", b"\r\n\n", b"a;", b"b\n", b"1;2\n"],
            &[b"\xef", b"\xbb\xbf\r", b"\n\na", b";b\n1;2\n"],
        ] {
            let chunks = chunks.iter().map(|chunk| chunk.to_vec());
            let piped = Chunks(chunks.collect());
            let (mut text, _) = Source::stream("test", None, piped)
                .text(Encoding::Utf8, ProgressBar::hidden())
                .unwrap();
            let buffer = text.fill_buf().unwrap();
            assert!(buffer.starts_with(b"\r\n\na;b\n"), "{buffer:?}");
        }
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
