//! A line sink that never blocks the caller: a bounded buffer and a thread that writes it out.
//!
//! Under load one write carries many lines. When the reader of the log stalls, the buffer fills and further
//! lines are counted and dropped, which is reported as soon as writing goes on.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// About 4 000 lines: seconds of a busy gate's access log.
const CAPACITY: usize = 1 << 20;
/// Time for which the first line waits for more: short for a reader, long enough to save writes.
const GATHER: Duration = Duration::from_millis(20);
/// Time for which the end of a process waits for a reader that has stalled.
const CLOSE: Duration = Duration::from_secs(1);

/// A handle to the sink; clones share it.
#[derive(Clone, Debug)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Signal to the writing thread: there are lines, or the end has come.
    written: Condvar,
    /// Signal to [`Lines::close`]: everything is out.
    flushed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines that wait to be written; taken as one by the writing thread.
    buffer: Vec<u8>,
    /// Lines that found the buffer full since the last write.
    dropped: u64,
    /// Set by [`Lines::close`].
    closed: bool,
    /// Set by the writing thread as its last act.
    ended: bool,
}

impl Lines {
    /// Starts the writing thread.
    pub fn start(output: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        // Without a thread the lines stay in the buffer: a process that cannot start one has
        // worse to fear, and the next thing it starts will say so.
        let _ = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.write_out(output));
        Self(shared)
    }

    /// Takes one or more whole lines, each with its line feed.
    pub fn push(&self, lines: &[u8]) {
        let mut state = self.0.lock();
        if state.buffer.len() + lines.len() > CAPACITY {
            state.dropped += 1;
            return;
        }
        let first = state.buffer.is_empty();
        state.buffer.extend_from_slice(lines);
        drop(state);
        if first {
            self.0.written.notify_one();
        }
    }

    /// Waits until everything is written, at most one second.
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        self.0.written.notify_one();
        let open = |state: &mut State| !state.ended;
        drop(self.0.flushed.wait_timeout_while(state, CLOSE, open));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_out(&self, mut output: impl Write) {
        let mut batch = Vec::new();
        loop {
            let closed = self.gather(&mut batch);
            // There is nowhere left to report that the log cannot be written.
            let _ = output.write_all(&batch).and_then(|()| output.flush());
            batch.clear();
            if closed {
                break;
            }
        }
        self.lock().ended = true;
        self.flushed.notify_all();
    }

    /// Waits for lines and a little longer for more, and takes them all; true at the end.
    fn gather(&self, batch: &mut Vec<u8>) -> bool {
        let empty = |state: &mut State| state.buffer.is_empty() && !state.closed;
        let open = |state: &mut State| !state.closed;
        let state = self.written.wait_while(self.lock(), empty);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let waited = self.written.wait_timeout_while(state, GATHER, open);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.buffer, batch);
        if state.dropped > 0 {
            let dropped = std::mem::take(&mut state.dropped);
            let message = "log lines were dropped: the log was not read fast enough";
            let line = serde_json::json!({"level": "WARN", "message": message, "dropped": dropped});
            batch.extend_from_slice(format!("{line}\n").as_bytes());
        }
        state.closed
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    /// Hands each write to the test, and waits in it until the test has taken it.
    struct Rendezvous(mpsc::SyncSender<Vec<u8>>);

    impl Write for Rendezvous {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map(|()| bytes.len()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn sink() -> (Lines, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::sync_channel(0);
        (Lines::start(Rendezvous(sender)), receiver)
    }

    #[test]
    fn lines_arrive_in_order() {
        let (lines, output) = sink();
        lines.push(b"one\n");
        lines.push(b"two\n");
        let mut text = Vec::new();
        while text != b"one\ntwo\n" {
            text.extend(output.recv().unwrap());
        }
    }

    #[test]
    fn fault_41_a_stalled_reader_holds_nobody_up_and_is_told_what_it_missed() {
        let (lines, output) = sink();
        let kilobyte = [b'x'; 1024];
        for _ in 0..3 * 1024 {
            lines.push(&kilobyte);
        }
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("log lines were dropped") {
            text.extend(output.recv().unwrap());
        }
        assert!(text.len() <= 2 * CAPACITY + 1024);
    }

    /// Fails as a full disk does until the test has made room.
    struct Disk {
        is_full: Arc<AtomicBool>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = if self.is_full.load(Ordering::SeqCst) {
                &[]
            } else {
                bytes
            };
            let sent = self.written.send(taken.to_vec());
            sent.map_err(io::Error::other)?;
            if taken.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn fault_41_a_full_disk_costs_the_lines_that_it_refused_and_no_later_ones() {
        let (written, output) = mpsc::channel();
        let is_full = Arc::new(AtomicBool::new(true));
        let lines = Lines::start(Disk {
            is_full: Arc::clone(&is_full),
            written,
        });
        lines.push(b"while full\n");
        assert_eq!(output.recv().unwrap(), b"");
        is_full.store(false, Ordering::SeqCst);
        lines.push(b"with room\n");
        assert_eq!(output.recv().unwrap(), b"with room\n");
    }

    #[test]
    fn closing_writes_what_is_left() {
        let (lines, output) = sink();
        let reader = thread::spawn(move || output.into_iter().flatten().collect::<Vec<_>>());
        lines.push(b"last words\n");
        lines.close();
        drop(lines);
        assert_eq!(reader.join().unwrap(), b"last words\n");
    }
}
