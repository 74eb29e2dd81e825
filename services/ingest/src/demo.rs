//! Synthetic data: invented, the same for the same seed, and labelled as such wherever it goes.

mod rows;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde_json::json;
use water_database::writer::History;
use water_domain::Timestamp;

use crate::arguments::{Dataset, DemoArguments};
use crate::command;
use crate::failure::Failure;
use crate::load::{self, Job};
use crate::source::Source;
use crate::summary;

/// What is generated: the file's name and its rows say that it is synthetic, as the provenance does.
const FILES: [(Dataset, &str); 4] = [
    (Dataset::Stress, "synthetic-stress.csv"),
    (Dataset::Risk, "synthetic-risk.csv"),
    (Dataset::Analyses, "synthetic-analyses.csv"),
    (Dataset::Audits, "synthetic-audits.csv"),
];

/// Generates all datasets, and loads them or writes them into a folder.
pub async fn run(arguments: DemoArguments, now: Timestamp) -> Result<(), Failure> {
    match &arguments.write_to {
        Some(folder) => write(&arguments, folder),
        None => load_all(&arguments, now).await,
    }
}

fn write(arguments: &DemoArguments, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::writing(folder))?;
    let mut files = Vec::new();
    for (dataset, name) in FILES {
        let path = folder.join(name);
        let written = File::create(&path)
            .and_then(|mut file| io::copy(&mut generate(dataset, arguments), &mut file));
        let bytes = written.map_err(Failure::writing(&path))?;
        files.push(json!({ "file": name, "bytes": bytes }));
    }
    summary::print(&json!({ "synthetic": true, "seed": arguments.seed, "files": files }))
}

/// One load after the other, each as if its file were loaded; the first that fails ends it.
async fn load_all(arguments: &DemoArguments, now: Timestamp) -> Result<(), Failure> {
    let label = format!("synthetic: water-ingest demo --seed {}", arguments.seed);
    let jobs = FILES.map(|(dataset, name)| {
        let job = Job::synthetic(
            dataset,
            label.clone(),
            arguments.as_of,
            &arguments.guards,
            now,
        );
        (job, Source::generated(name, generate(dataset, arguments)))
    });
    let mut writer = command::connect().await?;
    let mut loads = Vec::new();
    for (job, source) in jobs {
        let (summary, result) = load::run(&mut writer, source, job?).await;
        loads.push(summary);
        if result.is_err() {
            summary::print(&json!({ "synthetic": true, "seed": arguments.seed, "loads": loads }))?;
            return result;
        }
    }
    summary::print(&json!({ "synthetic": true, "seed": arguments.seed, "loads": loads }))
}

/// The dataset's file, row by row as it is read.
fn generate(dataset: Dataset, arguments: &DemoArguments) -> Lines {
    let (seed, as_of) = (arguments.seed, arguments.as_of);
    let history = |history| {
        rows::history(
            history,
            seed,
            arguments.accounts,
            arguments.rows_per_account,
            as_of,
        )
    };
    Lines::of(match dataset {
        Dataset::Stress | Dataset::Vigieau => Box::new(rows::stress(seed)),
        Dataset::Risk => Box::new(rows::risk(seed)),
        Dataset::Analyses => Box::new(history(History::Analyses)),
        Dataset::Audits => Box::new(history(History::Audits)),
    })
}

/// Lines that are read as bytes: a file that never is in memory as a whole.
struct Lines {
    lines: Box<dyn Iterator<Item = String> + Send>,
    line: io::Cursor<Vec<u8>>,
}

impl Lines {
    fn of(lines: Box<dyn Iterator<Item = String> + Send>) -> Self {
        Self {
            lines,
            line: io::Cursor::default(),
        }
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = self.line.read(buffer)?;
        while count < buffer.len() {
            let Some(line) = self.lines.next() else { break };
            self.line = io::Cursor::new(format!("{line}\n").into_bytes());
            count += self.line.read(&mut buffer[count..])?;
        }
        Ok(count)
    }
}
