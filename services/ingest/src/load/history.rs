//! Loads of a history in batches: whatever the file's size, only a few are in memory.

use std::io;
use std::thread;

use tokio::sync::mpsc;
use water_database::writer::{Batch, History, LoadError, Outcome, Writer};

use crate::dataset::history::{self, Rules};
use crate::failure::{self, Failure};
use crate::load::Job;
use crate::load::reading::Reading;
use crate::problem::Problems;
use crate::source::{Digesting, Text};

/// Batches that wait between the reader and the database: enough to keep both busy.
const BATCHES: usize = 2;

/// Reads on a separate thread while earlier rows are on their way.
pub(super) async fn load(
    writer: &mut Writer,
    history: History,
    text: Text,
    digesting: &Digesting,
    job: &Job,
    reading: &mut Reading,
) -> Result<Outcome, Failure> {
    let mut staging = writer.stage(history).await?;
    let (batches, mut read_batches) = mpsc::channel(BATCHES);
    let rules = job.rules();
    let mut problems = std::mem::replace(&mut reading.problems, Problems::new(&reading.file));
    let reader = thread::spawn(move || {
        let rows = read(text, history, rules, &mut problems, &batches);
        (rows, problems)
    });
    while let Some(batch) = read_batches.recv().await {
        // The reader is not waited for after a failure: its input may never end.
        staging.push(batch).await?;
    }
    let (rows, problems) = reader.join().expect("the reader of a file does not panic");
    reading.problems = problems;
    reading.row_count = reading.readable(rows)?;
    let load = reading.load(job, digesting)?;
    match staging.finish(job.as_of, &load).await {
        Err(LoadError::Conflicts { first, total }) => {
            for conflict in &first {
                let (line, first) = (conflict.line, conflict.first_line);
                reading.problems.refuse_repeated(line, first);
            }
            reading.problems.refuse_unnamed(total - first.len() as u64);
            Err(reading.bad_data())
        }
        finished => finished.map_err(|error| failure::of_load(error, &reading.file)),
    }
}

fn read(
    text: Text,
    history: History,
    rules: Rules,
    problems: &mut Problems,
    batches: &mpsc::Sender<Batch>,
) -> io::Result<u64> {
    let mut batch = Batch::default();
    let rows = history::read(text, history, rules, problems, |row, problems| {
        // After the first problem nothing will be loaded: the rest is only checked.
        if problems.count() == 0 {
            batch.push(row);
            if batch.is_full() {
                send(batches, std::mem::take(&mut batch));
            }
        }
    })?;
    send(batches, batch);
    Ok(rows)
}

/// Waits for room. A closed receiver reports its own error.
fn send(batches: &mpsc::Sender<Batch>, batch: Batch) {
    let _ = batches.blocking_send(batch);
}

impl Problems {
    /// Refuses a row that repeats a record with different content.
    pub(super) fn refuse_repeated(&mut self, line: u64, first: u64) {
        let why = format!("the record of line {first} is there again with different content");
        self.refuse(line, "id", &why);
    }
}
