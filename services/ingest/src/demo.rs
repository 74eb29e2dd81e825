//! Data for a first run: synthetic indices, risks and histories, the same for the same seed, and the drought register's
//! real levels of one day. Each is marked as synthetic or real wherever it goes.

mod company;
mod register;
mod rows;
mod scores;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde_json::json;
use water_database::writer::History;
use water_domain::Timestamp;

use crate::arguments::{Dataset, DemoArguments};
use crate::connection::connect;
use crate::failure::Failure;
use crate::load::{self, Job, Origin};
use crate::report::Form;
use crate::source::Source;
use crate::summary;

/// Files to generate. A synthetic one says so in its name and its rows, as the provenance does. The register's levels
/// come last: they override those derived from the indices.
const FILES: [(Dataset, &str); 5] = [
    (Dataset::Stress, "synthetic-stress.csv"),
    (Dataset::Risk, "synthetic-risk.csv"),
    (Dataset::Analyses, "synthetic-analyses.csv"),
    (Dataset::Audits, "synthetic-audits.csv"),
    (Dataset::Vigieau, register::FILE),
];

/// Generates all datasets, and loads them or writes them into a folder.
pub async fn run(arguments: DemoArguments, now: Timestamp) -> Result<(), Failure> {
    match &arguments.write_to {
        Some(folder) => write(&arguments, folder, now),
        None => load_all(&arguments, now).await,
    }
}

fn write(arguments: &DemoArguments, folder: &Path, now: Timestamp) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::writing(folder))?;
    let mut files = Vec::new();
    for (dataset, name) in FILES {
        let path = folder.join(name);
        let written = File::create(&path)
            .and_then(|mut file| io::copy(&mut content(dataset, arguments, now), &mut file));
        let bytes = written.map_err(Failure::writing(&path))?;
        files.push(json!({ "file": name, "bytes": bytes, "synthetic": is_synthetic(dataset) }));
    }
    // JSON has no field for the licence, which must accompany the data.
    let path = folder.join(register::NOTE_FILE);
    fs::write(&path, register::NOTE).map_err(Failure::writing(&path))?;
    summary::print(&json!({ "seed": arguments.seed, "files": files }))
}

/// Loads one dataset after the other, each as from a file; the first failure ends it.
async fn load_all(arguments: &DemoArguments, now: Timestamp) -> Result<(), Failure> {
    let mut jobs = Vec::new();
    for (dataset, name) in FILES {
        let job = job(dataset, arguments, now)?;
        let bytes = content(dataset, arguments, now);
        jobs.push((job, Source::stream(name, None, bytes)));
    }
    let mut writer = connect(Form::Text).await?;
    let mut loads = Vec::new();
    let mut result = Ok(());
    for (job, source) in jobs {
        let (summary, loaded) = load::run(&mut writer, source, job).await;
        loads.push(summary);
        result = loaded;
        if result.is_err() {
            break;
        }
    }
    writer.close().await;
    summary::print(&json!({ "seed": arguments.seed, "loads": loads }))?;
    result
}

/// Whether the dataset is invented: all are, except the register's levels.
fn is_synthetic(dataset: Dataset) -> bool {
    dataset != Dataset::Vigieau
}

fn job(dataset: Dataset, arguments: &DemoArguments, now: Timestamp) -> Result<Job, Failure> {
    let synthetic = is_synthetic(dataset);
    let (origin, as_of) = if synthetic {
        let label = format!("synthetic: water-ingest demo --seed {}", arguments.seed);
        let origin = Origin {
            source: Some(label),
            ..Origin::default()
        };
        (origin, arguments.as_of)
    } else {
        (
            register::origin(),
            register::AS_OF.parse().expect("it is a day"),
        )
    };
    Job::built_in(dataset, origin, synthetic, as_of, &arguments.guards, now)
}

/// Content of the dataset's file, generated row by row while it is read.
fn content(dataset: Dataset, arguments: &DemoArguments, now: Timestamp) -> Box<dyn Read + Send> {
    let seed = arguments.seed;
    let history = |history| {
        rows::history(
            history,
            seed,
            arguments.accounts,
            arguments.rows_per_account,
            arguments.as_of.at(now),
        )
    };
    match dataset {
        Dataset::Stress => Lines::boxed(rows::stress(seed)),
        Dataset::Risk => Lines::boxed(rows::risk(seed)),
        Dataset::Analyses => Lines::boxed(history(History::Analyses)),
        Dataset::Audits => Lines::boxed(history(History::Audits)),
        Dataset::Vigieau => Box::new(register::LEVELS),
    }
}

/// Lines read as bytes: the file is never in memory as a whole.
struct Lines<L> {
    lines: L,
    line: io::Cursor<Vec<u8>>,
}

impl<L: Iterator<Item = String> + Send + 'static> Lines<L> {
    fn boxed(lines: L) -> Box<dyn Read + Send> {
        Box::new(Self {
            lines,
            line: io::Cursor::default(),
        })
    }
}

impl<L: Iterator<Item = String>> Read for Lines<L> {
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
